"""Metrics of a run: on disk, and what a model says of the training that made it."""

import ast
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from compositionality.data.artefact import Recipe, new_artefact, read_manifest
from compositionality.errors import UserError
from compositionality.train import metrics as names
from compositionality.train.metrics import (
    COMPLETIONS,
    EVALUATED_TOKENS,
    FLOPS,
    PAPER_FLOPS,
    SAMPLED,
    SAMPLED_TOKENS,
    TRAINED,
    ComputeMeter,
    entropies,
    non_embedding_parameters,
    numbers,
    read_metrics,
    truncate_metrics,
)
from compositionality.train.run_folder import mark_complete, publish_models, record_score
from compositionality.train.training_report import (
    TrainingReport,
    report_from,
    report_of,
    rl_report,
    run_until,
    sft_report,
)


def test_a_metric_that_has_a_constant_is_named_by_it() -> None:
    constants = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}
    for path in Path(names.__file__).parent.rglob("*.py"):
        if path != Path(names.__file__):
            words = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
            assert not {word for word in constants & words if "/" in word}, path


@pytest.mark.parametrize("torn", [b'{"step": 3, "tr', b'{"step": 3', b'{"a": "\xc3', b"\x00\x00"])
def test_a_torn_last_line_is_left_out(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n\n{"step": 2}\n' + torn)
    assert read_metrics(path) == [{"step": 1}, {"step": 2}]
    assert read_metrics(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize("value", ["1" + "0" * 400, "-1" + "0" * 400, "NaN", "Infinity", "-Infinity"])
def test_what_no_float_holds_is_none(tmp_path: Path, value: str) -> None:
    """An integer beyond all floats ended the report, TensorBoard and verl's loggers with an OverflowError."""
    path = tmp_path / "metrics.jsonl"
    path.write_text(f'{{"step": 1, "large": {10**300}, "note": "text", "rollout/entropy": {value}}}\n')
    row = {"step": 1, "large": 10**300, "note": "text", "rollout/entropy": None}
    assert read_metrics(path) == [row] == [numbers({**row, "rollout/entropy": json.loads(value)})]
    with pytest.raises(UserError, match=r"no rollout/entropy of step 1"):
        entropies(path, 1)


@pytest.mark.parametrize("line", [b"[1]", b"3", b"{", b"\xff", b'{"loss": 1}', b'{"step": "x"}', b'{"step": null}'])
def test_p18_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 2}\n')
    with pytest.raises(UserError, match=r"metrics\.jsonl: line 2: .*; delete that line"):
        read_metrics(path)


def test_p18_a_damaged_row_of_a_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text("[")
    with pytest.raises(UserError, match=r"metrics\.json: damaged .*; delete this checkpoint"):
        truncate_metrics(tmp_path / "metrics.jsonl", 3, tmp_path)


# ---- FLOPs, by hand


def test_embeddings_and_the_output_head_are_not_counted() -> None:
    shapes = {"model.embed_tokens.weight": (9, 4), "lm_head.weight": (9, 4), "norm.weight": (4,), "q.weight": (4, 2)}
    assert non_embedding_parameters(shapes) == 4 + 8


@pytest.mark.parametrize(
    ("passes", "flops"),  # of a trained token, in units of N
    [
        ({}, 6),
        ({"old": True}, 6 + 2),
        ({"old": True, "reference": True}, 6 + 2 + 2),
        ({"reference": True, "frozen": True}, 4 + 2),
        ({"frozen": True, "critic": True}, 4 + 2 + 6),
    ],
)
def test_a_meter_adds_up_and_goes_on(passes: dict[str, bool], flops: int) -> None:
    def new() -> ComputeMeter:
        return ComputeMeter(10, **{"old": False, "reference": False, **passes})

    meter, resumed = new(), new()
    first = meter.add({EVALUATED_TOKENS: 40})
    assert (first[FLOPS], first[PAPER_FLOPS], first[COMPLETIONS]) == (10 * 2 * 40, 0, 0)
    second = meter.add({"step": 1, SAMPLED: 12, SAMPLED_TOKENS: 100, TRAINED: 80})
    assert second[FLOPS] == 10 * (2 * 40 + 2 * 100 + flops * 80)
    assert second[PAPER_FLOPS] == 6 * 10 * 100
    resumed.restore(second)
    row = {"step": 2, SAMPLED: 8, SAMPLED_TOKENS: 50, TRAINED: 50}
    assert resumed.add(row) == meter.add(row)
    assert meter.completions == 20


# ---- what a model says of its training


VERL = [
    {"step": 1, "actor/entropy": 0.812345, "training/updates": 2.0, "training/no_signal": 0.0},
    {"step": 1, "val-core/x/acc/mean@1": 0.5},
    {"step": 2, "actor/entropy": 0.7, "training/updates": 2.0, "training/no_signal": 1.0},
    {"step": 3, "actor/entropy": 0.6, "training/updates": 2.0, "training/no_signal": 0.0},
]
"""Rows as verl's trainer and the sampler of groups write them: counts are floats there."""
COUNTS = {
    "training/filter_groups/generated_prompts": 8.0,
    "training/filter_groups/with_signal": 3.0,
    "training/sampled_completions": 32.0,
    "training/loss_tokens": 500,
}


def metrics(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "metrics.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def verl(folder: Path) -> Path:
    return metrics(folder, [row | COUNTS if "training/updates" in row else row for row in VERL])


def model(folder: Path, facts: dict[str, Any]) -> Path:
    with new_artefact(folder, Recipe("train", {"of": str(folder)}), facts) as partial:
        partial.mkdir()
        (partial / "weights").write_text(str(folder))
    return folder


def test_what_a_run_had_spent_when_it_wrote_a_model(tmp_path: Path) -> None:
    """Of final/, of a step's folder and of what was exported beside it; other models were not made by a run of RL."""
    rows = [row | COUNTS | {"compute/flops": 10.0 * row["step"]} if "training/updates" in row else row for row in VERL]
    run = metrics(tmp_path / "run", rows).parent
    places = {"final": 3, "steps/global_step_2/exported": 2, "steps/global_step_1/huggingface": 1}
    for place, step in places.items():
        found = run_until(run / place)
        assert found
        flops, report = found
        assert (flops, report.groups, report.groups_with_signal) == (10.0 * step, 8 * step, 3 * step)
    assert run_until(tmp_path / "base") is None
    assert run_until(metrics(tmp_path / "sft", [{"step": 1, "train/loss": 1.0}]).parent / "final") is None


@pytest.mark.parametrize(
    ("groups", "signal", "told"), [(8, 0, True), (8, 1, False), (None, None, False), (8, None, False)]
)
def test_without_a_group_with_signal_a_run_is_not_testable(groups: int | None, signal: int | None, told: bool) -> None:
    assert TrainingReport(updates=3, groups=groups, groups_with_signal=signal).not_testable is told


def test_the_totals_of_rl_with_verl(tmp_path: Path) -> None:
    found = TrainingReport(**rl_report(verl(tmp_path), 3)["training"])
    assert found == TrainingReport(6, 2, 24, 9, 96, 1500, first_entropy=0.8123, last_entropy=0.6)
    assert isinstance(found.updates, int)
    assert TrainingReport(**rl_report(verl(tmp_path), 1)["training"]).completions == 32  # the best model, of step 1


def test_what_a_step_does_not_say_is_not_known(tmp_path: Path) -> None:
    found = TrainingReport(**rl_report(metrics(tmp_path, VERL), 3)["training"])
    assert (found.updates, found.updates_without_signal, found.groups, found.tokens) == (6, 2, None, None)
    assert TrainingReport(**rl_report(tmp_path / "none.jsonl", 3)["training"]) == TrainingReport()
    assert found.updates_with_signal


def test_every_published_model_has_the_totals_up_to_its_step(tmp_path: Path) -> None:
    verl(tmp_path)
    for step, score in ((1, 0.9), (3, 0.1)):
        (tmp_path / "steps" / f"global_step_{step}").mkdir(parents=True)
        mark_complete(tmp_path / "steps", step)
        record_score(tmp_path / "steps", step, score)
    publish_models(tmp_path, Recipe("train", {}), lambda _, target: target.mkdir() or {}, keep_best=True)
    reports = {name: report_of(tmp_path / name) for name in ("best", "final")}
    assert {name: one and one.updates for name, one in reports.items()} == {"best": 2, "final": 6}


def test_the_iterations_of_rft_are_added_up(tmp_path: Path) -> None:
    for number in range(3):
        rows = tmp_path / f"rows{number}"
        with new_artefact(rows, Recipe("filter_rollouts", {}), {"responses": 100 + number}) as partial:
            partial.mkdir()
        run = tmp_path / f"stage2-rft-iteration{number}"
        log = metrics(run, [{"step": step, "train/grad_norm": 0.1, "training/loss_tokens": 50} for step in (5, 9)])
        model(run / "final", sft_report(log, 9, 40, [str(rows / "train.parquet")]))
    assert report_of(tmp_path / "stage2-rft-iteration2/final") == TrainingReport(
        updates=27, completions=303, tokens=300, rows=120
    )
    assert report_of(tmp_path / "stage2-rft-iteration0/final") == TrainingReport(
        updates=9, completions=100, tokens=100, rows=40
    )
    (tmp_path / "stage2-rft-iteration1/final/manifest.json").unlink()
    assert report_of(tmp_path / "stage2-rft-iteration2/final") is None


def test_a_model_of_others_has_no_report_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    assert report_of(Path("someone/on-the-hub")) is None
    (tmp_path / "plain").mkdir()
    assert report_of(tmp_path / "plain") is None
    path = model(tmp_path / "old" / "final", {"training": {"updates": 3}})
    assert read_manifest(path)
    with pytest.raises(UserError, match=r"final/manifest.json: facts: training: updates, .* are needed; train or"):
        report_of(path)


@pytest.mark.parametrize("value", ["10", [1], float("nan")])
def test_p18_what_is_not_a_number_is_named(value: Any) -> None:
    whole = asdict(TrainingReport(updates=10))
    assert report_from(whole, "accuracy.json") == TrainingReport(updates=10)
    with pytest.raises(UserError, match=r"^accuracy.json: updates=.* is not a number; train or evaluate again"):
        report_from({**whole, "updates": value}, "accuracy.json")
