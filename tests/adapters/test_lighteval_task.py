"""The string task in LightEval, by its command: the accuracy is that of our own evaluation."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from adapter_rows import ROOT, own_accuracy, smoke_model

lighteval = pytest.importorskip("lighteval")


@pytest.fixture(autouse=True)
def without_downloads() -> None:
    """What LightEval fetches at its first start, for a task of its own: it looks for the file only."""
    (Path(lighteval.__file__).parent / "tasks/tasks/tinyBenchmarks.pkl").touch()


def test_greedy_accuracy_is_that_of_our_evaluation(tmp_path: Path) -> None:
    problems = tmp_path / "problems.parquet"
    model = smoke_model(problems, 96)
    command = [
        sys.executable, "-m", "lighteval", "accelerate",
        f"model_name={model},dtype=float32,device=cpu,batch_size=8,max_length=512", "compositionality|0",
        "--custom-tasks", str(ROOT / "examples/adapters/lighteval_problems.py"), "--output-dir", str(tmp_path / "out"),
    ]  # fmt: skip
    own = {"PROBLEMS": str(problems), "MAX_TOKENS": "96", "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (results,) = (tmp_path / "out").rglob("results_*.json")
    accuracy = json.loads(results.read_text())["results"]["compositionality|0"]["acc"]
    assert accuracy == pytest.approx(own_accuracy(model, problems, 96))
    assert 0 < accuracy < 1
