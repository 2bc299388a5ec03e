"""A dry run refuses what a start refuses, with the same line, for every kind of step; inputs need not be there yet."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from compositionality.config.cli import parse, run
from compositionality.config.profile import entry_point
from compositionality.data.artefact import Recipe, new_artefact
from compositionality.errors import UserError
from compositionality.train.common.metrics import TRAINED
from compositionality.train.sft_settings import SftSettings, check_settings, settle_length, settle_validation

SFT = ("engine=single", "model.path=m", "data.train_files=[r.parquet]", "trainer.output=out", "run.device=cpu")
GRPO = ("engine=single", "model.path=m", "data.train_files=[p.parquet]", "trainer.output=out", "run.device=cpu")
VERL = ("engine=verl", "run.processes=2")
ASKED = ("problems=[p.parquet]", "output=out")
STEPS = {
    "create_problems": ("task=string", "mode=clean", "output=out.parquet"),
    "pretrain_tiny": ("output=out", "run.device=cpu"),
    "collect_rollouts": ("model=m", "problems=p.parquet", "output=out"),
    "filter_rollouts": ("rollouts=[r]", "problems=p.parquet", "output=out"),
    "filter_problems": ("rollouts=r", "problems=p.parquet", "output=out.parquet"),
    "make_domain_sample": ("output=out",),
    "merge_data": ("inputs=[a,b]", "output=out"),
    "prepare_guru": ("files=[a.parquet]", "output=out"),
    "split_chunks": ("problems=p.parquet", "output=out", "rows_per_chunk=4"),
    "write_solutions": ("problems=p.parquet", "output=out"),
    "influence": ("model=m", "rollouts=r", "problems=p.parquet", "output=out"),
    "train_sft": SFT,
    "train_grpo": GRPO,
    "evaluate": ("models=[a:m]", *ASKED),
    "passk": ("models=[a:m]", *ASKED),
    "failure_modes": ("evaluation=e", *ASKED),
    "audit_data": ("files=[p.parquet]",),
    "claims": ("results=[accuracy/seed0:r]", "output=out.json"),
    "summarise_seeds": ("inputs=[seed0:r/section41_42/results.parquet]", "output=out.csv"),
    "fit_scaling": ("points=[a.csv]", "output=out"),
    "draw_figure": ("inputs=[seed0:r]", "output=out"),
    "report": ("study=s", "output=out"),
    "write_record": ("results=[accuracy/seed0:r/results.parquet]", "output=out"),
    "export_checkpoint": ("checkpoint=c", "output=out"),
    "set_chat_template": ("model=m", "output=out", "chat_template=plain"),
    "gpu_check": ("work=w", "logs=l", "device=cpu"),
    "preflight": ("profile=paper", "gpus=8", "gpu_memory_gb=80"),
}
PLANTED = [  # entry point, words, part of the message
    ("pretrain_tiny", ["dtype=bfloat16"], "dtype=bfloat16 needs mesh.shard=true"),
    ("pretrain_tiny", ["model.heads=5"], "must be a multiple of heads=5"),
    ("collect_rollouts", ["engine=fast"], "engine=fast: unknown"),
    ("collect_rollouts", ["engine=openai"], "engine=openai needs base_url"),
    ("filter_rollouts", ["max_length=9"], "give it together with tokenizer"),
    ("merge_data", ["inputs=[a,a]"], "a is there twice"),
    ("split_chunks", ["rollout_budget=9"], "rows_per_chunk or rollout_budget, not both"),
    ("write_solutions", ["padded=true", "subgoals=true"], "neutral text in place of behaviours"),
    ("influence", ["projection.kind=sketch", "projection.size=9"], "projection.size=9: not a multiple of"),
    ("influence", ["advantage=rloo"], "advantage=rloo"),
    ("filter_problems", ["min_correct_ratio=1"], "the first must be below the second"),
    ("summarise_seeds", ["influence=[seed0:a,seed0:b]"], "are both called 'seed0'"),
    ("fit_scaling", ["laws=[cubic]"], "laws: cubic unknown"),
    ("train_sft", ["model.dtype=bfloat16"], "model.dtype=bfloat16 needs a GPU or several processes"),
    ("train_sft", ["mesh.tensor=2", "run.processes=3"], "does not divide the 3 processes"),
    ("train_grpo", ["rollout.n=1"], "rollout.n=1: a group of one"),
    ("train_grpo", ["model.dtype=bfloat16", "mesh.shard=false"], "model.dtype=bfloat16 needs mesh.shard=true"),
    ("evaluate", ["models=[a:m,a:n]"], "both called 'a'"),
    ("evaluate", ["engine=fast"], "engine=fast: unknown"),
    ("passk", ["n_samples=1"], "at least 2 samples"),
    ("passk", ["pairs=[a:b]"], "pairs: a:b is no MODEL:BASE"),
    ("failure_modes", ["evaluation="], "give one of the two"),
    ("claims", ["output=out.csv"], "must end in .json"),
    ("summarise_seeds", ["output=out.json"], "must end in .csv"),
    ("set_chat_template", ["chat_template=odd"], "chat_template=odd: choose own"),
    ("gpu_check", ["engines=[fast]"], "engines=fast: choose from"),
    ("preflight", ["profile=odd"], "no profile odd"),
    *[
        pytest.param(*row, marks=pytest.mark.full)
        for row in (
            ("train_sft", [*VERL, "trainer.batch_rows=7"], "batch_rows=7 is not a multiple of the 2 processes"),
            ("train_sft", [*VERL, "data.max_length=99999"], "is less than data.max_length=99999"),
            (
                "train_grpo",
                [*VERL, "data.prompts_per_step=3", "rollout.n=3"],
                "9 responses (of a step) cannot",
            ),
            ("train_grpo", [*VERL, "verl.data.colour=red"], "verl has no such key"),
        )
    ],
]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "WORLD_SIZE", "NNODES", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)


def start(name: str, words: Sequence[str], monkeypatch: pytest.MonkeyPatch, *dry: str) -> int:
    """The exit code of the command, run as its entry point runs it."""
    schema, body, check = entry_point(name)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *words, *dry])
    with pytest.raises(SystemExit) as end:
        run(schema, body, "", check=check)
    return int(end.value.code or 0)


@pytest.mark.parametrize("name", [name for name in STEPS if name != "create_problems"])
def test_no_input_need_be_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(name, STEPS[name], monkeypatch, "--dry-run") == 0
    assert list(tmp_path.iterdir()) == []


def test_every_entry_point_is_covered() -> None:
    examples = {path.stem for path in (Path(__file__).parents[2] / "examples").glob("*.py")}
    assert examples - STEPS.keys() == {"run_study"}


@pytest.mark.parametrize(("name", "words", "told"), PLANTED)
def test_p18_a_dry_run_and_a_start_refuse_with_the_same_line(
    name: str, words: list[str], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for dry in (["--dry-run"], []):
        assert start(name, [*STEPS[name], *words], monkeypatch, *dry) == 2
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert said[0].startswith("error: ")
    assert told in said[0]


def test_inputs_that_are_there_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("m", "c"):
        (tmp_path / folder).mkdir()
    (tmp_path / "p.parquet").write_text("no parquet")
    names = ("collect_rollouts", "evaluate", "passk", "train_grpo", "train_sft", "split_chunks", "export_checkpoint")
    for name in names:
        assert start(name, STEPS[name], monkeypatch, "--dry-run") == 2, name
        assert capsys.readouterr().err.startswith(("error: m", "error: p.parquet", "error: c")), name


def test_sft_does_without_a_file_that_its_data_were_made_without(tmp_path: Path) -> None:
    """The validation file is left out where rows that were made without one are there, and only there."""
    train, val = tmp_path / "data/train.parquet", tmp_path / "data/test.parquet"
    words = ["model.path=m", f"data.train_files=[{train}]", f"data.val_files=[{val}]", "trainer.output=o"]

    def kept() -> bool:
        settings = parse(SftSettings, words)
        settle_validation(settings)
        return bool(settings.data.val_files)

    assert kept()
    with new_artefact(tmp_path / "data", Recipe("filter_rollouts", {})) as partial:
        partial.mkdir()
        (partial / "train.parquet").touch()
    assert not kept()
    val.touch()
    assert kept()


def test_sft_may_train_as_long_as_a_finished_run_or_a_part_of_it(tmp_path: Path) -> None:
    """Updates are those of the other run, tokens count its prompts; a run that is not finished is named."""
    run = tmp_path / "sft-bridge"
    (run / "final").mkdir(parents=True)
    rows = [{"step": step, "train/grad_norm": 1.0, TRAINED: 100 + step} for step in (1, 2, 3)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def length(*words: str) -> tuple[int | None, int | None]:
        settings = parse(SftSettings, [*SFT, *words])
        check_settings(settings)
        settle_length(settings)
        return settings.trainer.steps, settings.trainer.tokens

    assert length(f"trainer.steps_of={run}") == (3, None)
    assert length(f"trainer.tokens_of={run}") == (None, 306)
    parts = [length(f"trainer.steps_of={run}", f"trainer.part={number}/2")[0] for number in (1, 2)]
    assert parts == [1, 2]
    for words, told in (
        (["trainer.steps_of=absent"], "absent: not finished, and this trains as long as it did"),
        (["trainer.steps_of=a", "trainer.steps=2"], "trainer.steps_of=a: give trainer.steps or this, not both"),
        (["trainer.part=3/2"], "trainer.part=3/2: give K/N"),
    ):
        with pytest.raises(UserError, match=told):
            length(*words)
    assert length("trainer.steps_of=absent", "dry_run=true") == (None, None)
