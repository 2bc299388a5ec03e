"""The page's figures: each with its specification, its words from figures.yaml, and the inputs that it shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.evaluate.ranks import AFTER, correlation_cell
from compositionality.evaluate.seeds import summary_of
from compositionality.evaluate.tables import plural
from compositionality.report import figures, paper, scaling_figures
from compositionality.report.draw import best_laws, by_level
from compositionality.report.page.inputs import (
    COMPOSITION,
    COUNTDOWN,
    FAILURES,
    FITS,
    INFLUENCE,
    INJECTION,
    PASS_AT_K,
    SCALING,
    Inputs,
)
from compositionality.report.page.results import FigureRows
from compositionality.report.theme import Styles, arm_styles, spec_of, unique
from compositionality.yaml_files import read_yaml_mapping

Rows = list[dict[str, Any]]
WORDS: dict[str, dict[str, str]] = read_yaml_mapping(Path(__file__).with_name("figures.yaml"))
ONE_SEED = "one seed: how much other seeds would differ is not known"
ORDER = {
    COMPOSITION: ("accuracy", "countdown", "passk", "failure_modes", "functions", "training", "budget"),
    INJECTION: ("accuracy", "influence", "influence_pairs", "ranks", "passk", "training"),
    SCALING: ("accuracy", *(f"scaling_{resource}" for resource in FITS), "training", "reuse"),
}
"""Of a section's page."""


@dataclass(frozen=True)
class PageFigure:
    """A figure: its Vega-Lite specification, the chapter that shows it, and the inputs that it was drawn from."""

    name: str
    title: str
    chapter: str
    caption: str
    spec: dict[str, Any]
    inputs: tuple[str, ...]


def page_figures(inputs: Inputs, results: FigureRows) -> list[PageFigure]:
    """Return the figures in the order of the page, without those of which nothing was run."""
    made = [figure_of(name, inputs, results) for name in ORDER[inputs.settings.section]]
    return [figure for figure in made if figure]


def missing_figures(inputs: Inputs, made: Sequence[PageFigure]) -> list[dict[str, str]]:
    """Return title and command of those that were not made."""
    section = inputs.settings.section
    names = [name for name in ORDER[section] if name not in {figure.name for figure in made}]
    commands = {name: WORDS[name]["command"].replace("{section}", section) for name in names}
    return [{"title": WORDS[name]["title"], "command": command} for name, command in commands.items()]


def finished(name: str, chart: Any, inputs: Sequence[str], values: Mapping[str, str], *sentences: str) -> PageFigure:
    """Return a chart with its words; ``values`` fill title and caption, ``sentences`` follow it."""
    said = WORDS[name]
    caption = WORDS["accuracy"]["caption"] if name == "countdown" else said["caption"]
    text = " ".join([caption.format(**values), *sentences])
    return PageFigure(name, said["title"].format(**values), said["chapter"], text, spec_of(chart), tuple(inputs))


def figure_of(name: str, inputs: Inputs, results: FigureRows) -> PageFigure | None:
    """Return the figure of this name; None where what it shows was not run."""
    if name in ("accuracy", "countdown"):
        return accuracy(name, inputs)
    if name.startswith("scaling_"):
        return scaling(inputs, name.removeprefix("scaling_"))
    if name == "ranks":
        return ranks(inputs, results.ranks)
    if name == "reuse":
        return reuse(inputs)
    runs, curves = [run for run, *_ in results.runs], results.passk
    rows, draw, sources = {
        "training": (results.training, figures.training, runs),
        "budget": (results.budget, figures.budget, [*inputs.starting("runs/"), *inputs.starting("rft/")]),
        "passk": (curves[curves["base"] == ""].to_dict("records"), figures.pass_at_k, inputs.starting(f"{PASS_AT_K}/")),
        "failure_modes": (results.failure_shares, figures.failure_modes, inputs.starting(f"{FAILURES}/")),
        "functions": (results.by_function, figures.heat_maps, inputs.starting(f"{FAILURES}/")),
        "influence": (results.influence, figures.influence, inputs.starting(f"{INFLUENCE}/")),
        "influence_pairs": (results.influence_pairs, figures.influence_pairs, inputs.starting(f"{INFLUENCE}/")),
    }[name]
    if not rows:
        return None
    styles = styles_of(inputs, unique(rows, "model" if "model" in rows[0] else "arm"))
    chart = draw(rows, results.by_pair, styles) if name == "functions" else draw(rows, styles)  # type: ignore[operator]
    n_replicates = len(unique(rows, "seed")) if "seed" in rows[0] else len(inputs.folders(FAILURES))
    values = {"seeds": _several(name, inputs.counted(n_replicates), n_replicates), **measured_words(name, rows)}
    if name == "passk":
        sampling = inputs.made_with[sources[0]]["sampling"]
        values |= {"samples": f"{sampling['n_samples']:,}", "temperature": f"{sampling['temperature']:g}"}
    repeats, said = paper.matching_test(inputs.accuracy), WORDS[name].get("paper")
    return finished(name, chart, sources, values, *([said] if said and repeats else []))


