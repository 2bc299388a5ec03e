"""claims.json from folders: what is missing is not run, what was altered is refused, one seed is called one seed."""

import re
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from claim_studies import answers
from studies import evaluation, problem_file, right

from compositionality.data.artefact import Recipe, new_artefact, verify
from compositionality.errors import UserError
from compositionality.evaluate.claims.model import FOLDER
from compositionality.evaluate.claims.run import ClaimsSettings, claims_text, decide_claims, read_claims
from compositionality.evaluate.results import read_results
from compositionality.evaluate.table import FAILURE, read, write
from compositionality.evaluate.tables import WIDTH
from compositionality.evaluate.types import Metric
from compositionality.tasks.diagnosis import FAILURES

LEVEL = "string-heldout-level3"
ARMS = {"stage1": 10, "rl-level1": 11, "rl-level2": 40}
SIZE = 100


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Evaluations of three seeds, the last one with an arm more; not to be changed."""
    home = tmp_path_factory.mktemp("accuracy")
    problems, found = problem_file(home / "heldout.parquet", {LEVEL: SIZE}), []
    for seed, more in enumerate(({}, {}, {"rl-level2-format": 10})):
        outcomes = {arm: {LEVEL: right(n + seed, SIZE)} for arm, n in {**ARMS, **more}.items()}
        folder = evaluation(home / f"run{seed}" / "section41_42", {"heldout": problems}, outcomes, seed)
        found.append(f"seed{seed}:{folder}")
    return found


def written(folder: Path, by_arm: dict[str, dict[str, int]], labels: bool = False) -> str:
    """results.parquet as section 4.4 or 4.5 (made from its labels) writes it: 40 answers to each of equal problems."""
    own = folder / "answers.txt"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(folder.parent.name)
    inputs = {"rollouts": own}
    if labels:
        inputs = {"labels": folder / "labels.parquet"}
        with new_artefact(inputs["labels"], Recipe("labels", {}, {"rollouts": own})) as partial:
            partial.write_text("labels")
    rows = [answers(arm, "heldout", 3, [0] * SIZE, 40).assign(**counts) for arm, counts in by_arm.items()]
    step = "find_failures" if labels else "passk"
    with new_artefact(folder / "results.parquet", Recipe(step, {}, inputs)) as partial:
        write(pd.concat(rows), partial)
    return f"{folder.parent.name}:{folder}"


def passk(folder: Path) -> str:
    return written(folder / "section44", {"stage1": {"right": 0}, "rl-level2": {"right": 2}})


def failures(folder: Path, **changes: int) -> str:
    def classes(**counts: int) -> dict[str, int]:
        known = {**dict.fromkeys(FAILURES, 0), **counts}
        return {**{FAILURE + name: n for name, n in known.items()}, "right": known["correct"]}

    ignored = classes(ignores_composition=30, incorrect_composition=8, atomic_error=2)
    learnt = classes(**{"correct": 20, "incorrect_composition": 5, "atomic_error": 15, **changes})
    by_arm = {"stage1": ignored, "rft": ignored, "rl-level1": ignored, "rl-level2": learnt}
    return written(folder / "section45", by_arm, labels=True)


def test_a_table_of_another_kind_is_refused(tmp_path: Path) -> None:
    name, _, path = passk(tmp_path / "run0").partition(":")
    with pytest.raises(
        UserError, match=r"results.parquet: made by step passk; failure share is measured by examples/f"
    ):
        read_results([f"{name}:{path}"], metric=Metric.FAILURES)


def ungated(tmp_path: Path) -> str:
    """The paper's claims decided by their intervals alone; gates have tests of their own."""
    path = tmp_path / "ungated.yaml"
    path.write_text(re.sub(r"    gates: .*\n", "", (FOLDER / "composition.yaml").read_text()))
    return str(path)


def own(tmp_path: Path) -> str:
    """One of the paper's claims and one of the study's own."""
    one, path = "comparisons: [{group: heldout, level: 3, model: rl-level2, base: stage1}]", tmp_path / "own.yaml"
    path.write_text(
        "results: {accuracy: {metric: accuracy, script: x.sh}}\n"
        f"claims:\n- {{name: H1, origin: paper, text: a, paper: b, {one}}}\n- {{name: X, text: mine, {one}}}\n"
    )
    return str(path)


