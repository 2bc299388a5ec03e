"""Evaluation and filter with a real, random model: problems, engine, judges and files, nothing replaced."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compositionality.data.create_problems import create_problems, settings_for
from compositionality.evaluate.table import read
from compositionality.train.tiny.model import TinyConfig, build_model
from compositionality.train.tiny.tokenizer import build_tokenizer

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two random models and two small problem files."""
    home = tmp_path_factory.mktemp("evaluate")
    tokenizer = build_tokenizer([])
    for seed, name in enumerate(("one", "two")):
        for part in (build_model(TinyConfig(layers=1, head_width=32), tokenizer, seed), tokenizer):
            part.save_pretrained(home / name)
    for name, functions in (("trained", "trained"), ("heldout", "heldout")):
        create_problems(
            settings_for(
                "string",
                output=str(home / f"{name}.parquet"), split="test", count=24, levels=[1, 2], functions=functions,
                style="compact", frozen_parameters=True, alphabet="abcdefghij", input_length=[3, 6], max_length=10,
            )
        )  # fmt: skip
    return home


def evaluate(home: Path, output: str, engine: str, *more: str) -> subprocess.CompletedProcess[str]:
    words = [
        f"models=[one:{home}/one,two:{home}/two]",
        f"problems=[trained:{home}/trained.parquet,heldout:{home}/heldout.parquet]",
        f"output={home}/{output}", f"engine={engine}", "max_tokens=8", *more,
    ]  # fmt: skip
    environment = {**os.environ, "COLUMNS": "80", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "examples/evaluate.py", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=1200)


def check(home: Path, output: str) -> None:
    rows = read(home / output / "results.parquet")
    assert list(rows.groupby(["file", "arm"], sort=False).groups) == [
        (problems, model) for problems in ("trained", "heldout") for model in ("one", "two")
    ]
    assert set(rows.groupby(["file", "arm", "level"]).size()) == {12}
    assert (rows["file"] == rows["group"]).all()
    assert (rows["judged"] == rows["n"]).all()
    assert (rows["tokens"] / rows["n"]).between(1, 8).all()


def test_two_random_models_on_two_files_with_transformers(home: Path) -> None:
    done = evaluate(home, "out", "transformers")
    assert done.returncode == 0, done.stderr
    assert "held-out functions: % correct" in done.stdout
    assert "difference to one in points, paired by problem" in done.stdout
    check(home, "out")


@pytest.mark.slow
def test_two_random_models_on_two_files_with_vllm(home: Path) -> None:
    done = evaluate(home, "vllm", "vllm", "n_samples=2")
    assert done.returncode == 0, done.stderr
    check(home, "vllm")
    again = evaluate(home, "vllm", "vllm", "n_samples=2")
    assert again.stdout.count("already there") == 5  # four folders of answers, one table
