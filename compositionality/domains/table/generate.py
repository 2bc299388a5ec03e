"""Tables of our own and a question about each: the level is how many operations the answer takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from compositionality.errors import UserError

if TYPE_CHECKING:
    from compositionality.tasks.draws import Draws

LEVELS = range(1, 5)
CITIES = (
    "Oslo", "Lima", "Rome", "Cairo", "Perth", "Quito", "Turin", "Hanoi", "Delhi", "Accra", "Miami", "Kyoto", "Osaka",
    "Tunis", "Bergen", "Dakar", "Havana", "Lagos", "Naples", "Porto", "Riga", "Sofia", "Tokyo", "Vienna",
)  # fmt: skip
REGIONS = ("North", "South")
FIGURES = ("Sales", "Orders", "Visitors", "Returns", "Members", "Trips")


@dataclass(frozen=True)
class TableOptions:
    """Operations by level: 1 a cell, 2 one operation on cells, 3 a selection before it, 4 two selections compared."""

    levels: tuple[int, ...] = (1, 2, 3)  # operations
    rows: int = 5  # of the table
    columns: int = 2  # of figures

    def __post_init__(self) -> None:
        if not self.levels or len(set(self.levels)) < len(self.levels) or not set(self.levels) <= set(LEVELS):
            raise UserError(f"levels={list(self.levels)}: give different whole numbers from 1 to {LEVELS[-1]}")
        if not 4 <= self.rows <= 12:
            raise UserError(f"rows={self.rows}: give 4 to 12")
        if not 1 <= self.columns <= len(FIGURES):
            raise UserError(f"columns={self.columns}: give 1 to {len(FIGURES)}")


class CityTable(NamedTuple):
    """``figures[row][column]`` by city and column title; the figures of a column all differ."""

    cities: tuple[str, ...]
    regions: tuple[str, ...]
    titles: tuple[str, ...]
    figures: tuple[tuple[int, ...], ...]

    def column(self, title: str) -> dict[str, int]:
        """Figures of a column by city."""
        at = self.titles.index(title)
        return {city: row[at] for city, row in zip(self.cities, self.figures, strict=True)}

    def selected(self, title: str, region: str) -> dict[str, int]:
        """As ``column``, of one region."""
        within = dict(zip(self.cities, self.regions, strict=True))
        return {city: figure for city, figure in self.column(title).items() if within[city] == region}

    def written(self) -> str:
        """The table in Markdown."""
        rows = [("City", "Region", *self.titles), ("---",) * (2 + len(self.titles))]
        for city, region, figures in zip(self.cities, self.regions, self.figures, strict=True):
            rows.append((city, region, *map(str, figures)))
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


class TableQuestion(NamedTuple):
    """A question in words, its answers, and the operations that it takes."""

    text: str
    answers: tuple[str, ...]
    skills: tuple[str, ...]


def draw_table(options: TableOptions, draws: "Draws") -> CityTable:
    """Both regions have two cities at least."""
    cities = tuple(draws.shuffled(CITIES)[: options.rows])
    free = [draws.choice(REGIONS) for _ in range(options.rows - 4)]
    titles = tuple(draws.shuffled(FIGURES)[: options.columns])
    columns = [draws.shuffled(range(10, 100))[: options.rows] for _ in titles]
    return CityTable(
        cities, tuple(draws.shuffled([*REGIONS, *REGIONS, *free])), titles, tuple(zip(*columns, strict=True))
    )


def ask(table: CityTable, level: int, draws: "Draws") -> TableQuestion:
    """A question of a level."""
    title = draws.choice(table.titles)
    return draws.choice(_QUESTIONS[level])(table, title, draws)


def _cell(table: CityTable, title: str, draws: "Draws") -> TableQuestion:
    city = draws.choice(table.cities)
    return TableQuestion(f"What is the figure for {title} of {city}?", (str(table.column(title)[city]),), ("lookup",))


def _total(table: CityTable, title: str, draws: "Draws") -> TableQuestion:
    del draws
    return TableQuestion(f"What is the total of {title}?", (str(sum(table.column(title).values())),), ("total",))


def _extreme(table: CityTable, title: str, draws: "Draws") -> TableQuestion:
    word, city = _draw_extreme(table.column(title), draws)
    return TableQuestion(f"Which city has the {word} figure for {title}?", (city,), ("extreme",))


def _difference(table: CityTable, title: str, draws: "Draws") -> TableQuestion:
    first, second = draws.shuffled(table.cities)[:2]
    figures = table.column(title)
    if figures[first] < figures[second]:
        first, second = second, first
    text = f"By how much is the figure for {title} of {first} above that of {second}?"
    return TableQuestion(text, (str(figures[first] - figures[second]),), ("difference",))


def _total_of_region(table: CityTable, title: str, draws: "Draws") -> TableQuestion:
    region = draws.choice(REGIONS)
    total = sum(table.selected(title, region).values())
    return TableQuestion(f"What is the total of {title} of the region {region}?", (str(total),), ("select", "total"))


def _extreme_of_region(table: CityTable, title: str, draws: "Draws") -> TableQuestion:
    region = draws.choice(REGIONS)
    word, city = _draw_extreme(table.selected(title, region), draws)
    text = f"Which city of the region {region} has the {word} figure for {title}?"
    return TableQuestion(text, (city,), ("select", "extreme"))


def _cities_above(table: CityTable, title: str, draws: "Draws") -> TableQuestion:
    del draws
    figures = table.column(title)
    third = sorted(figures.values())[-3]
    cities = tuple(city for city in table.cities if figures[city] > third)
    return TableQuestion(f"Which cities have a figure for {title} above {third}?", cities, ("select", "compare"))


def _difference_of_regions(table: CityTable, title: str, draws: "Draws") -> TableQuestion:
    del draws
    north, south = (sum(table.selected(title, region).values()) for region in REGIONS)
    text = f"What is the difference between the totals of {title} of the regions {REGIONS[0]} and {REGIONS[1]}?"
    return TableQuestion(
        f"{text} Give it without a sign.", (str(abs(north - south)),), ("select", "total", "difference")
    )


def _gap_in_region(table: CityTable, title: str, draws: "Draws") -> TableQuestion:
    region = draws.choice(REGIONS)
    figures = table.selected(title, region).values()
    text = f"In the region {region}, by how much is the largest figure for {title} above the smallest?"
    return TableQuestion(text, (str(max(figures) - min(figures)),), ("select", "extreme", "difference"))


_QUESTIONS: Mapping[int, tuple[Callable[[CityTable, str, "Draws"], TableQuestion], ...]] = {
    1: (_cell,),
    2: (_total, _extreme, _difference),
    3: (_total_of_region, _extreme_of_region, _cities_above),
    4: (_difference_of_regions, _gap_in_region),
}


def _draw_extreme(figures: dict[str, int], draws: "Draws") -> tuple[str, str]:
    word, choose = draws.choice((("largest", max), ("smallest", min)))
    return word, choose(figures, key=lambda city: figures[city])
