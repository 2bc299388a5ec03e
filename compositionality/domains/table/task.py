"""The task ``table``: rows of HiTab and MultiHiertt, and tables of our own with a question about each."""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, NamedTuple

from compositionality.domains.math.units import unit_of
from compositionality.errors import UserError
from compositionality.tasks.answers import last_box, read_literal, with_plain_spaces, without_styles
from compositionality.tasks.draws import SEED_CLASSES, Draws, draw_owned
from compositionality.tasks.stream import check_levels
from compositionality.tasks.task import Mode, Task, truth_text
from compositionality.types import Problem, Reason, Verdict

LEVELS = range(1, 5)
CITIES = (
    "Oslo", "Lima", "Rome", "Cairo", "Perth", "Quito", "Turin", "Hanoi", "Delhi", "Accra", "Miami", "Kyoto", "Osaka",
    "Tunis", "Bergen", "Dakar", "Havana", "Lagos", "Naples", "Porto", "Riga", "Sofia", "Tokyo", "Vienna",
)  # fmt: skip
REGIONS = ("North", "South")
FIGURES = ("Sales", "Orders", "Visitors", "Returns", "Members", "Trips")
_ASK = "Give the answer alone in \\boxed{}; if there are several, put | between them."
MAX_LENGTH, MAX_ANSWERS = 2000, 100
TOLERANCE = Fraction(1, 1000)
_PERCENT = "%"
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)\s*(?P<currency>[$€£¥]?)\s*"
    r"(?P<digits>(?:[0-9]{1,3}(?:(?:,[0-9]{3})+|(?: [0-9]{3})+)|[0-9]+)(?P<decimals>\.[0-9]*)?|(?P<point>\.[0-9]+))"
    r"(?P<power>e[+-]?[0-9]{1,3})?(?P<unit>\s*%|\s+[^\W\d_][^\d]*)?"
)
_SCALES = {
    "dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "mn": 10**6, "billion": 10**9, "bn": 10**9,
    "trillion": 10**12,
}  # fmt: skip
_CURRENCIES = {
    "dollar": "$", "dollars": "$", "usd": "$", "euro": "€", "euros": "€", "eur": "€", "gbp": "£", "yen": "¥",
}  # fmt: skip
_AMBIGUOUS = "m"  # metres, or millions
_PLAIN = str.maketrans("−–‐‑’‘“”", "----''\"\"")  # signs of typography, and what a keyboard has
_FRACTION = re.compile(r"(-?)\\[dt]?frac\{([0-9]{1,9})\}\{([1-9][0-9]{0,8})\}")


@dataclass(frozen=True)
class TableOptions:
    """Operations by level: 1 a cell, 2 one operation on cells, 3 a selection before it, 4 two selections compared."""

    levels: tuple[int, ...] = (1, 2, 3)  # operations
    rows: int = 5  # of the table
    columns: int = 2  # of figures

    def __post_init__(self) -> None:
        check_levels(self.levels, LEVELS)
        if not 4 <= self.rows <= 12:
            raise UserError(f"rows={self.rows}: give 4 to 12")
        if not 1 <= self.columns <= len(FIGURES):
            raise UserError(f"columns={self.columns}: give 1 to {len(FIGURES)}")


class TableTask(Task):
    """A table, a question, short answers in a box; the level is how many operations they take."""

    name = "table"
    title = "Tables"
    data_sources = (r"table.*",)
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(TableOptions)}
    seed_classes = SEED_CLASSES

    def problem(self, options: TableOptions, split: str, seed: int, index: int) -> Problem:
        """Return the question at ``index``; its table decides which split and seed it belongs to."""
        level = options.levels[index % len(options.levels)]
        table, draws = draw_owned(partial(draw_table, options), split, seed, f"table/{options!r}/{index}")
        title = draws.choice(table.titles)
        question = draws.choice(_QUESTIONS[level])(table, title, draws)
        prompt = f"{table.written()}\n\n{question.text}\n{_ASK}"
        metadata = {"seed": seed, "skills": list(question.skills)}
        truth = json.dumps({"answers": question.answers})
        return Problem("table__generated", level, "table", prompt, truth, index, metadata)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """Return right if the boxed answers, ``|`` between them, are those of the truth in any order, each as often."""
        answers = self.parse_truth(ground_truth)
        box = last_box(answer_text)
        if not box:
            return Verdict(0.0, Reason.NO_ANSWER)
        if len(box) > MAX_LENGTH:
            return Verdict(0.0, Reason.MALFORMED, box[:MAX_LENGTH])
        parts = without_styles(box).replace("\\|", "|").replace("\\mid", "|").split("|")
        right = len(parts) == len(answers) and _agree(list(map(_entry, answers)), list(map(_entry, parts)))
        return Verdict(float(right), Reason.CORRECT if right else Reason.WRONG, box)

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """Return ``{"answers": […]}``, out of text with ``|`` between answers, a number, a list of these, or itself."""
        del extra_info
        value = ground_truth
        if isinstance(value, str):
            read = read_literal(value)
            value = read if isinstance(read, list | dict) else value  # any other text is the answer itself
        elif value is not None:
            value = json.loads(truth_text(value))
        if isinstance(value, dict):
            value = value.get("answers")
        answers = list[str]()
        for answer in value if isinstance(value, list) else [value]:
            if isinstance(answer, bool) or not isinstance(answer, str | int | float) or answer != answer:
                raise _damaged(ground_truth)
            answers += [part.strip() for part in str(answer).split("|")]
        text = json.dumps({"answers": answers}, ensure_ascii=False)
        self.parse_truth(text)
        return text

    def parse_truth(self, ground_truth: str) -> tuple[str, ...]:
        fields = super().parse_truth(ground_truth)
        answers = fields.get("answers") if isinstance(fields, dict) else None
        if not isinstance(answers, list) or not 1 <= len(answers) <= MAX_ANSWERS:
            raise _damaged(ground_truth)
        if not all(isinstance(answer, str) and 0 < len(answer) <= MAX_LENGTH for answer in answers):
            raise _damaged(ground_truth)
        return tuple(answers)

    def gold(self, problem: Problem) -> str:
        return f"\\boxed{{{'|'.join(self.parse_truth(problem.ground_truth))}}}"