def content(tmp_path: Path, claims: str = "", **results: Sequence[str]) -> dict[str, Any]:
    given = [f"{name}/{path}" for name, paths in results.items() for path in paths]
    settings = ClaimsSettings(given, tmp_path / "claims.json", claims or ungated(tmp_path))
    return read_claims(decide_claims(settings))


def decisions(found: dict[str, Any]) -> dict[str, str]:
    return {row["claim"]: row["decision"] for row in (*found["claims"], *found["controls"])}


def test_every_section_answers_and_what_is_missing_is_not_run(tmp_path: Path, seeds: list[str]) -> None:
    samples = [passk(tmp_path / f"run{seed}") for seed in range(2)]
    found = content(tmp_path, accuracy=seeds, passk=samples, failures=[failures(tmp_path / "run0")])
    told = decisions(found)
    assert (told["H2"], told["H7"], told["H7-half"]) == ("supported", "supported", "contradicted")
    assert {told[name] for name in ("H3", "H4", "H5", "H9", "control-format")} == {"not run"}
    assert (found["n_seeds"], found["seeds"]) == (3, ["seed0", "seed1", "seed2", "run0", "run1"])
    notes = " ".join(found["notes"])
    assert "One seed was run (failures): its decisions are about these very models on other problems" in notes
    assert "Not run: countdown, by bash/section43/run_all.sh." in found["notes"]
    assert "Seeds: accuracy 3, passk 2, failures 1." in found["notes"]
    assert "Left out of accuracy: rl-level2-format; not every seed has it." in found["notes"]
    assert "pass@k: N = 40 samples of a problem." in found["notes"]
    row = next(row for row in found["claims"] if row["claim"] == "H7")
    assert (row["source"], row["comparisons"][0]["n_seeds"]) == ("§4.5, Fig. 6", 1)
    level3 = next(row for row in found["claims"] if row["claim"] == "H6")["comparisons"][0]
    assert (level3["difference"], level3["n_seeds"]) == (pytest.approx(1 - 2 / 40), 2)
    assert (level3["decision"], told["H6"]) == ("supported", "undecided")  # of level 3 alone


def test_a_claim_of_the_studys_own_is_not_counted_as_the_papers(tmp_path: Path, seeds: list[str]) -> None:
    found = content(tmp_path, own(tmp_path), accuracy=seeds[:1])
    assert [row["origin"] for row in found["claims"]] == ["paper", "own"]
    counted = "1 claim of the paper: 1 supported; 1 claim of this study's own: 1 supported."
    assert counted in claims_text(found)


def test_p15_altered_input_and_an_altered_table_are_refused(tmp_path: Path, seeds: list[str]) -> None:
    inputs = {"accuracy": seeds[:1], "failures": [failures(tmp_path / "run0")]}
    content(tmp_path, **inputs)
    (tmp_path / "claims.json").write_text((tmp_path / "claims.json").read_text().replace("supported", "undecided"))
    with pytest.raises(UserError, match=r"claims.json: altered"):
        read_claims(tmp_path / "claims.json")
    table = tmp_path / "run0/section45/results.parquet"
    table.write_bytes(table.read_bytes() + b"x")
    with pytest.raises(UserError, match=r"section45/results.parquet: altered"):
        content(tmp_path, **inputs)
    table.unlink()
    with pytest.raises(UserError, match=r"results.parquet: missing; run examples/failure_modes.py again"):
        content(tmp_path, **inputs)


def test_p07_p15_the_same_inputs_give_the_same_bytes_and_are_named_and_others_are_followed(
    tmp_path: Path, seeds: list[str]
) -> None:
    claims = own(tmp_path)
    content(tmp_path, claims, accuracy=seeds[:2])
    path = tmp_path / "claims.json"
    before, written = path.stat().st_mtime_ns, path.read_bytes()
    content(tmp_path, claims, accuracy=seeds[:2])
    assert path.stat().st_mtime_ns == before
    assert content(tmp_path, claims, accuracy=seeds[:1])["n_seeds"] == 1
    assert set(verify(path).inputs) == {"accuracy/seed0/results.parquet", "accuracy/seed0/training.json"}
    path.unlink()
    content(tmp_path, claims, accuracy=seeds[:2])
    assert path.read_bytes() == written


