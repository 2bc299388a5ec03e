"""The scaling study: sizes that differ in their model alone, one hold-out; all for real in the smallest sizes."""

import json
from pathlib import Path

import pandas as pd
import pytest
from bash_runs import dry, planned, run, values, warm_python

from compositionality.data.parquet import read_table
from compositionality.study.model import load_study
from compositionality.train.tiny.model import TinyConfig, _sizes

SECTION = "bash/scaling_law"
STUDY = load_study("scaling_law")
SIZES = [name.removeprefix("base-") for name in STUDY.arms if name.startswith("base-")]


def test_sizes_span_a_decade_and_a_half_and_are_called_by_their_parameters() -> None:
    counts = []
    for size in SIZES:
        words = dict(word.split("=") for word in STUDY.arms[f"base-{size}"].words)
        shape = TinyConfig(**{key.removeprefix("model."): int(value) for key, value in words.items()})
        found = _sizes(shape, 100)
        width, heads = found["hidden_size"], found["num_attention_heads"] * found["head_dim"]
        of_layer = 4 * width * heads + 3 * width * found["intermediate_size"] + 2 * width
        counts.append(found["num_hidden_layers"] * of_layer + width)
        assert f"{counts[-1] / 1000:.0f}k" == size
    assert len(counts) >= 5
    assert max(counts) / min(counts) > 10**1.5


def test_sizes_differ_in_their_model_alone() -> None:
    names = [f"{kind}-{size}" for size in (SIZES[0], SIZES[-1]) for kind in ("base", "rl")]
    steps = planned(f"{SECTION}/run_all.sh", PROFILE="tiny", STUDY="s", SEEDS="1", ARMS=" ".join(names))
    settings = {key: step["settings"] for key, step in steps.items()}
    first, last = (settings[f"seed0/rl-{size}"] for size in (SIZES[0], SIZES[-1]))
    for size, trained in ((SIZES[0], first), (SIZES[-1], last)):
        made = settings[f"seed0/base-{size}"]["output"]
        assert trained["model"].pop("path") == made == f"checkpoints/s/seed0/base-{size}/model"
        assert trained["trainer"].pop("output") == f"checkpoints/s/seed0/rl-{size}"
        assert trained["data"]["val_files"] == ["data/s/seed0/scaling_task/holdout.parquet"]
    assert first == last


def test_laws_are_fitted_to_runs_that_differ_in_their_size_alone() -> None:
    arms = "base-15k rl-15k base-85k rl-85k rl-85k-reuse-5"
    steps = planned(f"{SECTION}/fit.sh", PROFILE="tiny", STUDY="s", SEEDS="2", ARMS=arms)
    assert [key for key in steps if key.startswith("fit")] == ["fit-flops", "fit-flops_paper", "fit-completions"]
    assert steps["fit-flops"]["settings"]["points"] == [
        f"seed{seed}-rl-{size}:checkpoints/s/seed{seed}/rl-{size}" for seed in (0, 1) for size in ("15k", "85k")
    ]


def test_an_algorithm_and_rows_of_ones_own() -> None:
    own = {"PROFILE": "tiny", "MODEL_PATH": "m", "TRAIN_FILES": "a.parquet", "VAL_FILES": "b.parquet", "OUTPUT": "o"}
    (told,) = map(values, dry(f"{SECTION}/train.sh", "algorithm=reinforce_plus_plus", **own))
    keys = ("model.path", "data.train_files", "data.val_files", "trainer.output", "algorithm")
    assert [told[key] for key in keys] == ["m", "a.parquet", "b.parquet", "o", "reinforce_plus_plus"]
    (asked,) = map(
        values, dry(f"{SECTION}/passk.sh", PROFILE="tiny", MODEL_PATH="[base:m,c/steps]", DATA="b", OUTPUT="o")
    )
    assert (asked["models"], asked["problems"], asked["output"]) == ("[base:m,c/steps]", "b", "o")


DOMAINS = "[math,code,logic,stem]"
PUBLISHED = {
    **{"algorithm": "ppo", "algorithm.gamma": "1.0", "algorithm.gae_lambda": "0.95"},
    **{"model.lora.rank": "32", "model.lora.alpha": "64", "verl.algorithm.use_kl_in_reward": "true"},
    **{"model.lora.targets": "[q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj]"},
    **{"optim.lr": "1e-6", "critic.lr": "1e-5", "optim.warmup_steps": "10", "critic.alone_steps": "5"},
    **{"verl.algorithm.kl_ctrl.kl_coef": "0.02", "verl.algorithm.kl_ctrl.target_kl": "0.01"},
}


