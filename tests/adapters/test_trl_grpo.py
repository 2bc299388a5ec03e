"""The example for TRL in real steps of ``GRPOTrainer``: the judge's reasons are logged, the model is saved."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from adapter_rows import ROOT, smoke_model

pytest.importorskip("trl")


def test_two_real_steps_of_the_example(tmp_path: Path) -> None:
    problems = tmp_path / "train.parquet"
    model = smoke_model(problems, 64)
    words = [f"model={model}", f"problems={problems}", f"output={tmp_path / 'out'}", "steps=2", "batch=32", "group=8"]
    command = [sys.executable, ROOT / "examples/adapters/trl_grpo.py", *words, "max_tokens=48", "learning_rate=1e-4"]
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run(
        command, env={**os.environ, **offline}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/model.safetensors").read_bytes() != (model / "model.safetensors").read_bytes()
    (state,) = (tmp_path / "out").glob("checkpoint-2/trainer_state.json")
    steps = [row for row in json.loads(state.read_text())["log_history"] if "reward" in row]
    assert len(steps) == 2
    for row in steps:
        shares = {name: value for name, value in row.items() if name.startswith("verdict/")}
        assert sum(shares.values()) == pytest.approx(1)
        assert shares["verdict/correct"] == pytest.approx(row["reward"])
        assert shares["verdict/overlong"] == pytest.approx(row["completions/clipped_ratio"])
        assert 0 < row["reward"] < 1
