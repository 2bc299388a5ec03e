"""The figures: every row of a table is in them, under the right words; the same bytes for the same rows; refusals."""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from report_study import SIZES, evaluated, solved, write_labels

from compositionality.analysis.influence import SCHEMA
from compositionality.data.artefact import Recipe, file_hash, new_artefact, read_manifest
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.evaluate.failures import read_labels
from compositionality.evaluate.summary import contrast
from compositionality.evaluate.types import CHAIN, DEEPEST
from compositionality.report import figures, gold_figures, paper
from compositionality.report.draw import FigureSettings, chosen_laws, draw_figure
from compositionality.report.page.build import report
from compositionality.report.page.content import comparison, main_first
from compositionality.report.page.figures import page_figures
from compositionality.report.page.inputs import INJECTION, ReportSettings, find_inputs
from compositionality.report.scaling_figures import reuse, scaling
from compositionality.report.theme import MARKERS, MUTED, arm_styles, class_colours, spec_of, study_styles
from compositionality.study.model import load_study
from compositionality.tasks.diagnosis import FAILURES
from compositionality.train.training_report import TrainingReport

ARMS = ("stage1", "rl-level1", "rl-level2", "rft")
COUNTDOWN_ARMS = ("string-base", "string-rl-level1to2", "multi-base", "multi-rl-level1", "multi-rl-level1to2")
STARTS = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<svg", "pdf": b"%PDF"}


def accuracy_rows(
    arms: Sequence[str] = ARMS, n_seeds: int = 3, groups: Sequence[str] = ("trained", "heldout")
) -> list[dict[str, Any]]:
    """Falling accuracies, as rows of a summary."""
    return [
        {
            "model": arm, "problems": f"test_{group}", "group": group, "level": level,
            "data_source": f"{'' if group == 'countdown' else 'string-'}{group}-level{level}",
            "accuracy": (0.9 - 0.1 * place) / level,
            "low": (0.8 - 0.1 * place) / level, "high": 1.0 / level, "interval": "seeds and problems",
            "n_seeds": n_seeds, "n_problems": 500, "values": [0.9 / level - 0.1 * seed for seed in range(n_seeds)],
        }
        for group in groups
        for level in range(1, 7)
        for place, arm in enumerate(arms)
    ]  # fmt: skip


def study_results(folder: Path, arms: Sequence[str] = ARMS, n_seeds: int = 2) -> list[str]:
    """NAME:FOLDER of seeds with accuracies that fall by level and arm."""
    shares = {
        (arm, group, level): (0.9 - 0.1 * place) / level
        for place, arm in enumerate(arms) for group in ("trained", "heldout") for level in (1, 2, 3)
    }  # fmt: skip
    for seed in range(n_seeds):
        evaluated(folder / f"seed{seed}" / "s", shares, seed)
    return [f"seed{seed}:{folder}/seed{seed}/s" for seed in range(n_seeds)]


def drawn(chart: Any) -> tuple[pd.DataFrame, list[str]]:
    """The rows of a figure with panels, and its panels' titles in order, each in one line."""
    spec = spec_of(chart)
    return data_of(spec, spec), [title.replace("\n", " ") for title in spec["facet"]["sort"]]


def data_of(spec: dict[str, Any], part: dict[str, Any]) -> pd.DataFrame:
    """The rows that a part of a figure is drawn from."""
    return pd.DataFrame(spec["datasets"][part["data"]["name"]])


@pytest.fixture
def seeds(tmp_path: Path) -> list[str]:
    return study_results(tmp_path / "study")


# ---- accuracy


def test_every_group_has_panels_and_the_papers_figures_stand_beside() -> None:
    handed_on = [{**row, "handed_on": row["accuracy"]} for row in accuracy_rows()]
    rows, titles = drawn(figures.accuracy(accuracy_rows(), handed_on, arm_styles(ARMS)))
    n = "n = 500 problems a level"
    assert titles[:2] == [f"trained functions: right answers {n}", f"held-out functions: right answers {n}"]
    assert titles[2].startswith("paper: Llama-3.1-8B, held-out functions")
    assert titles[3:] == [title.replace("right answers", "results handed on") for title in titles[:2]]
    assert set(rows["arm"]) == {study_styles()[arm].title for arm in ARMS}
    means = rows[rows["low"].notna()]
    assert len(means) == 2 * 2 * 6 * len(ARMS)
    assert means["value"].max() == 0.9
    stated = rows[rows["bound"].notna()]
    assert len(stated) == len(paper.stated_accuracy("heldout"))
    assert stated.loc[stated["bound"] == 1, "value"].tolist() == [0.25, 0.026]
    assert stated.loc[stated["arm"] == study_styles()["rl-level2"].title].set_index("level")["value"][3] == 0.27
    rows, _ = drawn(figures.accuracy([row for row in accuracy_rows() if row["level"] < 5], [], arm_styles(ARMS)))
    assert rows["level"].max() == 4  # the paper's at no level that was not measured