def test_other_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no results: .* accuracy, countdown, passk, failures, strings"):
        content(tmp_path)
    with pytest.raises(UserError, match=r"speed/seed0:x: is not .* accuracy, countdown, passk, failures, strings"):
        content(tmp_path, speed=["seed0:x"])
    with pytest.raises(UserError, match=r"no such file; make it with examples/claims.py"):
        read_claims(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda table: table.drop_columns(["tokens"]), "has other columns than this version writes"),
        (lambda table: table.set_column(9, "judged", pa.array(["x"] * 3)), "has other columns than this version"),
        (lambda table: pa.concat_tables([table, table.slice(1, 1)]), "a on a1: missing or repeated rows"),
    ],
)
def test_p18_a_table_of_another_schema_or_with_rows_twice_is_named(tmp_path: Path, spoil: Any, told: str) -> None:
    path = tmp_path / "results.parquet"
    write(answers("a", "a", 1, [0, 1, 1]), path)
    assert len(read(path)) == 3
    pq.write_table(spoil(pq.read_table(path)), path)
    with pytest.raises(UserError, match=rf"results\.parquet: {told}.*; make it again with --force"):
        read(path)


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("right", [None, 0, 1], "a on a1, problem 0: right="),
        ("right", [0, 2, 1], "a on a1, problem 1: right=2, judged=1, n=1,"),
        ("judged", [1, 1, -1], "a on a1, problem 2: right="),
        ("group", ["trained", None, "trained"], "a on a1, problem 1: group="),
        ("level", [1, 1, None], "a on a1, problem 2: level="),
        ("arm", [None] * 3, ""),
        ("gold_log_prob", [-1.0, -inf, None], "a on a1, problem 1: gold_log_prob=-inf"),
        ("gold_log_prob", [-1.0, 0.5, None], "a on a1, problem 1: gold_log_prob=0.5"),
        ("", [], "has no rows"),
    ],
)
def test_a_table_with_values_that_no_evaluation_gives_is_refused(
    tmp_path: Path, name: str, values: list[Any], told: str
) -> None:
    """Null keys and infinite log-probs ended the report with a traceback; more right than judged became a figure."""
    path = tmp_path / "results.parquet"
    write(answers("a", "a", 1, [0, 1, 1]), path)
    table = pq.read_table(path)
    place = table.schema.get_field_index(name)
    spoilt = table.set_column(place, name, pa.array(values, table.schema.field(name).type)) if name else table.slice(3)
    pq.write_table(spoilt, path)
    with pytest.raises(UserError, match=rf"results\.parquet: {told}.*; make it again with --force"):
        read(path)


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_the_table_fits_a_screen_of_100_columns(tmp_path: Path, seeds: list[str], n_seeds: int) -> None:
    found = content(tmp_path, accuracy=seeds[:n_seeds], failures=[failures(tmp_path / "run0")])
    text = claims_text(found)
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert "Not run: H1-trained, H1-composed, H2-deeper" in text
    assert "paper: level 3: about 5 % before, about 30 % after RL on level 2" in " ".join(text.split())
    assert ("over seeds" in text) == (n_seeds > 1)
    assert found["notes"][0][:60] in text
    assert ("interval of one seed, over problems only" in " ".join(text.split())) == (n_seeds == 1)
    below_each_other = r"\].*\n.* supported .*\n.* one seed\n"
    assert bool(re.search(below_each_other, text)) == (n_seeds > 1)  # section 4.5 has one


def test_what_is_not_testable_says_why_and_primary_claims_stand_after_holm(tmp_path: Path, seeds: list[str]) -> None:
    found = content(tmp_path, "composition", accuracy=seeds)
    row = next(row for row in found["claims"] if row["claim"] == "H2")
    reason = "not shown that RL on level 2 gains over 5 points on what it was trained on (not run)"
    assert (row["decision"], row["reason"], row["decision_holm"]) == ("not testable", reason, "not testable")
    assert f"not testable: {reason} after Holm: not testable" in " ".join(claims_text(found).split())
    plain = content(tmp_path, accuracy=seeds)
    row = next(row for row in plain["claims"] if row["claim"] == "H2")
    assert (row["decision"], row["decision_holm"]) == ("supported", "supported")
    assert row["p"] < row["p_holm"] < 0.05
    text = claims_text(plain)
    assert f"after Holm: supported (one-sided p {row['p_holm']:.2g})" in text
    assert "heldout L3: rl-level2 − stage1 > 0: +30 +30 +30" in text
