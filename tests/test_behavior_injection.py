"""Behaviour injection: arms that are paired, one RL for all, folders of its own; all for real in the smallest sizes."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bash_runs import dry, planned, run, values, warm_python

from compositionality.config.profile import load_profile
from compositionality.data.parquet import read_table
from compositionality.study.model import load_study

SECTION = "bash/behavior_injection"
STUDY = load_study("behavior_injection")
NAMES = [name.removeprefix("sft-") for name in STUDY.arms if name.startswith("sft-")]


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    """Of every step of all arms, and of two profiles' quarters of the problems."""
    steps = planned(f"{SECTION}/run_all.sh", PROFILE="tiny", STUDY="s", ARMS=" ".join(list(STUDY.arms)[1:]))
    return {key: step["settings"] for key, step in steps.items()}


@pytest.mark.parametrize("name", NAMES)
def test_arms_share_problems_and_rl_and_differ_in_their_solutions(name: str, settings: dict[str, Any]) -> None:
    rows, trained = settings[f"seed0/sft-{name}-rows"], settings[f"seed0/sft-{name}-train"]
    assert rows["problems"] == "data/s/seed0/igsm_task/sft.parquet"
    assert trained["data"]["train_files"] == [f"{rows['output']}/train.parquet"]
    assert trained["trainer"]["output"] == f"checkpoints/s/seed0/sft-{name}"
    told, plain = (json.loads(json.dumps(settings[f"seed0/rl-{one}"])) for one in (name, "vanilla"))
    assert told["model"].pop("path") == f"{trained['trainer']['output']}/final"
    for one in (told, plain):
        one["model"].pop("path", None), one["trainer"].pop("output")
    assert told == plain


@pytest.mark.parametrize(("name", "told"), [("plain", (0, 0.0)), ("injected", (2, 0.1)), ("neutral", (0, 0.0))])
def test_the_same_injection_on_strings(name: str, told: tuple[int, float]) -> None:
    """Rows of the first problems of RL on level 2, SFT from Stage 1, then RL; tested as sections 4.1 and 4.2 are."""
    steps = planned(
        "bash/section41_42/run_all.sh", f"only=[sft-{name}-*,rl-{name}]", PROFILE="tiny", STUDY="s",
        ARMS=f"rl-{name} sft-{name}",
    )  # fmt: skip
    rows, trained, rl = (step["settings"] for step in steps.values())
    problems = "data/s/seed0/string_task/stage2_level2/train.parquet"
    assert (rows["problems"], rows["limit"], rows["padded"]) == (problems, 2000, name == "neutral")
    assert (rows["analysis"], rows["reflection"]) == told
    assert trained["model"]["path"] == "checkpoints/s/seed0/stage1-rft/final"
    assert trained["data"]["train_files"] == [f"{rows['output']}/train.parquet"]
    assert rl["model"]["path"] == f"{trained['trainer']['output']}/final"
    assert (rl["data"]["train_files"], rl["data"]["val_files"]) == ([problems], [])


def test_arms_with_as_many_rows_updates_or_tokens_as_another(settings: dict[str, Any]) -> None:
    rows = settings["seed0/sft-pp-aug-rows-rows"]
    assert (rows["parts"], rows["prompt_orders"]) == (4, 4)
    assert settings["seed0/sft-pp-aug-updates-train"]["trainer"]["steps_of"] == "checkpoints/s/seed0/sft-vanilla"
    assert settings["seed0/sft-vanilla-tokens-train"]["trainer"]["tokens_of"] == "checkpoints/s/seed0/sft-bridge"


def test_rl_on_problems_that_are_solved_now_and_then(settings: dict[str, Any]) -> None:
    asked, kept, trained = (settings[f"seed0/rl-bridge-mixed-{step}"] for step in ("rollouts", "filter", "train"))
    assert (asked["model"], asked["n_samples"]) == ("checkpoints/s/seed0/sft-bridge/final", 8)
    assert kept["rollouts"] == asked["output"]
    assert trained["data"]["train_files"] == [kept["output"]]
    assert trained["trainer"]["output"] == "checkpoints/s/seed0/rl-bridge-mixed"


