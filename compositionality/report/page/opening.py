"""The page's first screen: the finding with its interval, one problem with the models' answers, one large chart."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from compositionality.data.problems import read_problems
from compositionality.evaluate.summary import contrast
from compositionality.report import figures
from compositionality.report.page.claims import points, tally
from compositionality.report.page.figures import PageFigure, finished, measured_words, styles_of
from compositionality.report.page.inputs import CLAIMS, Inputs
from compositionality.report.page.samples import completion_row, problem_files, question
from compositionality.report.theme import group_title, unique
from compositionality.rollout.store import read_rollouts
from compositionality.study.model import all_arms

Row = Mapping[str, Any]
LEVEL, GROUPS = 3, ("heldout", "holdout")
"""The level, and the groups, that the finding is of where a study has them: fixed before there are results."""


@dataclass(frozen=True)
class HeadlineComparison:
    """What the first screen compares: the arm that the study draws widest with the arm that it starts from."""

    model: str
    base: str
    group: str
    level: int


def comparison(inputs: Inputs) -> HeadlineComparison | None:
    """Return what is compared; None where nothing was measured by level. No result has a part in the choice."""
    rows, arms = inputs.accuracy, all_arms()
    if not rows:
        return None
    groups = unique(rows, "group")
    group = next((name for name in GROUPS if name in groups), groups[0])
    rows = [row for row in rows if row["group"] == group]
    level = min(unique(rows, "level"), key=lambda level: abs(level - LEVEL))
    models = unique([row for row in rows if row["level"] == level], "model")
    model = max(reversed(models), key=lambda name: arms[name].width if name in arms else 0)
    start = arms[model].start if model in arms else ""
    return HeadlineComparison(model, start if start in models else models[0], group, level)


def finding(inputs: Inputs, what: HeadlineComparison) -> dict[str, str]:
    """Return the sentence, and what its interval is over."""
    rows = {row["model"]: row for row in inputs.accuracy if (row["group"], row["level"]) == (what.group, what.level)}
    pair = list(dict.fromkeys((what.model, what.base)))
    styles = styles_of(inputs, pair)
    shares = [f"{styles[name].title} in {percent(rows[name])}" for name in pair]
    begin = f"Right answers ({group_title(what.group)}, level {what.level}): "
    problems = inputs.evaluated.problem_set(what.group, what.level)
    gain = contrast(inputs.evaluated, what.model, what.base, problems) if problems and len(pair) > 1 else None
    if gain is None:
        ends = [f"[{100 * rows[name]['low']:.1f}, {100 * rows[name]['high']:.1f}]" for name in pair]
        each = ", ".join(f"{said} {interval}" for said, interval in zip(shares, ends, strict=True))
        return {"sentence": f"{begin}{each}.", "over": rows[what.model]["interval"]}
    said = f"{points(gain.value)} points [{points(gain.low)}, {points(gain.high)}]"
    return {"sentence": f"{begin}{', '.join(shares)}: {said}.", "over": gain.source}


def percent(row: Row) -> str:
    """Return an accuracy in per cent."""
    return f"{100 * row['accuracy']:.1f}\u00a0%"


def finding_text(inputs: Inputs, what: HeadlineComparison) -> str:
    """Return the finding for a terminal, and below it what it starts from at the level before and at its own."""
    said = finding(inputs, what)
    lines = [said["sentence"], f"95 % interval over {said['over']}."]
    models = unique(inputs.accuracy, "model")
    chosen = [name for name in models if name in (models[0], what.base, what.model)]
    styles = styles_of(inputs, chosen)
    for level in (what.level - 1, what.level):
        cell = {"group": what.group, "level": level}.items()
        rows = {row["model"]: row for row in inputs.accuracy if cell <= row.items()}
        each = [f"{styles[name].title} {percent(rows[name])}" for name in chosen if name in rows]
        lines += [f"{group_title(what.group)}, level {level}: {', '.join(each)}"] if each else []
    return "\n".join(lines).replace("\u00a0", " ") + "\n"


def accuracy_table(inputs: Inputs) -> dict[str, Any]:
    """Return right answers in per cent with their intervals: a line for each group and level, a column a model."""
    models, lines = inputs.summary["models"], dict[tuple[str, int], dict[str, str]]()
    for row in inputs.accuracy:
        line = lines.setdefault((row["group"], row["level"]), dict.fromkeys(models, "–"))
        line[row["model"]] = f"{100 * row['accuracy']:.1f} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    rows = [[group_title(group), level, *line.values()] for (group, level), line in lines.items()]
    return {"titles": ["group", "level", *models], "rows": rows}


def primary_tally(inputs: Inputs) -> list[dict[str, Any]]:
    """Return how many primary claims have each decision after Holm's correction; empty without claims."""
    claims = inputs.json(CLAIMS)["claims"] if CLAIMS in inputs else []
    return tally(claim["decision_holm"] or claim["decision"] for claim in claims if claim["primary"])


def headline(inputs: Inputs, what: HeadlineComparison) -> PageFigure:
    """Return the large chart of the group that the finding is of."""
    rows = [row for row in inputs.accuracy if row["group"] == what.group]
    chart = figures.headline(rows, styles_of(inputs, unique(rows, "model")))
    values = {**measured_words("headline", rows), "group": group_title(what.group)}
    return finished("headline", chart, inputs.starting(f"{inputs.own}/"), values)


def worked_problem(inputs: Inputs, what: HeadlineComparison) -> dict[str, Any]:
    """Return a problem with every model's completion: the first of its level that the arm solves and its base does not.

    Without such a problem the first of the level; empty where no rollouts are among the inputs.
    """
    models = inputs.summary["models"]
    for name, path in problem_files(inputs).items():
        folders = {model: inputs.files[key] for model in models if (key := f"rollouts/{model}/{name}") in inputs}
        table = read_problems(path)
        cells = zip(table["group"].to_pylist(), table["level"].to_pylist(), strict=True)
        numbers = [number for number, cell in enumerate(cells) if cell == (what.group, what.level)]
        if not numbers or what.model not in folders:
            continue
        first = {model: dict(first_completions(folder, numbers)) for model, folder in folders.items()}
        right = {model: {n for n, row in rows.items() if row["reason"] == "correct"} for model, rows in first.items()}
        told_apart = sorted(right[what.model] - right.get(what.base, set()))
        number = (told_apart or numbers)[0]
        styles = styles_of(inputs, [*first])
        answers = [
            {**completion_row(rows[number], model), "title": styles[model].title}
            for model, rows in first.items()
            if number in rows
        ]
        about = {"level": what.level, "number": number, "answers": answers, "chosen": bool(told_apart)}
        return {**question(table.slice(number, 1).to_pylist()[0], number), **about}
    return {}


def first_completions(folder: Path, numbers: Sequence[int]) -> Iterator[tuple[int, Row]]:
    """Yield the first completion of each of these problems."""
    wanted = pa.array(numbers, pa.int64())
    for shard in read_rollouts(folder):
        rows = shard.filter(pc.and_(pc.equal(shard["sample"], 0), pc.is_in(shard["problem"], wanted)))
        yield from ((row["problem"], row) for row in rows.to_pylist())
