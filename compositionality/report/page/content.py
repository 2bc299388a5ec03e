"""The page's words: the finding that it begins with; what was run, on what, how long; training; audit of the data."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd

from compositionality.data.artefact import read_manifest
from compositionality.data.git import commit_date
from compositionality.errors import UserError
from compositionality.evaluate.registration import read_registration
from compositionality.evaluate.results import ProblemSet
from compositionality.evaluate.summary import contrast
from compositionality.evaluate.tables import plural, training_frame, warnings
from compositionality.evaluate.types import CORRECT
from compositionality.report import figures
from compositionality.report.draw import with_level
from compositionality.report.page.claims import first_claim, points
from compositionality.report.page.figure import (
    ONE_SEED,
    PageFigure,
    arms_by_level,
    figure_of,
    interval_words,
    styles_of,
    words_of,
)
from compositionality.report.page.inputs import (
    AGAIN,
    AUDIT,
    COMPOSITION,
    INJECTION,
    MACHINE,
    MAIN,
    PASS_AT_K,
    REGISTRATION,
    SCALING,
    TIMES,
    Inputs,
)
from compositionality.report.page.sentences import noun_of
from compositionality.report.record import read_times, without_places
from compositionality.report.theme import group_title, unique
from compositionality.study.model import all_arms

Row = Mapping[str, Any]
LEVELS, GROUPS = {COMPOSITION: 3, INJECTION: 99, SCALING: 3}, ("heldout", "holdout")
"""The level (that nearest to it), and the groups, that the finding is of: fixed before there are results."""
DEFINED = {"right_chain": "A right chain has every step right."}
LEAST = 0.01
"""Under this difference, as a share, training has failed in a replicate."""
AUDIT_TITLES = {
    "rows": "problems",
    "overlap_problems": "also in training: problems",
    "overlap_compositions": "also in training: compositions",
}
"""Titles of the audit's figures; the others are shown under their own names."""


@dataclass(frozen=True)
class HeadlineComparison:
    """The comparison on the first screen: of a registered study's first primary claim; without one the arm that
    the study draws widest with the arm that it starts from.
    """

    model: str
    base: str
    group: str
    level: int
    measure: str = CORRECT


def comparison(inputs: Inputs) -> HeadlineComparison | None:
    """Return what is compared; None where nothing was measured by level. No result has a part in the choice."""
    rows, arms = inputs.accuracy, all_arms()
    if not rows:
        return None
    claimed = inputs.claimed
    if claimed and {claimed["model"], claimed["base"]} <= {*inputs.summary["models"]}:
        return HeadlineComparison(*(claimed[key] for key in ("model", "base", "group", "level", "measure")))
    groups = unique(rows, "group")
    group = next((name for name in GROUPS if name in groups), groups[0])
    rows = [row for row in rows if row["group"] == group]
    level = min(unique(rows, "level"), key=lambda level: abs(level - LEVELS[inputs.settings.section]))
    models = unique([row for row in rows if row["level"] == level], "model")
    model = max(reversed(models), key=lambda name: arms[name].width if name in arms else 0)
    start = arms[model].start if model in arms else ""
    return HeadlineComparison(model, start if start in models else models[0], group, level)


def main_first(inputs: Inputs, subject: HeadlineComparison | None, figures: list[PageFigure]) -> list[PageFigure]:
    """Return the figures with the main one first, which is added where it is accuracy by level."""
    main = [figure for figure in figures if figure.name == MAIN.get(inputs.settings.section)]
    others = [figure for figure in figures if figure not in main]
    return [*(main or ([headline(inputs, subject)] if subject else [])), *others]