def test_the_influence_of_every_sft_model_is_measured(settings: dict[str, Any]) -> None:
    for name in NAMES:
        asked, found = settings[f"seed0/influence-sft-{name}-rollouts"], settings[f"seed0/influence-sft-{name}"]
        assert found["rollouts"] == asked["output"] == f"results/s/seed0/influence/sft-{name}/rollouts"
    assert settings["summary"]["influence"] == ["seed0:results/s/seed0/influence"]
    assert "influence/seed0:results/s/seed0/influence" in settings["claims"]["results"]


def test_pass_at_k_is_of_the_harder_problems() -> None:
    (told,) = map(values, dry(f"{SECTION}/passk.sh", PROFILE="tiny"))
    assert (told["problems"], told["levels"]) == ("data/injection/seed0/igsm_task/test_ood.parquet", "[]")


def test_the_recipe_of_one_model() -> None:
    """As the paper's profile has it, with a chat template of its own; elsewhere that profile's model and sizes."""
    told = dry(f"{SECTION}/run_qwen2.5_1.5b.sh", N_GPUS="2")
    steps = [(command[0], values(command)) for command in told if command[0] != "create_problems"]
    names = ["set_chat_template", "write_solutions", "train_sft", "train_grpo", "evaluate"]
    assert [name for name, _ in steps] == names
    template, rows, sft, rl, evaluated = (settings for _, settings in steps)
    assert template["model"] == "Qwen/Qwen2.5-1.5B"
    assert (rows["tags"], rows["subgoals"], rows["analysis"], rows["reflection"]) == ("true", "true", "2", "0.1")
    assert (sft["model.path"], sft["data.train_files"]) == (template["output"], f"[{rows['output']}/train.parquet]")
    assert rl["model.path"] == f"{sft['trainer.output']}/final"
    assert evaluated["models"] == f"['sft:{rl['model.path']}','rl:{rl['trainer.output']}/final']"
    paper = load_profile("paper")
    for step, entry, given in (("sft", "train_sft", sft), ("rl", "train_grpo", rl)):
        layer = paper.steps[f"behavior_injection/{step}"][entry]
        for section in ("trainer", "optim", "rollout"):
            for key, value in layer.get(section, {}).items():
                assert value is None or float(given[f"{section}.{key}"]) == value, key
    smoke = dry(f"{SECTION}/run_qwen2.5_1.5b.sh", PROFILE="smoke", BEHAVIOURS="", NAME="vanilla")
    assert [command[0] for command in smoke if command[0] != "create_problems"] == ["pretrain_tiny", *names[1:]]
    assert "optim.lr" not in values(smoke[-3])


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_behaviour_injection_for_real_in_the_smallest_sizes(tmp_path: Path) -> None:
    """From nothing to influences, claims and page; a second time nothing is made again."""
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    names = ("vanilla", "bridge", "subgoals")
    folders["ARMS"] = " ".join(f"sft-{name} rl-{name}" for name in names)
    for again in (False, True):
        done = run(
            f"{SECTION}/run_all.sh", "base:steps=80", PROFILE="smoke", STUDY="s", PYTHON=warm_python(), **folders
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert (f"{folders['CKPT_DIR']}/s/seed0/rl-bridge/final is already there" in done.stdout) == again
    summary = pd.read_csv(tmp_path / "RESULTS_DIR/s/behavior_injection/summary.csv")
    assert {*summary["model"]} == {"base", *folders["ARMS"].split()}
    assert {*zip(summary["group"], summary["level"], strict=True)} == {("igsm", 2), ("igsm", 3), ("ood", 4)}
    claims = json.loads((tmp_path / "RESULTS_DIR/s/claims.json").read_text())["claims"]
    decided = {row["claim"]: row["decision"] for row in claims}
    assert (decided["R4"], decided["R8-plain"] != "not run") == ("not run", True)
    ranked = pd.read_csv(tmp_path / "RESULTS_DIR/s/report/tables/ranks.csv")
    assert {*ranked["arm"]} == {*names}
    assert (tmp_path / "RESULTS_DIR/s/behavior_injection/ranks.csv").is_file()
    assert next(row for row in claims if row["claim"] == "R1")["comparisons"][0]["level"] == 3
    page = (tmp_path / "RESULTS_DIR/s/report/index.html").read_text()
    for name in ("accuracy", "training", "influence", "influence_pairs", "ranks", "claims"):
        assert f'<section id="{name}"' in page
    rows = read_table(tmp_path / "RESULTS_DIR/s/seed0/influence/sft-bridge/influence.parquet").to_pylist()
    assert len(rows) == 24
    assert any(row["influence"] for row in rows)