def accuracy(name: str, inputs: Inputs) -> PageFigure | None:
    """Return accuracy by level of one study, its own or that of Countdown."""
    kind, said = COUNTDOWN if name == COUNTDOWN else inputs.own, WORDS["accuracy"]
    results = inputs.results(COUNTDOWN) if name == COUNTDOWN else inputs.evaluated
    if results is None:
        return None
    rows, composed = by_level(summary_of(results) if name == COUNTDOWN else inputs.summary)
    if not rows:
        return None
    test, more = paper.matching_test(rows), [said["composed"]] if composed else []
    if test:
        more.append(said["stated"].format(figure=paper.PAPER["tests"][test]["figure"]))
    completions = plural(results.replicates[0].sampling["n_samples"], "completion")
    chart = figures.accuracy(rows, composed, arm_styles(results.arms, inputs.settings.arms))
    values = {**measured_words("accuracy", rows), "completions": completions}
    return finished(name, chart, inputs.starting(f"{kind}/"), values, *more)


def ranks(inputs: Inputs, found: Mapping[str, Any]) -> PageFigure | None:
    """Return influence of the SFT models' queries against the gain from RL, with the rank correlations."""
    if not found:
        return None
    rows = [{**row, "model": f"{AFTER}{row['arm']}"} for row in found["rows"]]
    cells = (f"{row['of']}, {row['predictor']}: {correlation_cell(row)}" for row in found["correlations"])
    chart = figures.predicted_gains(rows, styles_of(inputs, unique(rows, "model")))
    sources = [*inputs.starting(f"{inputs.own}/"), *inputs.starting(f"{INFLUENCE}/")]
    return finished("ranks", chart, sources, {"correlations": "; ".join(cells)})


def scaling(inputs: Inputs, resource: str) -> PageFigure | None:
    """Return fits and predictions of the scaling laws by one resource."""
    sources = inputs.starting(f"{FITS[resource]}/")
    if not sources:
        return None
    content = inputs.json(sources[0])
    fitted, predicting = best_laws(content["laws"])
    held_out = "; ".join(
        f"{region['region']}: error {region['error']:.3f}, mean {region['bias']:+.3f}"
        + ("" if region["covered"] is None else f", {100 * region['covered']:.0f} % in their 95 % intervals")
        for region in predicting["held_out"]
    ).replace("-", "−")
    values = {
        "sizes": str(len(content["sizes"])), "runs": plural(content["runs_of_a_size"], "run"), "held_out": held_out,
        "fitted": fitted["formula"], "predicting": predicting["formula"], "share": f"{100 * content['share']:.0f}",
    }  # fmt: skip
    return finished(f"scaling_{resource}", scaling_figures.scaling(content, fitted, predicting), sources, values)


def reuse(inputs: Inputs) -> PageFigure | None:
    """Return accuracy by how often each problem is seen, as many completions in all."""
    rows = []
    for row in inputs.summary["accuracy"]:
        _, found, times = row["model"].rpartition("-reuse-")
        if found and row["group"] == "holdout":
            rows.append({**row, "times": int(times)})
    if not rows:
        return None
    sources = inputs.starting(f"{inputs.own}/")
    return finished("reuse", scaling_figures.reuse(rows), sources, measured_words("reuse", rows))


def styles_of(inputs: Inputs, models: list[str]) -> Styles:
    """Return the styles of these models in the order of the study's table; the same colours as there."""
    styles = arm_styles([*inputs.summary["models"], *models], inputs.settings.arms)
    return {model: style for model, style in styles.items() if model in models}


def measured_words(name: str, rows: Rows) -> dict[str, str]:
    """Return what fills a caption from rows with intervals: problems a level, seeds, the kind of interval."""
    if not {"n_problems", "n_seeds", "interval"} <= rows[0].keys():
        return {}
    seeds = rows[0]["n_seeds"]
    several = _several(name, plural(seeds, "seed"), seeds)
    return {"n": figures.sizes(rows), "interval": rows[0]["interval"], "seeds": several}


def _several(name: str, counted: str, n: int) -> str:
    return f"{counted} ({WORDS[name]['seeds']})" if n > 1 else ONE_SEED
