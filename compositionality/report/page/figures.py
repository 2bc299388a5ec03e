"""The page's figures: each with its specification, a caption that says n, seeds and interval, and its inputs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compositionality.data.artefact import code_version
from compositionality.evaluate.ranks import AFTER, correlation_cell
from compositionality.evaluate.table import RESULTS
from compositionality.evaluate.tables import plural
from compositionality.report import figures, paper, scaling_figures
from compositionality.report.draw import best_laws, by_level
from compositionality.report.page.inputs import (
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

if TYPE_CHECKING:
    import altair as alt

Rows = list[dict[str, Any]]
RESOURCE_TITLES = {
    "flops": "by what was computed",
    "flops_paper": "by the paper’s count of it",
    "completions": "by completions",
}
ONE_SEED = "one seed: how much other seeds would differ is not known"
ACCURACY, WHY, TRAINING = "accuracy", "why", "training"
"""Chapters of the page."""


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


PageFigures = Iterator[PageFigure | MissingFigure]


def page_figures(inputs: Inputs, results: FigureRows) -> PageFigures:
    """Yield the figures in the order of the page."""
    yield accuracy(inputs, SEEDS, "accuracy", "Accuracy by level, every group")
    if inputs.section == SCALING:
        yield from scaling(inputs)
        yield reuse(inputs)
    elif inputs.section == INJECTION:
        yield from influence(inputs, results)
        yield ranks(inputs)
        yield pass_at_k(inputs, results)
    else:
        yield accuracy(inputs, COUNTDOWN, "countdown", "Transfer to Countdown")
        yield pass_at_k(inputs, results)
        yield failure_modes(inputs, results)
        yield functions(inputs, results)
    yield training(inputs, results)
    if inputs.section not in (SCALING, INJECTION):
        yield budget(inputs, results)


def accuracy(inputs: Inputs, source: str, name: str, title: str) -> PageFigure | MissingFigure:
    """Return accuracy by level of one study, its own or that of Countdown."""
    summary = inputs.json(source) if source in inputs else {"accuracy": [], "composed": []}
    rows, composed = by_level(summary)
    if not rows:
        return MissingFigure(
            name, title, f"bash bash/{source.split('/')[-2].replace('study', inputs.section)}/run_all.sh"
        )
    completions = plural(summary["sampling"]["n_samples"], "completion")
    caption = (
        f"n = {figures.sizes(rows)} problems a level, {completions} to each, "
        f"{_seeds(rows[0]['n_seeds'], 'lines: their mean; dots: each seed')}; bars: 95 % interval over "
        f"{rows[0]['interval']}."
    )
    if composed:
        caption += (
            " Below: completions that apply the problem’s functions in the right order, each on the result before it, "
            "right or wrong (composed.csv)."
        )
    if test := paper.matching_test(rows):
        caption += (
            f" Right: what the paper’s text states (Fig. {test.figure}): a model of 8 B parameters, one run, no "
            "intervals; nothing is read off its curves."
        )
    chart = figures.accuracy(rows, composed, arm_styles(summary["models"], inputs.arms))
    return PageFigure(name, title, ACCURACY, caption, spec_of(chart), (source,))


def training(inputs: Inputs, results: FigureRows) -> PageFigure | MissingFigure:
    """Return validation accuracy over the steps of RL."""
    seeds = _replicates(inputs, len(unique(results.training, "seed")), "lines: their mean; bands: lowest to highest")
    return _figure(
        inputs, "training", "Accuracy by level during RL", TRAINING, metric_files(inputs), results.training, "arm",
        figures.training, "bash bash/section41_42/run_all.sh, then report.py with checkpoints=…",
        f"Validation problems, one completion each, {seeds}. No intervals: for those of the final models see “Accuracy "
        f"by level”.{_paper(inputs, '2', paper.TRAINING)}",
    )  # fmt: skip


def budget(inputs: Inputs, results: FigureRows) -> PageFigure | MissingFigure:
    """Return the share right among the training completions of RL and RFT, by completions sampled."""
    names = [name for name in inputs.starting("runs/") if "/stage2-rl-" in name] + inputs.starting("rft/")
    lines = _replicates(inputs, len(unique(results.budget, "seed")), "a line each")
    return _figure(
        inputs, "budget", "RFT against RL by completions sampled", TRAINING, names, results.budget, "arm",
        figures.budget, "bash bash/section41_42/run_all.sh, then report.py with checkpoints=… data=…",
        "Share correct among the completions that a method samples from its training problems, against how many it "
        f"has sampled so far, {lines}. RL: a moving mean over a twentieth of its steps. RFT: one mark an iteration, of "
        "the model that the iteration starts from, with its 95 % interval (Wilson, completions as independent). Arms "
        "learn from different problems (level 1, 2, or both): compare arms on the same level."
        f"{_paper(inputs, '3', paper.BUDGET)}",
    )  # fmt: skip


def influence(inputs: Inputs, results: FigureRows) -> PageFigures:
    """Yield per-step influence of the queries of SFT models: by how many completions are right; which teach which."""
    n_seeds, names = len(unique(results.influence, "seed")), inputs.starting(f"{INFLUENCE}/")
    seeds = _replicates(inputs, n_seeds, "lines: their mean; dots: each of them")
    yield _figure(
        inputs, "influence", "Per-step influence of the SFT models’ queries", WHY, names, results.influence, "model",
        figures.influence, "bash bash/behavior_injection/influence.sh",
        "What one step of GRPO on a query changes in the mean objective of all queries, to first order, before any RL; "
        f"by how many of the query’s completions are right. {seeds[0].upper()}{seeds[1:]}; no intervals.",
    )  # fmt: skip
    yield _figure(
        inputs, "influence_pairs", "Co-influence of query groups", WHY, names, results.influence_pairs, "model",
        figures.influence_pairs, "bash bash/behavior_injection/influence.sh",
        "Mean influence of a step on a query of one level on the objective of a query of another (co-influence), each "
        f"model’s largest set to 1; {_replicates(inputs, n_seeds, 'their mean')}.",
    )  # fmt: skip


def ranks(inputs: Inputs) -> PageFigure | MissingFigure:
    """Return influence of the SFT models' queries against the gain from RL, with the rank correlations."""
    content = inputs.json(RANKS) if RANKS in inputs else {"correlations": [], "rows": []}
    rows = [{**row, "model": f"{AFTER}{row['arm']}"} for row in content["rows"]]
    told = "; ".join(f"{row['of']}, {row['predictor']}: {correlation_cell(row)}" for row in content["correlations"])
    return _figure(
        inputs, "ranks", "Does influence predict the gain from RL?", WHY, [RANKS], rows, "model",
        figures.predicted_gains, "bash bash/behavior_injection/rank.sh",
        "Mean influence of queries on an arm’s SFT model, and what RL then adds to its accuracy at the hardest level "
        "of each group; a large mark is an arm’s mean over seeds, small ones are seeds. Spearman’s correlation over "
        f"arms, mean over seeds [95 % interval over seeds], p by permutation of the arms, values by seed: {told}.",
    )  # fmt: skip


