"""The page's figures: each with its files, a caption that says n, seeds and interval, and the inputs it shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from compositionality.data.artefact import code_version
from compositionality.evaluate.ranks import AFTER, correlation_cell
from compositionality.evaluate.table import RESULTS
from compositionality.evaluate.tables import plural
from compositionality.report import drawing, failure_figures, figures, influence_figures, paper, scaling_figures
from compositionality.report.draw import by_level
from compositionality.report.draw_scaling import best_laws
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
from compositionality.report.styles import Styles, arm_styles, unique

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
RESOURCE_TITLES = {
    "flops": "by what was computed",
    "flops_paper": "by the paper’s count of it",
    "completions": "by completions",
}
ONE_SEED = "one seed: how much other seeds would differ is not known"


@dataclass(frozen=True)
class PageFigure:
    """A figure: its files by format, what it shows, and the inputs that it was drawn from."""

    name: str
    title: str
    caption: str
    files: Mapping[str, bytes]
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class MissingFigure:
    """A figure without inputs, and the command that makes them."""

    name: str
    title: str
    command: str


def page_figures(inputs: Inputs, results: FigureRows) -> Iterator[PageFigure | MissingFigure]:
    """The headline figure, then the others in the order of the paper's sections."""
    yield accuracy(inputs, SEEDS, "accuracy", "Accuracy by level")
    yield training(inputs, results)
    if inputs.section == SCALING:
        yield from scaling(inputs)
        yield reuse(inputs)
        return
    if inputs.section == INJECTION:
        yield from influence(inputs, results)
        yield ranks(inputs)
        yield pass_at_k(inputs, results)
        return
    yield budget(inputs, results)
    if COUNTDOWN in inputs:
        yield accuracy(inputs, COUNTDOWN, "countdown", "Transfer to Countdown")
    else:
        yield MissingFigure("countdown", "Transfer to Countdown", "bash bash/section43/run_all.sh")
    yield pass_at_k(inputs, results)
    yield failure_modes(inputs, results)
    yield functions(inputs, results)


