"""Behaviour injection: arms that are paired, one RL for all, folders of its own; all for real in the smallest sizes."""

import json
from pathlib import Path

import pytest
from bash_runs import dry, run, values
from compositionality.study.budgets import length_like

from compositionality.config.profile import load_profile
from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.study.model import load_study
from compositionality.train.common.metrics import TRAINED

SECTION = "bash/behavior_injection"
STUDY = load_study("behavior_injection")
NAMES = [name.removeprefix("sft-") for name in STUDY.arms if name.startswith("sft-")]
NOT_THE_ARMS_OWN = ("model.path", "trainer.output")


@pytest.mark.parametrize("name", NAMES)
def test_arms_share_problems_and_rl_and_differ_in_their_solutions(name: str) -> None:
    sft, rl = STUDY.arms[f"sft-{name}"], STUDY.arms[f"rl-{name}"]
    assert (sft.start, rl.start, rl.after) == ("base", f"sft-{name}", [f"sft-{name}"])
    rows, trained = (values(one) for one in dry(f"{SECTION}/sft.sh", *sft.arguments, PROFILE="tiny"))
    assert rows["problems"] == "data/tiny-injection/igsm_task/sft.parquet"
    assert trained["data.train_file"] == f"{rows['output']}/train.parquet"
    assert trained["trainer.output"] == f"checkpoints/tiny-injection/sft-{name}"
    told, plain = (values(*dry(f"{SECTION}/rl.sh", one, PROFILE="tiny")) for one in (name, "vanilla"))
    assert told["model.path"] == f"{trained['trainer.output']}/final"
    for key in NOT_THE_ARMS_OWN:
        told.pop(key), plain.pop(key)
    assert told == plain


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told"),
    [("plain", {}), ("injected", {"analysis": "2", "reflection": "0.1"}), ("neutral", {"padded": "true"})],
)
def test_the_same_injection_on_strings(name: str, told: dict[str, str]) -> None:
    """Rows of the first problems of RL on level 2, SFT from Stage 1, then RL; tested as sections 4.1 and 4.2 are."""
    rows, trained, tested = (values(one) for one in dry("bash/section41_42/arm.sh", f"sft-{name}", PROFILE="tiny"))
    problems = "data/tiny/string_task/stage2_level2/train.parquet"
    assert (rows["problems"], rows["limit"]) == (problems, "2000")
    assert {key: rows[key] for key in ("analysis", "reflection", "padded") if key in rows} == told
    assert trained["model.path"] == "checkpoints/tiny/stage1-rft/final"
    assert trained["data.train_file"] == f"{rows['output']}/train.parquet"
    after, again = (values(one) for one in dry("bash/section41_42/arm.sh", f"rl-{name}", PROFILE="tiny"))
    assert after["model.path"] == f"{trained['trainer.output']}/final"
    assert (after["data.train_files"], after["data.val_files"]) == (f"[{problems}]", "[]")
    assert again["problems"] == tested["problems"]


def test_four_orders_of_a_quarter_of_the_problems_are_no_more_rows() -> None:
    for profile, count in (("tiny", "2499"), ("paper", "500")):
        rows, _ = dry(f"{SECTION}/sft.sh", "rows", "prompt_orders=4", PROFILE=profile, SFT_PART="4")
        assert (values(rows)["limit"], values(rows)["prompt_orders"]) == (count, "4")


def test_rl_on_problems_that_are_solved_now_and_then() -> None:
    words = ("bridge", "optim.lr=1e-4", "max_correct_ratio=0.9")
    asked, kept, trained = (values(one) for one in dry(f"{SECTION}/rl_mixed.sh", *words, PROFILE="tiny"))
    assert (kept["max_correct_ratio"], trained["optim.lr"], "optim.lr" in asked) == ("0.9", "1e-4", False)
    assert (asked["model"], asked["n_samples"]) == ("checkpoints/tiny-injection/sft-bridge/final", "8")
    assert kept["rollouts"] == asked["output"]
    assert trained["data.train_files"] == f"[{kept['output']}]"
    assert trained["trainer.output"] == "checkpoints/tiny-injection/rl-bridge-mixed"


def test_pass_at_k_is_of_the_harder_problems() -> None:
    for told in map(values, dry(f"{SECTION}/passk.sh", PROFILE="tiny")):
        assert (told["problems"], told["levels"]) == ("[data/tiny-injection/igsm_task/test_ood.parquet]", "[]")


