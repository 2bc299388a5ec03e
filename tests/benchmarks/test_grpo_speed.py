"""Seconds of a GRPO step on the tiny model, and where they go. Run with -s to see the figures.

pytest -s -m slow tests/benchmarks/test_grpo_speed.py
"""

import subprocess
import sys
from pathlib import Path

import pytest

from compositionality.data.create_problems import CreateProblems, create_problems
from compositionality.train.metrics import read_metrics
from compositionality.train.tiny.corpus import definition_names
from compositionality.train.tiny.model import TinyConfig, build_model, save_model
from compositionality.train.tiny.tokenizer import build_tokenizer

ROOT = Path(__file__).parents[2]
PARTS = ("gen", "old_log_prob", "adv", "update_actor", "update_weights", "step")
PROMPTS, GROUP, TOKENS = 32, 8, 48
pytestmark = pytest.mark.slow


def run(home: Path) -> Path:
    """Three updates of an untrained model: every response is as long as it may be, so the work is always the same."""
    tokenizer = build_tokenizer(definition_names())
    save_model(build_model(TinyConfig(), tokenizer, 0), tokenizer, home / "model")
    for name, count in (("train", 3 * PROMPTS), ("validation", 4)):
        settings = CreateProblems(output=str(home / f"{name}.parquet"), count=count, style="compact", max_length=10)
        settings.levels, settings.input_length, settings.frozen_parameters, settings.split = [2], [3, 6], True, name
        create_problems(settings)
    command = [
        sys.executable, "examples/train_grpo.py", "device=cpu", f"lab.model={home / 'model'}",
        f"lab.train_files=[{home / 'train.parquet'}]", f"lab.val_file={home / 'validation.parquet'}",
        f"lab.output={home / 'run'}", f"data.train_batch_size={PROMPTS}", f"actor_rollout_ref.rollout.n={GROUP}",
        "data.max_prompt_length=32", f"data.max_response_length={TOKENS}", "trainer.total_training_steps=3",
        "algorithm.filter_groups.enable=false", "trainer.val_before_train=false", "trainer.test_freq=-1",
    ]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True, timeout=500)
    return home / "run"


def test_seconds_per_grpo_step(tmp_path: Path) -> None:
    rows = [row for row in read_metrics(run(tmp_path) / "metrics.jsonl") if "timing_s/step" in row]
    assert [row["step"] for row in rows] == [1, 2, 3]
    for row in rows:
        assert row["response_length/mean"] > TOKENS / 2
        shown = ", ".join(f"{part} {row[f'timing_s/{part}']:.2f}" for part in PARTS if f"timing_s/{part}" in row)
        tokens = row["response_length/mean"] * PROMPTS * GROUP
        print(f"\nstep {row['step']}: {PROMPTS} x {GROUP} responses, {tokens:,.0f} tokens; seconds: {shown}")