@pytest.mark.parametrize(
    ("script", "given", "steps", "own"),
    [
        (
            ["run_multi_domain"],
            {"PROFILE": "tiny"},
            "pretrain_tiny make_domain_sample prepare_guru train_grpo passk",
            {"data.prompts_per_step": "8", "rollout.n": "4", "trainer.epochs": "3", "trainer.save_every": "10"},
        ),
        (
            ["run_multi_domain"],
            {"PROFILE": "paper", "MODEL_PATH": "m", "DATA": "g"},
            "prepare_guru train_grpo passk",
            {"data.max_prompt_tokens": "2048", "rollout.max_tokens": "2048", "algorithm.updates_per_step": "2"},
        ),
        (
            ["run_multi_domain"],
            {"PROFILE": "paper", "MODEL_PATH": "m", "TRAIN_FILES": "t/a.parquet"},
            "train_grpo passk",
            {"data.train_files": "[t/a.parquet]", "data.val_files": "[t/holdout.parquet]"},
        ),
        (
            ["run_single_domain", "math"],
            {"PROFILE": "paper", "MODEL_PATH": "m", "DATA": "g"},
            "prepare_guru train_grpo passk",
            {"data.prompts_per_step": "64", "rollout.n": "2", "trainer.epochs": "2", "trainer.save_every": "25"},
        ),
    ],
)
def test_domains_are_prepared_trained_on_by_the_published_settings_and_measured(
    script: list[str], given: dict[str, str], steps: str, own: dict[str, str]
) -> None:
    told = dry(f"{SECTION}/{script[0]}.sh", *script[1:], **given)
    assert [one[0] for one in told] == steps.split()
    trained, asked = values(told[-2]), values(told[-1])
    assert {**PUBLISHED, **own}.items() <= trained.items()
    assert trained["profile"].endswith("/verl")
    assert (f"[{asked['problems']}]", asked["n_samples"]) == (trained["data.val_files"], "128")
    if "prepare_guru" in steps:
        made = values(told[-3])
        assert trained["data.train_files"] == f"[{made['output']}/train.parquet]"
        assert trained["data.val_files"] == f"[{made['output']}/holdout.parquet]"
        assert (made["domains"], made.get("train_domains")) == (DOMAINS, "[math]" if script[1:] else None)
        assert made["files"] == "[g]" if "DATA" in given else f"[{values(told[1])['output']}]"


def test_an_unknown_domain_is_one_line_before_anything_is_made(tmp_path: Path) -> None:
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    own = {"PROFILE": "tiny", "MODEL_PATH": "m", "DATA": "g", "DRY_RUN": "1", **folders}
    for domain, told in (("physics", "no domain 'physics'; there are: math, code, logic, stem"), ("", "which domain?")):
        done = run(f"{SECTION}/run_single_domain.sh", domain, **own)
        assert done.returncode == 2, done.stderr
        assert told in done.stderr.splitlines()[-1]


def test_files_are_checked_by_their_names(tmp_path: Path) -> None:
    (told,) = (values(one) for one in dry(f"{SECTION}/check_data.sh", "a.parquet", "my folder", PROFILE="tiny"))
    assert (told["files"], told["report_only"]) == ("['a.parquet','my folder']", "true")
    done = run(f"{SECTION}/check_data.sh", str(tmp_path / "absent.parquet"), PROFILE="tiny")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        f"error: {tmp_path / 'absent.parquet'}: no such file; run the step that makes it or correct the path",
    )


def test_the_questions_of_several_domains_are_arms() -> None:
    """Every arm reads what an arm that comes before it makes, and nothing is taken for a size of the laws."""
    names = [name for name, arm in STUDY.arms.items() if arm.script.endswith("domain") or name.startswith("sft-")]
    steps = planned(f"{SECTION}/run_all.sh", PROFILE="paper", STUDY="s", SEEDS="1", ARMS=" ".join(names))
    keys = list(steps)
    for name in ("sft-domains-rows", "sft-domains-half-rows"):
        assert keys.index("seed0/rl-domains") < keys.index(f"seed0/{name}")
        assert steps[f"seed0/{name}"]["settings"]["problems"].startswith("data/s/seed0/domains/rl-domains/")
    half = steps["seed0/rl-domains-half"]
    assert half["variables"]["MODEL_PATH"] == "checkpoints/s/seed0/sft-domains-half/final"
    assert half["variables"]["TRAIN_FILES"] == "data/s/seed0/domains/rl-domains/rest.parquet"
    assert steps["seed0/rl-math-8"]["words"][:2] == ["math", "rows:rows_per_domain=8"]
    assert not [key for key in keys if key.startswith("fit")]