def test_countdown_stands_beside_the_papers_and_another_task_alone() -> None:
    """Every seed is a dot where there are several."""
    for arms, group, n_seeds, expected in (
        (COUNTDOWN_ARMS, "countdown", 3, ["Countdown", "paper: Llama-3.1-8B, Countdown"]),
        (ARMS, "short_lists", 1, ["short lists: "]),
    ):
        made = accuracy_rows(arms, n_seeds, [group])
        rows, titles = drawn(figures.accuracy(made, [], arm_styles(arms)))
        assert all(title.startswith(start) for title, start in zip(titles, expected, strict=True)), titles
        assert rows["dot"].notna().sum() == (n_seeds * len(made) if n_seeds > 1 else 0)


def test_labels_of_the_headline_keep_their_order_and_a_distance_and_flat_levels_are_left_out() -> None:
    rows = [{**row, "accuracy": row["accuracy"] if row["level"] < 5 else 0.01} for row in accuracy_rows()]
    spec = spec_of(figures.headline([row for row in rows if row["group"] == "heldout"], arm_styles(ARMS)))
    assert data_of(spec, spec)["level"].max() == 4
    nothing = [{**row, "accuracy": 0.0} for row in accuracy_rows(groups=["heldout"])]
    spec_of_nothing = spec_of(figures.headline(nothing, arm_styles(ARMS)))
    assert data_of(spec_of_nothing, spec_of_nothing)["level"].max() == 3
    ends = data_of(spec, spec["layer"][-1])
    assert [*ends["arm"]] == [study_styles()[arm].title for arm in reversed(ARMS)]
    assert ends["value"].is_monotonic_increasing
    assert ends["x"].nunique() == len(ends), "a line to a label begins at its own arm's mark"
    assert ends["label_y"].diff().dropna().min() >= figures.APART - 1e-6


def test_each_rung_of_the_ladder_is_measured_by_the_gain_of_the_last(tmp_path: Path) -> None:
    """In the order of the study, with what it took; nothing is shown where RL's own gain is not."""

    def ladder(name: str, **right: float) -> Any:
        named = {arm.replace("_", "-"): share for arm, share in right.items()}
        training = {
            "gold-sft": TrainingReport(updates=90, tokens=9000),
            "rl-level2": TrainingReport(100, 10, tokens=9090),
        }
        for seed in range(3):
            shares = {(arm, "heldout", 3): share for arm, share in named.items()}
            folder = tmp_path / name / f"seed{seed}" / "section41_42"
            evaluated(folder, shares, seed, per_level=100, training=training)
        shown = page_figures(find_inputs(ReportSettings(tmp_path / name, tmp_path / "page")))
        return next((figure for figure in shown if figure.name == "ladder"), None)

    figure = ladder("gain", stage1=0.1, rl_level2=0.6, rl_raft=0.1, gold_sft=0.5)
    rows = {row["model"]: row for row in figure.rows}
    assert [*rows] == ["gold-sft", "rl-raft", "rl-level2"]
    assert [round(row["share"], 6) for row in rows.values()] == [0.8, 0.0, 1.0]
    assert rows["gold-sft"]["low"] < 0.8 < rows["gold-sft"]["high"] < 1.1
    assert (rows["rl-level2"]["low"], rows["rl-level2"]["high"]) == pytest.approx((1, 1), abs=1e-3)
    first, second, last = figure.details[0]["rows"]
    assert first[:7] == ["SFT on gold solutions", "gold", "–", "no", "–", "90", "100"]
    assert second[1:7] == ["own", "every step", "no", "no", "–", "–"]
    assert last[4:] == ["yes", "90", "101", "100 % [100, 100]"]
    assert ladder("none", stage1=0.1, rl_level2=0.12, gold_sft=0.5, rl_raft=0.1) is None
    assert ladder("one", stage1=0.1, rl_level2=0.6, gold_sft=0.5) is None  # one rung is no ladder


