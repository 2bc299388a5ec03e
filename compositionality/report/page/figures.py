"""The page's figures, one function each: the rows it shows, its specification, its words, the inputs behind it."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import pandas as pd

from compositionality.data.artefact import read_manifest
from compositionality.data.json_files import check_shape
from compositionality.data.parquet import read_table
from compositionality.data.problems import level_and_group
from compositionality.evaluate import passk as pass_at_k
from compositionality.evaluate.failures import class_shares, read_labels
from compositionality.evaluate.gold_tables import hand_over_by_pair, read_exact
from compositionality.evaluate.ranks import AFTER, correlation_cell, ranks_of, why_no_ranks
from compositionality.evaluate.results import LABELS, ProblemSet
from compositionality.evaluate.seeds import summary_of, summary_rows
from compositionality.evaluate.summary import HELDOUT, LEVEL, columns, contrast, labels, rungs
from compositionality.evaluate.table import RESULTS
from compositionality.evaluate.tables import plural
from compositionality.evaluate.types import DEEPEST
from compositionality.report import figures, gold_figures, paper, scaling_figures
from compositionality.report.draw import best_laws, with_level
from compositionality.report.gold_figures import starts_of
from compositionality.report.page.claims import points
from compositionality.report.page.figure import (
    WORDS,
    PageFigure,
    Row,
    arms_by_level,
    cell_table,
    drawn,
    figure_of,
    interval_table,
    shown_words,
    styles_of,
    words_of,
)
from compositionality.report.page.inputs import (
    AGAIN,
    COMPOSITION,
    COUNTDOWN,
    FAILURES,
    FITS,
    INFLUENCE,
    INJECTION,
    MAIN,
    PAPERS,
    PASS_AT_K,
    POINTS,
    SCALING,
    Inputs,
)
from compositionality.report.theme import Styles, arm_styles, group_title, unique
from compositionality.stats.estimate import wilson
from compositionality.study.model import load_study
from compositionality.train.metrics import COMPLETIONS, FLOPS, accuracies, read_metrics

FACTORS = (
    "Last column: the least m at which the second model’s pass@(m·k) is no longer below the first’s pass@k [what the "
    "95 % intervals leave open]. More than re-ranking is shown only where both ends lie beyond the largest m."
)
PARTS = ("runs", "samples", "audit")  # of the page, without a figure
CURVE = ["model", "base", "problems", "group", "level", "data_source"]  # columns of a curve of pass@k


def page_figures(inputs: Inputs) -> list[PageFigure]:
    """Return the figures in the order of the page, without those of which nothing was run."""
    is_evaluated, figures_of = inputs.summary["models"], FIGURES[inputs.settings.section].items()
    made = [make(inputs, name) for name, make in figures_of if is_evaluated or WORDS[name]["chapter"] == "training"]
    return [figure for figure in made if figure]


def missing_parts(inputs: Inputs, made: Sequence[str]) -> list[dict[str, str]]:
    """Return title and command of the figures and other parts of the page that are not among those ``made``."""
    section = inputs.settings.section
    words = [WORDS[name] for name in (*FIGURES[section], *PARTS) if name not in made]
    commands = [said.get(f"command_{section}", said["command"]).replace("{section}", section) for said in words]
    return [{"title": said["title"], "command": command} for said, command in zip(words, commands, strict=True)]


def accuracy(inputs: Inputs, name: str) -> PageFigure | None:
    """Return accuracy by level of one study, its own or that of Countdown."""
    kind = COUNTDOWN if name == COUNTDOWN else inputs.own
    results = inputs.results.get(kind)
    if results is None:
        return None
    measured = summary_of(results) if name == COUNTDOWN else inputs.summary
    rows, handed_on = with_level(measured, "accuracy"), with_level(measured, "handed_on")
    if not rows:
        return None
    said, test = WORDS[name], paper.matching_test(rows)
    title = PAPERS[inputs.settings.section]
    stated = [said["stated"].format(figure=paper.PAPER["tests"][test]["figure"], paper=title)] if test else []
    completions = plural(results.replicates[0].sampling["n_samples"], "completion")
    models, left_out = arms_by_level(inputs, results.arms)
    styles = arm_styles(results.arms, inputs.settings.arms)
    chart = figures.accuracy(rows, handed_on, {model: styles[model] for model in models})
    values = {**words_of(inputs, name, rows), "completions": completions}
    details = interval_table("Right answers with their 95 % intervals, %", rows, "accuracy", "group", "level")
    sentences = [left_out, said["handed_on"] if handed_on else "", *stated]
    sources = inputs.starting(f"{kind}/")
    return figure_of(inputs, name, chart, summary_rows(results), sources, values, *sentences, details=[details])


def passk(inputs: Inputs, name: str) -> PageFigure | None:
    """Return pass@k over k; the CSV also has the differences of the pairs that were asked for (``base``)."""
    results = inputs.results.get(PASS_AT_K)
    if results is None:
        return None
    made = inputs.made_with[f"{PASS_AT_K}/{results.replicates[0].name}/{RESULTS}"]
    pairs = [(arm, base) for arm, base in made["pairs"] if {arm, base} <= set(results.arms)]
    table = pass_at_k.spaced_curves(results, pairs)
    rows = table[table["base"] == ""].to_dict("records")
    sampling = made["sampling"]
    values = {"samples": f"{sampling['n_samples']:,}", "temperature": f"{sampling['temperature']:g}"}
    return figure_of(
        inputs, name, figures.pass_at_k(rows, styles_of(inputs, unique(rows, "model"))), table,
        inputs.starting(f"{PASS_AT_K}/"), {**words_of(inputs, name, rows), **values},
        details=[crossovers(results, table[table["base"] != ""], styles_of(inputs, results.arms))],
    )  # fmt: skip


def crossovers(results: Any, differences: pd.DataFrame, styles: Styles) -> dict[str, Any]:
    """Return the differences at k = 1 and the largest k, where their sign changes, and the base's budget factors."""
    rows = []
    for (arm, base, file, group, level, source), curve in differences.groupby(CURVE, sort=False):
        factors = pass_at_k.budget_factors(results, arm, base, ProblemSet(file, group, level, source))[:4]
        first, last = (
            f"{points(row.value)} [{points(row.low)}, {points(row.high)}]" if pd.notna(row.value) else "–"
            for row in (curve.iloc[0], curve.iloc[-1])
        )
        changed, pair = pass_at_k.crossover(curve), f"{styles[arm].title} − {styles[base].title}"
        rows.append(
            [
                group_title(group), level or "all", pair, curve["n_problems"].iloc[0],
                first, f"{last} (k = {curve['k'].iloc[-1]})", f"k = {changed}" if changed else "–",
                "; ".join(f"k = {row['k']}: {pass_at_k.factor_text(row)}" for row in factors).replace("\n", ", "),
            ]
        )  # fmt: skip
    titles = ["group", "level", "difference", "n", "k = 1, points", "largest k, points", "sign changes"]
    summary = "Differences between models, and how many times as many samples the second needs"
    table = {"summary": summary, "titles": [*titles, "second meets first at m"], "rows": rows, "note": FACTORS}
    return table if rows else {}


