"""Influence, mixed share and entropy of the queries of SFT models: read, compared by claims, ranked against gains."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from claim_studies import answers, results_of
from studies import evaluation, problem_file, right

from compositionality.analysis.influence import SCHEMA
from compositionality.data.artefact import Recipe, new_artefact
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.evaluate.claims.decide import claim_rows
from compositionality.evaluate.claims.model import read_claims_file
from compositionality.evaluate.claims.run import ClaimsSettings, decide_claims
from compositionality.evaluate.ranks import correlation_cell, ranks_of
from compositionality.evaluate.results import Results, read_results
from compositionality.evaluate.seeds import SummariseSettings, summarise
from compositionality.evaluate.summary import contrast
from compositionality.evaluate.types import MIXED, Metric
from compositionality.train.training_report import TrainingReport

QUERIES = 40
TRAINED = TrainingReport(updates=80, rows=2000)


def influence_file(path: Path, influence: float, n_mixed: int, entropy: float, problems: Path, rollouts: Path) -> None:
    """``n_mixed`` of the queries have one right completion of two; influences lie around their mean."""
    rows = [
        {"problem": n, "level": 3 + n % 2, "group": "igsm", "correct": int(n < n_mixed), "samples": 2,
         "update_norm": 1.0, "influence": influence * (0.5 + n / (QUERIES - 1)), "influence_on_others": 0.0,
         "entropy": entropy + (n % 2 - 0.5) / 100}
        for n in range(QUERIES)
    ]  # fmt: skip
    inputs = {"problems": problems, "rollouts": rollouts}
    with new_artefact(path, Recipe("influence", {}, inputs), {"co_influence": {"labels": [], "means": []}}) as partial:
        write_table(pa.Table.from_pylist(rows, schema=SCHEMA), partial)


def influences(tmp_path: Path, models: dict[str, tuple[float, int, float]], seeds: int = 3) -> list[str]:
    """The folder of each seed; its influences are a little larger than those of the seed before."""
    problems = tmp_path / "queries.parquet"
    problems.write_text("queries")
    found = []
    for seed in range(seeds):
        folder = tmp_path / f"seed{seed}" / "influence"
        for model, (value, mixed, entropy) in models.items():
            rollouts = tmp_path / f"rollouts-{seed}-{model}"
            rollouts.write_text(f"{seed} {model}")
            mean = value * (1 + seed / 10)
            influence_file(folder / model / "influence.parquet", mean, mixed, entropy, problems, rollouts)
        found.append(f"seed{seed}:{folder}")
    return found


MODELS = {"sft-vanilla": (2.0, 10, 0.05), "sft-bridge": (30.0, 30, 0.04), "sft-reflection": (3.0, 12, 0.3)}


def test_values_are_means_over_queries_in_their_own_units(tmp_path: Path) -> None:
    found = read_results(influences(tmp_path, MODELS), metric=Metric.INFLUENCE)
    (queries,) = found.sets
    assert (queries.group, queries.level, found.size(queries)) == ("igsm", 0, QUERIES)
    assert found.arms == tuple(sorted(MODELS))
    for part, expected in (("influence", [28, 30.8, 33.6]), (MIXED, [0.5] * 3), ("entropy", [-0.01] * 3)):
        estimate = contrast(found, "sft-bridge", "sft-vanilla", queries, part)
        assert estimate.by_seed == pytest.approx(expected)
        assert estimate.over_seeds.low <= estimate.value <= estimate.over_seeds.high


def test_no_interval_is_cut_where_values_have_both_signs(tmp_path: Path) -> None:
    """Differences are then larger than any value."""
    models = {"sft-vanilla": (-30.0, 10, 0.05), "sft-bridge": (30.0, 30, 0.04)}
    found = read_results(influences(tmp_path, models), metric=Metric.INFLUENCE)
    estimate = contrast(found, "sft-bridge", "sft-vanilla", found.sets[0], "influence")
    assert estimate.value == pytest.approx(66)
    assert estimate.over_problems.low < 66 < estimate.over_problems.high


def test_claims_on_influence_are_decided(tmp_path: Path) -> None:
    catalogue = read_claims_file("behavior_injection")
    found = read_results(influences(tmp_path, MODELS, seeds=6), metric=Metric.INFLUENCE)
    trained = [replace(one, training=dict.fromkeys(MODELS, TRAINED)) for one in found.replicates]
    of = [claim for claim in catalogue.claims if claim.comparisons[0].results == "influence"]
    rows = {row["claim"]: row for row in claim_rows(of, {"influence": replace(found, replicates=tuple(trained))})}
    told = {name: str(row["decision"]) for name, row in rows.items()}
    assert told["R8-plain"] == told["R12"] == "supported"
    assert (told["R8"], told["R12-subgoals"]) == ("undecided", "not run")  # of R8 two arms were not run
    assert rows["R8-plain"]["comparisons"][0]["comparison"] == "igsm, influence: sft-bridge − sft-vanilla > 0"


def test_claims_name_their_unit_and_their_inputs(tmp_path: Path) -> None:
    given = [f"influence/{one}" for one in influences(tmp_path, MODELS)]
    output = decide_claims(ClaimsSettings(given, tmp_path / "claims.json", claims="behavior_injection"))
    assert any("in hundredths" in note for note in json.loads(output.read_text())["notes"])
    manifest = json.loads((tmp_path / ".claims.json.manifest.json").read_text())
    assert "influence/seed2/sft-bridge/influence.parquet" in manifest["inputs"]


def test_models_measured_otherwise_and_folders_without_them_are_refused(tmp_path: Path) -> None:
    first, second = influences(tmp_path, MODELS, seeds=2)
    other = tmp_path / "others"
    other.write_text("others")
    influence_file(tmp_path / "seed0/influence/sft-odd/influence.parquet", 1.0, 3, 0.1, other, other)
    with pytest.raises(UserError, match=r"sft-odd/influence.parquet: measured with other problems than"):
        read_results([first], metric=Metric.INFLUENCE)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty: no MODEL/influence.parquet; run bash/behavior_injection/influence.sh"):
        read_results([f"seed0:{tmp_path / 'empty'}"], metric=Metric.INFLUENCE)
    with pytest.raises(UserError, match=r"typo: missing; run"):
        read_results([f"seed0:{tmp_path / 'typo'}"], list(MODELS), Metric.INFLUENCE)
    manifest = tmp_path / "seed1/influence/sft-vanilla/.influence.parquet.manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "settings": {"limit": 3}}))
    with pytest.raises(UserError, match=r"sft-vanilla/influence.parquet: measured with other settings than"):
        read_results([second], list(MODELS), Metric.INFLUENCE)


def gains(by_arm: dict[str, Sequence[float]], seeds: int) -> Results:
    """Every SFT model is right on 200 of 1,000 problems; RL adds a share, of each seed its own."""

    def rows(seed: int, stage: str, arm: str) -> pd.DataFrame:
        right = 0.2 + by_arm[arm][seed] * (stage == "rl")
        return answers(f"{stage}-{arm}", "ood", 7, (np.arange(1000) < round(1000 * right)).astype(int))

    return results_of([[rows(seed, stage, arm) for arm in by_arm for stage in ("sft", "rl")] for seed in range(seeds)])


def test_a_summary_ranks_arms_where_their_influence_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problems = problem_file(tmp_path / "ood.parquet", {"string-ood-level3": 20})
    arms = {"sft": {"vanilla": 4, "bridge": 4, "reflection": 4}, "rl": {"vanilla": 6, "bridge": 18, "reflection": 9}}
    outcomes = {
        f"{stage}-{arm}": {"string-ood-level3": right(n, 20)}
        for stage, by_arm in arms.items()
        for arm, n in by_arm.items()
    }
    table = evaluation(tmp_path / "s", {"ood": problems}, outcomes)
    settings = SummariseSettings(
        [f"seed0:{table}"], tmp_path / "summary.csv", influence=influences(tmp_path, MODELS, 1)
    )
    summarise(settings)
    assert "rank correlation over 3 arms with the gain from RL" in capsys.readouterr().out
    ranks = pd.read_csv(tmp_path / "ranks.csv").set_index("predictor")
    assert ranks.loc["influence", "of"] == "ood L3"
    assert ranks.loc["influence", "correlation"] == pytest.approx(1)
    with pytest.raises(UserError, match="leave it out for variants"):
        summarise(replace(settings, inputs=[f"wide/seed0:{table}"]))


def test_arms_are_ranked_by_what_predicts_and_by_their_gain(tmp_path: Path) -> None:
    known = read_results(influences(tmp_path, MODELS, seeds=2), metric=Metric.INFLUENCE)
    accuracy = gains({"vanilla": [0.1, 0.1], "bridge": [0.5, 0.4], "reflection": [0.2, 0.05], "other": [0.9, 0.9]}, 2)
    content = ranks_of(accuracy, known)
    assert content["arms"] == ["bridge", "reflection", "vanilla"]
    found = {row["predictor"]: row for row in content["correlations"]}
    assert found["influence"]["values"] == pytest.approx([1, 0.5])
    assert (found["influence"]["of"], found["influence"]["low"]) == ("ood L7", -1)
    assert correlation_cell(found["influence"]) == "+0.75 [−1.00, +1.00], p 0.67: +1.0 +0.5"
    (row,) = (one for one in content["rows"] if (one["arm"], one["seed"]) == ("reflection", "seed1"))
    assert (row["gain"], row["influence"], row["mixed"]) == pytest.approx((0.05, 3.3, 0.3))
    with pytest.raises(UserError, match="a ranking needs 3 arms with sft-ARM and rl-ARM in every seed"):
        ranks_of(gains({"vanilla": [0.1] * 2, "bridge": [0.5] * 2}, 2), known)
