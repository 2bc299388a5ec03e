"""Seeds put together: the figures, what is refused, files that follow their inputs, tables that fit the screen."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from studies import Outcomes, evaluation, problem_file, right

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.errors import UserError
from compositionality.evaluate.results import read_results
from compositionality.evaluate.seeds import SummariseSettings, summarise, summary_of
from compositionality.evaluate.summary import differences
from compositionality.evaluate.tables import by_seed, summary_markdown
from compositionality.evaluate.types import CORRECT
from compositionality.stats.estimate import NESTED, PROBLEMS, SEEDS_AND_PROBLEMS
from compositionality.train.training_report import TrainingReport

SIZES = {"string-heldout-level2": 8, "string-heldout-level3": 20}
ARMS = ("stage1", "rl-level1", "rl-level2")


def outcomes(seed: int, arms: Sequence[str] = ARMS) -> Outcomes:
    """Level 2: 2, 3, 4 … of 8 right by arm; level 3: seed + 2 · arm of 20."""
    return {
        arm: {
            "string-heldout-level2": right(2 + place, 8),
            "string-heldout-level3": right(seed + 2 * place, 20),
        }
        for place, arm in enumerate(arms)
    }


@pytest.fixture(scope="module")
def heldout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return problem_file(tmp_path_factory.mktemp("seeds") / "heldout.parquet", SIZES)


@pytest.fixture(scope="module")
def three(heldout: Path) -> list[str]:
    """Not to be changed."""
    return [one(heldout.parent, heldout, seed) for seed in range(3)]


@pytest.fixture
def copied(heldout: Path, three: list[str], tmp_path: Path) -> list[str]:
    shutil.copytree(heldout.parent, tmp_path, dirs_exist_ok=True)
    return [entry.replace(str(heldout.parent), str(tmp_path)) for entry in three]


def one(tmp_path: Path, heldout: Path, seed: int, **changes: Any) -> str:
    arms = changes.pop("arms", ARMS)
    path = evaluation(tmp_path / f"tiny-seed{seed}" / "s", {"heldout": heldout}, outcomes(seed, arms), seed, **changes)
    return f"seed{seed}:{path}"


def summary(tmp_path: Path, inputs: Sequence[str], **changes: Any) -> dict[str, Any]:
    """What is summarised, once it is written and printed."""
    summarise(SummariseSettings(list(inputs), tmp_path / "summary.csv", **changes))
    results = read_results(inputs, changes.get("models", ()))
    pairs = {"differences": differences(results, CORRECT), "handed_on_differences": differences(results, "handed_on")}
    return {**summary_of(results), **pairs}


def row_of(rows: Sequence[dict[str, Any]], level: int, **labels: str) -> dict[str, Any]:
    return next(row for row in rows if row["level"] == level and labels.items() <= row.items())


def test_each_seed_and_their_mean(tmp_path: Path, three: list[str]) -> None:
    found = summary(tmp_path, three)
    row = row_of(found["accuracy"], 3, model="rl-level1")
    assert row["values"] == [2 / 20, 3 / 20, 4 / 20]
    assert row["accuracy"] == pytest.approx(0.15)
    assert (row["n_seeds"], row["n_problems"], row["group"]) == (3, 20, "heldout")
    assert row["interval"] == SEEDS_AND_PROBLEMS
    assert row["low"] <= row["problems_low"] < 0.15 < row["problems_high"] <= row["high"]
    change = row_of(found["differences"], 3, model="rl-level2", base="stage1")
    assert change["values"] == pytest.approx([4 / 20] * 3)
    assert change["problems_low"] < change["difference"] < change["problems_high"]
    assert [seed["name"] for seed in found["seeds"]] == ["seed0", "seed1", "seed2"]
    assert [seed["seed"] for seed in found["seeds"]] == [0, 1, 2]
    assert set(found["problems"]) == {"heldout"}
    table = pd.read_csv(tmp_path / "summary.csv", dtype={"base": str}, keep_default_na=False)
    of_arm = table[(table["model"] == "rl-level2") & (table["level"] == 3)].set_index("base")
    assert of_arm.loc[["", "stage1"], "value"].tolist() == [0.25, pytest.approx(0.2)]
    assert json.loads(of_arm.loc["stage1", "values"]) == change["values"]


def test_variants_are_summarised_one_by_one(
    tmp_path: Path, three: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each with seeds of its own; what they are compared by is in one file."""
    inputs = [f"wide/{three[0]}", f"narrow/{three[1]}", f"narrow/{three[2]}"]
    table = pd.read_csv(summarise(SummariseSettings(inputs, tmp_path / "summary.csv", ["stage1", "rl-level2"])))
    assert table.groupby("variant", sort=False)["n_seeds"].first().to_dict() == {"wide": 1, "narrow": 2}
    chosen = table[table["base"].isna() & (table["level"] == 3) & (table["model"] == "rl-level2")]
    assert chosen.set_index("variant")["value"].to_dict() == pytest.approx({"wide": 0.2, "narrow": 0.275})
    assert capsys.readouterr().out.index("\nwide\n") >= 0
    with pytest.raises(UserError, match="have the same name 'seed0'"):
        summarise(SummariseSettings([*inputs, f"wide/{three[0]}"], tmp_path / "summary.csv"))


