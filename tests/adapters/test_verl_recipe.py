"""The verl recipe: its scripts' words compose verl's configuration, whose reward judges its files.

One real step is the client's own test (bash/test.sh --adapters=verl).
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl")

import torch
from assets import save, teach, tiny_model
from bash_runs import warm_verl
from hydra import compose, initialize_config_module
from safetensors.torch import load_file
from verl.trainer.ppo.reward import get_custom_reward_fn
from verl.utils.config import validate_config

from compositionality.data.parquet import read_table

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "examples/adapters/verl_recipe"
PYTHON = '#!/bin/sh\nif [ "$1" = -m ]; then for word in "$@"; do echo "$word"; done; else exec {python} "$@"; fi\n'
MAKER = "import sys, pathlib, string_task; string_task.make_problems(pathlib.Path(sys.argv[2]), 8, 2)"
ON_A_CPU = (
    *(f"hydra.searchpath=[file://{ROOT / 'compositionality/config/verl'}]", "+grpo_device=cpu", "+run.processes=1"),
    *("+actor_rollout_ref.model.override_config.attn_implementation=sdpa", "actor_rollout_ref.rollout.dtype=float32"),
    *("actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype=fp32", "reward.num_workers=1"),
    *("data.max_prompt_length=400", "data.max_response_length=60", "data.dataloader_num_workers=0"),
    *("trainer.total_training_steps=1", "trainer.logger=[console,file]", "actor_rollout_ref.actor.optim.lr=1e-3"),
    "actor_rollout_ref.actor.checkpoint.save_contents=[hf_model]",
)
"""Our own settings of verl for a CPU, in float32, and a small step."""


def words_of(script: str, folder: Path) -> list[str]:
    """What the script gives to python3 in place of verl."""
    (folder / "python3").write_text(PYTHON.format(python=shlex.quote(sys.executable)))
    (folder / "python3").chmod(0o755)
    own = {"PATH": f"{folder}:{os.environ['PATH']}", "MODEL_PATH": str(folder), "DATA_DIR": str(folder)}
    command = ["bash", RECIPE / script, "trainer.total_epochs=2"]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small files of the recipe's maker."""
    folder = tmp_path_factory.mktemp("problems")
    own = {**os.environ, "PYTHONPATH": f"{RECIPE}:{ROOT}"}
    subprocess.run([sys.executable, "-c", MAKER, "-", folder], env=own, check=True)
    return folder


@pytest.mark.parametrize(("script", "gpus"), [("run_grpo_1gpu.sh", 1), ("run_grpo_8gpus.sh", 8)])
def test_p12_verl_takes_the_words_of_the_scripts(script: str, gpus: int, problems: Path) -> None:
    *start, last = words_of(script, problems)
    assert start[:2] == ["-m", "verl.trainer.main_ppo"]
    with initialize_config_module("verl.trainer.config", version_base=None):
        config: Any = compose("ppo_trainer", [*start[2:], last])
    assert config.trainer.n_gpus_per_node == gpus
    assert config.trainer.total_epochs == 2  # what stands behind the script comes last
    validate_config(config, use_reference_policy=False, use_critic=False)
    reward = get_custom_reward_fn(config)
    assert reward is not None
    for row in read_table(Path(config.data.val_files)).to_pylist():
        truth = row["reward_model"]["ground_truth"]
        right = json.dumps({"output": json.loads(truth)["ref_output"]})
        for text, value in ((right, 1.0), ('{"output": "~"}', 0.0)):
            found = reward(data_source=row["data_source"], solution_str=text, ground_truth=truth, extra_info={})
            assert (found["score"], found["acc"]) == (value, value)


def test_the_files_are_of_their_levels_and_functions(problems: Path) -> None:
    train, held_out = (read_table(problems / f"{name}.parquet").to_pylist() for name in ("train", "validation"))
    assert {row["data_source"] for row in train} == {"string-trained-level2"}
    assert [row["level"] for row in held_out] == [1, 2, 3, 4] * 2
    functions = [{name for row in rows for name in row["extra_info"]["functions"]} for rows in (train, held_out)]
    assert not functions[0] & functions[1]


@pytest.mark.skipif(os.environ.get("CLIENT") != "verl", reason="bash bash/test.sh --adapters=verl runs it")
@pytest.mark.timeout(1200)
def test_one_real_step_of_verls_trainer(problems: Path, tmp_path: Path) -> None:
    """From a model that knows some answers by heart, through Ray, vLLM and the recipe's reward, to other weights."""
    rows = read_table(problems / "train.parquet").to_pylist()

    def pair(number: int) -> tuple[str, str]:
        row = rows[number % len(rows)]
        truth = json.loads(row["reward_model"]["ground_truth"])
        return row["prompt"][0]["content"], json.dumps({"output": truth["ref_output"]})

    model, tokenizer = tiny_model([], width=64)
    teach(model, tokenizer, pair, 40, 3e-3, answers_alone=True)
    save(tmp_path / "model", model, tokenizer)
    warm = warm_verl()
    (tmp_path / "python3").symlink_to(warm["PYTHON"])
    own = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}", "MODEL_PATH": str(tmp_path / "model"), "DATA_DIR": str(problems),
        "OUTPUT": str(tmp_path / "out"), "BATCH": "8", "RESPONSES": "16", "VERL_PLATFORM": "cpu",
        "VERL_USE_EXTERNAL_MODULES": "compositionality.train.verl.cpu_platform", "CUDA_VISIBLE_DEVICES": "-1",
        "VLLM_CPU_KVCACHE_SPACE": "1", "TQ_NUM_THREADS": "1", "RAY_worker_niceness": "0",
        "VERL_FILE_LOGGER_PATH": str(tmp_path / "metrics.jsonl"),
    }  # fmt: skip
    command = ["bash", RECIPE / "run_grpo_1gpu.sh", *ON_A_CPU]
    done = subprocess.run(
        command, env={**os.environ, **warm, **own}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    logged = [json.loads(line)["data"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    (step,) = [row for row in logged if "actor/grad_norm" in row]
    assert 0 < step["critic/score/mean"] < 1
    assert step["actor/grad_norm"] > 0
    assert {f"val-core/string-heldout-level{level}/acc/mean@1" for level in (1, 2, 3, 4)} <= set().union(*logged)
    (weights,) = (tmp_path / "out/global_step_1").rglob("model.safetensors")
    before, after = load_file(tmp_path / "model/model.safetensors"), load_file(weights)
    assert not torch.equal(before["model.norm.weight"], after["model.norm.weight"])


def test_the_recipe_is_short() -> None:
    files = list(RECIPE.iterdir())
    assert len([file for file in files if file.is_file()]) == 5
    assert sum(file.read_text().count("\n") for file in files if file.is_file()) <= 300