def _damaged(ground_truth: Any) -> UserError:
    return UserError(
        f"ground_truth {str(ground_truth)[:60]!r} holds no short answers: give text with | between them, or a list"
    )


# ---- one answer against another; what is accepted is in README.md beside this


class Amount(NamedTuple):
    """A number as it is written: ``whole`` also as 5.0 or 5e3; ``unit`` after it, ``currency`` before it."""

    value: Fraction
    whole: bool
    currency: str
    unit: str


class TableEntry(NamedTuple):
    """One answer in normal form, and the number that it is, if it is one."""

    text: str
    amount: Amount | None


def _agree(truths: Sequence[TableEntry], answers: Sequence[TableEntry]) -> bool:
    """Return whether every truth has an answer of its own that is the same: a perfect matching, by augmenting paths.

    No order of the two lists finds it: 5 and ``5 kg`` are one number, and a unit may be left out of one of them.
    """
    fitting = [[place for place, answer in enumerate(answers) if _is_same(truth, answer)] for truth in truths]
    taken: dict[int, int] = {}  # by answer: its truth

    def find(truth: int, seen: set[int]) -> bool:
        for place in fitting[truth]:
            if place not in seen:
                seen.add(place)
                if place not in taken or find(taken[place], seen):
                    taken[place] = truth
                    return True
        return False

    return all(find(truth, set()) for truth in range(len(truths)))


def _entry(text: str) -> TableEntry:
    """Read one answer. Case, spaces, quotes, a last full stop and signs of LaTeX do not count."""
    text = unicodedata.normalize("NFC", _lower(without_styles(text))).translate(_PLAIN).replace("{,}", ",")
    text = re.sub(r"\\([%$&_#])", r"\1", text)
    text = with_plain_spaces(text).strip("'\"`")
    text = text.removesuffix(".").strip()
    if text.startswith("$") and text.endswith("$") and len(text) > 1:
        text = text[1:-1].strip()
    return TableEntry(text, _amount(text))


def _lower(text: str) -> str:
    """Return a text in lower case, but for letters that only look like one of ASCII, as the Kelvin sign; ß is ss."""
    folded = ((char, char.casefold()) for char in text)
    return "".join(char if len(lower) == 1 and lower.isascii() > char.isascii() else lower for char, lower in folded)


def _amount(text: str) -> Amount | None:
    """Return the number that a text is, with or without thousands separators, currency, unit."""
    if fraction := _FRACTION.fullmatch(text):
        return Amount(Fraction(int(fraction[1] + fraction[2]), int(fraction[3])), False, "", "")
    number = _NUMBER.fullmatch(text)
    if not number:
        return None
    value = Fraction(number["sign"] + re.sub("[, ]", "", number["digits"]) + (number["power"] or ""))
    whole = value.denominator == 1
    unit = (number["unit"] or "").strip()
    scale, _, rest = unit.partition(" ")
    if scale in _SCALES:
        value, unit = value * _SCALES[scale], rest
    currency = number["currency"]
    if not currency and unit in _CURRENCIES:
        currency, unit = _CURRENCIES[unit], ""
    return Amount(value, whole, currency, "%" if unit == "percent" else unit)


def _is_same(truth: TableEntry, answer: TableEntry) -> bool:
    """Accept equal text; or numbers within TOLERANCE of the truth, whole numbers exactly, in the same unit."""
    if truth.text == answer.text:
        return bool(truth.text)
    right, amount = truth.amount, answer.amount
    if right is None or amount is None or not _is_same_unit(right, amount):
        return False
    if right.whole and amount.whole:
        return right.value == amount.value
    if right.whole and abs(amount.value - right.value) > Fraction(1, 2):
        return False
    return abs(amount.value - right.value) <= TOLERANCE * abs(right.value)


