"""The clean mode: problems of real depth, by random access, with splits that cannot overlap.

A problem is a pure function of (options, split, seed, index). Candidates are drawn until one is sound: no shorter
subsequence of its functions gives the answer, lengths stay in bounds, and the answer depends on the input.

A checksum of the input, read off the string itself, assigns each problem to one (split, seed modulo SEED_CLASSES), so
different splits and neighbouring seeds share no input, hence no problem, and any row can be checked.
"""

import string
from dataclasses import dataclass
from hashlib import blake2b
from zlib import crc32

from compositionality.errors import UserError
from compositionality.tasks.draws import SPLITS, Draws, check_split
from compositionality.tasks.stream import changed_options, check_choice, check_levels
from compositionality.tasks.string.functions import PRESETS, TEXT_LENGTHS, Function, select_functions, side
from compositionality.tasks.string.program import (
    CONCAT,
    LONGEST,
    Call,
    Program,
    Walk,
    another_order,
    chain_of,
    is_reducible,
    join,
)
from compositionality.tasks.string.wording import compact_prompt, ground_truth, json_prompt, main_solution, sources
from compositionality.types import Problem

LETTERS_AND_SOME_DIGITS = string.ascii_lowercase * 2 + "123"
WORDING = ("style", "show_definitions", "functions", "ids", "drop", "function_split", "always_trained", "group")
LEVELS = range(1, 13)  # a chain of n functions has 2^n shorter ones, and all are tried
SEED_CLASSES = 8
CHECKSUMS = len(SPLITS) * SEED_CLASSES
MAX_CHAINS_PER_PROBLEM = 5_000  # of some divisions of the functions one chain of eight in 130 is sound
OPERATIONS_PER_STEP = 24
INPUTS_PER_STEP = 32  # for the first function of a chain; half as many for each one more
LITERAL_LENGTHS = (2, 4)  # in trees
ORDERED = "-ordered"  # after the name of the functions: the group of order-sensitive problems
CONTRASTS = ("b", "Zoa2", "ktbdgqmwe7")  # inputs that a sound problem must not map all to its own answer
_RESERVED = set("=:,;'\"\\{}<>|-_«»") | set(string.whitespace)


@dataclass(frozen=True)
class StringOptions:
    """Options of the clean mode.

    No problem keeps its answer on its input where functions are left out, their order kept. With shape=tree removing
    a function replaces it by one of its arguments; of a sub-tree's shorter values the first 1,024 are tried.
    order_sensitive: chains of 2 to 6 functions are tried in every order, longer ones with any two functions exchanged.
    """

    functions: str = "trained"  # preset: trained, heldout or all
    ids: tuple[int, ...] = ()  # these functions instead
    drop: tuple[int, ...] = ()  # functions to leave out
    function_split: int = 0  # which functions are held out: 0 the paper's, n a random division drawn from n
    always_trained: tuple[int, ...] = ()  # functions that no division holds out
    order_sensitive: bool = False  # only problems that no other order of their functions solves
    levels: tuple[int, ...] = (1,)  # depths; candidates take turns
    shape: str = "chain"  # chain, or tree (style=json only)
    alphabet: str = LETTERS_AND_SOME_DIGITS  # of inputs and literals; what is written twice is drawn twice as often
    input_length: tuple[int, int] = (3, 10)  # shortest and longest input
    max_length: int = 100  # longest string at any step
    frozen_parameters: bool = False  # every function keeps one parameter
    style: str = "json"  # of the prompt: json or compact
    show_definitions: bool = False  # in the prompt
    group: str = ""  # name of this set of problems in tables; empty: that of its functions

    def __post_init__(self) -> None:
        check_choice("shape", self.shape, ("chain", "tree"))
        check_choice("style", self.style, ("json", "compact"))
        if self.shape == "tree" and self.style == "compact":
            raise UserError("style=compact is for chains; use style=json with shape=tree")
        if self.order_sensitive and (self.shape == "tree" or 1 in self.levels):
            raise UserError(
                f"order_sensitive=true shape={self.shape} levels={list(self.levels)}: only chains of two or more "
                "functions have an order; use shape=chain and levels from 2 on"
            )
        if self.group and not self.group.isidentifier():
            raise UserError(f"group={self.group}: give a word")
        if self.function_split < 0:
            raise UserError(f"function_split={self.function_split}: give 0 (the paper's split) or a number from 1 on")
        check_levels(self.levels, LEVELS)
        for name, ids in (("ids", self.ids), ("drop", self.drop), ("always_trained", self.always_trained)):
            if len(set(ids)) < len(ids):
                raise UserError(f"{name}={list(ids)}: give every id once")
        if len(self.input_length) != 2:
            raise UserError(f"input_length={list(self.input_length)}: give shortest and longest, as [3,10]")
        low, high = self.input_length
        if not 3 <= low <= high <= self.max_length <= LONGEST:
            raise UserError(
                f"input_length=[{low},{high}] max_length={self.max_length}: "
                f"need 3 <= shortest <= longest <= max_length <= {LONGEST}"
            )
        reserved = sorted(set(self.alphabet) & _RESERVED)
        if reserved or not self.alphabet.isascii():
            raise UserError(f"alphabet={self.alphabet!r}: use ASCII letters and digits; {reserved} are reserved")


