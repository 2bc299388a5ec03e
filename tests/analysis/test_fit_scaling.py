"""examples/fit_scaling.py: CSV files, exports of wandb and runs of ours give the same fits; bad input is one line."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from scaling_studies import PROMPTS, noisy_study

from compositionality.analysis.scaling.points import Points
from compositionality.analysis.scaling.read import (
    PointSource,
    input_files,
    non_embedding_parameters,
    read_points,
    sizes_of,
)
from compositionality.analysis.scaling.run import ScalingSettings, fit_scaling
from compositionality.errors import UserError

ROOT = Path(__file__).parents[2]
METRIC = "val-core/string-level2/acc/mean@1"


def table_of(points: Points) -> pd.DataFrame:
    run = [points.runs[number] for number in points.run]
    return pd.DataFrame(
        {"run": run, "size": points.size, "step": points.step, "flops": points.resource, "loss": points.loss}
    )


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    table_of(noisy_study(0)).to_csv(path, index=False)
    return path


def source(resource: str = "flops", **other: object) -> PointSource:
    given = {"metric": METRIC, "sizes": {}, "per_step": 0.0} | other
    return PointSource(resource, **given)  # type: ignore[arg-type]


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


def test_laws_that_these_sizes_do_not_determine_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = table_of(noisy_study(0))
    table[table["size"] < 1e5].to_csv(tmp_path / "two.csv", index=False)
    fit_scaling(ScalingSettings([str(tmp_path / "two.csv")], tmp_path / "out", draws=20))
    assert "power: not fitted: power: needs 3 sizes of models; here are 2" in capsys.readouterr().out
    with pytest.raises(UserError, match="power: needs 3 sizes"):
        fit_scaling(ScalingSettings([str(tmp_path / "two.csv")], tmp_path / "other", laws=["power"]))


def test_an_export_of_wandb_is_read(csv: Path) -> None:
    mine = read_points([str(csv)], source())
    table = table_of(mine)
    wide = table.assign(accuracy=1 - table["loss"]).pivot_table(index="step", columns="run", values="accuracy")
    export = pd.DataFrame({"Step": wide.index})
    for run in wide:
        for ending in ("", "__MIN", "__MAX"):
            export[f"{run} - {METRIC}{ending}"] = wide[run].to_numpy()
    path = csv.with_name("wandb.csv")
    export.to_csv(path, index=False)
    sizes = dict(zip(table["run"], table["size"], strict=True))
    found = read_points([str(path)], source(sizes=sizes, per_step=PROMPTS))
    assert len(found) == len(mine)
    assert np.allclose(found.loss, mine.loss)
    assert np.allclose(found.resource, mine.resource)
    with pytest.raises(UserError, match="knows steps alone; give per_step="):
        read_points([str(path)], source(sizes=sizes))
    with pytest.raises(UserError, match=r"no size; give sizes=\["):
        read_points([str(path)], source(per_step=PROMPTS))


def test_files_of_one_name_are_told_apart() -> None:
    found = input_files(["a/runs.csv", "b/runs.csv", "run:c"])
    assert list(found.values()) == [Path("a/runs.csv"), Path("b/runs.csv"), Path("c/metrics.jsonl")]


def make_run(folder: Path, *, steps: int = 4, planned: int = 4, n: int = 8) -> Path:
    """A run of train_grpo.py, as far as it is read: 3 matrices, of which one is the embedding."""
    (folder / "final").mkdir(parents=True)
    weights = {name: np.zeros((4, 8), np.float32) for name in ("model.embed_tokens.weight", "a.weight", "b.weight")}
    save_file(weights, folder / "final" / "model.safetensors")
    rows = [{"step": 0, METRIC: 0.1}]
    for step in range(1, steps + 1):
        row = {"step": step, "training/filter_groups/generated_prompts": 64, "actor/grad_norm": 1.0}
        rows.append(row | ({METRIC: 0.1 * step} if step % 2 == 0 else {}))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "recipe.json").write_text(
        json.dumps({"settings": {"trainer.steps": planned, "rollout.n": n, "optim.lr": n}})
    )
    return folder


def test_runs_of_ours_are_read(tmp_path: Path) -> None:
    found = read_points([f"a:{make_run(tmp_path / 'a')}"], source("prompts"))
    assert found.runs == ("a",)
    assert found.size.tolist() == [64, 64]
    assert found.step.tolist() == [2, 4]
    assert found.resource.tolist() == [128, 256]
    assert np.allclose(found.loss, [0.8, 0.6])
    assert non_embedding_parameters(tmp_path / "a" / "final") == 64


def edit(csv: Path, change: str) -> None:
    table = pd.read_csv(csv)
    if change == "early":
        table = table[~((table["run"] == table["run"][0]) & (table["step"] > 5))]
    elif change == "mixed":
        table["metric"] = ["a"] * 10 + ["b"] * (len(table) - 10)
    elif change == "twice":
        table = pd.concat([table, table[:1]])
    elif change == "no-column":
        table = table.drop(columns="flops")
    elif change == "text":
        table["loss"] = table["loss"].astype(object)
        table.loc[3, "loss"] = "n/a!"
    elif change == "zero":
        table.loc[3, "loss"] = 0.0
    table.to_csv(csv, index=False)
    if change == "none":
        csv.unlink()
    if change == "binary":
        csv.write_bytes(b"\xff\xfe\x00" * 50)
    if change == "empty":
        csv.write_text("run,size,step,flops,loss\n")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("early", "ended at step 5, others of size 10,000 at 12; finish it, or leave it out"),
        ("mixed", "metric a and b: one fit takes one"),
        ("twice", "step 1: there twice"),
        ("no-column", "no column flops; it has run, size, step, loss"),
        ("text", "line 5: loss: 'n/a!': not a number"),
        ("zero", "step 4: loss 0 has no logarithm"),
        ("none", "no such file"),
        ("binary", "no CSV file"),
        ("empty", "has no rows"),
    ],
)
def test_p18_bad_points_are_one_line(csv: Path, change: str, told: str) -> None:
    edit(csv, change)
    with pytest.raises(UserError, match=told):
        fit_scaling(ScalingSettings([str(csv)], csv.parent / "out"))
    assert not (csv.parent / "out").exists()


def test_p18_runs_that_differ_in_more_than_their_size_are_named(tmp_path: Path) -> None:
    folders = [f"{name}:{make_run(tmp_path / name, n=n)}" for name, n in (("a", 8), ("b", 4))]
    with pytest.raises(UserError, match=r"settings rollout.n=8 and rollout.n=4: one fit takes one; leave b and its"):
        read_points(folders, source("prompts"))


def test_p18_a_run_that_ended_early_or_has_no_such_metric_is_named(tmp_path: Path) -> None:
    short = make_run(tmp_path / "short", steps=2)
    with pytest.raises(UserError, match="last evaluation is of step 2 of 4; finish the run"):
        read_points([f"a:{short}"], source("prompts"))
    with pytest.raises(UserError, match="no evaluation has val-core/other"):
        read_points([f"a:{short}"], source("prompts", metric="val-core/other*"))
    with pytest.raises(UserError, match=r"has no metrics\.jsonl"):
        read_points([f"a:{tmp_path}"], source("prompts"))
    (short / "final" / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(UserError, match="damaged"):
        non_embedding_parameters(short / "final")


@pytest.mark.parametrize("entry", ["a", "a:", ":3", "a:many", "a:-1", "a:nan", "a:inf"])
def test_p18_sizes_that_are_none(entry: str) -> None:
    with pytest.raises(UserError, match="give RUN:PARAMETERS, a positive number"):
        sizes_of([entry])


def test_p18_from_the_command_line(csv: Path) -> None:
    command = [
        sys.executable,
        "examples/fit_scaling.py",
        f"points=[{csv}]",
        f"output={csv.parent / 'out'}",
        "laws=[cubic]",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: laws: cubic unknown; there are: log_linear")
