"""Whole studies for real in the smallest sizes; section 4.1 by the single-file engine: test_confirmatory.py."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bash_runs import run, warm_python, warm_verl

from compositionality.data.parquet import read_table

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    """Folders of the test, and an interpreter of which many starts cost little."""
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    return {"PROFILE": "smoke", "STUDY": "s", "PYTHON": warm_python(), **folders}


def finished(script: str, *words: str, **given: str) -> str:
    """What a script prints that ends well."""
    done = run(f"bash/{script}.sh", *words, **given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def claims_of(results: Path) -> dict[str, dict[str, Any]]:
    return {row["claim"]: row for row in json.loads((results / "claims.json").read_text())["claims"]}


@pytest.mark.full
def test_section_41_by_verl_to_a_page_that_is_up_to_date(given: dict[str, str], tmp_path: Path) -> None:
    """vLLM answers in the rollouts; in evaluations it does through the same collection.

    Pass@k, failure modes and claims, which see only models and answers: test_confirmatory.py.
    """
    given |= {"PROFILE": "smoke/verl", "ARMS": "rl-level2", **warm_verl()}
    short = ["base:steps=400", "base:mix.prior_chain=0", "base:mix.target_calls=0.7", "stage1-rollouts:n_samples=4"]
    short += ["stage1-rollouts:max_tokens=64", "rl-level2:rollout.max_tokens=64"]
    builtin = [f"{step}:{word}" for step in ("answers-*", "evaluate") for word in ("engine=builtin", "max_tokens=64")]
    finished("section41_42/run_all", *short, *builtin, **given)
    summary = pd.read_csv(tmp_path / "RESULTS_DIR/s/section41_42/summary.csv")
    assert {*summary["model"]} == {"base", "stage1", "rl-level2"}
    for words in ([], ["page:check=true"]):
        finished("report", *words, **given)


def test_section_43_from_both_tasks_to_the_table(given: dict[str, str], tmp_path: Path) -> None:
    given["ARMS"] = "multi-rl-level1"
    short = ["base:steps=500", "base:mix.prior_chain=0", "stage1-rollouts:max_tokens=64"]
    finished("section43/run_all", *short, **given)
    results = tmp_path / "RESULTS_DIR/s/section43"
    summary = pd.read_csv(results / "summary.csv")
    assert {*summary["model"]} == {"multi-base", "string-base", "multi-rl-level1"}
    assert {*summary["level"]} == {2, 3, 4, 5}
    assert (results / "accuracy_by_level.png").is_file()
    merged = read_table(tmp_path / "DATA_DIR/s/seed0/string_countdown_task/stage1_rft_data/train.parquet")
    sources = set(merged["data_source"].to_pylist())
    assert "countdown-clean-level2" in sources
    assert any(source.startswith("string-") for source in sources)


def test_behaviour_injection_to_influences_claims_and_page_and_nothing_is_made_again(
    given: dict[str, str], tmp_path: Path
) -> None:
    names = ("vanilla", "bridge", "subgoals")
    given["ARMS"] = " ".join(f"sft-{name} rl-{name}" for name in names)
    for more in ([], ["only=*bridge*"]):
        shown = finished("behavior_injection/run_all", "base:steps=80", *more, **given)
        assert (f"{given['CKPT_DIR']}/s/seed0/rl-bridge/final is already there" in shown) == bool(more)
    results = tmp_path / "RESULTS_DIR/s"
    summary = pd.read_csv(results / "behavior_injection/summary.csv")
    assert {*summary["model"]} == {"base", *given["ARMS"].split()}
    assert {*zip(summary["group"], summary["level"], strict=True)} == {("igsm", 2), ("igsm", 3), ("ood", 4)}
    claims = claims_of(results)
    assert (claims["R4"]["decision"], claims["R8-plain"]["decision"] != "not run") == ("not run", True)
    assert claims["R1"]["comparisons"][0]["level"] == 3
    assert {*pd.read_csv(results / "report/tables/ranks.csv")["arm"]} == {*names}
    assert (results / "behavior_injection/ranks.csv").is_file()
    page = (results / "report/index.html").read_text()
    for name in ("accuracy", "training", "influence", "influence_pairs", "ranks", "claims"):
        assert f'<section id="{name}"' in page
    rows = read_table(results / "seed0/influence/sft-bridge/influence.parquet").to_pylist()
    assert len(rows) == 24
    assert any(row["influence"] for row in rows)


def test_scaling_laws_to_fits_claims_and_page_and_pass_at_k_along_a_run(given: dict[str, str], tmp_path: Path) -> None:
    """Three sizes, which is what most laws need."""
    few = [f"fit-{resource}:draws=20" for resource in ("flops", "flops_paper", "completions")]
    finished("scaling_law/run_all", "base-*:steps=150", *few, SEEDS="1", **given)
    results = tmp_path / "RESULTS_DIR/s"
    summary = pd.read_csv(results / "scaling_law/summary.csv")
    assert {*zip(summary["group"], summary["level"], strict=True)} == {("holdout", 1), ("holdout", 2), ("longer", 1)}
    for resource in ("flops", "flops_paper", "completions"):
        fits = json.loads((results / f"scaling_law/{resource}/scaling.json").read_text())
        assert (len(fits["sizes"]), fits["runs"]) == (3, 3)
        assert {one["law"] for one in fits["laws"]} >= {"log_linear", "saturating_slope"}
    claims = claims_of(results)
    assert claims["S6"]["decision"] == "not run"
    assert claims["S1"]["decision"] in ("not testable", "undecided")  # one run a size
    page = (results / "report/index.html").read_text()
    for name in ("accuracy", "training", "scaling_flops", "scaling_completions", "claims"):
        assert f'<section id="{name}"' in page
    assert "the paper is “Scaling Behaviors of LLM RL Post-Training”" in page
    during = (results / "report/tables/training.csv").read_text()
    assert ",holdout," in during
    assert ",longer," not in during
    finished("scaling_law/passk", "n_samples=4", "levels=[1]", **given)
    along = read_table(results / "seed0/passk-rl-85k/results.parquet", ["arm"])
    assert along["arm"].unique().to_pylist() == ["base", "step2", "step4"]