def failure_modes(inputs: Inputs, name: str) -> PageFigure | None:
    """Return shares of the failure classes; mean over the seeds."""
    results = inputs.results.get(FAILURES)
    rows = [row for row in class_shares(results) if row["share"] is not None] if results else []
    if not rows:
        return None
    occurring = {(row["group"], row["level"], row["class"]) for row in rows if row["share"]}
    shown = [
        {**row, "class": row["class"].replace("_", " ")}
        for row in rows
        if (row["group"], row["level"], row["class"]) in occurring
    ]
    details = interval_table("Shares with their 95 % intervals, %", shown, "share", "group", "level", "class")
    return drawn(inputs, name, figures.failure_modes, rows, inputs.starting(f"{FAILURES}/"), details=[details])


def functions(inputs: Inputs, name: str) -> PageFigure | None:
    """Return accuracy by function and by pair of functions; means over the seeds, where all have their labels."""
    paths = [folder / LABELS for folder in inputs.folders(FAILURES).values()]
    if not all(path.is_file() for path in paths):  # of a replicate that is kept tables are there alone
        return None
    rows = gold_figures.function_rows(list(map(read_labels, paths))).to_dict("records")
    return drawn(inputs, name, gold_figures.functions, rows, inputs.starting(f"{FAILURES}/"))


