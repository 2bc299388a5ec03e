"""Scripts of sections by themselves: recipes of several commands, and steps on models and rows of one's own."""

import math
import shlex
from pathlib import Path

import pytest
import torch
from bash_runs import dry, run, typed, values, warm_verl
from safetensors.torch import load_file

from compositionality.config.profile import load_profile
from compositionality.data.parquet import read_table
from compositionality.train.metrics import FLOPS, PAPER_FLOPS, read_metrics

INJECTION, SCALING = "bash/behavior_injection", "bash/scaling_law"


def test_the_recipe_of_one_model() -> None:
    """As the paper's profile has it, with a chat template of its own; elsewhere that profile's model and sizes."""
    told = dry(f"{INJECTION}/run_qwen2.5_1.5b.sh", N_GPUS="2")
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
    smoke = dry(f"{INJECTION}/run_qwen2.5_1.5b.sh", PROFILE="smoke", BEHAVIOURS="", NAME="vanilla")
    assert [command[0] for command in smoke if command[0] != "create_problems"] == ["pretrain_tiny", *names[1:]]
    assert "optim.lr" not in values(smoke[-3])


@pytest.mark.parametrize(
    ("recipe", "step", "model"),
    [
        ("section41_42/run_llama3.1_8b", "section41_42/stage2_rl_level2", ""),
        ("section43/run_llama3.1_8b", "section43/stage2_rl_level1to2", ""),
        ("behavior_injection/run_rl_qwen2.5_1.5b", "behavior_injection/rl", ""),
        ("scaling_law/run_qwen2.5_7b", "scaling_law/train", "Qwen/Qwen2.5-7B"),
    ],
)
def test_a_recipe_in_verls_words_is_the_papers_step(
    recipe: str, step: str, model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its own model and files; ``model``: where the step has another one."""
    monkeypatch.setenv("N_GPUS", "8")
    resolved = []
    for name, own in ((recipe, {}), (step, {"MODEL_PATH": model})):
        done = run(f"bash/{name}.sh", PROFILE="paper", OUTPUT="o", N_GPUS="8", PYTHON="true", **own)
        words = done.stderr.splitlines()[-1].partition("examples/train_grpo.py ")[2]
        assert typed("train_grpo", [*shlex.split(words), "--cfg"]) == 0
        resolved.append(capsys.readouterr().out)
    assert "lr: 1.0e-06" in resolved[0]
    assert resolved[0] == resolved[1]


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
            {"data.train_files": "t/a.parquet", "data.val_files": "t/holdout.parquet"},
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
    told = dry(f"{SCALING}/{script[0]}.sh", *script[1:], **given)
    assert [one[0] for one in told] == steps.split()
    trained, asked = values(told[-2]), values(told[-1])
    assert {**PUBLISHED, **own}.items() <= trained.items()
    assert trained["profile"].endswith("/verl")
    assert (asked["problems"], asked["n_samples"]) == (trained["data.val_files"], "128")
    if "prepare_guru" in steps:
        made = values(told[-3])
        assert trained["data.train_files"] == f"{made['output']}/train.parquet"
        assert trained["data.val_files"] == f"{made['output']}/holdout.parquet"
        assert (made["domains"], made.get("train_domains")) == (DOMAINS, "[math]" if script[1:] else None)
        assert made["files"] == ("g" if "DATA" in given else values(told[1])["output"])


def test_an_unknown_domain_is_one_line_before_anything_is_made(tmp_path: Path) -> None:
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    own = {"PROFILE": "tiny", "MODEL_PATH": "m", "DATA": "g", "DRY_RUN": "1", **folders}
    for domain, told in (("physics", "no domain 'physics'; there are: math, code, logic, stem"), ("", "which domain?")):
        done = run(f"{SCALING}/run_single_domain.sh", domain, **own)
        assert done.returncode == 2, done.stderr
        assert told in done.stderr.splitlines()[-1]


def test_files_are_checked_by_their_names(tmp_path: Path) -> None:
    (told,) = (values(one) for one in dry(f"{SCALING}/check_data.sh", "a.parquet", "my folder", PROFILE="tiny"))
    assert (told["files"], told["report_only"]) == ("['a.parquet','my folder']", "true")
    done = run(f"{SCALING}/check_data.sh", str(tmp_path / "absent.parquet"), PROFILE="tiny")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        f"error: {tmp_path / 'absent.parquet'}: no such file; run the step that makes it or correct the path",
    )


def test_failure_modes_are_of_the_models_that_are_there(tmp_path: Path) -> None:
    from failure_runs import always_right, first_line_only, problem_file, rollouts

    data, results = tmp_path / "data/s/seed0", tmp_path / "results/s/seed0"
    for number, kind in enumerate(("trained", "heldout", "heldout_ordered")):
        problems = problem_file(data / f"string_task/test_{kind}.parquet", seed=number)
        for model, answer in (("stage1", first_line_only), ("rl-level2", always_right)):
            rollouts(results / f"section41_42/rollouts/{model}/string_task-test_{kind}", problems, answer)
    roots = {"DATA_DIR": str(tmp_path / "data"), "RESULTS_DIR": str(tmp_path / "results")}
    done = run("bash/section45/failure_modes.sh", PROFILE="tiny", STUDY="s", **roots)
    assert done.returncode == 0, done.stderr
    assert "string_task-test_heldout, level 3" in done.stdout
    made = {path.name for path in (results / "section45").iterdir()}
    assert {"labels.parquet", "results.parquet"} <= made


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(1200)
def test_several_domains_for_real_in_two_steps_of_ppo(tmp_path: Path) -> None:
    """A generated sample of four domains: prepared, trained on through verl, its checkpoints in a table by domain.

    Two updates a step, so that the old policy has a pass of its own; the critic has no adapters; without them the
    model is the reference.
    """
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    short = ["trainer.steps=2", "trainer.save_every=1", "passk:n_samples=4", "critic.alone_steps=0"]
    short += ["optim.lr=1e-3", "optim.warmup_steps=0", "reward.shape=paper"]  # -1: this model has no answer right
    done = run(f"{SCALING}/run_multi_domain.sh", *short, PROFILE="smoke", STUDY="s", **warm_verl(), **folders)
    assert done.returncode == 0, done.stdout + done.stderr
    models, results = tmp_path / "CKPT_DIR/s/seed0", tmp_path / "RESULTS_DIR/s/seed0/passk-rl-domains"
    start, first, second = read_metrics(models / "rl-domains/metrics.jsonl")[:3]
    assert all(f"val-core/{domain}" in " ".join(start) for domain in ("code", "logic", "math", "stem"))
    numbers = ("actor/grad_norm", "critic/vf_loss", "actor/reward_kl_penalty")
    for row in (first, second):
        assert all(math.isfinite(row[name]) for name in numbers)
        assert row["training/rollout_probs_diff_mean"] < 0.1  # verl rounds merged weights to bfloat16
    flops, paper = (first[name] - start[name] for name in (FLOPS, PAPER_FLOPS))
    forward, adapters, whole = 2, 4, 6
    assert flops / paper == pytest.approx((forward + (adapters + 2 * forward) + (forward + whole)) / 6)
    base, trained = (load_file(models / name / "model.safetensors") for name in ("base", "rl-domains/final"))
    assert base.keys() == trained.keys()
    moved = {name for name, weight in base.items() if not torch.equal(weight, trained[name])}
    assert moved == {name for name in base if "proj" in name}
    measured = read_table(results / "results.parquet", ["arm", "group"])
    assert set(measured["group"].to_pylist()) == {"code", "logic", "math", "stem"}
    assert measured["arm"].unique().to_pylist() == ["base", "step1", "step2"]
    assert "math of rl-domains-holdout, all levels, along training" in done.stdout
