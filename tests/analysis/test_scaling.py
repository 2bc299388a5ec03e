"""examples/fit_scaling.py: CSV files and run folders give the frozen fits; bad input is one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from assets import save
from safetensors import safe_open
from scaling_studies import noisy_study, write

from compositionality.analysis.predict import FIGURES
from compositionality.analysis.scaling import ScalingSettings, fit_scaling, read_points
from compositionality.data.artefact import read_manifest
from compositionality.errors import UserError
from compositionality.train.metrics import non_embedding_parameters
from compositionality.train.tiny.corpus import Mix, corpus_tokenizer
from compositionality.train.tiny.model import TinyConfig, build_model

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "results" / "records"
METRIC = "val-core/string-level2/acc/mean@1"


@pytest.fixture
def quick_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a few starts, and without the figures of claims that need fits."""
    monkeypatch.setattr("compositionality.analysis.laws.STARTS", 3)
    monkeypatch.setattr("compositionality.analysis.predict.FIGURES", {"end-gap": FIGURES["end-gap"]})


@pytest.fixture
def csv(tmp_path: Path, quick_fits: None) -> Path:
    return write(noisy_study(0), tmp_path / "runs.csv")


def test_fits_predictions_and_points_are_written(csv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = csv.parent / "out"
    settings = ScalingSettings([str(csv)], out, laws=["saturating_slope", "power_with_floor"], draws=20)
    fit_scaling(settings)
    said = capsys.readouterr().out
    assert "240 evaluations of 20 runs, 5 sizes" in said
    assert "power_with_floor: L_inf on a bound" in said
    slope, power = json.loads((out / "scaling.json").read_text())["laws"]
    of = {(one["name"], one["size"]): one for one in slope["parameters"]}
    assert of["K_max", None]["low"] < 0.4 < of["K_max", None]["high"]
    assert [one["region"] for one in slope["held_out"]] == ["later evaluations"]
    assert len(slope["r_squared"]) == 5
    floor = next(one for one in power["parameters"] if one["name"] == "L_inf")
    assert floor["low"] is None
    assert len(pd.read_csv(out / "scaling_points.csv")) == 240
    before = (out / "scaling.json").read_bytes()
    fit_scaling(settings)
    assert (out / "scaling.json").read_bytes() == before


def check_equal(result: Any, expected: Any, tolerance: dict[str, float], place: str = "") -> None:
    if isinstance(expected, dict):
        assert result.keys() >= expected.keys(), place
        for key in expected:
            check_equal(result[key], expected[key], tolerance, f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(result) == len(expected), place
        for number, (one, other) in enumerate(zip(result, expected, strict=True)):
            check_equal(one, other, tolerance, f"{place}[{number}]")
    else:
        assert result == (pytest.approx(expected, **tolerance) if isinstance(expected, float) else expected), place


@pytest.mark.slow
@pytest.mark.long
def test_committed_points_give_the_recorded_fits(tmp_path: Path) -> None:
    """Of the laws that claims read; the record has four decimals."""
    laws = ["log_linear", "saturating_slope", "saturating_both"]
    fit_scaling(ScalingSettings([str(RECORDS / "tiny-scaling-2cores/flops.csv")], tmp_path, laws=laws))
    result = json.loads((tmp_path / "scaling.json").read_text())
    recorded = json.loads((RECORDS / "tiny-scaling-2cores/record.json").read_text())["fits"]["flops"]
    recorded["laws"] = [one for one in recorded["laws"] if one["law"] in laws]
    check_equal(result, recorded, {"rel": 1e-4, "abs": 1e-4})


def test_laws_that_these_sizes_do_not_determine_are_named(
    tmp_path: Path, quick_fits: None, capsys: pytest.CaptureFixture[str]
) -> None:
    points = noisy_study(0)
    csv = write(points[points["size"] < 1e5], tmp_path / "two.csv")
    fit_scaling(ScalingSettings([str(csv)], tmp_path / "out", draws=20))
    assert "power: not fitted: power: needs 3 sizes of models; the points have 2" in capsys.readouterr().out
    with pytest.raises(UserError, match="power: needs 3 sizes"):
        fit_scaling(ScalingSettings([str(csv)], tmp_path / "other", laws=["power"]))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = TinyConfig(layers=1, width=16, heads=2, feed_forward=32)
    return save(tmp_path_factory.mktemp("model"), build_model(shape, corpus_tokenizer(Mix()), 0))


def make_run(folder: Path, model: Path, *, steps: int = 4, planned: int = 4, n: int = 8) -> str:
    """A run of train_grpo.py, as far as it is read."""
    folder.mkdir()
    (folder / "final").symlink_to(model)
    rows: list[dict[str, float]] = [{"step": 0, METRIC: 0.1}]
    for step in range(1, steps + 1):
        row = {"step": step, "training/filter_groups/generated_prompts": 64, "compute/flops": 1e6 * step}
        rows.append(row | ({METRIC: 0.1 * step} if step % 2 == 0 else {}))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"trainer.steps": planned, "rollout.n": n, "optim.lr": n}
    (folder / "recipe.json").write_text(json.dumps({"settings": settings}))
    return f"{folder.name}:{folder}"


def test_runs_of_ours_are_read(tmp_path: Path, model: Path) -> None:
    run = make_run(tmp_path / "a", model)
    points = read_points([run], "prompts", METRIC)
    with safe_open(model / "model.safetensors", "numpy") as weights:
        shapes = {name: tuple(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118
    assert points["run"].tolist() == ["a", "a"]
    assert points["size"].tolist() == [non_embedding_parameters(shapes)] * 2
    assert points["step"].tolist() == [2, 4]
    assert points["resource"].tolist() == [128, 256]
    assert np.allclose(points["loss"], [0.8, 0.6])
    assert read_points([run], "flops", "val-core/*")["resource"].tolist() == [2e6, 4e6]


def test_inputs_of_one_name_are_told_apart(csv: Path) -> None:
    points = noisy_study(0, n_runs=2)
    paths = []
    for name in ("a", "b"):
        (csv.parent / name).mkdir()
        paths.append(str(write(points.assign(run=points["run"] + name), csv.parent / name / "runs.csv")))
    out = fit_scaling(ScalingSettings(paths, csv.parent / "out", laws=["common_pivot"], draws=20))
    manifest = read_manifest(out / "scaling.json")
    assert list(manifest.inputs) == ["points/a/runs.csv", "points/b/runs.csv"]


def changed(row: int, column: str, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda table: table.assign(**{column: table[column].astype(object).where(table.index != row, value)})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda table: table[(table["run"] != table["run"][0]) | (table["step"] <= 5)],
         "ended at step 5, others of size 10,000 at 12; finish it, or leave it out"),
        (lambda table: table.assign(metric=["a"] * 10 + ["b"] * (len(table) - 10)), "metric a and b: a fit needs one"),
        (lambda table: pd.concat([table, table[:1]]), "step 1: given twice"),
        (lambda table: table.drop(columns="flops"), "no column flops; it has run, size, step, loss"),
        (changed(3, "loss", "n/a!"), "line 5: loss: 'n/a!': give a number"),
        (changed(3, "run", None), "line 5: run: nan: give a name"),
        (changed(3, "loss", 0.0), "step 4: loss 0 has no logarithm"),
        (changed(239, "loss", None), "line 241: loss: .*nan.*: give a number"),
        (b"Step,run - val/acc\n1,0.5\n", "no column run; it has Step, run - val/acc"),
        (b"\xff\xfe\x00" * 50, "not a CSV file"),
        (b"run,size,step,flops,loss\n", "has no rows"),
        (b"", "not a CSV file"),
        (None, "no such file"),
    ],
)  # fmt: skip
def test_p18_bad_points_are_one_line(csv: Path, change: Any, told: str) -> None:
    if callable(change):
        change(pd.read_csv(csv)).to_csv(csv, index=False)
    else:
        csv.write_bytes(change) if change is not None else csv.unlink()
    with pytest.raises(UserError, match=told):
        fit_scaling(ScalingSettings([str(csv)], csv.parent / "out"))
    assert not (csv.parent / "out").exists()


def test_p18_runs_that_differ_in_more_than_their_size_are_named(tmp_path: Path, model: Path) -> None:
    runs = [make_run(tmp_path / name, model, n=n) for name, n in (("a", 8), ("b", 4))]
    with pytest.raises(UserError, match=r"settings rollout.n=8 and rollout.n=4: a fit needs one; leave b and similar"):
        read_points(runs, "prompts", METRIC)


def test_p18_a_run_that_ended_early_or_has_no_such_metric_is_named(tmp_path: Path, model: Path) -> None:
    short = make_run(tmp_path / "short", model, steps=2)
    for entry, metric, told in (
        (short, METRIC, "last evaluation is of step 2 of 4; finish the run"),
        (short, "val-core/other*", "no evaluation has val-core/other"),
        (short, "", "a metric; give metric= and prompts"),
        (f"a:{tmp_path}", METRIC, r"has no metrics\.jsonl"),
        ("runs.txt", METRIC, r"points: runs.txt: give a \.csv file, or NAME:FOLDER of a run"),
    ):
        with pytest.raises(UserError, match=told):
            read_points([entry], "prompts", metric)
    whole = make_run(tmp_path / "whole", model)
    (tmp_path / "whole" / "final").unlink()
    with pytest.raises(UserError, match="final"):
        read_points([whole], "prompts", METRIC)
