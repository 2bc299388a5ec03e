"""Numbers of a markdown text, and whether records hold them.

The rule. A text's records are the folders of results/records/ that it links to (the folder or a file in it), or lies
in. Every number of the text must be in an *entry* of one of them, a JSON object with its own lists and sentences,
rounded as it is written: a share in percent, seconds in minutes or hours too, a count in M. A lone number is easily
there by chance. So figures that are written together must be found together:

- an interval, ``[a, b]`` or ``[a–b]``, as the bounds of one entry, with the figure before it in the same;
- ``a, b and c`` and ``a–b`` in one entry, or in one sentence of a record;
- ``a to b`` and ``a → b`` as the same figure of two entries that differ in one label at most, as bounds, or in one
  sentence of an entry;
- of trainings ``a–b`` also as the least and the largest of a figure of one arm over all replicates, or its mean;
- in a table, in entries that bear the names of the row and of the column, where entries have such names.

Left out are code, links' targets, comments, table heads, what ``NOT_MEASURED`` says, whole numbers up to ``FEW`` that
stand alone, and figures of the paper (from "paper:" or "paper has" to the end of the clause, or of the italics).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

FEW = 12
NUMBER = r"[−+-]?\d(?:[\d,]*\d)?(?:\.\d+)?"
LABELS = ("law", "model", "base", "group", "functions", "level", "variant", "part", "measure", "metric", "comparison")
NAMES = ("model", "variant", "comparison")
NOT_MEASURED = (
    r"arXiv(?: |:)\d+\.\d+", r"(?:§|[Ss]ections?) ?[\d., to and§]*\d", r"(?:Fig\.|Figure|Table) ?\d+",
    r"[Ll]evels? \d+(?:(?:,| to| and|–) ?\d+)*", r"\bL\d+", r"\bH\d+\b", r"[Ss]eeds? \d+(?:(?:,| to| and|–) ?\d+)*",
    r"\b(?:k|n|N) ?= ?[\d,]+", r"95 ?%",
    r"(?:Python|driver|CUDA|verl|vLLM|torch|transformers) \d[\d.]*(?: or \d[\d.]*)?",
    r"\d+ × \d+ ?GB", r"(?<![\d.])\d+ GB", r"\d+ × ", r"[A-Za-z][\w-]*\d[\w.-]*", r"\d+\.\d+\.\d+",
)  # fmt: skip
PAPER = r"\*paper: [^*]*\*|[Pp]aper(?:'s)?(?: has|:| says| gives| reports| finds)[^.;)|]*"
SAID = re.compile(r"(?<![\w.,])\d(?:[\d,]*\d)?(?:\.\d+)?(?![\w.,]*\w)")
GROUPS = (
    ("interval", rf"(?:({NUMBER})(?: %)? ?)?\[({NUMBER})(?:–|, ?)({NUMBER})\]"),
    ("together", rf"({NUMBER})(?:, ({NUMBER}))*,? and ({NUMBER})"),
    ("together", rf"({NUMBER})–({NUMBER})"),
    ("change", rf"({NUMBER})(?: %| points)? (?:to|→) ({NUMBER})"),
    ("alone", rf"({NUMBER})"),
)


@dataclass(frozen=True)
class Entry:
    """An object of a record: its labels, its numbers with those of its lists, its intervals."""

    labels: Mapping[str, Any]
    values: Mapping[str, float]
    intervals: tuple[tuple[float, float], ...]

    def has(self, figure: str) -> bool:
        return any_is(self.units, figure)

    def has_interval(self, low: str, high: str) -> bool:
        return any(is_rounded(a, low, self.labels) and is_rounded(b, high, self.labels) for a, b in self.intervals)

    def says(self, figures: Sequence[str]) -> bool:
        """Whether one of its sentences has all of these figures."""
        sentences = {key.partition("/")[0] for key in self.values if "/" in key}
        mine = [[v for key, v in self.values.items() if key.startswith(f"{one}/")] for one in sentences]
        return any(all(any(is_rounded(v, one, self.labels) for v in of) for one in figures) for of in mine)

    @cached_property
    def names(self) -> set[str]:
        """What a row or a column of a table may call it: a level, or one of ``NAMES``."""
        return {str(self.labels.get(key)) for key in NAMES} | {f"L{self.labels.get('level')}"}

    @cached_property
    def units(self) -> list[float]:
        return [one for value in self.values.values() for one in in_units(value, timed=not self.labels)]


def is_rounded(value: float, figure: str, shares: object) -> bool:
    """Whether a value, or what it is in other units, is this figure as it is written."""
    return any_is(in_units(value, timed=not shares), figure)


def any_is(values: Iterable[float], figure: str) -> bool:
    """Whether one of the values is this figure as it is written."""
    number, least = written(figure)
    return any(abs(one - number) <= least for one in values)


@cache
def written(figure: str) -> tuple[float, float]:
    """A figure's value, and how far a value that is rounded to it may be from it."""
    text = figure.replace(",", "").replace("−", "-").lstrip("+")
    return float(text), 0.5 * 10 ** -len(text.partition(".")[2]) + 1e-9