def test_arms_can_be_chosen_and_ordered(three: list[str]) -> None:
    assert read_results(three, ["rl-level2", "stage1"]).arms == ("rl-level2", "stage1")
    told = "models: rft not evaluated in every seed; evaluated are stage1, rl-level1, rl-level2"
    with pytest.raises(UserError, match=told):
        read_results(three[:1], ["rft"])


def test_a_run_is_named_after_its_folder(three: list[str]) -> None:
    paths = [entry.partition(":")[2] for entry in three]
    for given in (paths, [f"{path}/results.parquet" for path in paths]):
        assert [place.name for place in read_results(given).replicates] == ["tiny-seed0", "tiny-seed1", "tiny-seed2"]


def test_evaluations_that_cannot_be_compared_are_refused(tmp_path: Path, heldout: Path, three: list[str]) -> None:
    other = problem_file(tmp_path / "other.parquet", SIZES, tag="x")
    for inputs, told in (
        ([three[0], one(tmp_path, other, 3)], "seed0 and seed3: other problems in heldout"),
        ([three[0], one(tmp_path, heldout, 4, temperature=0.5)], r"sampled differently \(temperature: 1.0 and 0.5\)"),
        ([*three, "again:" + three[1].partition(":")[2]], "again: the same answers twice"),
        ([three[0], three[0]], "have the same name 'seed0'"),
    ):
        with pytest.raises(UserError, match=told):
            read_results(inputs)


def replicate(tmp_path: Path, seed: int, split: int, sizes: Mapping[str, int] = SIZES) -> str:
    """The evaluation of a seed on the problems of a function split."""
    name = f"seed{seed}-split{split}"
    problems = problem_file(tmp_path / f"{name}.parquet", sizes, f"of split {split}", split)
    answers = {
        arm: {source: right(min(2 + place + seed, n), n) for source, n in sizes.items()}
        for place, arm in enumerate(ARMS)
    }
    return f"{name}:{evaluation(tmp_path / name / 's', {'heldout': problems}, answers, seed)}"


def test_replicates_with_splits_of_their_own_are_nested_in_seeds(tmp_path: Path) -> None:
    pairs = [(seed, 2 * seed + split) for seed in range(2) for split in (1, 2)]
    found = summary(tmp_path, [replicate(tmp_path, *pair) for pair in pairs])
    row = row_of(found["accuracy"], 3, model="stage1")
    assert (row["n_seeds"], row["n_problems"], row["interval"]) == (2, 20, NESTED)
    assert row["values"] == pytest.approx([0.1, 0.15])
    assert row["splits"] == [[0.1, 0.1], [0.15, 0.15]]
    change = row_of(found["differences"], 3, model="rl-level2", base="stage1")
    assert (change["difference"], change["interval"]) == (pytest.approx(0.1), NESTED)
    assert by_seed(row) == "10/10 15/15"
    assert [one["function_split"] for one in found["seeds"]] == [split for _, split in pairs]
    assert set(found["problems"]) == {f"seed{seed}-split{split}/heldout" for seed, split in pairs}


def test_replicates_that_cannot_be_nested_are_refused(tmp_path: Path) -> None:
    first = replicate(tmp_path, 0, 1)
    with pytest.raises(UserError, match="seed0-split1 and seed1-split1: both have function split 1, others differ"):
        read_results([first, replicate(tmp_path, 0, 2), replicate(tmp_path, 1, 1)])
    fewer = replicate(tmp_path, 1, 3, {**SIZES, "string-heldout-level3": 19})
    with pytest.raises(
        UserError, match="20 and 19 problems of heldout L3 in heldout; make equally many for all splits"
    ):
        read_results([first, fewer])


