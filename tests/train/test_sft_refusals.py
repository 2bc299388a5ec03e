"""Models, files and rows that a start of SFT refuses with either engine, in one line (P18); more: test_refusals.py."""

import re
from pathlib import Path
from shutil import copytree

import pyarrow as pa
import pytest
from sft_assets import chat, make_model, make_rows

from compositionality.config.cli import parse
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.train.engines import train_sft
from compositionality.train.sft_settings import SftSettings

TWO_ENDS = (
    "{% for m in messages %}{{ '>' if m.role == 'assistant' else '' }}{{ m.content + eos_token + eos_token }}"
    "{% endfor %}{{ '>' if add_generation_prompt else '' }}"
)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What the words in capitals stand for: models and files, all but MODEL and ROWS with something wrong."""
    folder = tmp_path_factory.mktemp("refusals")
    found = {name: folder / name.lower() for name in ("NOWHERE", "EMPTY", "MODEL", "BARE", "TWICE")}
    found |= {name: folder / f"{name.lower()}.parquet" for name in ("ROWS", "CUT", "BAD", "LONG")}
    make_model(found["MODEL"])
    found["EMPTY"].mkdir()
    for name in ("BARE", "TWICE"):
        copytree(found["MODEL"], found[name])
    (found["BARE"] / "chat_template.jinja").unlink()
    (found["TWICE"] / "chat_template.jinja").write_text(TWO_ENDS)
    rows = make_rows(found["ROWS"], 50)
    found["CUT"].write_bytes(rows.read_bytes()[:500])
    write_table(pa.table({"messages": [*[chat("a", "b")] * 30, [{"role": "user", "content": "a"}] * 2]}), found["BAD"])
    lengths = [1] * 30 + [100, 80]
    write_table(pa.table({"messages": [chat("a", "b" * length) for length in lengths]}), found["LONG"])
    return found


BOTH = [  # words, what is said
    ("model.path=NOWHERE", "NOWHERE: no such model folder"),
    ("model.path=EMPTY", "config.json is missing"),
    ("model.path=BARE", "no chat template"),
    ("model.path=TWICE", "does not end an answer with exactly one EOS"),
    ("data.max_length=4096", "only 1024 positions"),
    ("data.train_files=[NOWHERE]", "NOWHERE: no such file"),
    ("data.val_files=[NOWHERE]", "NOWHERE: no such file"),
    ("data.train_files=[CUT]", "CUT: not a readable parquet file"),
    ("data.val_files=[CUT]", "CUT: not a readable parquet file"),
    ("data.train_files=[BAD]", "BAD: row 30: the last of its messages must be an assistant's"),
    (
        "data.train_files=[LONG]",
        "2 of 32 rows are longer than data.max_length=64 tokens (longest 104, first is row 30)",
    ),
]
ENGINES = ("single", pytest.param("verl", marks=pytest.mark.full))


@pytest.mark.parametrize(("words", "said"), BOTH)
@pytest.mark.parametrize("engine", ENGINES)
def test_p18_trouble_is_one_line_before_the_start(
    places: dict[str, Path], tmp_path: Path, engine: str, words: str, said: str
) -> None:
    given = "model.path=MODEL data.train_files=[ROWS] data.max_length=64 trainer.batch_rows=16 optim.lr=3e-3"
    filled = re.sub("|".join(places), lambda name: str(places[name[0]]), f"{given} {words}").split()
    more = [f"engine={engine}", "run.device=cpu", f"trainer.output={tmp_path / 'out'}"]
    with pytest.raises(UserError) as error:
        train_sft(parse(SftSettings, [*filled, *more]))
    told = str(error.value)
    for name, path in places.items():
        told = told.replace(str(path), name)
    assert said in told
    assert "\n" not in told
    assert not (tmp_path / "out" / "steps").exists()