def rl_runs(inputs: Inputs) -> list[tuple[str, str, str]]:
    """Return name of the metrics, replicate and arm of every run of RL."""
    runs = []
    for name in inputs.starting("runs/"):
        _, seed, run, file = name.split("/")
        if file == "metrics.jsonl" and run.startswith(("rl-", "stage2-rl-")):
            runs.append((name, seed, run.removeprefix("stage2-")))
    return runs


def ladder(inputs: Inputs, name: str) -> PageFigure | None:
    """Return each rung's share of the last's gain, on held-out functions at level 3, and what it took.

    None with fewer than two rungs below the last.
    """
    study = load_study(inputs.settings.section)
    rows, details = rungs(inputs.evaluated, study.ladder, study.arms[[*study.ladder][-1]].start)
    if len(rows) < 3:
        return None
    words = words_of(inputs, name, [row for row in inputs.accuracy if (row["group"], row["level"]) == (HELDOUT, LEVEL)])
    styles = styles_of(inputs, [row["model"] for row in rows])
    details["rows"] = [[styles[arm].title, *cells] for arm, *cells in details["rows"]]
    return drawn(inputs, name, figures.ladder, rows, inputs.starting(f"{inputs.own}/"), words, details=[details])


def training(inputs: Inputs, name: str) -> PageFigure | None:
    """Return validation during RL, by step and by what was spent until then.

    A data source that several groups have is of the first, as the hold-out is.
    """
    places: dict[str, tuple[int, str]] = {}
    for row in inputs.summary["accuracy"]:
        places.setdefault(row["data_source"], (row["level"], row["group"]))
    runs, rows = rl_runs(inputs), []
    for file, seed, arm in runs:
        for step in read_metrics(inputs.files[file]):
            spent = {"completions": step.get(COMPLETIONS), "flops": step.get(FLOPS)}
            for source, value in accuracies(step).items():
                if value is not None:
                    level, group = places.get(source) or level_and_group(source)
                    labels = {"arm": arm, "seed": seed, "step": step["step"], "group": group, "level": level}
                    rows.append({**labels, "accuracy": value, **spent})
    return drawn(inputs, name, figures.training, rows, [file for file, *_ in runs], key="arm")


def budget(inputs: Inputs, name: str) -> PageFigure | None:
    """Return the share right among training completions, by how many were sampled: RL's steps, RFT's iterations."""
    rows = [
        {"arm": arm, "seed": seed, "step": row["step"], "completions": row[COMPLETIONS], "correct": right}
        for file, seed, arm in rl_runs(inputs)
        for row in read_metrics(inputs.files[file])
        for right in [row.get("critic/acc/mean", row.get("critic/score/mean"))]
        if row.get(COMPLETIONS) is not None and right is not None
    ]
    rows += rft_iterations(inputs)
    sources = (*inputs.starting("runs/"), *inputs.starting("rft/"))
    return drawn(inputs, name, figures.budget, rows, sources, key="arm")


def rft_iterations(inputs: Inputs) -> Iterator[Row]:
    """Yield a row for each iteration: of completions that the model it starts from gave."""
    sampled: dict[tuple[str, str], int] = {}
    for name in inputs.starting("rft/"):
        _, seed, arm, iteration = name.split("/")
        facts = inputs.json(name).get("facts")
        check_shape(facts, {"levels": {"n": int, "correct": int}}, inputs.files[name], AGAIN)
        n, right = (sum(level[key] for level in facts["levels"]) for key in ("n", "correct"))
        sampled[seed, arm] = sampled.get((seed, arm), 0) + n
        if n:
            low, high = map(float, wilson(right / n, n))
            labels = {"arm": arm, "seed": seed, "step": int(iteration), "completions": sampled[seed, arm]}
            yield {**labels, "correct": right / n, "low": low, "high": high}