@dataclass(frozen=True, slots=True)
class StringItem:
    """One problem before it is put into words."""

    level: int
    index: int
    program: Program
    input: str
    output: str


class StringGenerator:
    """Problems of the clean mode. Pure and picklable."""

    def __init__(self, options: StringOptions) -> None:
        self.options = options
        self.functions = select_functions(
            options.functions, options.ids, options.drop, options.function_split, options.always_trained
        )
        ids = {function.id for function in self.functions}
        division = options.function_split, options.drop, options.always_trained
        self.set_name = next((name for name in PRESETS if ids <= side(name, *division)), "mixed")
        self.group = options.group or self.set_name + ORDERED * options.order_sensitive
        self._pairs = last_pairs(options.alphabet)
        content = changed_options(options, WORDING), [function.id for function in self.functions]
        self._salt = blake2b(repr(content).encode(), digest_size=16).digest()

    def problem(self, split: str, seed: int, index: int) -> Problem:
        return self.render(self.item(split, seed, index), seed)

    def item(self, split: str, seed: int, index: int) -> StringItem:
        """Return the problem at ``index``, not yet put into words; the levels take turns."""
        level = self.options.levels[index % len(self.options.levels)]
        owned = owned_checksum(split, seed)
        draws = Draws(self._salt + f"{split}/{seed}/{index}".encode())
        attempt = self._chain_item if self.options.shape == "chain" else self._tree_item
        for _ in range(MAX_CHAINS_PER_PROBLEM):
            item = attempt(draws, level, index, owned)
            if item is not None:
                return item
        raise UserError(
            f"no sound problem of level {level} found for {split}/{seed}/{index}; "
            f"raise max_length (now {self.options.max_length}) or allow more functions"
        )

    def _chain_item(self, draws: Draws, level: int, index: int, owned: int) -> StringItem | None:
        walk: Walk | None = None
        for _ in range(level):
            walk = self._extended(draws, walk, owned)
            if walk is None:
                return None
        assert walk is not None
        program = chain_of(walk.steps)
        if all(program.value(other) == walk.value for other in CONTRASTS):
            return None
        return StringItem(level, index, program, walk.input, walk.value)

    def _extended(self, draws: Draws, walk: Walk | None, owned: int) -> Walk | None:
        """Return the walk with one step more: on its own input or, where that is not sound, on another one."""
        limit, steps = self.options.max_length, walk.steps if walk else ()
        more: tuple[Call, ...]
        for _ in range(OPERATIONS_PER_STEP):
            call = self._call(draws)
            for attempt in range(1 + (INPUTS_PER_STEP >> len(steps))):
                longer, more = walk, (call,)
                if attempt:
                    text = self._input(draws, owned)
                    longer, more = Walk(text, text), (*steps, call)
                for step in more:
                    longer = longer and longer.step(step, limit)
                ordered = self.options.order_sensitive
                if longer and not (ordered and another_order(longer.steps, longer.input, longer.value)):
                    return longer
        return None

    def _input(self, draws: Draws, owned: int) -> str:
        """Draw a string with the checksum ``owned``: all but the last two characters are free."""
        free = draws.text(self.options.alphabet, draws.between(*self.options.input_length) - 2)
        return free + draws.choice(self._pairs[(owned - crc32(free.encode())) % CHECKSUMS])

    def _tree_item(self, draws: Draws, level: int, index: int, owned: int) -> StringItem | None:
        program = self._tree(draws, level)
        if not program.functions:
            return None
        for _ in range(INPUTS_PER_STEP):
            text = self._input(draws, owned)
            output = sound_value(program, text, self.options.max_length)
            if output is None or all(program.value(other) == output for other in CONTRASTS):
                continue
            if not is_reducible(program, text):
                return StringItem(level, index, program, text, output)
        return None

    def _tree(self, draws: Draws, depth: int) -> Program:
        """Draw a tree of exactly ``depth``; operators are uniform over the functions and concatenation.

        Every operator has x below it.
        """
        if depth == 0:
            return Program()
        number = draws.below(len(self.functions) + 1)
        function = self.functions[number] if number < len(self.functions) else None
        main = self._tree(draws, depth - 1)
        if function is not None and not function.binary:
            return join(function, [main], self._parameter(draws, function))
        other = self._second_argument(draws, depth - 1, literal=function is not None)
        return join(function or CONCAT, (main, other) if draws.below(2) else (other, main))

    def _second_argument(self, draws: Draws, depth: int, *, literal: bool) -> Program:
        """Draw x, or a tree that is at most ``depth`` deep, or (for interlacing only) a literal.

        Concatenation with a literal would be ``func_5`` or ``func_6`` (held out) under another name.
        """
        kind = draws.below(3 if literal else 2)
        if kind == 2:
            return Program(result=draws.text(self.options.alphabet, draws.between(*LITERAL_LENGTHS)))
        return self._tree(draws, 0 if kind == 0 else draws.below(depth + 1))

    def _call(self, draws: Draws) -> Call:
        function = draws.choice(self.functions)
        return Call(function, parameter=self._parameter(draws, function), frozen=self.options.frozen_parameters)

    def _parameter(self, draws: Draws, function: Function) -> int | str | None:
        if self.options.frozen_parameters or not function.parametrised:
            return function.frozen
        if function.takes_text:
            return draws.text(self.options.alphabet, draws.between(*TEXT_LENGTHS))
        return draws.choice(function.choices)

    def render(self, item: StringItem, seed: int) -> Problem:
        """Put an item into words: its row."""
        options = self.options
        code, names = main_solution(item.program.text), item.program.functions
        if options.style == "compact":
            prompt = compact_prompt(item.program, item.input, show_definitions=options.show_definitions)
        else:
            code = sources(names) + code if options.show_definitions else code
            prompt = json_prompt(code, item.input)
        truth = ground_truth(item.input, item.output, code, options.style)
        source = f"string-{self.set_name}-level{item.level}"
        metadata = {"seed": seed, "functions": names}
        return Problem(source, item.level, self.group, prompt, truth, item.index, metadata)


