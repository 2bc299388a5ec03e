"""P21: what is in the place of a result and is not ours stays as it is, whichever command runs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTES = "my notes\n"
COMMANDS = {
    "create_problems": ["task=string", "levels=[1]", "count=20", "output={out}"],
    "split_chunks": ["problems={problems}", "chunks=2", "output={out}"],
    "merge_data": ["inputs=[{problems},{others}]", "output={out}"],
    "audit_data": ["files=[{problems}]", "output={out}"],
    "pretrain_tiny": ["steps=2", "packing.rows=1", "output={out}"],
    "collect_rollouts": ["problems={problems}", "model={model}", "engine=builtin", "max_tokens=2", "output={out}"],
    "evaluate": ["problems=[p:{problems}]", "models=[m:{model}]", "max_tokens=2", "output={out}"],
    "train_sft": ["model.path={model}", "data.train_files=[{rows}]", "trainer.epochs=1", "trainer.output={out}"],
    "train_grpo": ["model.path={model}", "data.train_files=[{problems}]", "trainer.steps=1", "trainer.output={out}"],
    "summarise_seeds": ["inputs=[a:{problems}]", "output={out}"],
    "export_checkpoint": ["checkpoint={model}", "output={out}"],
}


def command(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, f"examples/{name}.py", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A model and problem files that the commands can read."""
    folder = tmp_path_factory.mktemp("inputs")
    found = {name: str(folder / name) for name in ("problems.parquet", "others.parquet", "rows.parquet", "model")}
    for seed, name in enumerate(("problems.parquet", "others.parquet")):
        words = ["task=string", "style=compact", "levels=[1]", "count=20", f"seed={seed}", f"output={found[name]}"]
        assert command("create_problems", *words).returncode == 0
    assert command("pretrain_tiny", "steps=1", "packing.rows=1", f"output={found['model']}").returncode == 0
    _write_rows(Path(found["rows.parquet"]))
    return {name.removesuffix(".parquet"): path for name, path in found.items()}


def _write_rows(path: Path) -> None:
    import pandas as pd

    turns = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
    pd.DataFrame({"messages": [turns] * 4}).to_parquet(path)


@pytest.mark.long
@pytest.mark.parametrize("name", list(COMMANDS))
def test_p21_a_foreign_folder_is_refused_and_left_alone(name: str, places: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / {"audit_data": "out.json", "summarise_seeds": "out.csv"}.get(name, "out")
    notes = [out / name for name in ("steps/notes.txt", "results.parquet", "train.log", "p/notes.txt")]
    for note in notes:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(NOTES)
    done = command(name, *(word.format(out=out, **places) for word in COMMANDS[name]))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert all(note.read_text() == NOTES for note in notes)
    assert name == "evaluate" or sorted(path for path in out.rglob("*") if path.is_file()) == sorted(notes)