def _is_same_unit(truth: Amount, answer: Amount) -> bool:
    """Accept a currency or % left out or added to a bare number, and the truth's unit left out if it is a known one."""
    if truth.currency and answer.currency and truth.currency != answer.currency:
        return False
    if truth.unit == answer.unit:
        return True
    if _PERCENT in (truth.unit, answer.unit):
        return not truth.currency and not answer.currency and "" in (truth.unit, answer.unit)
    if answer.unit or answer.currency or truth.unit == _AMBIGUOUS:
        return False
    return unit_of(truth.unit) is not None


# ---- tables of our own


class CityTable(NamedTuple):
    """``figures[row][column]`` by city and column title; the figures of a column all differ."""

    cities: tuple[str, ...]
    regions: tuple[str, ...]
    titles: tuple[str, ...]
    figures: tuple[tuple[int, ...], ...]

    def column(self, title: str, region: str | None = None) -> dict[str, int]:
        """Return the figures of a column by city, those of one region alone if it is given."""
        at = self.titles.index(title)
        rows = zip(self.cities, self.regions, self.figures, strict=True)
        return {city: figures[at] for city, within, figures in rows if region in (None, within)}

    def written(self) -> str:
        rows = [("City", "Region", *self.titles), ("---",) * (2 + len(self.titles))]
        for city, region, figures in zip(self.cities, self.regions, self.figures, strict=True):
            rows.append((city, region, *map(str, figures)))
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def draw_table(options: TableOptions, draws: Draws) -> CityTable:
    """Draw a table; both regions have two cities at least."""
    cities = tuple(draws.shuffled(CITIES)[: options.rows])
    more_regions = [draws.choice(REGIONS) for _ in range(options.rows - 4)]
    titles = tuple(draws.shuffled(FIGURES)[: options.columns])
    columns = [draws.shuffled(range(10, 100))[: options.rows] for _ in titles]
    regions = tuple(draws.shuffled([*REGIONS, *REGIONS, *more_regions]))
    return CityTable(cities, regions, titles, tuple(zip(*columns, strict=True)))


# ---- questions, by level


class TableQuestion(NamedTuple):
    """A question in words, its answers, and the operations that it takes."""

    text: str
    answers: tuple[str, ...]
    skills: tuple[str, ...]


def _cell(table: CityTable, title: str, draws: Draws) -> TableQuestion:
    city = draws.choice(table.cities)
    return TableQuestion(f"What is the figure for {title} of {city}?", (str(table.column(title)[city]),), ("lookup",))


def _total(table: CityTable, title: str, draws: Draws, *, select: bool = False) -> TableQuestion:
    region = draws.choice(REGIONS) if select else None
    text = f"What is the total of {title}{f' of the region {region}' if region else ''}?"
    return TableQuestion(text, (str(sum(table.column(title, region).values())),), (*["select"] * select, "total"))


def _extreme(table: CityTable, title: str, draws: Draws, *, select: bool = False) -> TableQuestion:
    region = draws.choice(REGIONS) if select else None
    word, choose = draws.choice((("largest", max), ("smallest", min)))
    figures = table.column(title, region)
    text = f"Which city {f'of the region {region} ' if region else ''}has the {word} figure for {title}?"
    return TableQuestion(text, (choose(figures, key=figures.__getitem__),), (*["select"] * select, "extreme"))


def _difference(table: CityTable, title: str, draws: Draws) -> TableQuestion:
    figures = table.column(title)
    larger, smaller = sorted(draws.shuffled(table.cities)[:2], key=lambda city: -figures[city])
    text = f"By how much is the figure for {title} of {larger} above that of {smaller}?"
    return TableQuestion(text, (str(figures[larger] - figures[smaller]),), ("difference",))


def _cities_above(table: CityTable, title: str, _draws: Draws) -> TableQuestion:
    figures = table.column(title)
    third = sorted(figures.values())[-3]
    cities = tuple(city for city in table.cities if figures[city] > third)
    return TableQuestion(f"Which cities have a figure for {title} above {third}?", cities, ("select", "compare"))


def _difference_of_regions(table: CityTable, title: str, _draws: Draws) -> TableQuestion:
    north, south = (sum(table.column(title, region).values()) for region in REGIONS)
    text = f"What is the difference between the totals of {title} of the regions {REGIONS[0]} and {REGIONS[1]}?"
    answers = (str(abs(north - south)),)
    return TableQuestion(f"{text} Give it without a sign.", answers, ("select", "total", "difference"))


def _gap_in_region(table: CityTable, title: str, draws: Draws) -> TableQuestion:
    region = draws.choice(REGIONS)
    figures = table.column(title, region).values()
    text = f"In the region {region}, by how much is the largest figure for {title} above the smallest?"
    return TableQuestion(text, (str(max(figures) - min(figures)),), ("select", "extreme", "difference"))


_QUESTIONS: Mapping[int, tuple[Callable[[CityTable, str, Draws], TableQuestion], ...]] = {
    1: (_cell,),
    2: (_total, _extreme, _difference),
    3: (partial(_total, select=True), partial(_extreme, select=True), _cities_above),
    4: (_difference_of_regions, _gap_in_region),
}
TASK = TableTask()
