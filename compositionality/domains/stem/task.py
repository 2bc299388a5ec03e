"""The task ``stem``: rows of SuperGPQA, GPQA and the web, and short questions of our own with a computed answer."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

from compositionality.domains.stem.judge import LETTERS, ChoiceTruth, FreeTruth, judge_choice, judge_free
from compositionality.errors import UserError
from compositionality.tasks.answers import read_json
from compositionality.tasks.draws import SEED_CLASSES, Draws, draw_owned
from compositionality.tasks.stream import check_choice, check_levels
from compositionality.tasks.task import Mode, Task, truth_text
from compositionality.types import Problem, Verdict

SOURCES = {"choice": "stem__supergpqa_generated", "free": "stem_web_generated"}
KINDS = tuple(SOURCES)
OPTIONS = "ABCD"
LEAST = 2  # quotient of the first two values, or first value; how many there are from here on is a multiple of four
DEPTH = 3
MAX_REFERENCE = 2000
_CHOICE = re.compile(r"\(?([A-Ja-j])[).]?")


@dataclass(frozen=True)
class StemOptions:
    """Multiple choice, or a number in a box; formulas by level."""

    kind: str = "choice"  # of answer: choice or free
    levels: tuple[int, ...] = (1, 2, 3)  # formulas

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_levels(self.levels, range(1, DEPTH + 1))


class StemTask(Task):
    """Multiple choice and free answers; the level is how many formulas an answer takes."""

    name = "stem"
    title = "Science questions"
    data_sources = (r"stem__supergpqa.*", r"stem__gpqa.*", r"stem_web.*", r"stem__web.*")
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(StemOptions)}
    kinds = KINDS
    seed_classes = SEED_CLASSES
    trusted_judge = False  # it may wait for an endpoint

    def problem(self, options: StemOptions, split: str, seed: int, index: int) -> Problem:
        """Return the question at ``index``; its values decide which split and seed it belongs to."""
        level = options.levels[index % len(options.levels)]
        item, draws = draw_owned(partial(draw_item, level), split, seed, f"stem/{options!r}/{index}")
        text, unit, skills = ask_item(item)
        right = solve_item(item)[-1]
        if options.kind == "choice":
            letter, choices = draw_choices(item, draws)
            listed = "\n".join(f"{at}) {value} {unit}".rstrip() for at, value in zip(OPTIONS, choices, strict=True))
            prompt = f"{text}\n{listed}\nGive the letter of the right option alone in \\boxed{{}}."
            truth: dict[str, Any] = {"letter": letter, "options": len(choices)}
        else:
            prompt = f"{text}\nGive the number alone in \\boxed{{}}."
            truth = {"question": text, "answer": str(right), "unit": unit, "exact": True}
        metadata = {"seed": seed, "skills": skills}
        return Problem(SOURCES[options.kind], level, options.kind, prompt, json.dumps(truth), index, metadata)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        truth = self.parse_truth(ground_truth)
        return judge_choice(answer_text, truth) if isinstance(truth, ChoiceTruth) else judge_free(answer_text, truth)

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """Return the truth as JSON text: a letter is multiple choice, unless ``extra_info`` has an ``answer_type``.

        Any other text is a free answer, to ``extra_info.question``. Raise UserError where that is missing.
        """
        value = ground_truth.tolist() if hasattr(ground_truth, "tolist") else ground_truth
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
            value = str(value)
        text = truth_text(value).strip()
        fields = read_json(text)
        if isinstance(fields, dict) and ("letter" in fields or {"question", "answer"} <= set(fields)):
            return text
        if not isinstance(value, str):
            raise _damaged(text)
        letter = _CHOICE.fullmatch(text)
        if letter and not extra_info.get("answer_type"):
            right = letter[1].upper()
            return json.dumps({"letter": right, "options": _number_of_options(extra_info, right)})
        question = extra_info.get("question")
        if not isinstance(question, str) or not question.strip():
            raise UserError(f"ground_truth {text[:60]!r} is a free answer: put its question into extra_info.question")
        truth = json.dumps({"question": question, "answer": text}, ensure_ascii=False)
        self.parse_truth(truth)
        return truth

    def parse_truth(self, ground_truth: str) -> ChoiceTruth | FreeTruth:
        fields = super().parse_truth(ground_truth)
        if not isinstance(fields, dict):
            raise _damaged(ground_truth)
        letter, options = fields.get("letter"), fields.get("options", len(LETTERS))
        if type(options) is int and 2 <= options <= len(LETTERS) and letter in tuple(LETTERS[:options]):
            return ChoiceTruth(letter, options)
        texts: list[Any] = [fields.get("question"), fields.get("answer"), fields.get("unit") or ""]
        question, answer, unit = texts
        is_free = letter is None and all(isinstance(text, str) for text in texts) and question and answer
        if not is_free or len(answer) > MAX_REFERENCE:
            raise _damaged(ground_truth)
        return FreeTruth(question, answer, unit, fields.get("exact") is True)

    def gold(self, problem: Problem) -> str:
        truth = self.parse_truth(problem.ground_truth)
        return f"\\boxed{{{truth.letter if isinstance(truth, ChoiceTruth) else truth.answer}}}"

    def asks_its_truth(self, problem: Problem) -> bool | None:
        """Return whether the prompt holds the question of a free answer of ours; None for other rows."""
        truth = self.parse_truth(problem.ground_truth)
        return truth.question in problem.prompt if isinstance(truth, FreeTruth) and truth.exact else None


def _number_of_options(extra_info: Mapping[str, Any], letter: str) -> int:
    """Return the number of options that the row states, else the number of letters."""
    for key in ("options", "choices"):
        shown: Any = extra_info.get(key)
        if (isinstance(shown, Sequence | Mapping) and not isinstance(shown, str)) or hasattr(shown, "tolist"):
            count = len(shown)
            if 2 <= count <= len(LETTERS) and letter in LETTERS[:count]:
                return count
    return len(LETTERS)


def _damaged(ground_truth: str) -> UserError:
    return UserError(
        f"ground_truth {ground_truth[:60]!r}: give a letter from A to {LETTERS[-1]}, or text with extra_info.question"
    )


# ---- questions of our own: a chain of formulas, of which a question of level k asks for k in a row


Quantity = tuple[str, str]
"""Its name and its unit."""


class FormulaChain(NamedTuple):
    """``results[0]`` is ``divided[0]`` / ``divided[1]``; each later result is the one before it times its factor.

    ``doubling``: the first result is a number of doublings, and results[1] is factors[0] times 2 to its power.
    """

    setting: str
    divided: tuple[Quantity, Quantity]
    results: tuple[Quantity, Quantity, Quantity]
    factors: tuple[Quantity, Quantity]
    doubling: bool = False


CHAINS = (
    FormulaChain(
        "A cart on a straight track speeds up at a constant rate, without friction.",
        (("gain in speed", "m/s"), ("time for that gain", "s")),
        (("acceleration", "m/s^2"), ("net force", "N"), ("work done by the net force", "J")),
        (("mass", "kg"), ("distance along the force", "m")),
    ),
    FormulaChain(
        "A resistor and a lamp are connected in series.",
        (("voltage across the resistor", "V"), ("resistance", "ohm")),
        (("current", "A"), ("charge that flows", "C"), ("energy that the lamp takes up", "J")),
        (("time", "s"), ("voltage across the lamp", "V")),
    ),
    FormulaChain(
        "Waves run over a lake.",
        (("number of waves that pass a post", ""), ("time in which they pass", "s")),
        (("frequency", "Hz"), ("wave speed", "m/s"), ("distance that a crest travels", "m")),
        (("wavelength", "m"), ("travel time", "s")),
    ),
    FormulaChain(
        "A pure substance reacts completely, and its only product is a gas.",
        (("mass of the substance", "g"), ("molar mass of the substance", "g/mol")),
        (("amount of the substance", "mol"), ("amount of gas", "mol"), ("volume of gas", "L")),
        (("moles of gas for each mole of the substance", ""), ("molar volume of the gas", "L/mol")),
    ),
    FormulaChain(
        "Bacteria divide at a constant rate, and none die.",
        (("time of growth", "min"), ("time for one doubling", "min")),
        (
            ("number of doublings", ""),
            ("number of cells at the end", ""),
            ("sugar that the cells at the end use in an hour", "pg"),
        ),
        (("number of cells at the start", ""), ("sugar that one cell uses in an hour", "pg")),
        doubling=True,
    ),
)


class StemItem(NamedTuple):
    """A question before it is put into words: the chain by number, its formulas from ``start`` on, and the values.

    ``values`` are those of the given quantities in the order in which they are used.
    """

    chain: int
    start: int
    formulas: int
    values: tuple[int, ...]


def draw_item(level: int, draws: Draws) -> StemItem:
    """Draw values that make every result a whole number."""
    number, start = draws.below(len(CHAINS)), draws.below(DEPTH - level + 1)
    doubling = CHAINS[number].doubling
    if start == 0:
        divisor = draws.between(2, 30)
        values = [draws.between(LEAST, 9 if doubling else 29) * divisor, divisor]
    else:
        values = [draws.between(LEAST, 9 if doubling and start == 1 else 61)]
    values += [draws.between(2, 40) for _ in range(max(start, 1), start + level)]
    return StemItem(number, start, level, tuple(values))


def solve_item(item: StemItem) -> list[int]:
    """Return the result of each formula in its order."""
    value, *operands = item.values
    results = list[int]()
    for formula, operand in enumerate(operands, item.start):
        if formula == 0:
            value //= operand
        elif formula == 1 and CHAINS[item.chain].doubling:
            value = operand * 2**value
        else:
            value *= operand
        results.append(value)
    return results


def ask_item(item: StemItem) -> tuple[str, str, list[str]]:
    """Return the question in words, the unit of its answer, and the names of the formulas."""
    chain = CHAINS[item.chain]
    quantities = list(chain.divided) if item.start == 0 else [chain.results[item.start - 1]]
    results = chain.results[item.start : item.start + item.formulas]
    quantities += chain.factors[max(0, item.start - 1) : item.start + item.formulas - 1]
    values = zip(quantities, item.values, strict=True)
    listed = "; ".join(f"{name} = {value} {unit}".rstrip() for (name, unit), value in values)
    name, unit = results[-1]
    question = f"{chain.setting} Given: {listed}. What is the {name}{f', in {unit}' if unit else ''}?"
    return question, unit, [name for name, _ in results]


def draw_choices(item: StemItem, draws: Draws) -> tuple[str, list[int]]:
    """Draw the right letter, and the values of all options: what neighbours of the first value would give.

    Which neighbours does not depend on which of them is right, so the options alone do not tell.
    """
    divisor = item.values[1] if item.start == 0 else 1
    value = item.values[0] // divisor
    block = LEAST + (value - LEAST) // len(OPTIONS) * len(OPTIONS)
    options = {
        near: solve_item(item._replace(values=(near * divisor, *item.values[1:])))[-1]
        for near in range(block, block + len(OPTIONS))
    }
    choices = draws.shuffled(options.values())
    return OPTIONS[choices.index(options[value])], choices


TASK = StemTask()
