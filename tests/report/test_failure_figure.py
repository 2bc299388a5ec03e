"""The figures of section 4.5: what they say, the same bytes for the same numbers, and refusals."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compositionality.data.artefact import Recipe, file_hash, new_artefact, read_manifest
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.evaluate.failures.labels import LABELS_SCHEMA
from compositionality.evaluate.failures.summary import count_classes, read_labels
from compositionality.evaluate.table import write
from compositionality.report.draw import draw_failures
from compositionality.report.failure_figures import (
    CELL_TEXT,
    DARKEST_WITH_BLACK,
    FIRST_COLUMNS,
    cells_of,
    shares,
    short_names,
)
from compositionality.report.paper import SHARES
from compositionality.report.styles import class_colours, study_styles
from compositionality.types import FAILURES


def failures(folder: Path, models: Sequence[str] = ("stage1", "rl-level2"), **changes: Any) -> Path:
    """Labels with one response of each class at levels 1 to 3, and their counts."""
    rows = [
        {
            "arm": model, "file": "h", "problem": 8 * level + number, "sample": 0, "group": "heldout", "level": level,
            "data_source": f"string-heldout-level{level}", "cluster": f"c{number}", "class": kind,
            "outer": "func_2" if level <= 2 else None, "inner": "func_10" if level == 2 else None, "composed": False,
            "applied": ["func_10", "func_2"], "wrong": [number % 2 == 0, False], **changes,
        }
        for model in models for level in (1, 2, 3) for number, kind in enumerate(FAILURES)
    ]  # fmt: skip
    labels = folder / "labels.parquet"
    with new_artefact(labels, Recipe("find_failures", {})) as partial:
        write_table(pa.Table.from_pylist(rows, schema=LABELS_SCHEMA), partial)
    with new_artefact(folder / "results.parquet", Recipe("find_failures", {}, {"labels": labels})) as partial:
        write(count_classes(read_labels(labels)), partial)
    return folder


def texts_of(svg: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]+)</text>", svg.read_text())


def test_they_say_what_they_show(tmp_path: Path) -> None:
    paths = draw_failures(failures(tmp_path))
    assert [path.name for path in paths] == [
        f"{name}.{ending}" for name in ("failure_modes", "functions") for ending in ("svg", "png", "pdf")
    ]
    texts = texts_of(tmp_path / "failure_modes.svg")
    for text in (
        "held-out functions",
        "level 1",
        "n = 8",
        "level 3",
        "RL on level 2",
        "paper: Llama-3.1-8B, held-out functions, level 3",
        "&gt; 50",
        "&gt; 35",
        "28.1",
        "55",
        "not stated",
        *(kind.replace("_", " ") for kind in FAILURES),
    ):
        assert text in texts
    assert study_styles()["rft"].title not in texts
    maps = texts_of(tmp_path / "functions.svg")
    assert {"L1", "step", "2", "10", "50", f"{study_styles()['stage1'].title}, held-out functions"} <= set(maps)


def test_p07_the_same_numbers_give_the_same_bytes(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in draw_failures(failures(tmp_path))]
    assert [path.read_bytes() for path in draw_failures(tmp_path)] == first


def test_p15_they_name_what_they_were_drawn_from_and_follow_it(tmp_path: Path) -> None:
    draw_failures(failures(tmp_path))
    manifest = read_manifest(tmp_path / "functions.pdf")
    assert manifest is not None
    assert manifest.inputs == {"labels": file_hash(tmp_path / "labels.parquet")}
    draw_failures(failures(tmp_path, ("stage1", "rft")))
    assert study_styles()["rft"].title in texts_of(tmp_path / "failure_modes.svg")
    (tmp_path / "labels.parquet").write_text("{}")
    with pytest.raises(UserError, match=r"labels.parquet: altered"):
        draw_failures(tmp_path)


def test_without_readable_steps_there_is_no_heat_map(tmp_path: Path) -> None:
    paths = draw_failures(failures(tmp_path, applied=[], wrong=[]))
    assert {path.stem for path in paths} == {"failure_modes"}


def test_the_cells_of_a_heat_map(tmp_path: Path) -> None:
    of_model = {"model": "stage1", "problems": "h", "group": "heldout"}
    functions = [
        {**of_model, "function": name, "reached": 4, "wrong": 1, "error_rate": 0.25, "alone": alone}
        for name, alone in (("func_10", None), ("func_2", 0.5))
    ]
    pairs = [{**of_model, "outer": "func_2", "inner": "func_10", "n": 4, "accuracy": 0.75}]
    grid, names = cells_of(functions, pairs)
    assert names == ["func_2", "func_10"]
    assert grid[:, 1].tolist() == [75, 75]
    assert grid[0, 0] == 50
    assert grid[0, len(FIRST_COLUMNS) + 1] == 75
    assert [bool(value) for value in (grid[1, len(FIRST_COLUMNS) :] == grid[1, len(FIRST_COLUMNS) :])] == [
        False,
        False,
    ]  # nan: no such pair


def test_every_class_has_a_colour_of_its_own() -> None:
    for classes in (FAILURES, ("correct", "wrong order", "not sorted")):
        colours = class_colours(classes)
        assert tuple(colours) == classes
        assert len(set(colours.values())) == len(classes)


def test_functions_that_are_numbered_are_named_by_their_number() -> None:
    assert short_names(["func_2", "func_10"]) == ["2", "10"]
    assert short_names(["sort", "reverse"]) == ["sort", "reverse"]


def test_the_papers_shares_are_what_its_text_states() -> None:
    stated = {(one.arm, one.failure): (one.percent, one.bound) for one in SHARES}
    assert len(stated) == len(SHARES)
    assert stated["rl-level2", "correct"] == (28.1, False)
    assert stated["rl-level2", "atomic_error"] == (55, False)
    assert stated["rl-level2", "ignores_composition"] == (0, False)
    for arm in ("stage1", "rft", "rl-level1"):
        assert stated[arm, "ignores_composition"] == (50, True)
        assert stated[arm, "incorrect_composition"] == (35, True)


def test_numbers_on_a_heat_map_can_be_read() -> None:
    """At least 4.5 : 1, WCAG AA, on every colour of the map."""
    import matplotlib as mpl

    def luminance(colour: Sequence[float]) -> float:
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for percent in range(101):
        cell = luminance(mpl.colormaps["cividis"](percent / 100))
        text = luminance(mpl.colors.to_rgb(CELL_TEXT[percent >= DARKEST_WITH_BLACK]))
        assert (max(cell, text) + 0.05) / (min(cell, text) + 0.05) >= 4.5, percent


def test_a_group_with_fewer_levels_has_fewer_panels() -> None:
    """Order-sensitive problems have levels 2 to 4 alone."""
    rows = [
        {
            "model": "stage1",
            "group": group,
            "level": level,
            "class": "correct",
            "share": 0.5,
            "n_problems": 8,
            "data_source": group,
        }
        for group, levels in (("heldout", (1, 2, 3)), ("ordered", (2, 3)))
        for level in levels
    ]
    assert len(shares(rows, study_styles()).axes) == 5