def in_units(value: float, *, timed: bool) -> Iterator[float]:
    """The value; a share in percent, seconds in minutes and hours, a large count in M."""
    yield value
    if abs(value) <= 1:
        yield 100 * value
    elif timed:
        yield from (value / 60, value / 3600)
    if value > 1e5:
        yield value / 1e6


def entries(node: Any, outer: Mapping[str, Any] | None = None) -> Iterator[Entry]:
    """Every object of a record's JSON, with the labels of those around it."""
    labels = dict(outer or {})
    if isinstance(node, dict):
        listed = {f"{key}.{i}": one for key, of in node.items() for i, one in enumerate(flattened(of))}
        mine = {**node, **listed}
        values = {key: value for key, value in mine.items() if is_number(value)}
        for key, text in mine.items():
            values |= dict(enumerate_said(key, text)) if isinstance(text, str) else {}
        bounds = [(node[key], node.get(key.replace("low", "high"))) for key in node if key.endswith("low")]
        intervals = tuple((a, b) for a, b in bounds if is_number(a) and is_number(b))
        labels |= {key: node[key] for key in LABELS if key in node}
        yield Entry(labels, values, intervals)
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from entries(child, labels)


def flattened(node: Any) -> list[Any]:
    """What a list and the lists in it hold; nothing of anything else."""
    if not isinstance(node, list):
        return []
    return [one for each in node for one in (flattened(each) if isinstance(each, list) else [each])]


def enumerate_said(key: str, text: str) -> Iterator[tuple[str, float]]:
    """The numbers of a sentence."""
    for number, one in enumerate(SAID.findall(text)):
        yield f"{key}/{number}", float(one.replace(",", ""))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def linked_records(text: Path, folder: Path) -> list[Path]:
    """Return the records in ``folder`` that a text links to or is the page of, sorted."""
    targets = re.findall(r"\]\(([^)#\s]+)", text.read_text())
    places = [text, *((text.parent / target).resolve() for target in targets if "://" not in target)]
    names = {place.relative_to(folder).parts[0] for place in places if folder in place.parents}
    return [record for name in sorted(names) for record in sorted((folder / name).rglob("record.json"))]


@cache
def read_record(path: Path) -> list[Entry]:
    """Return the entries of a record, its claims counted, and how many rows the CSV files beside it have."""
    content = json.loads(path.read_text())
    counts = {file.name: len(file.read_text().splitlines()) - 1 for file in path.parent.glob("*.csv")}
    kinds = ("origin", "decision", "decision_these_seeds")
    claims = [(row.get("origin"), kind, row.get(kind)) for row in content.get("claims") or () for kind in kinds]
    counts |= {str(kind): number for kind, number in Counter(claims).items()}
    return [*entries(content), *ranges(content.get("training") or {}), Entry({}, counts, ())]