def scaling(inputs: Inputs) -> PageFigures:
    """Yield fits and predictions of the scaling laws, a figure for each resource."""
    for resource in RESOURCES:
        source, name = f"study/{resource}/{FITS}", f"scaling_{resource}"
        title = f"Loss on the hold-out {RESOURCE_TITLES[resource]}"
        if source not in inputs:
            yield MissingFigure(name, title, "bash bash/scaling_law/fit.sh")
            continue
        content = inputs.json(source)
        fitted, predicting = best_laws(content["laws"])
        held_out = "; ".join(
            f"{region['region']}: error {region['error']:.3f}, mean {region['bias']:+.3f}"
            + ("" if region["covered"] is None else f", {100 * region['covered']:.0f} % in their 95 % intervals")
            for region in predicting["held_out"]
        ).replace("-", "−")
        caption = (
            f"{len(content['sizes'])} sizes, {plural(content['runs_of_a_size'], 'run')} each (seeds differ, hold-out "
            f"the same); log loss. First: {fitted['formula']}. Second: {predicting['formula']}, fitted to the first "
            f"{100 * content['share']:.0f} % of the steps of all sizes but the largest, nothing fitted again; errors "
            f"of log loss (root mean square; mean, positive where the loss fell further than predicted): {held_out}."
        )
        chart = scaling_figures.scaling(content, fitted, predicting)
        yield PageFigure(name, title, WHY, caption, spec_of(chart), (source,))


def reuse(inputs: Inputs) -> PageFigure | MissingFigure:
    """Return accuracy by how often each problem is seen, as many completions in all."""
    title, rows = "The same problems, seen again", []
    for row in inputs.json(SEEDS)["accuracy"]:
        _, found, times = row["model"].rpartition("-reuse-")
        if found and row["group"] == "holdout":
            rows.append({**row, "times": int(times)})
    if not rows:
        arms = " ".join(["base-85k", *(f"rl-85k-reuse-{times}" for times in (1, 5, 20, 50))])
        return MissingFigure("reuse", title, f'SEEDS=3 ARMS="{arms}" bash bash/scaling_law/run_all.sh')
    caption = (
        f"RL of one size, as long, on fewer problems, each seen more often; n = {figures.sizes(rows)} problems a "
        f"level, {_seeds(rows[0]['n_seeds'], 'their mean')}; bars: 95 % interval over {rows[0]['interval']}."
    )
    return PageFigure("reuse", title, TRAINING, caption, spec_of(scaling_figures.reuse(rows)), (SEEDS,))


