"""Section 4.3's scripts: what they run, in which order, in whose folders; all of it for real in the smallest sizes."""

import json
import re
from pathlib import Path

import pytest
from bash_runs import commands, run

from compositionality.data.parquet import read_table

SECTION = "bash/section43"
ARMS = ["string-base", "multi-base", "string-rl-level1to2", "multi-rl-level1", "multi-rl-level1to2"]
PROFILES = [("tiny", ""), ("smoke", "verl"), ("single", ""), ("paper", "")]
ONE_OF_EACH = [("smoke", ""), ("instruct", "")]
OWN_STUDY = ("tiny", "smoke", "single")
STEPS = [
    *("stage1_create_problems", "stage1_create_train_data", "stage1_rft", "stage2_create_problems"),  # of section 4.1
    *("create_countdown_data", "stage1_collect_train_data", "stage1_rft", "arm", "evaluate", "run_seed"),
]


def study_of(profile: str, engine: str) -> str:
    return profile + ("-countdown" if profile in OWN_STUDY else "") + ("-verl" if engine else "")


def dry(script: str, profile: str, engine: str = "", **variables: str) -> str:
    return commands(run(f"{SECTION}/{script}.sh", PROFILE=profile, ENGINE=engine, DRY_RUN="1", **variables))


@pytest.mark.parametrize(("profile", "engine"), ONE_OF_EACH)
def test_rl_starts_from_its_stage_1_model_and_sees_strings_only(profile: str, engine: str) -> None:
    models = f"checkpoints/{study_of(profile, engine)}"
    for arm, script, start in (
        ("multi-rl-level1", "stage2_rl_level1", "stage1-multi"),
        ("multi-rl-level1to2", "stage2_rl_level1to2", "stage1-multi"),
    ):
        told = dry(script, profile, engine)
        assert re.search(rf"model(\.path)?={models}/{start}/final ", told)
        assert re.search(rf"output={models}/stage2-{arm} ", told)
        assert "countdown_task" not in told


@pytest.mark.parametrize(("profile", "engine"), ONE_OF_EACH)
def test_the_two_kinds_of_answers_are_merged_and_learned_together(profile: str, engine: str) -> None:
    study = study_of(profile, engine)
    told = "\n".join(dry(script, profile, engine) for script in ("stage1_collect_train_data", "stage1_rft"))
    verbs = re.findall(r"(?:examples|train)/(\w+)\.py", told)
    assert verbs[:3] == ["collect_rollouts", "filter_rollouts", "merge_data"]
    parts = [f"data/{study}/{part}_rft/data" for part in ("string_task/stage1_level1", "countdown_task/stage1_level2")]
    merged = f"data/{study}/string_countdown_task/stage1_rft_data"
    assert f"merge_data.py inputs=\\[{parts[0]}\\,{parts[1]}\\] output={merged}\n" in told
    assert f"train_file={merged}/train.parquet" in told
    assert re.search(rf"output=checkpoints/{study}/stage1-multi ", told)


def test_the_countdown_files_and_their_seeds() -> None:
    told = {seed: dry("create_countdown_data", "tiny", SEED=seed) for seed in "07"}
    for seed, study in (("0", "tiny-countdown"), ("7", "tiny-countdown-seed7")):
        made = re.findall(rf"output=data/{study}/countdown_task/(\S+)\.parquet .*split=(\w+) seed=(\d+)", told[seed])
        assert made == [
            ("stage1_level2/train", "train", seed),
            ("validation_level2", "validation", seed),
            ("validation", "validation", seed),
            ("test_level2", "test", "2027"),
            ("test", "test", "2027"),
        ]
    assert "levels=\\[2\\] count=" in told["0"]
    assert f"levels=\\[3\\,4\\,5\\] count={3 * 128} " in told["0"]


def test_the_papers_problems_are_taken_from_the_library() -> None:
    told = dry("create_countdown_data", "paper")
    assert "stage1_level2/train.parquet mode=paper workers=" in told
    assert re.search(r"levels=\\\[2\\\] count=50000$", told, re.MULTILINE)
    assert re.search(r"levels=\\\[3\\,4\\,5\\\] count=384$", told, re.MULTILINE)
    assert "n_samples=10" in dry("stage1_collect_train_data", "paper")