def finding(inputs: Inputs, subject: HeadlineComparison | None, main: PageFigure | None) -> Mapping[str, str]:
    """Return the page's sentence and its lead: of the first claim, of the main figure, or of accuracies compared.

    The page of composition, whose primary claims are listed below it, begins with two models' shares.
    """
    if subject is None or main is None:
        so_far = "in every seed yet" if left_out(inputs) else "yet"
        unknown = f"No model has been evaluated {so_far}: below is its training so far."
        return {"sentence": "", "lead": "" if inputs.summary["models"] else unknown}
    claim = first_claim(inputs) if inputs.settings.section in MAIN else {}
    if claim:
        return {**claim, "lead": f"{claim['lead']} {main.finding.get('sentence', '')}".strip()}
    if main.finding:
        return main.finding
    sentence, over = compared(inputs, subject)
    lead = f"95\u00a0% interval over {interval_words(over)}{f' of {ONE_SEED}' if over == 'problems' else ''}."
    if subject.measure != CORRECT:
        lead += f" {DEFINED.get(subject.measure, '')}".rstrip()
    return {"sentence": sentence, "lead": lead + failing_words(inputs)}


def failing_words(inputs: Inputs) -> str:
    """Return in how many replicates a registered study's first effect is absent, so that its interval is too short."""
    failing = sum(abs(effect) < LEAST for effect in inputs.effects.values())
    cases = f"{failing} of {len(inputs.effects)} replicates the difference is under one point"
    return f" In {cases}: with such failures an interval over seeds is too short." if failing else ""


def compared(inputs: Inputs, subject: HeadlineComparison) -> tuple[str, str]:
    """Return the sentence on the shares of two models, and what its interval is over."""
    problems = inputs.evaluated.problem_set(subject.group, subject.level)
    rows = rows_of(inputs, subject.measure, problems)
    pair = list(dict.fromkeys((subject.model, subject.base)))
    styles, ends = styles_of(inputs, pair), dict.fromkeys(pair, "")
    gain = None
    if problems and len(pair) > 1:
        gain = contrast(inputs.evaluated, subject.model, subject.base, problems, subject.measure)
    if gain is None:
        ends = {name: f" [{100 * rows[name]['low']:.1f}, {100 * rows[name]['high']:.1f}]" for name in pair}
    shares = ", ".join(f"{styles[name].title} in {percent(rows[name])}{ends[name]}" for name in pair)
    begin = f"{measured(subject, subject.level)}: {shares}"
    if gain is None:
        return f"{begin}.", rows[subject.model]["interval"]
    return f"{begin}; difference {points(gain.value)} points [{points(gain.low)}, {points(gain.high)}].", gain.source


def measured(subject: HeadlineComparison, level: int) -> str:
    """Return ``Right answers (held-out functions, level 3)``."""
    noun = noun_of(subject.measure)
    return f"{noun[0].upper()}{noun[1:]} ({group_title(subject.group)}, level {level})"


def rows_of(inputs: Inputs, measure: str, problems: ProblemSet | None) -> dict[str, Row]:
    """Return each model's ``share`` on one set of problems: another file may have its group and level too."""
    names, value = ("problems", "group", "level", "data_source"), column_of(measure)
    rows = [row for row in with_level(inputs.summary, value) if tuple(row[name] for name in names) == problems]
    return {row["model"]: {**row, "share": row[value]} for row in rows}


def column_of(measure: str) -> str:
    """Return the name of a measure's share in the summary, and that of its table there."""
    return "accuracy" if measure == CORRECT else measure


def percent(row: Row) -> str:
    return f"{100 * row['share']:.1f}\u00a0%"


def finding_text(inputs: Inputs, subject: HeadlineComparison, main: PageFigure) -> str:
    """Return the finding for a terminal, and below it all models at the level before and at its own."""
    lines = [*finding(inputs, subject, main).values()]
    models = unique(inputs.accuracy, "model")
    styles = styles_of(inputs, models)
    for level in (subject.level - 1, subject.level):
        rows = rows_of(inputs, subject.measure, inputs.evaluated.problem_set(subject.group, level))
        shares = [f"{styles[name].title} in {percent(rows[name])}" for name in models if name in rows]
        lines += [f"{measured(subject, level)}: {', '.join(shares)}"] if shares else []
    lines += [words] if (words := left_out(inputs)) else []
    return "\n".join(lines).replace("\u00a0", " ") + "\n"