def test_problems_of_two_splits_are_no_replicate(tmp_path: Path) -> None:
    files = {f"f{split}": problem_file(tmp_path / f"f{split}.parquet", {"string-f-level2": 2}, "", split)
             for split in (1, 2)}  # fmt: skip
    with pytest.raises(UserError, match=r"f1.parquet and .*f2.parquet: have function splits 1 and 2"):
        evaluation(tmp_path / "s", files, {"m": {"string-f1f2-level2": right(1, 2)}})


def test_p18_a_file_beside_the_table_is_not_taken_for_it(tmp_path: Path, three: list[str]) -> None:
    name, _, folder = three[0].partition(":")
    given = [f"{name}:{Path(folder) / 'training.json'}", *three[1:]]
    with pytest.raises(UserError, match=r"training\.json: not a results\.parquet; give the folder"):
        summarise(SummariseSettings(given, tmp_path / "summary.csv"))


def test_a_missing_arm_is_refused_unless_it_is_not_asked_for(tmp_path: Path, heldout: Path, three: list[str]) -> None:
    fewer = one(tmp_path, heldout, 3, arms=ARMS[:2])
    with pytest.raises(UserError, match=r"rl-level2: not evaluated in every seed; .* models="):
        summary(tmp_path, [three[0], fewer])
    assert summary(tmp_path, [three[0], fewer], models=["stage1", "rl-level1"])["models"] == ["stage1", "rl-level1"]


def test_p15_tables_older_than_their_answers_or_of_two_evaluations_are_refused(
    tmp_path: Path, copied: list[str]
) -> None:
    answers = tmp_path / "tiny-seed1/s/rollouts/stage1/heldout/shard-00000.parquet"
    answers.write_bytes(answers.read_bytes() + b"x")
    with pytest.raises(UserError, match=r"rollouts/stage1/heldout: newer than results.parquet"):
        read_results(copied)
    for name in ("training.json", ".training.json.manifest.json"):
        shutil.copy(tmp_path / "tiny-seed2/s" / name, tmp_path / "tiny-seed0/s" / name)
    with pytest.raises(UserError, match=r"training\.json: comes from another evaluation than results\.parquet"):
        read_results(copied)


@pytest.mark.parametrize("name", ["results.parquet", "training.json"])
def test_p15_altered_and_missing_tables_are_refused(tmp_path: Path, copied: list[str], name: str) -> None:
    table = tmp_path / "tiny-seed1/s" / name
    table.write_bytes(table.read_bytes() + b"x")
    with pytest.raises(UserError, match=f"{name}: altered"):
        read_results(copied)
    table.unlink()
    with pytest.raises(UserError, match=f"{name}: missing"):
        read_results(copied)


def test_p07_a_summary_follows_its_inputs_and_the_same_give_the_same_bytes(tmp_path: Path, three: list[str]) -> None:
    row = row_of(summary(tmp_path, three[:1])["accuracy"], 3, model="rl-level2")
    assert (row["interval"], row["n_seeds"], row["accuracy"]) == (PROBLEMS, 1, 0.2)
    assert (row["low"], row["high"]) == (row["problems_low"], row["problems_high"])
    before = (tmp_path / "summary.csv").stat().st_mtime_ns
    summary(tmp_path, three[:1])
    assert (tmp_path / "summary.csv").stat().st_mtime_ns == before
    assert len(summary(tmp_path, three)["seeds"]) == 3
    again = summarise(SummariseSettings(three, tmp_path / "again" / "summary.csv"))
    assert again.read_bytes() == (tmp_path / "summary.csv").read_bytes()


def test_a_study_of_countdown_has_its_own_title(tmp_path: Path) -> None:
    levels = {f"countdown-clean-level{level}": 20 for level in (2, 3, 4)}
    problems = problem_file(tmp_path / "test.parquet", levels)
    arms = ("string-base", "string-rl-level1to2", "multi-base")
    found: Outcomes = {arm: {level: right(n, 20) for level in levels} for arm, n in zip(arms, (1, 1, 4), strict=True)}
    one_seed = evaluation(tmp_path / "tiny-countdown" / "section43", {"countdown": problems}, found, n_samples=32)
    content = summary(tmp_path, [str(one_seed)])
    assert {row["group"] for row in content["accuracy"]} == {"countdown"}
    assert content["handed_on"] == []  # no task that can tell
    text = summary_markdown(content)
    assert "Countdown: % correct, one seed [95 % interval over problems], n = 20, 32 answers to each:" in text
    assert "| level | string-base | string-rl-level1to2 | multi-base |" in text