def pass_at_k(inputs: Inputs, results: FigureRows) -> PageFigure | MissingFigure:
    """Return pass@k over all seeds."""
    curves, caption = results.curves, ""
    if curves:
        sampling = inputs.settings[f"{PASS_AT_K}/{inputs.seeds_with(PASS_AT_K)[0]}/{RESULTS}"]["sampling"]
        caption = (
            f"Unbiased estimate from {sampling['n_samples']:,} completions of each problem at temperature "
            f"{sampling['temperature']:g}, n = {figures.sizes(curves)} problems a level, "
            f"{_seeds(curves[0]['n_seeds'], 'their mean')}; bands: 95 % interval over {curves[0]['interval']}."
            f"{_paper(inputs, '5', paper.PASS_AT_K)}"
        )
    return _figure(
        inputs, "passk", "New, or re-ranked? pass@k by level", WHY, inputs.starting(f"{PASS_AT_K}/"), curves, "model",
        figures.pass_at_k, "bash bash/section44/passk.sh", caption,
    )  # fmt: skip


def failure_modes(inputs: Inputs, results: FigureRows) -> PageFigure | MissingFigure:
    """Return shares of the failure classes over all seeds."""
    rows, caption = [row for row in results.failure_shares if row["share"] is not None], ""
    if rows:
        caption = (
            "Share of each class among all completions, classified by program, "
            f"n = {figures.sizes(rows)} problems a level, {_seeds(rows[0]['n_seeds'], 'their mean')}. 95 % intervals "
            f"over {rows[0]['interval']}: in the table below.{_paper(inputs, '6, level 3', paper.FAILURES)}"
        )
    return _figure(
        inputs, "failure_modes", "What goes wrong: failure modes", WHY, inputs.starting(f"{FAILURES}/"), rows, "model",
        figures.failure_modes, "bash bash/section45/failure_modes.sh", caption,
    )  # fmt: skip


def functions(inputs: Inputs, results: FigureRows) -> PageFigure | MissingFigure:
    """Return which functions and pairs of functions fail, over all seeds."""
    means = _replicates(inputs, len(inputs.seeds_with(FAILURES)), "their mean")
    return _figure(
        inputs, "functions", "Accuracy by function and by pair", WHY, inputs.starting(f"{FAILURES}/"),
        results.by_function, "model", lambda rows, styles: figures.heat_maps(rows, results.by_pair, styles),
        "bash bash/section45/failure_modes.sh",
        "Correct completions to outer(inner(x)); the first columns are the function alone (level 1) and all steps at "
        f"any level that apply it. {means[0].upper()}{means[1:]}; the number of completions is in the CSV; no "
        "intervals.",
    )  # fmt: skip


def stamp(inputs: Inputs, names: tuple[str, ...]) -> str:
    """Return data hash, config hash and code version of what is made from these inputs."""
    return f"data {inputs.data_hash(names)} · config {inputs.config_hash(names)} · code {code_version()}"


def styles_of(inputs: Inputs, models: list[str]) -> Styles:
    """Return the styles of these models in the order of the study's table; the same colours as there."""
    styles = arm_styles([*inputs.json(SEEDS)["models"], *models], inputs.arms)
    return {model: style for model, style in styles.items() if model in models}


def _figure(
    inputs: Inputs, name: str, title: str, chapter: str, sources: Sequence[str], rows: Rows, key: str,
    draw: "Callable[[Rows, Styles], alt.TopLevelMixin]", command: str, caption: str,
) -> PageFigure | MissingFigure:  # fmt: skip
    """Return the figure of these rows, whose arms are in the column ``key``; without rows the command for them."""
    if not rows:
        return MissingFigure(name, title, command)
    spec = spec_of(draw(rows, styles_of(inputs, unique(rows, key))))
    return PageFigure(name, title, chapter, caption, spec, tuple(sources))


def _paper(inputs: Inputs, figure: str, text: str) -> str:
    """Return what the paper says, where this study repeats its test."""
    return f" Paper (Fig. {figure}): {text}" if paper.matching_test(by_level(inputs.json(SEEDS))[0]) else ""


def _seeds(n: int, several: str) -> str:
    return f"{plural(n, 'seed')} ({several})" if n > 1 else ONE_SEED


def _replicates(inputs: Inputs, n: int, several: str) -> str:
    return f"{inputs.counted(n)} ({several})" if n > 1 else ONE_SEED