def ranges(training: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[Entry]:
    """For each arm the least, the largest and the mean of each figure of its trainings, by replicate."""
    for arm in dict.fromkeys(arm for of in training.values() for arm in of):
        figures: dict[str, list[float]] = {}
        for key, value in ((key, value) for of in training.values() for key, value in of.get(arm, {}).items()):
            if is_number(value):
                figures.setdefault(key, []).append(value)
        ends = {f"{key} {end.__name__}": end(values) for key, values in figures.items() for end in (min, max, fmean)}
        yield Entry({"model": arm}, ends, ())


def unfound(text: str, known: Sequence[Entry]) -> list[str]:
    """Return the numbers of a text that the entries of its records do not hold, each with what stands around it."""
    names = {str(entry.labels.get(key)) for entry in known for key in NAMES} | {f"L{level}" for level in range(1, 99)}
    missing = []
    for part, around in parts(text):
        needed = names.intersection(around)
        mine = [entry for entry in known if entry.names >= needed]
        missing += [f"{' '.join(one)}: {part.strip()[:90]}" for one in groups(part) if not is_there(one, mine)]
    return missing


def parts(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Cells of tables, with the names of their rows and columns, then sentences; without what is left out."""
    text = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)
    head: list[str] = []
    prose = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            head = []
            prose += [] if line.startswith("#") else [line]
        elif not head:
            head = cells
        elif set(line) - set("|-: "):
            for cell, column in zip(cells, head, strict=False):
                yield measured(cell), (() if cell == cells[0] else (cells[0], column))
    for sentence in re.split(r"(?<=[.;])\s", "\n".join(prose)):
        yield measured(sentence), ()


def measured(text: str) -> str:
    text = re.sub(r"`[^`\n]*`|\]\([^)]*\)|https?://\S+", " ", text)
    for pattern in (PAPER, *NOT_MEASURED):
        text = re.sub(pattern, " ", text)
    return " ".join(text.split())


def groups(part: str) -> Iterator[tuple[str, ...]]:
    """The figures of a part: what they are to each other, then each."""
    for kind, pattern in GROUPS:
        for match in re.finditer(pattern, part):
            every = re.findall(NUMBER, match[0].replace("–", " "))
            yield (kind, *every)
        part = re.sub(pattern, " ", part)


def is_there(group: tuple[str, ...], known: Sequence[Entry]) -> bool:
    kind, *figures = group
    if kind == "alone":
        counted = re.fullmatch(r"\d+", figures[0]) and int(figures[0]) <= FEW
        return bool(counted) or any(entry.has(figures[0]) for entry in known)
    if kind == "together" and any(entry.says(figures) for entry in known):
        return True
    known = [entry for entry in known if entry.labels]
    if kind == "interval":
        *centre, low, high = figures
        return any(entry.has_interval(low, high) and all(map(entry.has, centre)) for entry in known)
    if kind == "together":
        return any(all(map(entry.has, figures)) for entry in known)
    if any(entry.has_interval(*figures) or entry.says(figures) for entry in known):
        return True
    return changes(*figures, known)


def changes(before: str, after: str, known: Sequence[Entry]) -> bool:
    """Whether the same figure of two entries, which differ in one label at most, is this before and after."""
    first, second = ([entry for entry in known if entry.has(figure)] for figure in (before, after))
    return any(
        is_rounded(one.values[key], before, one.labels) and is_rounded(other.values[key], after, other.labels)
        for one in first
        for other in second
        if differences(one, other) <= 1
        for key in one.values.keys() & other.values
    )


def differences(one: Entry, other: Entry) -> int:
    """In how many labels two entries differ."""
    return sum(one.labels.get(key) != other.labels.get(key) for key in one.labels.keys() | other.labels)