def influence(inputs: Inputs, name: str) -> PageFigure | None:
    """Return per-step influence of every seed's models by the number of correct completions."""
    from compositionality.analysis.influence import summary  # with torch, which no other page needs

    files = inputs.starting(f"{INFLUENCE}/")
    rows = [
        {"model": file.split("/")[2], "seed": file.split("/")[1], **row}
        for file in files
        for row in summary(read_table(inputs.files[file]).to_pylist())["by_accuracy"]
    ]
    return drawn(inputs, name, figures.influence, rows, files)


def influence_pairs(inputs: Inputs, name: str) -> PageFigure | None:
    """Return the influence of a step on a query of one group (teacher) on those of another (learner)."""
    files, rows = inputs.starting(f"{INFLUENCE}/"), []
    for file in files:
        _, seed, model, *_ = file.split("/")
        if manifest := read_manifest(inputs.files[file]):
            pairs = figures.pair_rows(manifest.facts["co_influence"])
            rows += [{"model": model, "seed": seed, **row} for row in pairs]
    return drawn(inputs, name, figures.influence_pairs, rows, files)


def gains(inputs: Inputs, name: str) -> PageFigure | None:
    """Return accuracy at the hardest level of each group before and after RL, with the gain's interval."""
    results, rows = inputs.evaluated, list[Row]()
    keys = ("model", "problems", "group", "level", "data_source")
    accuracy = {tuple(row[key] for key in keys): row["accuracy"] for row in inputs.accuracy}
    pairs = [(arm, start) for arm, start in starts_of(results).items() if arm.startswith(AFTER)]
    for group, (arm, start) in product(unique(inputs.accuracy, "group"), pairs):
        problems = results.problem_set(group, DEEPEST)
        gain = contrast(results, arm, start, problems) if problems and start in results.arms else None
        if problems and gain:
            before, after = (accuracy[model, *problems] for model in (start, arm))
            ends = {"low": before + gain.low, "high": before + gain.high}
            about = {"model": arm, "start": start, **labels(results, problems), "before": before, "after": after}
            rows.append({**about, **columns(gain, "gain"), **ends})
    return drawn(inputs, name, figures.gains, rows, inputs.starting(f"{inputs.own}/"))


def answers(inputs: Inputs, name: str) -> PageFigure | None:
    """Return the share of right answers to each problem before and after RL, in the replicate shown first."""
    rows = gold_figures.answer_rows(inputs.evaluated, inputs.shown).to_dict("records")
    return drawn(inputs, name, gold_figures.answers, rows, inputs.starting(f"{inputs.own}/"), {})


def ranks(inputs: Inputs, name: str) -> PageFigure | None:
    """Return influence of the SFT models' queries against the gain from RL, with the rank correlations."""
    influence = inputs.results.get(INFLUENCE)
    if influence is None or why_no_ranks(inputs.evaluated, influence):
        return None
    ranked = ranks_of(inputs.evaluated, influence)
    rows = [{**row, "model": f"{AFTER}{row['arm']}"} for row in ranked["rows"]]
    correlations = ranked["correlations"]
    cells = "; ".join(f"{row['of']}, {row['predictor']}: {correlation_cell(row)}" for row in correlations)
    values = {"correlations": cells, "arms": str(len(ranked["arms"]))}
    sources = (*inputs.starting(f"{inputs.own}/"), *inputs.starting(f"{INFLUENCE}/"))
    return drawn(inputs, name, figures.predicted_gains, rows, sources, values)


