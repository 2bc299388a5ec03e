"""Section 4.3's plan: what it trains on and evaluates; all of it for real in the smallest sizes."""

import json
from pathlib import Path

import pandas as pd
import pytest
from bash_runs import planned, run, warm_python

from compositionality.data.parquet import read_table
from compositionality.study.model import load_study

ARMS = list(load_study("section43").arms)


@pytest.mark.parametrize("profile", ["smoke", "instruct"])
def test_rl_sees_strings_only_and_all_arms_answer_numbers(profile: str) -> None:
    steps = planned("bash/section43/run_all.sh", PROFILE=profile, STUDY="s")
    settings = {key: step["settings"] for key, step in steps.items()}
    for arm, start in (
        ("multi-rl-level1", "stage1-multi"),
        ("multi-rl-level1to2", "stage1-multi"),
        ("string-rl-level1to2", "stage1-rft"),
    ):
        trained = settings[f"seed0/{arm}"]
        assert trained["model"]["path"] == f"checkpoints/s/seed0/{start}/final"
        assert "countdown_task" not in json.dumps(trained)
    assert settings["seed0/merge"]["inputs"] == [
        f"data/s/seed0/{part}_rft/data" for part in ("string_task/stage1_level1", "countdown_task/stage1_level2")
    ]
    assert settings["seed0/multi"]["data"]["train_files"] == [f"{settings['seed0/merge']['output']}/train.parquet"]
    evaluated, strings = settings["seed0/evaluate"], settings["seed0/evaluate-strings"]
    assert [model.partition(":")[0] for model in evaluated["models"]] == ARMS
    assert evaluated["problems"] == [f"data/s/seed0/countdown_task/{name}.parquet" for name in ("test_level2", "test")]
    assert (strings["models"], strings["n_samples"]) == (evaluated["models"], 1)
    assert strings["problems"] == ["data/s/seed0/string_task/test_trained.parquet"]


def test_the_string_arm_has_the_settings_of_section_41() -> None:
    here = planned("bash/section43/run_all.sh", "only=[string-rl-level1to2]", PROFILE="smoke", STUDY="s")
    there = planned("bash/section41_42/run_all.sh", "only=[rl-level1to2]", PROFILE="smoke", STUDY="s")
    assert here["seed0/string-rl-level1to2"]["settings"] == there["seed0/rl-level1to2"]["settings"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_section_43_for_real_in_the_smallest_sizes(tmp_path: Path) -> None:
    """From nothing to the table (a second time nothing is made again: test_behavior_injection.py)."""
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    short = ["base:steps=500", "base:mix.prior_chain=0"]
    done = run("bash/section43/run_all.sh", *short, PROFILE="smoke", STUDY="s", PYTHON=warm_python(), **folders)
    assert done.returncode == 0, done.stdout + done.stderr
    results = tmp_path / "RESULTS_DIR/s"
    summary = pd.read_csv(results / "section43/summary.csv")
    assert [*summary["model"].unique()] == ARMS
    assert {*summary["level"]} == {2, 3, 4, 5}
    assert (results / "section43/accuracy_by_level.png").is_file()
    merged = read_table(tmp_path / "DATA_DIR/s/seed0/string_countdown_task/stage1_rft_data/train.parquet")
    sources = set(merged["data_source"].to_pylist())
    assert "countdown-clean-level2" in sources
    assert any(source.startswith("string-") for source in sources)