def headline(inputs: Inputs, subject: HeadlineComparison) -> PageFigure:
    """Return the large chart of the group that the finding is of."""
    value, words = column_of(subject.measure), noun_of(subject.measure)
    rows = [row for row in with_level(inputs.summary, value) if row["group"] == subject.group]
    models, left_out = arms_by_level(inputs, unique(rows, "model"))
    chart = figures.headline(rows, styles_of(inputs, models), value, words)
    group = group_title(subject.group)
    values = {**words_of(inputs, "headline", rows), "group": group, "measure": words.capitalize(), "noun": words}
    return figure_of(inputs, "headline", chart, rows, inputs.starting(f"{inputs.own}/"), values, left_out)


def study_line(inputs: Inputs) -> str:
    """Return in a line whether the study was registered, its seeds, the size of its models, those not shown."""
    registered, seeds = REGISTRATION in inputs, [seed.split("-") for seed in inputs.seeds]
    line = "Registered" if registered else "Not registered"
    if registered and (manifest := read_manifest(inputs.files[REGISTRATION].parent)):
        commit = manifest.settings["commit"]
        when = f" on {date}" if (date := commit_date(commit)) else ""
        line += f" in commit {commit[:8]}{when}, before its test problems were made"
    line += f" · {plural(len({seed for seed, *_ in seeds}), 'seed')}"
    if splits := sum(len(seed) > 1 for seed in seeds):
        line += f", {plural(splits, 'division')} of the functions into trained and held-out"
    size, words = model_size(inputs), left_out(inputs)
    return " · ".join([line, *([f"models of {size:,} parameters"] if size else []), *([words] if words else [])])


def left_out(inputs: Inputs) -> str:
    """Return in words which models only some replicates have: of a study that still runs, these are not shown."""
    arms = inputs.evaluated.partial_arms if inputs.folders(inputs.own) else []
    titles = [style.title for style in styles_of(inputs, arms).values()] if arms else []
    return f"left out, as not every seed has them: {', '.join(titles)}" if titles else ""


def model_size(inputs: Inputs) -> int:
    """Return how many parameters the base model has; 0 where neither it nor the registered recipe is here."""
    if folder := inputs.files.get(f"runs/{inputs.kept}/base/manifest.json"):
        from safetensors import safe_open

        files: list[Any] = [safe_open(path, "np") for path in folder.parent.glob("*.safetensors")]
        return sum(math.prod(file.get_slice(name).get_shape()) for file in files for name in file.keys())  # noqa: SIM118
    if REGISTRATION in inputs:
        with suppress(UserError):
            from compositionality.study.preflight import PreflightSettings, forecast_of  # with torch
            from compositionality.study.registered import hashes_of, profile_of

            study = read_registration(inputs.files[REGISTRATION])
            if hashes_of(study)["recipe_sha256"] == study.recipe_sha256:
                return forecast_of(PreflightSettings(profile_of(study), study=study.study)).shape.parameters
    return 0


def facts(inputs: Inputs) -> dict[str, str]:
    """Return what was run, on what, how long, by title."""
    if not inputs.summary["models"]:
        evaluated = "no model evaluated in all of them" if left_out(inputs) else "none evaluated"
        return {"Study": f"trained: {', '.join(inputs.seeds)}; {evaluated}"}
    summary = inputs.summary
    styles = styles_of(inputs, summary["models"])
    models = [style.title if style.title == name else f"{style.title} ({name})" for name, style in styles.items()]
    problems = [
        f"{group_title(str(group))}: levels {min(rows['level'])} to {max(rows['level'])}, {figures.sizes(rows)} a level"
        for group, rows in pd.DataFrame(summary["accuracy"]).groupby("group", sort=False)
    ]
    lines = {
        "Models": ", ".join(models),
        "Problems": "; ".join(problems),
        "Completions": sampled(summary["sampling"]),
    }
    if sources := inputs.starting(f"{PASS_AT_K}/"):
        made = inputs.made_with[sources[0]]
        titles = [style.title for style in styles_of(inputs, made["models"]).values()]
        lines["For pass@k"] = f"{sampled(made['sampling'])}, of {', '.join(titles)}"
    steps = stages(inputs)
    if MACHINE in inputs and steps:  # of kept tables it is the machine that wrote this page
        where = inputs.json(MACHINE)
        gpus = f"{len(where['gpus'])} × {where['gpus'][0]}" if where["gpus"] else "no GPU"
        cores = f"{plural(where['cores'], 'core')}, {where['memory_gib']:g} GiB"
        lines["Machine"] = f"{where['cpu']}, {cores}, {gpus}, Python {where['python']}"
    if seconds := sum(row["seconds"] for row in steps):
        hours = plural(max(1, round(seconds / 60)), "minute") if seconds < 5400 else f"{seconds / 3600:.1f} hours"
        lines["Time"] = f"{hours} if one step runs at a time"
    return lines


