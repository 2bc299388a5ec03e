"""The scripts under bash/: every profile composes, every step says what it would run, bad input is one line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SECTION = "bash/section41_42"


def run(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("MODEL_PATH", "PROFILE", "DEVICE")}
    return subprocess.run(
        ["bash", script, *arguments], cwd=ROOT, env={**kept, **variables}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("script", ["stage1_rft", "stage2_rl_level2"])
@pytest.mark.parametrize("profile", ["tiny", "single", "paper"])
def test_p12_every_profile_composes_against_the_pinned_verl(profile: str, script: str) -> None:
    done = run(f"{SECTION}/{script}.sh", PROFILE=profile, DRY_RUN="1")
    assert done.returncode == 0, done.stderr
    started = "torchrun" if script == "stage1_rft" else "compositionality.train.verl.grpo_trainer"
    assert started in done.stdout.replace("torch.distributed.run", "torchrun")


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["tiny", "single", "paper"])
def test_the_whole_section_composes(profile: str) -> None:
    done = run(f"{SECTION}/run_all.sh", PROFILE=profile, DRY_RUN="1")
    assert done.returncode == 0, done.stderr
    for verb in ("create_problems", "collect_rollouts", "filter_rollouts", "split_chunks", "train_sft", "train_grpo"):
        assert f"examples/{verb}.py" in done.stderr
    assert "examples/evaluate.py" in done.stderr
    assert ("pretrain_tiny" in done.stderr) == (profile == "tiny")


def test_arguments_reach_the_trainer() -> None:
    done = run(
        f"{SECTION}/stage2_rl_level2.sh", "actor_rollout_ref.actor.optim.lr=0.125", PROFILE="paper", DRY_RUN="1",
        NNODES="4", N_GPUS="4", RAY_ADDRESS="10.0.0.1:6379", MODEL_PATH="some/model",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "optim.lr=0.125" in done.stderr
    assert "lab.model=some/model" in done.stderr


@pytest.mark.parametrize(
    ("script", "arguments", "variables", "told"),
    [
        ("stage1_rft", ["no.such.key=1"], {"PROFILE": "tiny"}, r"no\.such|no such"),
        ("stage1_rft", [], {"PROFILE": "huge"}, "no profile huge; there are: paper single smoke tiny"),
        ("stage1_create_problems", ["colour=red"], {"PROFILE": "tiny"}, "colour"),
        ("stage1_create_train_data", [], {"PROFILE": "tiny", "MODEL_PATH": "no"}, "train.parquet: no such file"),
    ],
)
def test_p18_bad_input_is_one_line_and_exit_code_2(
    script: str, arguments: list[str], variables: dict[str, str], told: str, tmp_path: Path
) -> None:
    done = run(f"{SECTION}/{script}.sh", *arguments, **{"DATA_DIR": str(tmp_path), **variables})
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert re.search(told, errors[0])
    assert "Traceback" not in done.stderr


NO_NETWORK = ["unshare", "--net", "--map-root-user"]


@pytest.mark.skipif(subprocess.run([*NO_NETWORK, "true"], check=False).returncode != 0, reason="no network namespaces")
def test_p14_nothing_needs_the_network(tmp_path: Path) -> None:
    """Problems, answers of a model made on the spot, filter and table, with no network interface at all."""
    code = (
        "import sys; from pathlib import Path; from compositionality.train.tiny import corpus, model, tokenizer as t\n"
        "made = t.build_tokenizer(corpus.definition_names())\n"
        "model.save_model(model.build_model(model.TinyConfig(), made, 0), made, Path(sys.argv[1]))"
    )
    python, problems, base = sys.executable, str(tmp_path / "problems.parquet"), str(tmp_path / "model")
    commands = [
        [python, "-c", code, base],
        [python, "examples/create_problems.py", f"output={problems}", "count=8", "style=compact", "max_length=20"],
        [python, "examples/evaluate.py", f"models=[m:{base}]", f"problems=[{problems}]", f"output={tmp_path / 'table'}",
         "engine=transformers", "max_tokens=8"],
    ]  # fmt: skip
    for command in commands:
        done = subprocess.run([*NO_NETWORK, *command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "table" / "accuracy.json").is_file()


def test_unknown_option_of_the_quickstart() -> None:
    done = run("bash/quickstart.sh", "--fast")
    assert done.returncode == 2
    assert "--fast" in done.stderr