def test_p07_p15_a_file_is_the_same_for_the_same_results_and_names_them(tmp_path: Path, seeds: list[str]) -> None:
    first = draw_figure(FigureSettings(seeds, tmp_path / "a", title="tiny profile"))
    assert first.name == "a.png"
    again = draw_figure(FigureSettings(seeds, tmp_path / "b.png", title="tiny profile"))
    assert first.read_bytes() == again.read_bytes()
    for ending, start in STARTS.items():
        path = draw_figure(FigureSettings(seeds, tmp_path / f"figure.{ending}"))
        assert path.read_bytes().startswith(start)
        manifest = read_manifest(path)
        assert manifest is not None
        assert manifest.settings["format"] == ending
        tables = {f"seed{seed}/results.parquet": tmp_path / f"study/seed{seed}/s/results.parquet" for seed in (0, 1)}
        assert {name: file_hash(table) for name, table in tables.items()}.items() <= manifest.inputs.items()


def test_what_a_figure_without_caption_says() -> None:
    title = figures.accuracy_title(accuracy_rows(), "tiny profile").text
    assert title == (
        "tiny profile: accuracy by level, mean of 3 seeds (dots: seeds); bars: 95 % interval over seeds and problems"
    )
    assert figures.accuracy_title(accuracy_rows(n_seeds=1), "").text.startswith("Accuracy by level, 1 seed; bars")


def test_p15_p18_missing_and_altered_results_and_other_models_are_refused(tmp_path: Path, seeds: list[str]) -> None:
    def draw(inputs: list[str], **changes: Any) -> None:
        draw_figure(FigureSettings(inputs, tmp_path / "figure", **changes))

    with pytest.raises(UserError, match=r"none: missing; run examples/evaluate.py"):
        draw([f"a:{tmp_path}/none"])
    with pytest.raises(UserError, match="models: rlx not evaluated in every seed; evaluated are stage1"):
        draw(seeds, models=["rlx"])
    with pytest.raises(UserError, match="arms: rlx is not drawn; there are stage1"):
        draw(seeds, arms={"rlx": {"title": "RL"}})
    with pytest.raises(UserError, match=r"output=figure\.jpg: must end in \.png, \.svg, \.pdf, or in nothing"):
        draw_figure(FigureSettings(seeds, Path("figure.jpg")))
    with pytest.raises(UserError, match="holds no accuracy by level"):
        draw([f"a:{evaluated(tmp_path / 'flat' / 's', {('a', 'b', 0): 0.5})}"])
    table = tmp_path / "study/seed0/s/results.parquet"
    table.write_bytes(table.read_bytes() + b"x")
    with pytest.raises(UserError, match=r"results.parquet: altered"):
        draw(seeds)
    assert not [*tmp_path.glob("figure*")]


def test_new_results_are_drawn_over_the_old_figure_but_over_no_other_file(tmp_path: Path, seeds: list[str]) -> None:
    old = draw_figure(FigureSettings(seeds, tmp_path / "figure")).read_bytes()
    assert draw_figure(FigureSettings(seeds[:1], tmp_path / "figure")).read_bytes() != old
    (tmp_path / ".figure.png.manifest.json").unlink()
    with pytest.raises(UserError, match="was not made by this step"):
        draw_figure(FigureSettings(seeds, tmp_path / "figure"))


# ---- looks


