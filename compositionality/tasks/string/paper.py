"""The paper's data, draw for draw: one ``random.Random(42)`` stream, in the order of the original generator.

Its flaws are kept on purpose (x is often unused, duplicates are recognised by text only, splits share the seed);
``clean.py`` is the mode without them.
"""

import string
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from compositionality.errors import UserError
from compositionality.tasks.stream import check_choice, check_count
from compositionality.tasks.string.functions import ATOMS, PAPER_HELDOUT, PAPER_TRAIN, TEXT_LENGTHS
from compositionality.tasks.string.program import CONCAT, METHODS, Program, join
from compositionality.tasks.string.wording import ground_truth, json_prompt, main_solution, sources
from compositionality.types import Problem

SEED = 42
DEEPEST = 16
PLAIN_ORDER = (0, 2, 3, 4, 9, 10, 12, 14, 15, 16, 17, 21, 22)
PARAMETRISED_ORDER = (1, 5, 6, 8, 11, 13, 19, 18, 23, 24)
P_LITERAL_LEAF, P_BINARY, P_CONCAT, P_METHOD, P_PLAIN = 0.5, 0.2, 0.5, 0.02, 0.5
INPUT_LENGTHS, LITERAL_LENGTHS = (3, 10), (3, 6)


@dataclass(frozen=True)
class StringPaperOptions:
    """Options of the paper's mode."""

    stage: int = 1  # 1: definitions shown, all functions; 2: hidden
    min_level: int = 1  # first depth
    max_level: int = 1  # last depth


@dataclass(frozen=True)
class PaperFile:
    """One file of the paper: stage 1 (definitions shown, all functions) or 2; split; levels; rows in all levels."""

    stage: int = 1
    split: str = "train"
    min_level: int = 1
    max_level: int = 1
    count: int = 50_000

    def active(self) -> frozenset[int]:
        """Return the ids of the functions that may occur."""
        if self.stage == 1:
            return frozenset(ATOMS)
        return frozenset(PAPER_TRAIN if self.split == "train" else PAPER_HELDOUT)

    def group(self) -> str:
        """Return which set of functions the problems are made of."""
        if self.stage == 1:
            return "all"
        return "trained" if self.split == "train" else "heldout"

    def check(self) -> None:
        """Raise UserError for options that the original refuses or cannot serve."""
        if self.stage not in (1, 2):
            raise UserError(f"stage={self.stage}: choose 1 or 2")
        check_choice("split", self.split, ("train", "test"))
        if not 1 <= self.min_level <= self.max_level <= DEEPEST:
            given = f"min_level={self.min_level} max_level={self.max_level}"
            raise UserError(f"{given}: need 1 <= min_level <= max_level <= {DEEPEST}")
        check_count(self.count, self.max_level - self.min_level + 1)


PAPER_FILES: dict[str, PaperFile] = {
    "stage1_level1/train": PaperFile(1, "train", 1, 1, 50_000),
    "stage1_level1/test": PaperFile(1, "test", 1, 1, 128),
    "stage2_level1to2/train": PaperFile(2, "train", 1, 2, 50_000),
    "stage2_level1/train": PaperFile(2, "train", 1, 1, 50_000),
    "stage2_level2/train": PaperFile(2, "train", 2, 2, 50_000),
    "stage2_level1to8/test": PaperFile(2, "test", 1, 8, 2_048),
}


@dataclass(frozen=True, slots=True)
class PaperItem:
    """One drawn problem: level, program, the text of its expression, input and output."""

    level: int
    program: Program
    text: str
    input: str
    output: str


@dataclass
class PaperSampler:
    """Draws expressions and inputs in the original's order."""

    active: frozenset[int]
    random: Random = field(default_factory=lambda: Random(SEED))
    duplicates: int = 0

    def __post_init__(self) -> None:
        self.plain = [ATOMS[id] for id in PLAIN_ORDER if id in self.active]
        self.parametrised = [ATOMS[id] for id in PARAMETRISED_ORDER if id in self.active]
        self.interlace = ATOMS[7 if 7 in self.active else 20].alias

    def items(self, options: PaperFile) -> Iterator[PaperItem]:
        """Yield level after level; an expression that was seen before is drawn again."""
        seen: set[str] = set()
        levels = range(options.min_level, options.max_level + 1)
        for level in levels:
            for _ in range(options.count // len(levels)):
                yield self._unseen(level, seen)

    def _unseen(self, level: int, seen: set[str]) -> PaperItem:
        """Return the next item with a new text. A rejected one has drawn its input too, as in the original."""
        while True:
            program = self.program(level)
            text, x = program.text, self._letters(INPUT_LENGTHS)
            if text not in seen:
                seen.add(text)
                return PaperItem(level, program, text, x, program.value(x))
            self.duplicates += 1

    def program(self, depth: int) -> Program:
        """Draw a program whose leaves all lie at ``depth``."""
        if depth == 0:
            return (
                Program() if self.random.random() < P_LITERAL_LEAF else Program(result=self._letters(LITERAL_LENGTHS))
            )
        if self.random.random() < P_BINARY:
            arguments = (self.program(depth - 1), self.program(depth - 1))
            return join(CONCAT if self.random.random() < P_CONCAT else self.interlace, arguments)
        if self.random.random() < P_METHOD:
            method = self.random.choice(METHODS)
            return join(method, [self.program(depth - 1)])
        function = self.random.choice(self.plain if self.random.random() < P_PLAIN else self.parametrised)
        inner = self.program(depth - 1)
        if function.takes_text:
            return join(function.alias, [inner], self._letters(TEXT_LENGTHS))
        return join(function.alias, [inner], self.random.choice(function.choices) if function.choices else None)

    def _letters(self, lengths: tuple[int, int]) -> str:
        length = self.random.randint(*lengths)
        return "".join(self.random.choices(string.ascii_lowercase, k=length))


def paper_items(options: PaperFile) -> Iterator[PaperItem]:
    """Return the problems of one file, in the original's order."""
    options.check()
    return PaperSampler(options.active()).items(options)


def paper_problems(options: PaperFile) -> Iterator[Problem]:
    """Return rows of one file, in the published schema."""
    items, group = paper_items(options), options.group()
    return (_problem(item, group, show_definitions=options.stage == 1) for item in items)


def _problem(item: PaperItem, group: str, *, show_definitions: bool) -> Problem:
    solution = main_solution(item.text)
    code = sources(item.program.functions) + solution if show_definitions else solution
    return Problem(
        data_source=f"codeio-forward-incomplete-depth{item.level}",
        level=item.level,
        group=group,
        prompt=json_prompt(code, item.input),
        ground_truth=ground_truth(item.input, item.output, code),
        index=0,
        metadata={"split": "dummy"},  # the name that the published files have
    )
