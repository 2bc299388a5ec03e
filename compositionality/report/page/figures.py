"""Every figure that the inputs allow, with a caption that says n, seeds, interval and the paper's."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compositionality.data.artefact import code_version
from compositionality.evaluate.tables import plural
from compositionality.report import paper
from compositionality.report.figure import draw_summary
from compositionality.report.page import plots
from compositionality.report.page.claims import points
from compositionality.report.page.drawing import FORMATS, PAGE_STYLE, Drawn, files_of
from compositionality.report.page.inputs import (
    COUNTDOWN,
    FAILURE_FIGURES,
    FAILURES,
    PASS_AT_K,
    SEEDS,
    Inputs,
)
from compositionality.report.page.runs import budget_rows, metric_files, training_rows

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Missing:
    """A figure that cannot be drawn, and the command that makes what it needs."""

    name: str
    title: str
    command: str


def draw_figures(inputs: Inputs) -> Iterator[Drawn | Missing]:
    """The paper's figures in its order, from these inputs."""
    import matplotlib as mpl

    with mpl.rc_context({**mpl.rcParamsDefault, **PAGE_STYLE}):
        yield _training(inputs)
        yield _budget(inputs)
        yield _accuracy(inputs, SEEDS, "accuracy", "Accuracy by level")
        if COUNTDOWN in inputs:
            yield _accuracy(inputs, COUNTDOWN, "countdown", "Transfer to Countdown")
        else:
            yield Missing("countdown", "Transfer to Countdown", "bash bash/section43/run_all.sh")
        yield _pass_at_k(inputs)
        yield from _failures(inputs)


def stamp(inputs: Inputs, names: tuple[str, ...]) -> str:
    """Data hash, config hash and code version of what is made from these inputs."""
    return f"data {inputs.data_hash(names)} · config {inputs.config_hash_of(names)} · code {code_version()}"


def _training(inputs: Inputs) -> Drawn | Missing:
    title, rows = "Accuracy by level during RL", training_rows(inputs)
    if not rows:
        return Missing("training", title, "bash bash/section41_42/run_all.sh, then report.py with checkpoints=…")
    seeds = len(plots.unique(rows, "seed"))
    caption = (
        f"Validation problems, one answer each, {_seeds(seeds, 'thin lines: each seed; thick: their mean')}. No "
        f"intervals: for those of the final models see “Accuracy by level”. Paper (Fig. 2): {paper.TRAINING}"
    )
    return _drawn(inputs, "training", title, caption, tuple(metric_files(inputs)), lambda: plots.training(rows))


def _budget(inputs: Inputs) -> Drawn | Missing:
    title, rows = "RFT against RL, answer by answer", budget_rows(inputs)
    if not rows:
        return Missing("budget", title, "bash bash/section41_42/run_all.sh, then report.py with checkpoints=… data=…")
    names = (*metric_files(inputs), *inputs.starting("rft/"))
    names += tuple(name for name in inputs.starting("runs/") if "/stage2-rl-" in name and name.endswith("recipe.json"))
    caption = (
        "Share correct among the answers that a method samples from its training problems, against how many it has "
        "sampled so far. RL: a moving mean over a twentieth of its steps. RFT: one mark an iteration, of the model "
        "that the iteration starts from, 95 % interval (Wilson, answers as independent), first seed. Arms learn from "
        f"different problems (level 1, 2, or both): compare arms on level 2. Paper (Fig. 3): {paper.BUDGET}"
    )
    return _drawn(inputs, "budget", title, caption, names, lambda: plots.budget(rows))


def _accuracy(inputs: Inputs, source: str, name: str, title: str) -> Drawn | Missing:
    summary = inputs.json(source)
    rows = [row for row in summary["accuracy"] if row["level"] and row["accuracy"] is not None]
    if not rows:
        return Missing(name, title, f"bash bash/{source.split('/')[-2]}/run_all.sh")
    sizes = sorted({row["n_problems"] for row in rows})
    size = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    samples = summary["sampling"]["n_samples"]
    caption = (
        f"n = {size} problems a level, {plural(samples, 'answer')} to each, {_seeds(rows[0]['n_seeds'], 'the mean')}; "
        f"bars: 95 % interval over {rows[0]['interval']}. Right: the figures that the paper’s text states (Fig. "
        f"{4 if name == 'countdown' else 2}), a model of 8 B parameters, one run, no intervals; nothing is read off "
        "its curves."
    )
    return _drawn(inputs, name, title, caption, (source,), lambda: draw_summary(summary, summary["models"], ""))


def _pass_at_k(inputs: Inputs) -> Drawn | Missing:
    title = "pass@k by level"
    if PASS_AT_K not in inputs:
        return Missing("passk", title, "bash bash/section44/passk.sh")
    found = inputs.json(PASS_AT_K)
    caption = (
        f"Unbiased estimate from {found['n_samples']:,} answers to each problem at temperature "
        f"{found['temperature']:g}, first seed; bands: 95 % bootstrap over problems ({found['draws']:,} draws). Paper "
        f"(Fig. 5): {paper.PASS_AT_K}"
    )
    return _drawn(inputs, "passk", title, caption, (PASS_AT_K,), lambda: plots.pass_at_k(found["curves"]))


def _failures(inputs: Inputs) -> Iterator[Drawn | Missing]:
    """The figures of section 4.5 as that section drew them."""
    titles = ("Failure modes", "Accuracy by function and by pair")
    captions = (
        "Share of each class among all answers, told by program, first seed. Paper (Fig. 6, level 3): "
        f"{paper.FAILURE_WORDS}",
        "Which steps go wrong: by function, and by which function is applied to the result of which, first seed. The "
        "paper has no such figure.",
    )
    for source, title, caption in zip(FAILURE_FIGURES, titles, captions, strict=True):
        name = source.removeprefix("section45/").removesuffix(".svg")
        if source not in inputs or FAILURES not in inputs:
            yield Missing(name, title, "bash bash/section45/failure_modes.sh")
            continue
        names = tuple(other for ending in FORMATS if (other := source.replace("svg", ending)) in inputs)
        files = {other.rpartition(".")[2]: inputs.files[other].read_bytes() for other in names}
        yield Drawn(name, title, caption, files, (FAILURES, *names), ours=False)


def _drawn(
    inputs: Inputs, name: str, title: str, caption: str, names: tuple[str, ...], make: Callable[[], Any]
) -> Drawn:
    return Drawn(name, title, caption, files_of(make(), stamp(inputs, names)), names)


def _seeds(n: int, several: str) -> str:
    return f"{plural(n, 'seed')} ({several})" if n > 1 else "one seed: what other seeds would give is not known"


def crossovers(found: Mapping[str, Any]) -> Rows:
    """Differences at k = 1 and at the largest k, with the k where the sign changes, as words for a table."""
    rows = []
    for row in found["differences"]:
        ends = [f"{points(row['difference'][i])} [{points(row['low'][i])}, {points(row['high'][i])}]" for i in (0, -1)]
        told = _crossing(row["crossover"], row["k"][-1]) if row["crossover"] else "none"
        rows.append({**row, "first": ends[0], "last": ends[1], "crossover_words": told})
    return rows


def _crossing(crossing: Mapping[str, Any], largest: int) -> str:
    """The k with its interval; an end that is not known lies beyond the largest k."""
    low, high = (f"{end:g}" if (end := crossing[key]) is not None else f"> {largest}" for key in ("low", "high"))
    return f"{crossing['k']:g} [{low}, {high}]"
