"""The paper's data, draw for draw: one ``random.Random(42)`` stream, in the order of the original generator.

Its flaws are kept on purpose (x is often unused, duplicates are recognised by text only, splits share the seed);
``clean.py`` is the mode without them.
"""

import string
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from random import Random

from compositionality.errors import UserError
from compositionality.tasks.stream import check_choice, check_count
from compositionality.tasks.string.clean import StringItem
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

    def __post_init__(self) -> None:
        if self.stage not in (1, 2):
            raise UserError(f"stage={self.stage}: choose 1 or 2")
        if not 1 <= self.min_level <= self.max_level <= DEEPEST:
            levels = f"min_level={self.min_level} max_level={self.max_level}"
            raise UserError(f"{levels}: need 1 <= min_level <= max_level <= {DEEPEST}")

    def group(self, split: str) -> str:
        """Return which set of functions the problems are made of."""
        if self.stage == 1:
            return "all"
        return "trained" if split == "train" else "heldout"


class PaperSampler:
    """Draws expressions and inputs of some functions (ids) in the original's order."""

    def __init__(self, ids: Collection[int]) -> None:
        self.random = Random(SEED)
        self.plain = [ATOMS[id] for id in PLAIN_ORDER if id in ids]
        self.parametrised = [ATOMS[id] for id in PARAMETRISED_ORDER if id in ids]
        self.interlace = ATOMS[7 if 7 in ids else 20]

    def items(self, levels: Iterable[int], count: int) -> Iterator[StringItem]:
        """Yield ``count`` problems of each level; an expression that was seen before is drawn again.

        A rejected one has drawn its input too, as in the original.
        """
        texts: set[str] = set()
        for level in levels:
            end = len(texts) + count
            while len(texts) < end:
                program = self.program(level)
                text, x = program.text, self._letters(INPUT_LENGTHS)
                if text not in texts:
                    texts.add(text)
                    yield StringItem(level, 0, program, x, program.value(x))

    def program(self, depth: int) -> Program:
        """Draw a program whose leaves all lie at ``depth``."""
        if depth == 0:
            is_input = self.random.random() < P_LITERAL_LEAF
            return Program() if is_input else Program(result=self._letters(LITERAL_LENGTHS))
        if self.random.random() < P_BINARY:
            arguments = (self.program(depth - 1), self.program(depth - 1))
            return join(CONCAT if self.random.random() < P_CONCAT else self.interlace, arguments)
        if self.random.random() < P_METHOD:
            return join(self.random.choice(METHODS), [self.program(depth - 1)])
        function = self.random.choice(self.plain if self.random.random() < P_PLAIN else self.parametrised)
        inner = self.program(depth - 1)
        if function.takes_text:
            return join(function, [inner], self._letters(TEXT_LENGTHS))
        return join(function, [inner], self.random.choice(function.choices) if function.choices else None)

    def _letters(self, lengths: tuple[int, int]) -> str:
        return "".join(self.random.choices(string.ascii_lowercase, k=self.random.randint(*lengths)))


def paper_items(options: StringPaperOptions, split: str, count: int) -> Iterator[StringItem]:
    """Return the problems of one file, in the original's order. UserError for what the original cannot serve."""
    check_choice("split", split, ("train", "test"))
    levels = range(options.min_level, options.max_level + 1)
    check_count(count, len(levels))
    ids = {"all": ATOMS, "trained": PAPER_TRAIN, "heldout": PAPER_HELDOUT}[options.group(split)]
    return PaperSampler(ids).items(levels, count // len(levels))


def paper_problems(options: StringPaperOptions, split: str, count: int) -> Iterator[Problem]:
    """Return rows of one file, in the published schema."""
    for item in paper_items(options, split, count):
        code = main_solution(item.program.text)
        if options.stage == 1:
            code = sources(item.program.functions) + code
        prompt, truth = json_prompt(code, item.input), ground_truth(item.input, item.output, code)
        source = f"codeio-forward-incomplete-depth{item.level}"
        metadata = {"split": "dummy"}  # the name that the published files have
        yield Problem(source, item.level, options.group(split), prompt, truth, item.index, metadata)
