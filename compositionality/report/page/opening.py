"""The page's first screen: the finding with its interval, one problem with the models' answers, one large chart."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from compositionality.data.problems import read_problems
from compositionality.report import figures
from compositionality.report.draw import by_level
from compositionality.report.page.claims import DECISIONS, badge, points
from compositionality.report.page.figures import Drawing, PageFigure, finished, measured_words, styles_of
from compositionality.report.page.inputs import CLAIMS, SEEDS, Inputs
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
    rows, arms = by_level(inputs.json(SEEDS))[0], all_arms()
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
    summary, pair = inputs.json(SEEDS), dict.fromkeys((what.model, what.base))
    cell = {"group": what.group, "level": what.level}
    rows = {row["model"]: row for row in by_level(summary)[0] if cell.items() <= row.items()}
    titles = {name: style.title for name, style in styles_of(inputs, [*pair]).items()}
    place = f"{group_title(what.group)}, level {what.level}"
    shares = {name: f"{titles[name]} in {100 * rows[name]['accuracy']:.1f}\u00a0%" for name in pair}
    key = {**cell, "model": what.model, "base": what.base}.items()
    difference = next((row for row in summary["differences"] if key <= row.items()), None)
    if difference is None or difference["difference"] is None:
        each = (
            f"{said} [{100 * rows[name]['low']:.1f}, {100 * rows[name]['high']:.1f}]" for name, said in shares.items()
        )
        return {"sentence": f"Right answers ({place}): {', '.join(each)}.", "over": rows[what.model]["interval"]}
    ends = f"[{points(difference['low'])}, {points(difference['high'])}]"
    gain = f"{points(difference['difference'])} points {ends}"
    return {
        "sentence": f"Right answers ({place}): {', '.join(shares.values())}: {gain}.",
        "over": difference["interval"],
    }


def accuracy_table(inputs: Inputs) -> dict[str, Any]:
    """Return right answers in per cent with their intervals: a line for each group and level, a column a model."""
    models, lines = inputs.json(SEEDS)["models"], dict[tuple[str, int], dict[str, str]]()
    for row in by_level(inputs.json(SEEDS))[0]:
        ends = ", ".join(f"{100 * row[key]:.1f}" for key in ("low", "high"))
        line = lines.setdefault((row["group"], row["level"]), dict.fromkeys(models, "–"))
        line[row["model"]] = f"{100 * row['accuracy']:.1f} [{ends}]"
    rows = [[group_title(group), level, *line.values()] for (group, level), line in lines.items()]
    return {"titles": ["group", "level", *models], "rows": rows}


def primary_tally(inputs: Inputs) -> list[dict[str, Any]]:
    """Return how many primary claims have each decision after Holm's correction; empty without claims."""
    claims = inputs.json(CLAIMS)["claims"] if CLAIMS in inputs else []
    counts = Counter(claim["decision_holm"] or claim["decision"] for claim in claims if claim["primary"])
    return [{**badge(word), "n": counts[word]} for word in DECISIONS if counts[word]]


def headline(inputs: Inputs, what: HeadlineComparison) -> PageFigure:
    """Return the large chart of the group that the finding is of."""
    rows = [row for row in by_level(inputs.json(SEEDS))[0] if row["group"] == what.group]
    chart = figures.headline(rows, styles_of(inputs, unique(rows, "model")))
    values = {**measured_words("headline", rows), "group": group_title(what.group)}
    return finished("headline", Drawing(chart, (SEEDS,), values))


def worked_problem(inputs: Inputs, what: HeadlineComparison) -> dict[str, Any]:
    """Return a problem with every model's completion: the first of its level that the arm solves and its base does not.

    Without such a problem the first of the level; empty where no rollouts are among the inputs.
    """
    models = inputs.json(SEEDS)["models"]
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
        answers = [completion_row(rows[number], model) for model, rows in first.items() if number in rows]
        return {
            **question(table.slice(number, 1).to_pylist()[0], number), "level": what.level, "number": number,
            "answers": [{**row, "title": style.title} for row, style in zip(
                answers, styles_of(inputs, [row["model"] for row in answers]).values(), strict=True)],
            "chosen": bool(told_apart),
        }  # fmt: skip
    return {}


def first_completions(folder: Path, numbers: Sequence[int]) -> Iterator[tuple[int, Row]]:
    """Yield the first completion of each of these problems."""
    wanted = pa.array(numbers, pa.int64())
    for shard in read_rollouts(folder):
        rows = shard.filter(pc.and_(pc.equal(shard["sample"], 0), pc.is_in(shard["problem"], wanted)))
        yield from ((row["problem"], row) for row in rows.to_pylist())
