"""Evaluation by vLLM with real, random models: problems, engine, judges and files, nothing replaced."""

import os
import subprocess
from pathlib import Path

import pytest
from assets import save, tiny_model
from bash_runs import warm_python

from compositionality.data.create_problems import create_problems, settings_for
from compositionality.evaluate.table import read

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.full
def test_two_random_models_on_two_files_with_vllm(tmp_path: Path) -> None:
    for seed, name in enumerate(("one", "two")):
        save(tmp_path / name, *tiny_model([], seed, layers=1))
    for name in ("trained", "heldout"):
        create_problems(
            settings_for(
                "string", output=str(tmp_path / f"{name}.parquet"), split="test", count=24, levels=[1, 2],
                functions=name, style="compact", max_length=10,
            )
        )  # fmt: skip
    models, problems = (",".join(f"{one}:{tmp_path}/{one}{end}" for one in names) for names, end in (
        (("one", "two"), ""), (("trained", "heldout"), ".parquet"),
    ))  # fmt: skip
    words = [f"models=[{models}]", f"problems=[{problems}]", f"output={tmp_path}/out", "engine=vllm", "n_samples=2"]
    command, shown = [warm_python(), "examples/evaluate.py", *words, "max_tokens=8"], []
    for _ in range(2):
        own = {**os.environ, "COLUMNS": "80", "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False, timeout=1200)
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout)
    assert "held-out functions: % correct" in shown[0]
    assert "difference to one in points, paired by problem" in shown[0]
    assert shown[1].count("already there") == 5  # four folders of answers, one table
    rows = read(tmp_path / "out" / "results.parquet")
    assert list(rows.groupby(["file", "arm"], sort=False).groups) == [
        (file, model) for file in ("trained", "heldout") for model in ("one", "two")
    ]
    assert set(rows.groupby(["file", "arm", "level"]).size()) == {12}
    assert (rows["file"] == rows["group"]).all()
    assert (rows["judged"] == rows["n"]).all()
    assert (rows["tokens"] / rows["n"]).between(1, 8).all()