def test_handed_on_responses_are_summarised_beside_accuracy(tmp_path: Path) -> None:
    path = problem_file(tmp_path / "heldout.parquet", SIZES, programs=True)
    inputs = [
        evaluation(
            tmp_path / f"tiny-seed{seed}" / "s", {"heldout": path}, outcomes(seed), seed,
            handing_on={"stage1": 4, "rl-level1": 4, "rl-level2": 8 + 10 + seed},
        )
        for seed in range(2)
    ]  # fmt: skip
    found = summary(tmp_path, [f"seed{seed}:{path}" for seed, path in enumerate(inputs)])
    level3 = row_of(found["handed_on"], 3, model="rl-level2")
    assert (level3["measure"], level3["handed_on"], level3["values"]) == ("handed_on", 0.525, [0.5, 0.55])
    assert level3["problems_low"] < 0.525 < level3["problems_high"]
    assert level3["interval"] == SEEDS_AND_PROBLEMS
    assert row_of(found["handed_on_differences"], 2, model="rl-level2", base="stage1")["difference"] == 0.5
    lines = summary_markdown(found).splitlines()
    titles = [line for line in lines if line.startswith("Held-out")]
    assert "% correct, mean of 2 seeds" in titles[0]
    assert "% that also apply each function to the result before it, mean of 2 seeds" in titles[2]
    assert any(line.startswith("| L3 |") and "| 52 [" in line for line in lines)


def with_report(folder: Path, **changes: Any) -> str:
    """A model folder that says what its training did."""
    report = TrainingReport(
        updates=100, updates_without_signal=17, groups=6400, groups_with_signal=188, completions=51200, tokens=90000,
        first_entropy=0.8, last_entropy=0.6,
    )  # fmt: skip
    with new_artefact(folder, Recipe("train_grpo", {}), {"training": asdict(replace(report, **changes))}) as partial:
        partial.mkdir()
        (partial / "weights").write_text("w")
    return str(folder)


def test_what_the_training_did_is_told_by_arm_and_seed(
    tmp_path: Path, heldout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = []
    for seed, changes in enumerate([{}, {"updates_without_signal": 100, "groups_with_signal": 0, "tokens": 0}]):
        model = with_report(tmp_path / f"checkpoints{seed}" / "rl-level1" / "final", **changes)
        path = evaluation(
            tmp_path / f"tiny-seed{seed}" / "s", {"heldout": heldout}, outcomes(seed, ARMS[:2]), seed,
            paths={"rl-level1": model},
        )  # fmt: skip
        inputs.append(f"seed{seed}:{path}")
    warning = "none of 100 updates had signal; its weights are unchanged"
    assert f"warning: rl-level1: {warning}" in " ".join(capsys.readouterr().out.split())
    written = json.loads((path / "training.json").read_text())
    assert (list(written), written["rl-level1"]["updates_without_signal"]) == (["rl-level1"], 100)
    assert read_results(inputs).replicates[0].training["rl-level1"].groups_with_signal == 188
    found = summary(tmp_path, inputs)
    assert [found["training"][seed]["rl-level1"]["tokens"] for seed in ("seed0", "seed1")] == [90000, 0]
    assert f"warning: rl-level1 in seed1: {warning}" in " ".join(capsys.readouterr().out.split())
    lines = summary_markdown(found).splitlines()
    assert "| rl-level1 | 100 | 17–100 | 6,400 | 0–188 | 51,200 | 0–90,000 | 0.80→0.60 |" in lines
    assert f"**Warning:** rl-level1 in seed1: {warning}" in lines


def test_another_training_of_the_same_model_name_makes_its_report_anew(tmp_path: Path, heldout: Path) -> None:
    given = {"rl-level1": with_report(tmp_path / "rl-level1" / "final")}
    for updates in (100, 50):
        with_report(tmp_path / "rl-level1" / "final", updates=updates)
        path = evaluation(tmp_path / "s", {"heldout": heldout}, outcomes(0, ARMS[:2]), paths=given)
        assert json.loads((path / "training.json").read_text())["rl-level1"]["updates"] == updates