def layers_of(spec: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The layers of each panel of a figure that share their axes."""
    panels = spec.get("concat") or [spec.get("spec", spec)]
    return [panel.get("layer", [panel]) for panel in panels]


def test_every_axis_of_a_number_has_one_title(
    settings: ReportSettings, injection: ReportSettings, scaling_study: ReportSettings
) -> None:
    """A layer with None would hide the title of the others."""
    made = [find_inputs(one) for one in (settings, injection, scaling_study)]
    shown = [figure for inputs in made for figure in main_first(inputs, comparison(inputs), page_figures(inputs))]
    assert len(shown) > 15
    for figure in shown:
        for layers, axis in product(layers_of(figure.spec), "xy"):
            places = [layer["encoding"][axis] for layer in layers if axis in layer["encoding"]]
            titles = {place["title"] for place in places if place.get("type") == "quantitative" and "title" in place}
            told_by_panel = figure.name in ("influence", "ranks") and axis == "y"
            assert told_by_panel or (None not in titles and len(titles) <= 1), (figure.name, axis, titles)


def test_lines_beside_dots_have_words_and_labels_of_lines_stand_outside_the_chart() -> None:
    rows = [{"model": "rl-level2", "level": 3, "problem": 1, "before": 1e-9, "after": 0.5}]
    spec = spec_of(gold_figures.gold_probability(rows, arm_styles(["rl-level2"])))
    marks = [layer["mark"] for layer in spec["spec"]["layer"]]
    words = {mark["text"] for mark in marks if mark["type"] == "text"}
    assert words == {"↑ solved: P after > 0.25", "← P before < 1e-6", "↖ unchanged"}
    assert sum(mark["type"] in ("rule", "line") for mark in marks) == len(words)
    layers = spec_of(figures.headline(accuracy_rows(groups=["heldout"]), arm_styles(ARMS)))["layer"]
    labels = [layer for layer in layers if layer.get("name", "").startswith("label-")]
    assert [layer["mark"]["type"] for layer in labels] == ["rule", "point", "text"]
    for layer in labels:
        assert layer["encoding"]["x2" if layer["mark"]["type"] == "rule" else "x"] == {"value": "width"}
    assert labels[0]["mark"]["color"] == MUTED


def test_colours_and_markers_tell_the_arms_and_colours_the_classes_apart() -> None:
    named = tuple(load_study("section41_42").arms)[:10]
    for arms in (named, COUNTDOWN_ARMS, ("a", "b", "c"), ("stage1", "rl-level2", "new", "newer")):
        styles = arm_styles(arms).values()
        assert len({style.colour for style in styles}) == len({MARKERS[style.marker] for style in styles}) == len(arms)
    for classes in (FAILURES, ("correct", "wrong order", "not sorted")):
        colours = class_colours(classes)
        assert tuple(colours) == classes
        assert len(set(colours.values())) == len(classes)


def test_p18_titles_and_colours_of_arms_can_be_given() -> None:
    styles = arm_styles(["rl-level2", "mine"], {"mine": {"title": "My arm", "colour": "#123456"}})
    assert (styles["mine"].title, styles["mine"].colour) == ("My arm", "#123456")
    assert styles["rl-level2"] == study_styles()["rl-level2"]
    with pytest.raises(UserError, match="arms: 'color' unknown"):
        arm_styles(["mine"], {"mine": {"color": "#123456"}})
    for colour in ("zzz", "", "#12345", 'red" onload="x'):
        with pytest.raises(UserError, match=r"arms: colour .*: give red, green and blue as #0072B2"):
            arm_styles(["mine"], {"mine": {"colour": colour}})


# ---- training, pass@k


def test_training_shows_the_mean_and_the_range_over_the_seeds() -> None:
    arms = ("rl-level1", "rl-level2")
    made = [
        {"arm": arm, "seed": f"seed{seed}", "step": step, "group": group, "level": 2, "accuracy": (step + seed) / 10}
        for arm in arms for seed in range(3) for step in (0, 5) for group in ("trained", "heldout")
    ]  # fmt: skip
    rows, titles = drawn(figures.training(made, arm_styles(arms)))
    first = rows[rows["step"] == 5].iloc[0]
    assert (first["low"], first["value"], first["high"]) == (0.5, 0.6, 0.7)
    assert len(rows) == 2 * 2 * 2
    assert titles == [f"{arm} {group}" for group in ("trained functions", "held-out functions")
                      for arm in ("RL on level 1", "RL on level 2")]  # fmt: skip


def test_the_budget_has_a_smooth_line_a_seed_and_rfts_intervals() -> None:
    rl = [{"arm": "rl-level2", "seed": f"seed{seed}", "step": step, "completions": 100 * step, "correct": step % 2}
          for seed in range(2) for step in range(1, 201)]  # fmt: skip
    rft = {"arm": "rft", "seed": "seed0", "step": 0, "completions": 5000, "correct": 0.4, "low": 0.3, "high": 0.5}
    spec = spec_of(figures.budget([*rl, rft], arm_styles(["rl-level2", "rft"])))
    rows = data_of(spec, spec)
    lines = rows[rows["low"].isna()]
    assert lines.groupby("seed").size().tolist() == [figures.POINTS] * 2
    assert lines["completions"].agg(["min", "max"]).tolist() == [100, 20000]
    assert lines["correct"].between(0.4, 0.6).all()
    assert rows[rows["low"].notna()][["correct", "low", "high"]].to_numpy().tolist() == [[0.4, 0.3, 0.5]]


def test_pass_at_k_has_a_panel_for_each_level_and_a_row_for_each_k() -> None:
    curves = [
        {"model": arm, "group": "heldout", "level": level, "n_problems": 40, "k": k,
         "value": value, "low": value - 0.1, "high": value + 0.1}
        for arm in ("stage1", "rl-level2") for level in (2, 3) for k, value in ((1, 0.1), (4, 0.3), (16, 0.6))
    ]  # fmt: skip
    rows, titles = drawn(figures.pass_at_k(curves, arm_styles(["stage1", "rl-level2"])))
    assert titles == [f"held-out functions, level {level} n = 40" for level in (2, 3)]
    assert len(rows) == 4 * 3
    assert rows.loc[rows["k"] == 4, ["pass_at_k", "low", "high"]].drop_duplicates().to_numpy().tolist() == [
        [0.3, 0.2, 0.4]
    ]


# ---- failure modes


def failure_rows(
    models: Sequence[str], levels: Mapping[str, Sequence[int]], source: str = "string-"
) -> list[dict[str, Any]]:
    return [
        {"model": model, "problems": "h", "group": group, "level": level, "class": kind, "share": 0.125,
         "data_source": f"{source}{group}-level{level}", "low": 0.1, "high": 0.2, "n_problems": 500, "n_responses": 500}
        for model in models for group in levels for level in levels[group] for kind in FAILURES
    ]  # fmt: skip


def test_failure_modes_have_a_panel_for_every_level_that_a_group_has_and_the_papers() -> None:
    styles = arm_styles(["stage1", "rl-level2"])
    rows, titles = drawn(figures.failure_modes(failure_rows([*styles], {"heldout": (1, 2), "ordered": (2,)}), styles))
    assert [title.partition(" n =")[0] for title in titles[:3]] == [
        "held-out functions, level 1", "held-out functions, level 2", "ordered, level 2",
    ]  # fmt: skip
    assert titles[3].startswith("paper: Llama-3.1-8B")
    beside = rows[rows["panel"].str.startswith("paper")]
    stated = beside[beside["arm"] == "RL on level 2"].set_index("class")["share"].to_dict()
    assert stated == {"correct": 0.281, "atomic error": 0.55}
    assert set(beside.loc[beside["bound"] == 1, "share"]) == {0.5, 0.35}
    _, titles = drawn(figures.failure_modes(failure_rows(["a"], {"lists": (1,)}, source="sort-"), arm_styles(["a"])))
    assert titles == ["lists, level 1 n = 500"]


def labelled(folder: Path, models: Sequence[str] = ("stage1", "rl-level2"), **changes: Any) -> Path:
    """Labels with one response of each class at levels 1 to 3, and their counts."""
    rows = [
        {
            "arm": model, "file": "h", "problem": len(FAILURES) * level + number, "sample": 0,
            "group": "heldout", "level": level,
            "data_source": f"string-heldout-level{level}", "cluster": f"c{number}", "class": kind,
            "outer": "func_2" if level <= 2 else None, "inner": "func_10" if level == 2 else None,
            **dict.fromkeys(CHAIN, False),
            "applied": ["func_10", "func_2"], "wrong": [number % 2 == 0, False], **changes,
        }
        for model in models for level in (1, 2, 3) for number, kind in enumerate(FAILURES)
    ]  # fmt: skip
    write_labels(folder, rows, {})
    return folder


def test_the_cells_of_a_heat_map_are_means_over_the_seeds(tmp_path: Path) -> None:
    labels = read_labels(labelled(tmp_path, ["stage1"]) / "labels.parquet")
    wrong = labels.assign(**{"class": "format"})
    shares = gold_figures.function_rows([labels, wrong]).set_index(["outer", "inner"])
    alone, step, pair = (("func_2", gold_figures.ALONE), ("func_10", gold_figures.STEP), ("func_2", "func_10"))
    assert [shares["right"][cell] for cell in (alone, step, pair)] == [
        1 / len(FAILURES) / 2,
        len(FAILURES) // 2 / len(FAILURES),
        1 / len(FAILURES) / 2,
    ]
    assert [shares["n"][cell] for cell in (step, pair)] == [2 * 3 * len(FAILURES), 2 * len(FAILURES)]
    rows, titles = drawn(chart := gold_figures.functions(shares.reset_index(), arm_styles(["stage1"])))
    assert len(spec_of(chart)["spec"]["layer"]) == 2  # cells, and a cross in each that has no value
    assert titles == ["Stage 1 (single functions) held-out functions"]
    known = rows["right"].notna()
    cells, empty = (
        {tuple(map(str, cell)) for cell in part[["outer", "inner"]].to_numpy()} for part in (rows[known], rows[~known])
    )
    assert cells == {("2", "10"), ("2", gold_figures.ALONE), *((name, gold_figures.STEP) for name in ("2", "10"))}
    assert empty == {("10", "10"), ("10", gold_figures.ALONE)}
    assert [*rows["missing"].notna()] == [*~known]
    assert gold_figures.short_names(["func_2", "func_10"]) == ["2", "10"]
    assert gold_figures.short_names(["sort", "reverse"]) == ["sort", "reverse"]


def test_p15_failure_figures_name_their_table_follow_it_and_refuse_an_altered_one(tmp_path: Path) -> None:
    def draw(name: str) -> Path:
        return draw_figure(FigureSettings([f"seed0:{tmp_path}"], tmp_path / name, figure=name))

    labelled(tmp_path)
    paths = {name: draw(name) for name in ("failure_modes", "functions")}
    first = {name: path.read_bytes() for name, path in paths.items()}
    manifest = read_manifest(paths["failure_modes"])
    assert manifest is not None
    assert manifest.inputs == {"seed0/results.parquet": file_hash(tmp_path / "results.parquet")}
    labelled(tmp_path, ("stage1", "rft"), applied=[], wrong=[])
    assert draw("failure_modes").read_bytes() != first["failure_modes"]
    with pytest.raises(UserError, match="its labels name no function"):
        draw("functions")
    (tmp_path / "labels.parquet").write_text("{}")
    with pytest.raises(UserError, match=r"labels\.parquet"):
        draw("failure_modes")


# ---- influence

LABELS = ["igsm L2", "igsm L3"]


def influence_file(path: Path, first: float = 1.0) -> None:
    """Eight queries with 0 to 7 of 7 completions right, each twice as influential as the one before."""
    rows = [
        {"problem": n, "level": 2 + n % 2, "group": "igsm", "correct": n, "samples": 7, "update_norm": 1.0,
         "influence": first * 2.0**n, "influence_on_others": 0.0, "entropy": 0.1}
        for n in range(8)
    ]  # fmt: skip
    pairs = {"labels": LABELS, "means": [[4.0, -1.0], [1.0, 2.0]]}
    queries = path.parents[3] / "queries"
    queries.write_text("queries")
    recipe = Recipe("influence", {}, {"problems": queries, "rollouts": queries})
    with new_artefact(path, recipe, {"co_influence": pairs}) as partial:
        write_table(pa.Table.from_pylist(rows, schema=SCHEMA), partial)


def test_influence_is_that_of_every_seed_and_model_and_a_ranking_needs_three_arms(tmp_path: Path) -> None:
    study, names = tmp_path / "tiny-injection", ("sft-vanilla", "sft-bridge")
    evaluated(study / "seed0" / INJECTION, {(model, "igsm", 2): 0.5 for model in names})
    for model in names:
        influence_file(study / "seed0" / "influence" / model / "influence.parquet")
    inputs = find_inputs(ReportSettings(study, study / "report", section=INJECTION))
    shown = {figure.name: figure.rows for figure in main_first(inputs, comparison(inputs), page_figures(inputs))}
    assert [*shown] == ["headline", "accuracy", "influence", "influence_pairs"]
    styles = arm_styles(names)
    rows, titles = drawn(figures.influence(shown["influence"], styles))
    assert [title.split(" predicted")[0].split(" only")[0] for title in titles] == [
        "What a step on a query teaches", "How many queries there are",
    ]  # fmt: skip
    of_arm = rows[(rows["arm"] == styles["sft-bridge"].title) & rows["panel"].str.startswith("What")]
    assert of_arm["value"].tolist() == [2.0**n for n in range(8)]
    assert "dot" not in rows or rows["dot"].isna().all()  # one seed
    rows, _ = drawn(figures.influence_pairs(shown["influence_pairs"], styles))
    cells = rows[rows["arm"] == styles["sft-bridge"].title].pivot(
        index="teacher", columns="learner", values="influence"
    )
    assert np.allclose(cells.loc[LABELS, LABELS], [[1, -0.25], [0.25, 0.5]])


def test_the_page_of_ranked_arms_begins_with_what_rl_adds_and_its_interval(tmp_path: Path) -> None:
    study, names = tmp_path / "tiny-injection", ("vanilla", "bridge", "subgoals")
    shares = {(f"sft-{name}", "igsm", 2): 0.1 for name in names}
    shares |= {(f"rl-{name}", "igsm", 2): 0.2 * (3 - place) for place, name in enumerate(names)}
    evaluated(study / "seed0" / INJECTION, shares)
    for place, name in enumerate(names):
        influence_file(study / "seed0" / "influence" / f"sft-{name}" / "influence.parquet", 1.0 + place)
    made = ReportSettings(study, study / "report", section=INJECTION)
    html = report(made).read_text()
    assert first_screen(html) == "gains"
    words = (
        "Right answers (igsm, level 2): BRIDGE: SFT, RL in 40.0\u00a0%, BRIDGE: SFT in 10.0\u00a0%; difference +30.0"
    )
    assert f"<h1>{words}" in html
    assert (made.output / "finding.txt").read_text().startswith(words.replace("\u00a0", " "))
    assert "over 3 arms, p by permutation of the arms, values by seed: igsm L2, influence: −1.00" in html
    for name in ("gains", "ranks", "accuracy", "answers", "influence", "influence_pairs"):
        assert html.count(f'<section id="{name}"') == 1
    assert "Cen et al." not in html  # no claims were decided
    assert "section43" not in html
    assert (made.output / "tables" / "influence.csv").is_file()
    with pytest.raises(UserError, match=r"results.parquet: no such file; make it with bash bash/section41_42"):
        report(ReportSettings(study, made.output))


def test_before_and_after_rl_are_those_of_the_table_and_the_gains_interval_begins_at_the_first(
    injection: ReportSettings,
) -> None:
    """At the hardest level of each group; the dots of problems add up to the shares of their replicate."""
    inputs = find_inputs(injection)
    shown = {figure.name: figure.rows for figure in page_figures(inputs)}
    shares = {(row["model"], row["group"], row["level"]): row["accuracy"] for row in inputs.accuracy}
    rows = shown["gains"]
    assert {(row["model"], row["group"], row["level"]) for row in rows} == {
        (model, group, level) for model in ("rl-vanilla", "rl-bridge") for group, level in (("igsm", 4), ("ood", 5))
    }
    for row in rows:
        before, after = (shares[row[key], row["group"], row["level"]] for key in ("start", "model"))
        gain = contrast(
            inputs.evaluated, row["model"], row["start"], inputs.evaluated.problem_set(row["group"], DEEPEST)
        )
        assert (row["before"], row["after"]) == (before, after)
        assert (row["low"], row["high"]) == pytest.approx((before + gain.low, before + gain.high))
    table, titles = drawn(figures.gains(rows, arm_styles(["rl-vanilla", "rl-bridge"])))
    assert titles == ["igsm, level 4 n = 8", "ood, level 5 n = 8"]
    assert [*table["line"].unique()] == ["vanilla", "BRIDGE"]
    dots = pd.DataFrame(shown["answers"]).groupby(["model", "level"])[["before", "after"]].sum()
    for (model, level), counts in dots.iterrows():
        right = (solved(model.replace("rl-", "sft-"), level, 0), solved(model, level, 0))
        assert (counts["before"], counts["after"]) == right


def test_problems_of_one_answer_are_counted_where_it_is_right_or_wrong_and_of_several_are_not() -> None:
    """The drawn marks are those of the problems: a click finds each."""
    for step, texts in ((1.0, 1), (0.25, 0)):
        rows = [
            {"model": "rl-bridge", "level": 3, "problem": n, "before": 0.0, "after": n % 2, "step": step}
            for n in range(9)
        ]
        spec = spec_of(gold_figures.answers(rows, arm_styles(["rl-bridge"])))
        marks = [layer["mark"]["type"] for layer in spec["spec"]["layer"]]
        assert (marks.count("circle"), marks.count("text")) == (1, texts)
        assert data_of(spec, spec)["problem"].tolist() == [*range(9)]


def first_screen(html: str) -> str:
    """Name of the main figure, which stands above the links to the chapters."""
    (name,) = re.findall(r'<section id="(\w+)" class="first">', html.partition("<nav")[0])
    return str(name)


def test_predicted_gains_have_a_large_mark_for_the_mean_of_an_arm() -> None:
    made = [
        {"model": "rl-vanilla", "group": "igsm", "level": 3, "influence": seed, "gain": 0.1 * seed} for seed in (1, 3)
    ]  # fmt: skip
    rows, titles = drawn(figures.predicted_gains(made, arm_styles(["rl-vanilla"])))
    assert titles == ["igsm L3 gain from RL"]
    assert rows.loc[rows["mean"] == 1, ["influence", "gain"]].to_numpy().tolist() == [[2, 0.2]]
    assert len(rows) == 3


# ---- scaling


def test_scaling_is_drawn_from_the_laws_that_describe_and_predict_best(fits: Path, tmp_path: Path) -> None:
    """With every point and its prediction."""
    path = draw_figure(FigureSettings([str(fits)], tmp_path / "figure", figure="scaling"))
    assert path.read_bytes().startswith(STARTS["png"])
    shown = read_manifest(path)
    assert shown is not None
    laws = {law["law"]: law for law in json.loads(fits.read_text())["laws"]}
    assert shown.settings["fitted"] == min(laws, key=lambda name: laws[name]["aic"])
    assert shown.settings["predicting"] == "power"  # the others say nothing of a new size

    content, fitted, predicting = chosen_laws(FigureSettings([str(fits)], Path("x"), fitted="saturating_slope"))
    spec = spec_of(scaling(content, fitted, predicting))
    panels = spec["concat"]
    assert [panel["title"]["text"].split(":")[0] for panel in panels] == [
        "Fit", "Prediction", "Slope k of log L by size", "Residuals", "Equal losses",
    ]  # fmt: skip
    rows = [data_of(spec, panel if "data" in panel else panel["layer"][0]) for panel in panels]
    left_out = 3 * 4 + 8  # the later half of three sizes, all of the largest
    assert [len(values) for values in rows[:4]] == [4 * 8, left_out, 4, 4 * 8]
    assert set(rows[4]["size"]) <= {*SIZES}
    for panel, values in zip(panels[:4], rows, strict=False):  # a size that the scale lacks would not be drawn
        layers = [panel, *panel.get("layer", ())]
        domain = next(
            one["encoding"]["color"]["scale"]["domain"] for one in layers if "color" in one.get("encoding", {})
        )
        assert domain == sorted(set(values["size"])) == [*SIZES]


def test_the_page_of_scaling_laws_has_every_figure_with_its_rows(fits: Path, scaling_study: ReportSettings) -> None:
    made = scaling_study
    html = (made.output / "index.html").read_text()
    assert first_screen(html) == "scaling_flops"
    law = next(one for one in json.loads(fits.read_text())["laws"] if one["law"] == "power")
    errors = [f"{region['error']:.2f} ({region['region']})" for region in law["held_out"]]
    assert f"log loss on the hold-out is off by {', '.join(errors)}; no prediction, as A, alpha end on a bound" in html
    for name in ("accuracy", "scaling_flops", "reuse"):
        assert f'<section id="{name}"' in html
        assert f'data-save="{name}.csv"' in html
    rows = pd.read_csv(made.output / "tables" / "scaling_flops.csv")
    assert len(rows[rows["region"] == "fitted"]) == 4 * 8
    assert len(rows[rows["region"] != "fitted"]) == 3 * 4 + 8


def test_accuracy_by_how_often_a_problem_is_seen() -> None:
    made = [{**row, "times": times} for times in (1, 5) for row in accuracy_rows(["rl"], 1, ["holdout"])]
    spec = spec_of(reuse(made))
    rows = data_of(spec, spec)
    assert len(rows) == 2 * 6
    assert rows.groupby("times")["accuracy"].max().tolist() == [0.9, 0.9]


def test_p18_other_files_and_laws_are_refused(fits: Path, tmp_path: Path) -> None:
    points = str(fits.with_name("scaling_points.csv"))
    known = "log_linear, saturating_slope, power"
    for inputs, fitted, told in (
        ([str(fits)], "cubic", f"cubic: no such law was fitted; there are: {known}"),
        ([points], "", "damaged"),
        ([str(fits)] * 2, "", "give figure=scaling one scaling.json"),
    ):
        with pytest.raises(UserError, match=told):
            draw_figure(FigureSettings(inputs, tmp_path / "x", "scaling", fitted=fitted))
    assert not list(tmp_path.iterdir())