def sound_value(program: Program, x: str, max_length: int) -> str | None:
    """Return the value, or None if an operator changes nothing, leaves the bounds, or weaves a string with itself.

    The last would be ``func_14`` (held out) under another name.
    """
    value = x
    for call, strings, value, _ in program.apply(x):
        if not 0 < len(value) <= max_length or value in strings:
            return None
        if len(strings) == 2 and call.function is not CONCAT:
            text, other = strings
            if text.startswith(other) or other.startswith(text):
                return None
    return value


# ---- streams


def checksum(text: str) -> int:
    """Return a number from 0 to 31; for a given start of the text, its last two characters set it."""
    return (crc32(text[:-2].encode()) + 5 * ord(text[-2]) + ord(text[-1])) % CHECKSUMS


def owned_checksum(split: str, seed: int) -> int:
    """Return the checksum of all inputs of the stream (split, seed)."""
    check_split(split, SPLITS)
    return SPLITS.index(split) * SEED_CLASSES + seed % SEED_CLASSES


def owner(text: str) -> tuple[str, int]:
    """Return the split and the seed modulo SEED_CLASSES that may use ``text`` as an input."""
    split, seed = divmod(checksum(text), SEED_CLASSES)
    return SPLITS[split], seed


def last_pairs(alphabet: str) -> tuple[tuple[str, ...], ...]:
    """Return for each remainder the pairs of characters that add it to the checksum."""
    pairs: list[list[str]] = [[] for _ in range(CHECKSUMS)]
    for first in alphabet:
        for second in alphabet:
            pairs[(5 * ord(first) + ord(second)) % CHECKSUMS].append(first + second)
    if not all(pairs):
        raise UserError(f"alphabet={alphabet!r} is too small to keep the splits apart; use at least 8 letters in a row")
    return tuple(tuple(group) for group in pairs)