def scaling(inputs: Inputs, name: str) -> PageFigure | None:
    """Return fits and predictions of the scaling laws by one resource."""
    sources = inputs.starting(f"{FITS[name.removeprefix('scaling_')]}/")
    if not sources:
        return None
    content = inputs.json(sources[0])
    fitted, predicting = best_laws(content["laws"])
    held_out = "; ".join(
        f"{region['region']}: error {region['error']:.3f}, mean {region['bias']:+.3f}"
        + ("" if region["covered"] is None else f", {100 * region['covered']:.0f} % in their 95 % intervals")
        for region in predicting["held_out"]
    ).replace("-", "−")
    errors = ", ".join(f"{region['error']:.2f} ({region['region']})" for region in predicting["held_out"])
    if bound := predicting["held_out_on_bound"]:
        errors += f"; no prediction, as {', '.join(bound)} end on a bound"
    values = {
        "errors": errors or "an unknown amount: no law predicts from these runs",
        "sizes": str(len(content["sizes"])), "runs": plural(content["runs_of_a_size"], "run"), "held_out": held_out,
        "fitted": fitted["formula"], "predicting": predicting["formula"], "share": f"{100 * content['share']:.0f}",
    }  # fmt: skip
    rows = scaling_figures.drawn_rows(fitted, predicting)
    dots = WORDS[name]["dots"] if name == MAIN[SCALING] and POINTS in inputs else ""
    return figure_of(inputs, name, scaling_figures.scaling(content, fitted, predicting), rows, sources, values, dots)


def reuse(inputs: Inputs, name: str) -> PageFigure | None:
    """Return accuracy by how often each problem is seen, as many completions in all."""
    rows = []
    for row in inputs.summary["accuracy"]:
        _, separator, times = row["model"].rpartition("-reuse-")
        if separator and row["group"] == "holdout":
            rows.append({**row, "times": int(times)})
    return drawn(inputs, name, lambda rows, _: scaling_figures.reuse(rows), rows, inputs.starting(f"{inputs.own}/"))


def gold(inputs: Inputs, name: str) -> PageFigure | None:
    """Return exact probabilities of the held-out problems before and after, or what each role gained."""
    rows = gold_figures.gold_rows(inputs.evaluated, inputs.shown).to_dict("records")
    if not rows:
        return None
    exact = read_exact(inputs.evaluated, gold_figures.starts_of(inputs.evaluated))
    tables = []
    for function in gold_figures.TABLES[name]:
        frame, words = function(exact), WORDS[function.__name__]
        if len(frame):
            cells = [words["cell"].format(**row) for row in frame.to_dict("records")]
            table = cell_table(words["title"], frame.assign(cell=cells), *words["index"].split())
            tables.append({**table, "note": words["note"], "name": function.__name__, "frame": frame})
    sources = inputs.starting(f"{inputs.own}/")
    values = {"shown": shown_words(inputs)}
    return drawn(inputs, name, gold_figures.FIGURES[name], rows, sources, values, details=tables)


def hand_over(inputs: Inputs, name: str) -> PageFigure | None:
    """Return the probability that the outer function is applied to what the inner one gave, before and after."""
    table = hand_over_by_pair(read_exact(inputs.evaluated, gold_figures.starts_of(inputs.evaluated)))
    if table.empty:
        return None
    chart = gold_figures.hand_over(table, styles_of(inputs, [*table["start"], *table["model"]]))
    return figure_of(inputs, name, chart, table, inputs.starting(f"{inputs.own}/"), {})


FIGURES: dict[str, dict[str, Callable[[Inputs, str], PageFigure | None]]] = {
    COMPOSITION: {
        "accuracy": accuracy, "countdown": accuracy, "ladder": ladder, **dict.fromkeys(gold_figures.FIGURES, gold),
        "hand_over": hand_over, "passk": passk, "failure_modes": failure_modes, "functions": functions,
        "training": training, "budget": budget,
    },
    INJECTION: {
        "gains": gains, "accuracy": accuracy, "answers": answers, "ranks": ranks, "influence": influence,
        "influence_pairs": influence_pairs, "passk": passk, "training": training,
    },
    SCALING: {
        "accuracy": accuracy, **dict.fromkeys((f"scaling_{resource}" for resource in FITS), scaling),
        "training": training, "reuse": reuse,
    },
}  # fmt: skip
"""The figures of a section's page by name, in their order."""
