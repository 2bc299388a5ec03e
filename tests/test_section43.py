"""Section 4.3's scripts: what they run, in which order, in whose folders; all of it for real in the smallest sizes."""

import json
from pathlib import Path

import pytest
from bash_runs import dry, run, values

from compositionality.config.profile import load_profile
from compositionality.data.parquet import read_table
from compositionality.study.model import load_study

SECTION = "bash/section43"
ARMS = list(load_study("section43").arms)
ONE_OF_EACH = [("smoke", "single"), ("instruct", "verl")]


def study_of(profile: str, engine: str = "") -> str:
    loaded = load_profile(profile)
    name = profile + ("" if loaded.base_model else "-countdown")
    return name if engine in ("", loaded.engine) else f"{name}-{engine}"


def settings_of(script: str, profile: str, **variables: str) -> list[dict[str, str]]:
    return [values(command) for command in dry(f"{SECTION}/{script}.sh", PROFILE=profile, **variables)]


@pytest.mark.parametrize(("profile", "engine"), ONE_OF_EACH)
def test_rl_starts_from_its_stage_1_model_and_sees_strings_only(profile: str, engine: str) -> None:
    models = f"checkpoints/{study_of(profile, engine)}"
    for arm, script in (("multi-rl-level1", "stage2_rl_level1"), ("multi-rl-level1to2", "stage2_rl_level1to2")):
        (told,) = settings_of(script, profile, ENGINE=engine)
        assert told["model.path"] == f"{models}/stage1-multi/final"
        assert told["trainer.output"] == f"{models}/stage2-{arm}"
        assert not any("countdown_task" in value for value in told.values())


@pytest.mark.parametrize(("profile", "engine"), ONE_OF_EACH)
def test_the_two_kinds_of_completions_are_merged_and_learned_together(profile: str, engine: str) -> None:
    study = study_of(profile, engine)
    _, _, merge = settings_of("stage1_collect_train_data", profile, ENGINE=engine)
    (sft,) = settings_of("stage1_rft", profile, ENGINE=engine)
    parts = [f"data/{study}/{part}_rft/data" for part in ("string_task/stage1_level1", "countdown_task/stage1_level2")]
    merged = f"data/{study}/string_countdown_task/stage1_rft_data"
    assert (merge["inputs"], merge["output"]) == (f"[{','.join(parts)}]", merged)
    assert sft["data.train_file"] == f"{merged}/train.parquet"
    assert sft["trainer.output"] == f"checkpoints/{study}/stage1-multi"


def test_32_completions_of_every_test_problem_from_all_arms_and_one_of_strings() -> None:
    told, strings = settings_of("evaluate", "instruct")
    assert [model.split(":")[0] for model in told["models"].strip("[]").split(",")] == ARMS
    files = ",".join(f"data/instruct/countdown_task/{name}.parquet" for name in ("test_level2", "test"))
    assert (told["problems"], told["output"]) == (f"[{files}]", "results/instruct/section43")
    assert told["n_samples"] == "32"
    assert (strings["models"], strings["n_samples"]) == (told["models"], "1")
    assert strings["problems"] == "[data/instruct/string_task/test_trained.parquet]"
    assert strings["output"] == "results/instruct/section43-strings"
    (validation,) = settings_of("evaluate", "instruct", EVALUATE_ON="validation")
    assert "countdown_task/validation.parquet" in validation["problems"]


def test_the_string_arm_is_the_run_of_section_41() -> None:
    """Made by its script, in its folder, with its very settings: there are no two of them."""
    for profile in ("instruct", "smoke"):
        (here,) = settings_of("stage2_rl_level1to2", profile, START="string")
        (there,) = dry("bash/section41_42/stage2_rl_level1to2.sh", PROFILE=profile)
        assert here == {key: value.replace("/smoke/s", "/smoke-countdown/s") for key, value in values(there).items()}


def test_a_start_that_is_none_is_one_line() -> None:
    done = run(f"{SECTION}/stage2_rl_level1to2.sh", START="both", PROFILE="tiny")
    assert done.returncode == 2
    assert done.stderr == "error: START=both: choose multi or string\n"


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["smoke", "paper"])
def test_the_whole_section_in_order(profile: str) -> None:
    told = dry(f"{SECTION}/run_all.sh", PROFILE=profile, SEEDS="2")
    verbs, study = [command[0] for command in told], study_of(profile)
    own_base = not load_profile(profile).base_model
    assert verbs.count("pretrain_tiny") == (2 if own_base else 0)
    assert verbs.count("train_grpo") == 2 * 3
    assert verbs.index("merge_data") < verbs.index("train_grpo")
    evaluated = [values(command)["models"] for command in told if command[0] == "evaluate"]
    assert {models.strip("[").split(":")[0] for models in evaluated[:5]} == set(ARMS)
    assert evaluated[5].count(":") == len(ARMS)
    summary = next(values(command) for command in told if command[0] == "summarise_seeds")
    inputs = [f"seed{seed}:results/{study}{end}/section43/results.parquet" for seed, end in ((0, ""), (1, "-seed1"))]
    assert summary["inputs"] == f"[{','.join(inputs)}]"
    assert (summary["output"], summary["place"]) == (f"results/{study}/section43/seeds.json", "section43")


@pytest.mark.slow
@pytest.mark.timeout(3600)
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
    assert {row["level"] for row in summary["accuracy"]} == {2, 3, 4, 5}
    assert (tmp_path / "RESULTS_DIR/section43/accuracy_by_level.png").is_file()
    merged = read_table(tmp_path / "DATA_DIR/string_countdown_task/stage1_rft_data/train.parquet")
    sources = set(merged["data_source"].to_pylist())
    assert "countdown-clean-level2" in sources
    assert any(source.startswith("string-") for source in sources)
