"""The figure: fixed bytes, the right words in it, refusals, and the paper's figures as its text states them."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from compositionality.data.artefact import Recipe, file_hash, new_artefact, read_manifest
from compositionality.errors import UserError
from compositionality.report.draw import FigureSettings, draw_accuracy
from compositionality.report.paper import ACCURACY
from compositionality.report.styles import arm_styles, group_title, study_styles
from compositionality.study.arms import load_study

STYLES = study_styles()
COUNTDOWN_ARMS = ("string-base", "string-rl-level1to2", "multi-base", "multi-rl-level1", "multi-rl-level1to2")
ARMS = ("stage1", "rl-level1", "rl-level2", "rft")


def summary_file(
    path: Path,
    arms: Sequence[str] = ARMS,
    n_seeds: int = 3,
    step: str = "summarise_seeds",
    kinds: Sequence[str] = ("trained", "heldout"),
    *,
    composes: bool = False,
) -> Path:
    """A seeds.json with falling accuracies."""
    rows = [
        {
            "model": arm, "problems": f"test_{functions}", "group": functions, "level": level,
            "data_source": f"{'' if functions == 'countdown' else 'string-'}{functions}-level{level}",
            "accuracy": (0.9 - 0.1 * place) / level,
            "low": (0.8 - 0.1 * place) / level, "high": 1.0 / level, "interval": "seeds and problems",
            "n_seeds": n_seeds, "n_problems": 500, "values": [0.9 / level - 0.1 * seed for seed in range(n_seeds)],
        }
        for functions in kinds
        for level in range(1, 7)
        for place, arm in enumerate(arms)
    ]  # fmt: skip
    composed = [{**row, "composed": row["accuracy"]} for row in rows if composes]
    content = {"models": list(arms), "seeds": [], "accuracy": rows, "composed": composed, "training": {}}
    with new_artefact(path, Recipe(step, {})) as partial:
        partial.write_text(json.dumps(content))
    return path


def drawn(tmp_path: Path, seeds: Path, name: str = "figure", **changes: Any) -> tuple[bytes, str]:
    svg, png = draw_accuracy(FigureSettings(seeds, tmp_path / name, **changes))
    return png.read_bytes(), svg.read_text()


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    return summary_file(tmp_path / "seeds.json")


def test_p07_the_same_summary_gives_the_same_bytes(tmp_path: Path, seeds: Path) -> None:
    assert drawn(tmp_path, seeds, "a") == drawn(tmp_path, seeds, "b")


def test_the_drawing_says_what_it_shows(tmp_path: Path, seeds: Path) -> None:
    _, svg = drawn(tmp_path, seeds, title="tiny profile")
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", svg)
    for text in (
        "trained functions",
        "held-out functions",
        "paper: Llama-3.1-8B, held-out functions",
        "from the text of arXiv 2509.25123; open marker: upper bound",
        "n = 500 problems a level",
        "correct, %",
        "tiny profile: accuracy by level, mean of 3 seeds (dots: seeds); bars: 95 % interval over seeds and problems",
        *(STYLES[arm].title for arm in ARMS),
    ):
        assert text in texts
    assert STYLES["base"].title not in texts
    assert "<dc:date>" not in svg


def test_composed_responses_are_drawn_below(tmp_path: Path, seeds: Path) -> None:
    png, svg = drawn(tmp_path, summary_file(tmp_path / "composed.json", composes=True), "composed")
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", svg)
    assert {"correct, %", "right functions, handed on, %"} <= set(texts)
    assert (texts.count("held-out functions"), texts.count("trained functions")) == (2, 2)
    assert texts.count("paper: Llama-3.1-8B, held-out functions") == 1
    width, height = (int.from_bytes(png[start : start + 4], "big") for start in (16, 20))
    assert (width, height) == (1200, 960)
    assert "right functions" not in drawn(tmp_path, seeds)[1]


def test_the_transfer_to_countdown_beside_the_papers(tmp_path: Path) -> None:
    seeds = summary_file(tmp_path / "countdown.json", COUNTDOWN_ARMS, kinds=("countdown",))
    _, svg = drawn(tmp_path, seeds)
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", svg)
    assert {"Countdown", "paper: Llama-3.1-8B, Countdown"} <= set(texts)
    assert {STYLES[arm].title for arm in COUNTDOWN_ARMS} <= set(texts)


def test_the_picture_is_1200_pixels_wide(tmp_path: Path, seeds: Path) -> None:
    png, _ = drawn(tmp_path, seeds)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(png[16:20], "big") == 1200


def test_p15_its_manifest_names_what_it_was_drawn_from(tmp_path: Path, seeds: Path) -> None:
    drawn(tmp_path, seeds)
    for ending in ("png", "svg"):
        manifest = read_manifest(tmp_path / f"figure.{ending}")
        assert manifest is not None
        assert manifest.inputs == {"seeds": file_hash(seeds)}
        assert manifest.settings["format"] == ending


def test_p15_an_altered_summary_is_refused(tmp_path: Path, seeds: Path) -> None:
    seeds.write_text(seeds.read_text().replace("500", "900"))
    with pytest.raises(UserError, match=r"seeds.json: altered"):
        drawn(tmp_path, seeds)


def test_other_files_are_refused(tmp_path: Path, seeds: Path) -> None:
    with pytest.raises(UserError, match="no such file; make it with examples/summarise_seeds"):
        drawn(tmp_path, tmp_path / "none.json")
    with pytest.raises(UserError, match="was not made by examples/summarise_seeds"):
        drawn(tmp_path, summary_file(tmp_path / "other.json", step="evaluate_accuracy"))
    with pytest.raises(UserError, match="models: rlx unknown; the summary has stage1"):
        drawn(tmp_path, seeds, models=["rlx"])
    with pytest.raises(UserError, match="holds no accuracy by level"):
        drawn(tmp_path, summary_file(tmp_path / "empty.json", arms=()))


def test_a_new_summary_is_drawn_over_the_old_figure(tmp_path: Path, seeds: Path) -> None:
    _, three = drawn(tmp_path, seeds)
    _, one = drawn(tmp_path, summary_file(tmp_path / "one.json", n_seeds=1))
    assert "mean of 3 seeds" in three
    assert "1 seed; bars" in one
    (tmp_path / ".figure.svg.manifest.json").unlink()
    with pytest.raises(UserError, match="was not made by this step"):
        drawn(tmp_path, seeds)


def test_arms_that_it_does_not_know_and_few_arms_are_drawn(tmp_path: Path) -> None:
    _, svg = drawn(tmp_path, summary_file(tmp_path / "seeds.json", arms=("my-arm", "rl-level2")))
    assert ">my-arm<" in svg
    assert len(re.findall(r">RL on level 2<", svg)) == 1


@pytest.mark.parametrize(
    "arms",
    [
        tuple(load_study("section41_42").arms)[:10],
        COUNTDOWN_ARMS,
        ("a", "b", "c"),
        ("stage1", "rl-level2", "new", "newer"),
    ],
)
def test_colours_and_markers_tell_the_arms_apart(arms: tuple[str, ...]) -> None:
    styles = arm_styles(arms).values()
    assert len({style.colour for style in styles}) == len({style.marker for style in styles}) == len(arms)


def test_titles_and_colours_of_arms_can_be_given() -> None:
    styles = arm_styles(["rl-level2", "mine"], {"mine": {"title": "My arm", "colour": "#123456"}})
    assert (styles["mine"].title, styles["mine"].colour) == ("My arm", "#123456")
    assert styles["rl-level2"] == STYLES["rl-level2"]
    with pytest.raises(UserError, match="arms: 'color' unknown"):
        arm_styles(["mine"], {"mine": {"color": "#123456"}})


def test_every_seed_is_a_dot(tmp_path: Path) -> None:
    """As many points in the scatter as there are rows × seeds; none with one seed."""
    for n_seeds in (1, 3):
        seeds = summary_file(tmp_path / f"{n_seeds}.json", arms=("stage1",), n_seeds=n_seeds, kinds=("heldout",))
        _, svg = drawn(tmp_path, seeds, f"figure{n_seeds}")
        dots = re.search(r'<g id="PathCollection_1">.*?</g>\s*</g>', svg, re.DOTALL)
        assert (dots[0].count("<use") if dots else 0) == (6 * n_seeds if n_seeds > 1 else 0)


def test_a_task_that_the_paper_does_not_have_gets_no_panel_of_the_papers(tmp_path: Path) -> None:
    _, svg = drawn(tmp_path, summary_file(tmp_path / "seeds.json", kinds=("short_lists", "long_lists")))
    assert ">short lists<" in svg
    assert "paper:" not in svg
    assert group_title("heldout") == "held-out functions"


def test_the_papers_figures_are_what_its_text_states() -> None:
    stated = {(one.arm, one.level): (one.percent, one.bound) for one in ACCURACY}
    assert len(stated) == len(ACCURACY)
    assert stated["rl-level2", 2] == (64, False)
    assert stated["rl-level2", 3] == (27, False)
    assert stated["rft", 3] == (2.6, True)
    assert stated["stage1", 3] == (5, False)
    assert {level for arm, level in stated if arm == "rl-level2"} == {2, 3, 4}
    on_countdown = {
        arm: percent for (arm, level), (percent, _) in stated.items() if arm in COUNTDOWN_ARMS and level == 3
    }
    assert on_countdown == {
        "multi-base": 17,
        "multi-rl-level1": 20,
        "multi-rl-level1to2": 35,
    }


@pytest.mark.parametrize("colour", ["zzz", "", "#12345", 'red" onload="x'])
def test_p18_a_colour_that_is_none_is_refused(colour: str) -> None:
    with pytest.raises(UserError, match=r"arms: colour .*: give red, green and blue as #0072B2"):
        arm_styles(["a"], {"a": {"colour": colour}})
