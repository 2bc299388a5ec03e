"""Seconds of a whole GRPO step (generation, rewards, log-probs, update, sync): ours, TRL's and verl's, on a CPU.

Twice: with an untrained model, whose answers nearly all reach the limit, and, as in the study, with one pretrained for
a minute or two and the tiny profile's limit, so that answers end where they end. The same model, prompts, group size
and longest answer for all, no group dropped, start-up apart; heads of 32, the least that verl's vLLM takes on a CPU.
Goals: ours at least twice as fast as TRL's and eight times as fast as verl's. On an idle machine, -s shows the figures:

pytest -s -m slow tests/benchmarks/test_step_speed.py

TRL lies in a folder of its own (.trl, or $TRL_PATH), because verl 0.9 does not run in an environment that has TRL 1:
.venv/bin/pip install --no-deps --target .trl trl==1.13.0
"""

import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from compositionality.data.create_problems import create_problems, settings_for
from compositionality.train.metrics import read_metrics
from compositionality.train.tiny.corpus import definition_names
from compositionality.train.tiny.model import TinyConfig, build_model, build_tokenizer

ROOT = Path(__file__).parents[2]
TRL = Path(os.environ.get("TRL_PATH", ROOT / ".trl"))
PROMPTS, GROUP = 32, 8
STEPS, VERL_STEPS, WARM_UP = 22, 5, 2
PARTS = ("gen", "reward", "old_log_prob", "update_actor", "update_weights", "sync")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@dataclass
class Steps:
    """Seconds and mean answer length (tokens) of each step after the warm-up; where the seconds went, if known."""

    seconds: list[float]
    lengths: list[float]
    parts: str = ""

    @property
    def typical(self) -> float:
        return statistics.median(self.seconds)

    @property
    def length(self) -> float:
        return statistics.mean(self.lengths)


@dataclass(frozen=True)
class Work:
    """What all are given: a folder with ``model`` and problem files, and the longest answer allowed."""

    home: Path
    tokens: int


def untrained(home: Path) -> Work:
    tokenizer = build_tokenizer(definition_names())
    for part in (build_model(TinyConfig(head_width=32), tokenizer, 0), tokenizer):
        part.save_pretrained(home / "model")
    return Work(home, 48)


def pretrained(home: Path) -> Work:
    sizes = ["steps=1500", "model.head_width=32", "threads=2"]
    command = [sys.executable, "examples/pretrain_tiny.py", f"output={home / 'model'}", *sizes]
    subprocess.run(command, cwd=ROOT, check=True, timeout=600)
    return Work(home, 192)


@pytest.fixture(params=[untrained, pretrained], ids=lambda make: make.__name__)
def work(request: pytest.FixtureRequest, tmp_path: Path) -> Work:
    for name, count in (("train", STEPS * PROMPTS), ("validation", 4)):
        settings = settings_for(
            "string", output=str(tmp_path / f"{name}.parquet"), count=count, style="compact", max_length=10,
            levels=[2], input_length=[3, 6], frozen_parameters=True, split=name,
        )  # fmt: skip
        create_problems(settings)
    return request.param(tmp_path)


def processes_of(count: int) -> list[str]:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={count}"]
    return [sys.executable, *(launcher if count > 1 else [])]


def run_ours(work: Work, processes: int) -> Steps:
    home = work.home
    output = home / f"ours{processes}"
    command = [
        *processes_of(processes), "compositionality/train/grpo.py",
        f"model.path={home / 'model'}", f"data.train_files=[{home / 'train.parquet'}]", "mesh.shard=false",
        f"data.prompts_per_step={PROMPTS}", "data.max_prompt_tokens=32", f"rollout.n={GROUP}",
        f"rollout.max_tokens={work.tokens}", "algorithm.drop_equal_groups=false", "optim.lr=3e-4",
        f"trainer.output={output}", f"trainer.steps={STEPS}", "trainer.save_every=0", "trainer.eval_every=0",
        "trainer.samples_every=0", "trainer.micro_batch_tokens=4096", f"trainer.threads={2 // processes}",
    ]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True, timeout=500)
    return from_metrics(output / "metrics.jsonl")


def run_trl(work: Work, processes: int) -> Steps:
    sizes = [str(size) for size in (STEPS, PROMPTS, GROUP, work.tokens, processes)]
    paths = [str(work.home / name) for name in ("model", "train.parquet", f"trl{processes}")]
    command = [*processes_of(processes), "tests/benchmarks/trl_steps.py", *paths, *sizes]
    variables = os.environ | {"PYTHONPATH": str(TRL)}
    ran = subprocess.run(command, cwd=ROOT, env=variables, check=True, timeout=500, stdout=subprocess.PIPE, text=True)
    rows = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"seconds"')]
    rows = rows[WARM_UP:]
    return Steps([row["seconds"] for row in rows], [row["length"] for row in rows])


def run_verl(work: Work) -> Steps:
    home = work.home
    command = [
        sys.executable, "examples/train_grpo.py", "engine=verl", "run.device=cpu", f"model.path={home / 'model'}",
        f"data.train_files=[{home / 'train.parquet'}]", f"data.val_files=[{home / 'validation.parquet'}]",
        f"trainer.output={home / 'verl'}", f"data.prompts_per_step={PROMPTS}", f"rollout.n={GROUP}",
        "data.max_prompt_tokens=32", f"rollout.max_tokens={work.tokens}", "algorithm.drop_equal_groups=false",
        f"trainer.steps={VERL_STEPS}", "trainer.eval_every=0", "trainer.micro_batch_tokens=4096",
    ]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True, timeout=500)
    return from_metrics(home / "verl" / "metrics.jsonl")


def from_metrics(path: Path) -> Steps:
    rows = [row for row in read_metrics(path) if "timing_s/step" in row][WARM_UP:]
    parts = [(part, [row[f"timing_s/{part}"] for row in rows if f"timing_s/{part}" in row]) for part in PARTS]
    shown = ", ".join(f"{part} {statistics.median(values):.3f}" for part, values in parts if values)
    return Steps([row["timing_s/step"] for row in rows], [row["response_length/mean"] for row in rows], shown)


@pytest.mark.skipif(not (TRL / "trl").is_dir(), reason=f"no TRL in {TRL}; see the top of the file")
def test_seconds_per_grpo_step(work: Work) -> None:
    runs = {
        "ours, 1 process x 2 threads": run_ours(work, 1),
        "ours, 2 processes x 1 thread": run_ours(work, 2),
        "TRL, 1 process x 2 threads": run_trl(work, 1),
        "TRL, 2 processes x 1 thread": run_trl(work, 2),
        "verl": run_verl(work),
    }
    print(f"\na GRPO step of {PROMPTS} prompts x {GROUP} answers of at most {work.tokens} tokens")
    for name, run in runs.items():
        print(
            f"{name}: {run.typical:.3f} s (fastest {min(run.seconds):.3f}), {run.length:.1f} tokens/answer {run.parts}"
        )
    best = {
        who: min(run.typical for name, run in runs.items() if name.startswith(who)) for who in ("ours", "TRL", "verl")
    }
    print(
        f"TRL / ours {best['TRL'] / best['ours']:.1f} (goal 2), verl / ours {best['verl'] / best['ours']:.1f} (goal 8)"
    )
    lengths = [run.length for run in runs.values()]
    assert max(lengths) < 1.2 * min(lengths), "not the same work"
    assert [len(run.seconds) for run in runs.values()] == [STEPS - WARM_UP] * 4 + [VERL_STEPS - WARM_UP]