def test_an_arm_of_ones_own_needs_keys_alone() -> None:
    rows, trained = dry(f"{SECTION}/sft.sh", "mine", "analysis_chance=0.1", "trainer.steps=75", PROFILE="tiny")
    assert values(rows)["analysis_chance"] == "0.1"
    assert "trainer.steps" not in values(rows)
    assert values(trained)["trainer.steps"] == "75"
    for script in ("sft", "rl", "preprocess"):
        done = run(f"{SECTION}/{script}.sh", PROFILE="tiny")
        assert done.returncode != 0
        assert "which arm?" in done.stderr


def test_influence_of_models_that_are_not_there_is_one_line(tmp_path: Path) -> None:
    done = run(f"{SECTION}/influence.sh", PROFILE="tiny", CKPT_DIR=str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "sft-*/final; run: bash bash/behavior_injection/run_seed.sh" in done.stderr


def test_arms_that_train_as_long_as_another(tmp_path: Path) -> None:
    """Updates are those of the other run, tokens count its prompts; a run that is not finished is named."""
    run_folder = tmp_path / "sft-bridge"
    (run_folder / "final").mkdir(parents=True)
    rows = [{"step": step, "train/grad_norm": 1.0, TRAINED: 100 + step} for step in (1, 2, 3)]
    (run_folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert length_like(run_folder, "updates", {}) == "trainer.steps=3"
    assert length_like(run_folder, "tokens", {}) == "trainer.tokens=306"
    with pytest.raises(UserError, match=r"sft-vanilla: not finished, .* run that arm first"):
        length_like(tmp_path / "sft-vanilla", "updates", {})
    with pytest.raises(UserError, match="SFT_BUDGET=words: choose updates or tokens"):
        length_like(run_folder, "words", {})
    for name, word in (("pp-aug-updates", "trainer.steps"), ("vanilla-tokens", "trainer.tokens")):
        _, trained = map(values, dry(f"{SECTION}/arm.sh", f"sft-{name}", PROFILE="tiny")[:2])
        assert trained[word] == "1"  # nothing was run


def test_the_recipe_of_one_model() -> None:
    """As the paper's profile has it, with a chat template of its own; elsewhere that profile's model and sizes."""
    told = dry(f"{SECTION}/run_qwen2.5_1.5b.sh", N_GPUS="2")
    steps = [(command[0], values(command)) for command in told if command[0] != "create_problems"]
    names = ["set_chat_template", "write_solutions", "train_sft", "train_grpo", "evaluate"]
    assert [name for name, _ in steps] == names
    template, rows, sft, rl, evaluated = (settings for _, settings in steps)
    assert template["model"] == "Qwen/Qwen2.5-1.5B"
    assert (rows["tags"], rows["subgoals"], rows["analysis"], rows["reflection"]) == ("true", "true", "2", "0.1")
    assert (sft["model.path"], sft["data.train_file"]) == (template["output"], f"{rows['output']}/train.parquet")
    assert rl["model.path"] == f"{sft['trainer.output']}/final"
    assert evaluated["models"] == f"[sft:{rl['model.path']},rl:{rl['trainer.output']}/final]"
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
        done = run(f"{SECTION}/run_all.sh", PROFILE="smoke", **folders)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (f"{folders['CKPT_DIR']}/rl-bridge/final is already there" in done.stdout) == again
    summary = json.loads((tmp_path / "RESULTS_DIR/behavior_injection/seeds.json").read_text())
    assert set(summary["models"]) == {"base", *folders["ARMS"].split()}
    assert {(row["group"], row["level"]) for row in summary["accuracy"]} == {("igsm", 2), ("igsm", 3), ("ood", 4)}
    claims = json.loads((tmp_path / "RESULTS_DIR/claims.json").read_text())["claims"]
    decided = {row["claim"]: row["decision"] for row in claims}
    assert (decided["R4"], decided["R8-plain"] != "not run") == ("not run", True)
    ranks = json.loads((tmp_path / "RESULTS_DIR/behavior_injection/ranks.json").read_text())
    assert sorted(ranks["arms"]) == sorted(names)
    assert next(row for row in claims if row["claim"] == "R1")["comparisons"][0]["level"] == 3
    page = (tmp_path / "RESULTS_DIR/report/index.html").read_text()
    for name in ("accuracy", "training", "influence", "influence_pairs", "ranks", "claims"):
        assert f'<section id="{name}"' in page
    rows = read_table(tmp_path / "RESULTS_DIR/influence/sft-bridge/influence.parquet").to_pylist()
    assert len(rows) == 24
    assert any(row["influence"] for row in rows)