def test_32_answers_to_every_test_problem_from_all_five_arms() -> None:
    told = dry("evaluate", "instruct")
    named = re.search(r"models=\\\[(\S+)\\\]", told)
    assert named is not None
    assert [model.split(":")[0] for model in named[1].split("\\,")] == ARMS
    files = "\\,".join(f"data/instruct/countdown_task/{name}.parquet" for name in ("test_level2", "test"))
    assert f"problems=\\[{files}\\] output=results/instruct/section43 " in told
    assert "n_samples=32" in told
    assert "countdown_task/validation.parquet" in dry("evaluate", "instruct", EVALUATE_ON="validation")


def test_the_string_arm_is_the_run_of_section_41() -> None:
    """Made by its script, in its folder, with its very settings: there are no two of them."""
    for profile in ("instruct", "smoke"):
        here = dry("stage2_rl_level1to2", profile, START="string")
        there = commands(run("bash/section41_42/stage2_rl_level1to2.sh", PROFILE=profile, DRY_RUN="1"))
        assert here == there.replace("smoke/", "smoke-countdown/")


def test_a_start_that_is_none_is_one_line() -> None:
    done = run(f"{SECTION}/stage2_rl_level1to2.sh", START="both", PROFILE="tiny")
    assert done.returncode == 2
    assert done.stderr == "error: START=both: choose multi or string\n"


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "engine"), PROFILES)
def test_the_whole_section_composes_in_order(profile: str, engine: str) -> None:
    done = run(f"{SECTION}/run_all.sh", PROFILE=profile, ENGINE=engine, DRY_RUN="1", SEEDS="2")
    told = commands(done)
    finished = re.findall(r"^== \S+  bash/(\S+)\.sh(?: (\S+))?: done", done.stderr, re.MULTILINE)
    # An arm evaluates too: the last time counts.
    names = list(dict.fromkeys(name for name, _ in reversed(finished)))[::-1]
    assert [name.split("/")[1] for name in names if name.split("/")[1] in STEPS] == STEPS
    assert names[-1] == "section43/summarise"
    assert {word for name, word in finished if name == "section43/arm"} == set(ARMS)
    study = study_of(profile, engine)
    assert told.count("pretrain_tiny.py") == (2 if profile in OWN_STUDY else 0)
    assert ("mix.countdown=" in told) == (profile in OWN_STUDY)
    inputs = [f"seed{seed}:results/{study}{end}/section43/accuracy.json" for seed, end in ((0, ""), (1, "-seed1"))]
    assert "\\,".join(inputs) in told
    assert f"output=results/{study}/section43/seeds.json place=section43" in told


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_section_43_for_real_in_the_smallest_sizes(tmp_path: Path) -> None:
    """From nothing to the table; a second time nothing is made again."""
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    for again in (False, True):
        done = run(f"{SECTION}/run_all.sh", PROFILE="smoke", **folders)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (f"{folders['CKPT_DIR']}/stage2-multi-rl-level1to2/final is already there" in done.stdout) == again
    summary = json.loads((tmp_path / "RESULTS_DIR/section43/seeds.json").read_text())
    assert summary["models"] == ARMS
    held = run("bash/claims.sh", PROFILE="smoke", **folders)
    assert held.returncode == 0, held.stderr
    claims = json.loads((tmp_path / "RESULTS_DIR/claims.json").read_text())["claims"]
    assert [row["claim"] for row in claims if row["decision"] != "not run"] == ["H4", "H4-deeper", "H5"]
    assert {(row["group"], row["level"]) for row in summary["accuracy"]} == {("countdown", n) for n in (2, 3, 4, 5)}
    assert (tmp_path / "RESULTS_DIR/section43/accuracy_by_level.svg").is_file()
    merged = read_table(tmp_path / "DATA_DIR/string_countdown_task/stage1_rft_data/train.parquet")
    sources = set(merged["data_source"].to_pylist())
    assert "countdown-clean-level2" in sources
    assert any(source.startswith("string-") for source in sources)