def test_quick_is_a_profile_of_four_sizes() -> None:
    steps = planned(f"{SECTION}/run_all.sh", "only=[rl-*]", PROFILE="quick", SEEDS="2")
    assert len(steps) == 8
    assert {step["settings"]["trainer"]["steps"] for step in steps.values()} == {20}


def test_the_papers_sizes_and_settings() -> None:
    steps = planned(f"{SECTION}/run_all.sh", "only=[rl-*,problems]", PROFILE="paper", SEEDS="1")
    made = steps.pop("seed0/problems")["settings"]
    assert sorted(step["settings"]["model"]["path"] for step in steps.values()) == sorted(
        f"Qwen/Qwen2.5-{size}" for size in ("0.5B", "1.5B", "3B", "7B", "14B", "32B", "72B")
    )
    assert made["holdout"]["count"] == 6 * 84  # the paper has 500; levels in equal parts


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_scaling_study_for_real_in_the_smallest_sizes(tmp_path: Path) -> None:
    """From nothing to fits, claims and page (a second time nothing is made again: test_behavior_injection.py)."""
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")} | {
        "PYTHON": warm_python()
    }
    done = run(f"{SECTION}/run_all.sh", PROFILE="smoke", STUDY="s", SEEDS="1", **folders)
    assert done.returncode == 0, done.stdout + done.stderr
    results = tmp_path / "RESULTS_DIR/s"
    summary = pd.read_csv(results / "scaling_law/summary.csv")
    assert {*zip(summary["group"], summary["level"], strict=True)} == {("holdout", 1), ("holdout", 2), ("longer", 1)}
    for resource in ("flops", "flops_paper", "completions"):
        fits = json.loads((results / f"scaling_law/{resource}/scaling.json").read_text())
        assert (len(fits["sizes"]), fits["runs"]) == (3, 3)
        assert {one["law"] for one in fits["laws"]} >= {"log_linear", "saturating_slope"}
    claims = json.loads((results / "claims.json").read_text())["claims"]
    decided = {row["claim"]: row["decision"] for row in claims}
    assert decided["S6"] == "not run"
    assert decided["S1"] in ("not testable", "undecided")  # one run a size
    page = (results / "report/index.html").read_text()
    for name in ("accuracy", "training", "scaling_flops", "scaling_completions", "claims"):
        assert f'<section id="{name}"' in page
    assert "the paper is “Scaling Behaviors of LLM RL Post-Training”" in page
    during = (results / "report/tables/training.csv").read_text()
    assert ",holdout," in during
    assert ",longer," not in during
    told = run(f"{SECTION}/passk.sh", "n_samples=4", "levels=[1]", PROFILE="smoke", STUDY="s", **folders)
    assert told.returncode == 0, told.stdout + told.stderr
    along = read_table(results / "seed0/passk-rl-85k/results.parquet", ["arm"])
    assert along["arm"].unique().to_pylist() == ["base", "step2", "step4"]


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(1200)
def test_several_domains_for_real_in_two_steps_of_ppo(tmp_path: Path) -> None:
    """A generated sample of four domains: prepared, trained on through verl, its checkpoints in a table by domain."""
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    short = ["trainer.steps=2", "trainer.save_every=1", "passk:n_samples=4", "critic.alone_steps=0"]
    done = run(f"{SECTION}/run_multi_domain.sh", *short, PROFILE="smoke", STUDY="s", PYTHON=warm_python(), **folders)
    assert done.returncode == 0, done.stdout + done.stderr
    logged = (tmp_path / "CKPT_DIR/s/seed0/rl-domains/metrics.jsonl").read_text()
    assert all(f"val-core/{domain}" in logged for domain in ("code", "logic", "math", "stem"))
    assert "critic/" in logged
    measured = read_table(tmp_path / "RESULTS_DIR/s/seed0/passk-rl-domains/results.parquet", ["arm", "group"])
    assert set(measured["group"].to_pylist()) == {"code", "logic", "math", "stem"}
    assert measured["arm"].unique().to_pylist() == ["base", "step1", "step2"]
    assert "math of rl-domains-holdout, all levels, along training" in done.stdout
