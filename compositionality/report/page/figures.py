"""The page's figures: each with its specification, its words from figures.yaml, and the inputs that it shows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.data.artefact import code_version
from compositionality.evaluate.ranks import AFTER, correlation_cell
from compositionality.evaluate.table import RESULTS
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
    RANKS,
    RESOURCES,
    SCALING,
    SEEDS,
    Inputs,
)
from compositionality.report.page.results import FigureRows, metric_files
from compositionality.report.theme import Styles, arm_styles, spec_of, unique
from compositionality.yaml_files import read_yaml_mapping

Rows = list[dict[str, Any]]
WORDS: dict[str, dict[str, str]] = read_yaml_mapping(Path(__file__).with_name("figures.yaml"))
ONE_SEED = "one seed: how much other seeds would differ is not known"
ORDER = {
    COMPOSITION: ("accuracy", "countdown", "passk", "failure_modes", "functions", "training", "budget"),
    INJECTION: ("accuracy", "influence", "influence_pairs", "ranks", "passk", "training"),
    SCALING: ("accuracy", *(f"scaling_{resource}" for resource in RESOURCES), "training", "reuse"),
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


@dataclass(frozen=True)
class MissingFigure:
    """A figure without inputs, and the command that makes them."""

    name: str
    title: str
    command: str


@dataclass(frozen=True)
class Drawing:
    """A chart without its words: what fills its caption, sentences after that, and the inputs it was drawn from."""

    chart: Any
    inputs: Sequence[str]
    values: dict[str, str]
    sentences: tuple[str, ...] = ()


def page_figures(inputs: Inputs, results: FigureRows) -> Iterator[PageFigure | MissingFigure]:
    """Yield the figures in the order of the page."""
    for name in ORDER[inputs.section]:
        said, drawing = WORDS[name], drawing_of(name, inputs, results)
        if drawing is None:
            yield MissingFigure(name, said["title"], said["command"].replace("{section}", inputs.section))
        else:
            yield finished(name, drawing)


def finished(name: str, drawing: Drawing) -> PageFigure:
    """Return a drawing with its words."""
    said = WORDS[name]
    caption = WORDS["accuracy"]["caption"] if name == "countdown" else said["caption"]
    text = " ".join([caption.format(**drawing.values), *drawing.sentences])
    title = said["title"].format(**drawing.values)
    return PageFigure(name, title, said["chapter"], text, spec_of(drawing.chart), tuple(drawing.inputs))


def drawing_of(name: str, inputs: Inputs, results: FigureRows) -> Drawing | None:
    """Return the drawing of this name; None where what it shows was not run."""
    if name in ("accuracy", "countdown"):
        return accuracy(inputs, {"accuracy": SEEDS, "countdown": COUNTDOWN}[name])
    if name.startswith("scaling_"):
        return scaling(inputs, name.removeprefix("scaling_"))
    if name == "ranks":
        return ranks(inputs)
    if name == "reuse":
        return reuse(inputs)
    recipes = [name.replace("metrics.jsonl", "recipe.json") for name in metric_files(inputs)]
    failures = [row for row in results.failure_shares if row["share"] is not None]
    rows, draw, sources = {
        "training": (results.training, figures.training, metric_files(inputs)),
        "budget": (
            results.budget,
            figures.budget,
            [*metric_files(inputs), *filter(inputs.__contains__, recipes), *inputs.starting("rft/")],
        ),
        "passk": (results.curves, figures.pass_at_k, inputs.starting(f"{PASS_AT_K}/")),
        "failure_modes": (failures, figures.failure_modes, inputs.starting(f"{FAILURES}/")),
        "functions": (results.by_function, figures.heat_maps, inputs.starting(f"{FAILURES}/")),
        "influence": (results.influence, figures.influence, inputs.starting(f"{INFLUENCE}/")),
        "influence_pairs": (results.influence_pairs, figures.influence_pairs, inputs.starting(f"{INFLUENCE}/")),
    }[name]
    if not rows:
        return None
    styles = styles_of(inputs, unique(rows, "model" if "model" in rows[0] else "arm"))
    chart = draw(rows, results.by_pair, styles) if name == "functions" else draw(rows, styles)  # type: ignore[operator]
    n_replicates = len(unique(rows, "seed")) if "seed" in rows[0] else len(inputs.seeds_with(FAILURES))
    values = {"seeds": _several(name, inputs.counted(n_replicates), n_replicates), **measured_words(name, rows)}
    if name == "passk":
        sampling = inputs.settings[f"{PASS_AT_K}/{inputs.seeds_with(PASS_AT_K)[0]}/{RESULTS}"]["sampling"]
        values |= {"samples": f"{sampling['n_samples']:,}", "temperature": f"{sampling['temperature']:g}"}
    repeats = paper.matching_test(by_level(inputs.json(SEEDS))[0])
    said = WORDS[name].get("paper")
    return Drawing(chart, sources, values, (said,) if said and repeats else ())


def accuracy(inputs: Inputs, source: str) -> Drawing | None:
    """Return accuracy by level of one study, its own or that of Countdown."""
    if source not in inputs:
        return None
    summary, said = inputs.json(source), WORDS["accuracy"]
    rows, composed = by_level(summary)
    if not rows:
        return None
    test, more = paper.matching_test(rows), []
    if composed:
        more.append(said["composed"])
    if test:
        more.append(said["stated"].format(figure=paper.PAPER["tests"][test]["figure"]))
    completions = plural(summary["sampling"]["n_samples"], "completion")
    chart = figures.accuracy(rows, composed, arm_styles(summary["models"], inputs.arms))
    return Drawing(chart, (source,), {**measured_words("accuracy", rows), "completions": completions}, tuple(more))


def ranks(inputs: Inputs) -> Drawing | None:
    """Return influence of the SFT models' queries against the gain from RL, with the rank correlations."""
    if RANKS not in inputs:
        return None
    content = inputs.json(RANKS)
    rows = [{**row, "model": f"{AFTER}{row['arm']}"} for row in content["rows"]]
    cells = (f"{row['of']}, {row['predictor']}: {correlation_cell(row)}" for row in content["correlations"])
    chart = figures.predicted_gains(rows, styles_of(inputs, unique(rows, "model")))
    return Drawing(chart, (RANKS,), {"correlations": "; ".join(cells)})


def scaling(inputs: Inputs, resource: str) -> Drawing | None:
    """Return fits and predictions of the scaling laws by one resource."""
    source = f"study/{resource}/{FITS}"
    if source not in inputs:
        return None
    content = inputs.json(source)
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
    return Drawing(scaling_figures.scaling(content, fitted, predicting), (source,), values)


def reuse(inputs: Inputs) -> Drawing | None:
    """Return accuracy by how often each problem is seen, as many completions in all."""
    rows = []
    for row in inputs.json(SEEDS)["accuracy"]:
        _, found, times = row["model"].rpartition("-reuse-")
        if found and row["group"] == "holdout":
            rows.append({**row, "times": int(times)})
    return Drawing(scaling_figures.reuse(rows), (SEEDS,), measured_words("reuse", rows)) if rows else None


def stamp(inputs: Inputs, names: tuple[str, ...]) -> str:
    """Return data hash, config hash and code version of what is made from these inputs."""
    return f"data {inputs.data_hash(names)} · config {inputs.config_hash(names)} · code {code_version()}"


def styles_of(inputs: Inputs, models: list[str]) -> Styles:
    """Return the styles of these models in the order of the study's table; the same colours as there."""
    styles = arm_styles([*inputs.json(SEEDS)["models"], *models], inputs.arms)
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