def accuracy(inputs: Inputs, source: str, name: str, title: str) -> PageFigure | MissingFigure:
    """Accuracy by level of one study."""
    summary = inputs.json(source)
    rows, composed = by_level(summary)
    if not rows:
        return MissingFigure(name, title, f"bash bash/{source.split('/')[-2]}/run_all.sh")
    n_samples = summary["sampling"]["n_samples"]
    caption = (
        f"n = {figures.sizes(rows)} problems a level, {plural(n_samples, 'completion')} to each, "
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
    styles = arm_styles(summary["models"], inputs.arms)
    return _draw(inputs, name, title, caption, (source,), lambda: figures.accuracy(rows, composed, styles))


def training(inputs: Inputs, results: FigureRows) -> PageFigure | MissingFigure:
    """Validation accuracy over the steps of RL."""
    title, rows = "Accuracy by level during RL", results.training
    if not rows:
        return MissingFigure("training", title, "bash bash/section41_42/run_all.sh, then report.py with checkpoints=…")
    seeds = _replicates(inputs, len(unique(rows, "seed")), "thick lines: their mean; thin lines: each of them")
    caption = (
        f"Validation problems, one completion each, {seeds}. No intervals: for those of the final models see “Accuracy "
        f"by level”.{_paper(inputs, '2', paper.TRAINING)}"
    )
    styles = _styles(inputs, unique(rows, "arm"))
    return _draw(inputs, "training", title, caption, metric_files(inputs), lambda: figures.training(rows, styles))


def budget(inputs: Inputs, results: FigureRows) -> PageFigure | MissingFigure:
    """Share correct among the training completions of RL and RFT, by completions sampled."""
    title, rows = "RFT against RL by completions sampled", results.budget
    if not rows:
        command = "bash bash/section41_42/run_all.sh, then report.py with checkpoints=… data=…"
        return MissingFigure("budget", title, command)
    names = [name for name in inputs.starting("runs/") if "/stage2-rl-" in name]
    lines = _replicates(inputs, len(unique(rows, "seed")), "a line each")
    caption = (
        "Share correct among the completions that a method samples from its training problems, against how many it "
        f"has sampled so far, {lines}. RL: a moving mean over a twentieth "
        "of its steps. RFT: one mark an iteration, of the model that the iteration starts from, with its 95 % interval "
        "(Wilson, completions as independent). Arms learn from different problems (level 1, 2, or both): compare arms "
        f"on the same level.{_paper(inputs, '3', paper.BUDGET)}"
    )
    styles = _styles(inputs, unique(rows, "arm"))
    names += inputs.starting("rft/")
    return _draw(inputs, "budget", title, caption, names, lambda: figures.budget(rows, styles))


def influence(inputs: Inputs, results: FigureRows) -> Iterator[PageFigure | MissingFigure]:
    """Per-step influence of the queries of each SFT model: by how many completions are right; which teach which."""
    n_seeds = len(unique(results.influence, "seed"))
    seeds = _replicates(inputs, n_seeds, "lines: their mean; dots: each of them")
    figures_of = (
        (
            "influence", "Per-step influence of the SFT models’ queries", results.influence,
            "What one step of GRPO on a query changes in the mean objective of all queries, to first order, before any "
            "RL; by how many of the query’s completions are right. "
            f"{seeds[0].upper()}{seeds[1:]}; no intervals.",
            influence_figures.by_accuracy,
        ),
        (
            "influence_pairs", "Who teaches whom", results.influence_pairs,
            "Mean influence of a step on a query of one level on the objective of a query of another (co-influence), "
            f"each model’s largest set to 1; {_replicates(inputs, n_seeds, 'their mean')}.",
            influence_figures.pairs,
        ),
    )  # fmt: skip
    names = inputs.starting(f"{INFLUENCE}/")
    for name, title, rows, caption, draw in figures_of:
        if rows:
            drawn = partial(draw, rows, _styles(inputs, unique(rows, "model")))
            yield _draw(inputs, name, title, caption, names, drawn)
        else:
            yield MissingFigure(name, title, "bash bash/behavior_injection/influence.sh")


def ranks(inputs: Inputs) -> PageFigure | MissingFigure:
    """Influence of the SFT models' queries against the gain from RL, with the rank correlations."""
    title = "Does influence predict the gain from RL?"
    if RANKS not in inputs:
        return MissingFigure("ranks", title, "bash bash/behavior_injection/rank.sh")
    content = inputs.json(RANKS)
    told = "; ".join(f"{row['of']}, {row['predictor']}: {correlation_cell(row)}" for row in content["correlations"])
    caption = (
        "Mean influence of queries on an arm’s SFT model, and what RL then adds to its accuracy at the hardest level "
        "of each group; a large mark is an arm’s mean over seeds, small ones are seeds. Spearman’s correlation over "
        f"arms, mean over seeds [95 % interval over seeds], p by permutation of the arms, values by seed: {told}."
    )
    rows = content["rows"]
    styles = _styles(inputs, [f"{AFTER}{arm}" for arm in unique(rows, "arm")])
    return _draw(inputs, "ranks", title, caption, [RANKS], lambda: influence_figures.predicted(rows, styles))


def scaling(inputs: Inputs) -> Iterator[PageFigure | MissingFigure]:
    """Fits and predictions of the scaling laws, a figure for each resource."""
    for resource in RESOURCES:
        source, name = f"study/{resource}/{FITS}", f"scaling_{resource}"
        title = f"Loss on the hold-out {RESOURCE_TITLES[resource]}"
        if source not in inputs:
            yield MissingFigure(name, title, "bash bash/scaling_law/fit.sh")
            continue
        content = inputs.json(source)
        fitted, predicting = best_laws(content["laws"])
        held_out = "; ".join(
            f"{one['region']}: error {one['error']:.3f}, mean {one['bias']:+.3f}{_covered(one['covered'])}"
            for one in predicting["held_out"]
        ).replace("-", "−")
        caption = (
            f"{len(content['sizes'])} sizes, {plural(content['runs_of_a_size'], 'run')} each (seeds differ, hold-out "
            f"the same); log loss. Left: {fitted['formula']}. Middle: {predicting['formula']}, fitted to the first "
            f"{100 * content['share']:.0f} % of the steps of all sizes but the largest, nothing fitted again; errors "
            f"of log loss (root mean square; mean, positive where the loss fell further than predicted): {held_out}."
        )
        drawn = partial(scaling_figures.scaling, content, fitted, predicting)
        yield _draw(inputs, name, title, caption, [source], drawn)


def _covered(share: float | None) -> str:
    return "" if share is None else f", {100 * share:.0f} % in their 95 % intervals"


def reuse(inputs: Inputs) -> PageFigure | MissingFigure:
    """Accuracy by how often each problem is seen, as many completions in all."""
    title, rows = "The same problems, seen again", list(_reused(inputs.json(SEEDS)["accuracy"]))
    if not rows:
        arms = " ".join(["base-85k", *(f"rl-85k-reuse-{times}" for times in (1, 5, 20, 50))])
        return MissingFigure("reuse", title, f'SEEDS=3 ARMS="{arms}" bash bash/scaling_law/run_all.sh')
    caption = (
        f"RL of one size, as long, on fewer problems, each seen more often; n = {figures.sizes(rows)} problems a "
        f"level, {_seeds(rows[0]['n_seeds'], 'their mean')}; bars: 95 % interval over {rows[0]['interval']}."
    )
    return _draw(inputs, "reuse", title, caption, (SEEDS,), lambda: scaling_figures.reuse(rows))


def _reused(rows: Rows) -> Iterator[dict[str, Any]]:
    for row in rows:
        _, found, times = row["model"].rpartition("-reuse-")
        if found and row["group"] == "holdout":
            yield {**row, "times": int(times)}


def pass_at_k(inputs: Inputs, results: FigureRows) -> PageFigure | MissingFigure:
    """pass@k over all seeds."""
    title, curves = "pass@k by level", results.curves
    if not curves:
        return MissingFigure("passk", title, "bash bash/section44/passk.sh")
    sampling = inputs.settings[f"{PASS_AT_K}/{inputs.seeds_with(PASS_AT_K)[0]}/{RESULTS}"]["sampling"]
    caption = (
        f"Unbiased estimate from {sampling['n_samples']:,} completions of each problem at temperature "
        f"{sampling['temperature']:g}, n = {figures.sizes(curves)} problems a level, "
        f"{_seeds(curves[0]['n_seeds'], 'their mean')}; bands: 95 % interval over {curves[0]['interval']}."
        f"{_paper(inputs, '5', paper.PASS_AT_K)}"
    )
    styles, names = _styles(inputs, unique(curves, "model")), inputs.starting(f"{PASS_AT_K}/")
    return _draw(inputs, "passk", title, caption, names, lambda: figures.pass_at_k(curves, styles))


def failure_modes(inputs: Inputs, results: FigureRows) -> PageFigure | MissingFigure:
    """Shares of the failure classes over all seeds."""
    title, rows = "Failure modes", [row for row in results.failure_shares if row["share"] is not None]
    if not rows:
        return MissingFigure("failure_modes", title, "bash bash/section45/failure_modes.sh")
    caption = (
        "Share of each class among all completions, classified by program, "
        f"n = {figures.sizes(rows)} problems a level, {_seeds(rows[0]['n_seeds'], 'their mean')}. 95 % intervals over "
        f"{rows[0]['interval']}: in the table below.{_paper(inputs, '6, level 3', paper.FAILURES)}"
    )
    styles, names = _styles(inputs, unique(rows, "model")), inputs.starting(f"{FAILURES}/")
    return _draw(inputs, "failure_modes", title, caption, names, lambda: failure_figures.shares(rows, styles))


def functions(inputs: Inputs, results: FigureRows) -> PageFigure | MissingFigure:
    """Which functions and pairs of functions fail, over all seeds."""
    title, rows = "Accuracy by function and by pair", results.by_function
    if not rows:
        return MissingFigure("functions", title, "bash bash/section45/failure_modes.sh")
    means = _replicates(inputs, len(inputs.seeds_with(FAILURES)), "their mean")
    caption = (
        "Correct completions to outer(inner(x)); the first columns are the function alone (L1) and all steps at any "
        f"level that apply it (step). {means}; the number of "
        "completions is in the CSV; no intervals."
    )
    caption = caption[0].upper() + caption[1:]
    styles, names = _styles(inputs, unique(rows, "model")), inputs.starting(f"{FAILURES}/")
    return _draw(
        inputs, "functions", title, caption, names, lambda: failure_figures.heat_maps(rows, results.by_pair, styles)
    )


def stamp(inputs: Inputs, names: tuple[str, ...]) -> str:
    """Data hash, config hash and code version of what is made from these inputs."""
    return f"data {inputs.data_hash(names)} · config {inputs.config_hash(names)} · code {code_version()}"


def _draw(
    inputs: Inputs,
    name: str,
    title: str,
    caption: str,
    sources: Sequence[str],
    make: "Callable[[], Figure]",
) -> PageFigure:
    names = tuple(sources)
    return PageFigure(name, title, caption, drawing.save(make, drawing.FORMATS, stamp(inputs, names)), names)


def _styles(inputs: Inputs, models: list[str]) -> Styles:
    """Styles of these models in the order of the study's table; the same colours as there."""
    known = inputs.json(SEEDS)["models"]
    styles = arm_styles([*known, *models], inputs.arms)
    return {model: style for model, style in styles.items() if model in models}


def _paper(inputs: Inputs, figure: str, text: str) -> str:
    """What the paper says, where this study repeats its test."""
    return f" Paper (Fig. {figure}): {text}" if paper.matching_test(by_level(inputs.json(SEEDS))[0]) else ""


def _seeds(n: int, several: str) -> str:
    return f"{plural(n, 'seed')} ({several})" if n > 1 else ONE_SEED


def _replicates(inputs: Inputs, n: int, several: str) -> str:
    return f"{inputs.counted(n)} ({several})" if n > 1 else ONE_SEED
