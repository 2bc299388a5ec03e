"""The notebook examples/notebooks/tour.ipynb: committed without outputs, and every cell runs."""

import json
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted(ROOT.glob("examples/**/*.ipynb"))
SHORTER = {
    '"steps=400", "run.processes=2"': '"steps=100"', 'count=120, split': 'count=24, split',
    '"steps": 10, "eval_every": 10, "save_every": 10': '"steps": 2',
}  # fmt: skip
"""Pretraining, test problems and RL, of which nothing is asked here but that they end."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert cells
    assert not [cell.id for cell in cells if cell.outputs or cell.execution_count is not None]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_cell_of_the_tour_runs(tmp_path: Path) -> None:
    """As a newcomer runs it: there is a figure, the model has learnt what it was taught, and the interval is told."""
    notebook = nbformat.read(ROOT / "examples" / "notebooks" / "tour.ipynb", as_version=4)
    for long, short in SHORTER.items():
        (cell,) = [cell for cell in notebook.cells if long in cell.source]
        cell.source = cell.source.replace(long, short)
    NotebookClient(notebook, startup_timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    *_, figure, _, claim = outputs
    assert any("image/png" in output.get("data", {}) for output in figure)
    assert re.fullmatch(r"(\w+: [+-][\d.]+%, 95 % interval \S+% to \S+%\n){2}", claim[-1]["text"])
    losses = [json.loads(line)["train/loss"] for line in (tmp_path / "tour/sft/metrics.jsonl").read_text().splitlines()]
    assert losses[-1] < losses[0] / 3
    assert (tmp_path / "tour/rl/final").is_dir()
