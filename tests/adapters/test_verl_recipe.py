"""The verl recipe: its scripts' words compose verl's configuration, whose reward judges the files that it makes."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl")

from hydra import compose, initialize_config_module
from verl.trainer.ppo.reward import get_custom_reward_fn
from verl.utils.config import validate_config

from compositionality.data.parquet import read_table

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "examples/adapters/verl_recipe"
PYTHON = '#!/bin/sh\nif [ "$1" = -m ]; then for word in "$@"; do echo "$word"; done; else exec {python} "$@"; fi\n'
MAKER = "import sys, pathlib, string_task; string_task.make_problems(pathlib.Path(sys.argv[2]), 40, 2)"


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


def test_the_recipe_is_short() -> None:
    files = list(RECIPE.iterdir())
    assert len([file for file in files if file.is_file()]) == 5
    assert sum(file.read_text().count("\n") for file in files if file.is_file()) <= 300