def sampled(sampling: Row) -> str:
    """Return ``16 for each problem at temperature 1``."""
    return f"{sampling['n_samples']:,} for each problem at temperature {sampling['temperature']:g}"


def stages(inputs: Inputs) -> list[Row]:
    """Return seed, step and seconds of the steps of all seeds."""
    times = read_times(inputs.files[TIMES]) if TIMES in inputs else []
    return [{"seed": seed, "step": step, "seconds": seconds} for (seed, step), seconds in times]


def settings_rows(inputs: Inputs) -> Iterator[Row]:
    """Yield a row for each setting of sampling, and of every training run of the replicate that is kept."""
    runs = [name for name in inputs.starting(f"runs/{inputs.kept}/") if name.endswith(".json")]
    by_run = {"sampling": inputs.summary["sampling"]}
    by_run |= {name.split("/")[2]: inputs.json(name)["settings"] for name in runs}
    for run, settings in by_run.items():
        yield from ({"run": run, "key": key, "value": without_places(value)} for key, value in settings.items())


def training_table(inputs: Inputs) -> dict[str, Any]:
    """Return counts of the training of every arm as titles and rows of text, and warnings; empty without any."""
    reports = inputs.summary["training"]
    if not any(reports.values()):
        return {}
    frame = training_frame(reports)
    styles = styles_of(inputs, [*frame.index])
    rows = [[styles[arm].title, *cells] for arm, *cells in frame.itertuples()]
    return {"titles": ["arm", *frame.columns], "rows": rows, "warnings": list(warnings(reports))}


def audit_rows(inputs: Inputs) -> list[Row]:
    """Return the audit of the test files, a row for each file and level; empty where it has not been run."""
    files: dict[str, list[Row]] = inputs.json(AUDIT) if AUDIT in inputs else {}
    if bad := [file for file, rows in files.items() if not isinstance(rows, list)]:
        raise UserError(f"{inputs.files[AUDIT]}: {bad[0]}: is no list of levels; {AGAIN}")
    return [{"file": file, **row} for file, rows in files.items() for row in rows]


def audit_table(inputs: Inputs) -> dict[str, Any]:
    """Return the audit as titles and rows of text: counts, shares (all between 0 and 1) in per cent, – for unknown."""
    rows = audit_rows(inputs)
    if not rows:
        return {}
    frame = pd.DataFrame(rows, dtype=object)
    frame["file"] = frame["file"].str.removesuffix(".parquet")
    plain = [name for name in frame if frame[name].map(lambda cell: isinstance(cell, str | int | float | None)).all()]
    plain.sort(key=lambda name: name not in ("file", "level"))
    titles = {name: AUDIT_TITLES.get(name, name.replace("_", " ")) for name in plain}
    return {"titles": [titles[name] for name in plain], "rows": frame[plain].apply(audit_cells).to_numpy().tolist()}


def audit_cells(column: "pd.Series[Any]") -> "pd.Series[str]":
    """Return a column of the audit as text."""
    numbers = [cell for cell in column if isinstance(cell, float) and cell == cell]
    form = "{:.1%}" if numbers and all(0 <= cell <= 1 for cell in numbers) else "{:g}"

    def text(cell: Any) -> str:
        if pd.isna(cell):
            return "–"
        return form.format(cell) if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)

    return column.map(text)
