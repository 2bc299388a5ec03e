"""What the audit and the ledger find out about string problems: every row is evaluated again.

The ledger recognises a problem by its expression and input, and its composition by text and by behaviour. A composition
is two or more nested operators; parameters and literals aside, it is known by its text, and with them by its behaviour
on fixed strings. Single functions are no compositions: Stage 1 teaches all of them on purpose.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from statistics import fmean, quantiles
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.string.clean import SEED_CLASSES, owner
from compositionality.tasks.string.expression import (
    INPUT,
    Apply,
    Call,
    Expression,
    Text,
    another_order,
    as_chain,
    evaluate,
    function_names,
    is_reducible,
    nodes,
    parse_program,
    render,
    steps,
    uses_input,
)
from compositionality.tasks.string.wording import compact_prompt, hide_definitions, json_prompt
from compositionality.tasks.task import Identity
from compositionality.types import Problem

PROBES = (
    "abcdefghij",
    "hello",
    "Queue7",
    "aabbccddee",
    "bookkeeper",
    "zyxwvu",
    "A1b2C3d4",
    "racecar",
    "e",
    "xq",
    "«k»-«m»",
    "mississippi9",
    "GHIJklmno",
    "tt_uu|v",
    "oiuae3",
    "dhbfgcjdface",
)
_OUR_WORDS = json_prompt("", "").partition("\n")[0]
_MAIN = re.compile(r"def main_solution\(.*", re.DOTALL)


def read_row(problem: Problem) -> tuple[Expression, str, str | None]:
    """Return expression, input and output (None: not said) of a row. UserError if it is no row of the string task."""
    try:
        truth = json.loads(problem.ground_truth)
        return parse_program(truth["ref_code"]), truth["ref_input"]["x"], truth.get("ref_output")
    except (KeyError, TypeError, ValueError, UserError) as error:
        raise UserError(f"is no row of the string task ({error})") from error


def prompt_matches_truth(problem: Problem) -> bool:
    """Return whether the prompt is the one that the truth gives; in the words of others: whether it holds both parts.

    These are program and input. UserError if it is no row of the string task.
    """
    try:
        truth = json.loads(problem.ground_truth)
        code, x = str(truth["ref_code"]), str(truth["ref_input"]["x"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"is no row of the string task ({error})") from error
    if truth.get("style") == "compact":
        chain = as_chain(parse_program(code))
        if chain is None:
            return False
        free = chain[::-1]
        frozen = tuple([replace(operation, frozen=True) for operation in free])
        return problem.prompt in {
            compact_prompt(named, x, show_definitions=shown) for named in (free, frozen) for shown in (False, True)
        }
    whole = json_prompt(code, x)
    if problem.prompt.startswith(_OUR_WORDS):
        return problem.prompt in (whole, hide_definitions(whole))
    main = _MAIN.search(code)
    return main is not None and main[0].strip() in problem.prompt and x in problem.prompt


# ---- what the ledger recognises


def string_identity(problem: Problem) -> Identity:
    """Return the keys of a row. UserError if it is no row of the string task."""
    expression, x, _ = read_row(problem)
    canonical, text, behaviour = composition_keys(expression)
    return Identity(f"{canonical} on {x}", text, behaviour)


@lru_cache(maxsize=200_000)
def composition_keys(expression: Expression) -> tuple[str, str | None, str | None]:
    """Return the canonical text of an expression; the composition's text and fingerprint, or None twice."""
    operators = sum(isinstance(node, Apply) for node in nodes(expression))
    if operators < 2 or not uses_input(expression):
        return render(expression), None, None
    return render(expression), render(skeleton(expression)), fingerprint(lambda text: evaluate(expression, text))


def skeleton(expression: Expression) -> Expression:
    """Return the expression without its parameters and literals."""
    if isinstance(expression, Apply):
        return Apply(expression.operator, tuple(skeleton(argument) for argument in expression.arguments))
    return Text("") if isinstance(expression, Text) else expression


def fingerprint(function: Callable[[str], str]) -> str:
    """Return a digest of the results on the probes."""
    results = "\x00".join([function(probe) for probe in PROBES])
    return blake2b(results.encode(), digest_size=16).hexdigest()


# ---- what the audit tabulates


@dataclass(frozen=True, slots=True)
class StringFacts:
    """One problem, evaluated again.

    reducible: without some operators the value is the same; other_order: in another order of the functions too (None:
    no chain). depth_is_level: the real depth is the level; wrong_stream: the input belongs to another split
    or seed.
    """

    names: list[str]
    length: int
    input_named: bool
    input_matters: bool
    depth_is_level: bool
    no_ops: int
    constants: int
    reducible: bool
    other_order: bool | None
    wrong_gold: bool
    wrong_stream: bool


def problem_facts(problem: Problem) -> StringFacts:
    """Evaluate a problem again, operator by operator. UserError if it is no row of the string task."""
    expression, x, output = read_row(problem)
    if output is None:
        raise UserError("is no row of the string task (no ref_output)")
    applied = list(steps(expression, x))
    depths = real_depths(applied)
    value = applied[-1].value if applied else evaluate(expression, x)
    chain = as_chain(expression)
    return StringFacts(
        names=function_names(expression),
        length=len(output),
        input_named=uses_input(expression),
        input_matters=_input_matters(expression),
        depth_is_level=(depths[-1] if depths else 0) == problem.level,
        no_ops=sum(step.value in step.given for step in applied),
        constants=sum(depth < 0 for depth in depths),
        reducible=is_reducible(expression, x),
        other_order=None if chain is None else another_order(chain, x, value),
        wrong_gold=value != output,
        wrong_stream=_in_wrong_stream(x, problem.metadata),
    )


def level_figures(facts: Sequence[StringFacts]) -> dict[str, Any]:
    """Return figures of the problems of one level: shares of rows, ``other_order`` of ``chains``.

    ``balance`` is rarest over commonest function.
    """
    lengths = sorted(fact.length for fact in facts)
    deciles = quantiles(lengths, n=10, method="inclusive") if len(lengths) > 1 else lengths * 9
    chains = [fact for fact in facts if fact.other_order is not None]
    functions = Counter(name for fact in facts for name in fact.names)
    return {
        "wrong_gold": sum(fact.wrong_gold for fact in facts),
        "wrong_stream": sum(fact.wrong_stream for fact in facts),
        "input_named": _share(facts, lambda fact: fact.input_named),
        "input_matters": _share(facts, lambda fact: fact.input_matters),
        "with_no_op": _share(facts, lambda fact: fact.no_ops > 0),
        "with_constant": _share(facts, lambda fact: fact.constants > 0),
        "real_depth": _share(facts, lambda fact: fact.depth_is_level),
        "reducible": _share(facts, lambda fact: fact.reducible),
        "other_order": _share(chains, lambda fact: bool(fact.other_order)) if chains else None,
        "chains": len(chains),
        "length_median": deciles[4],
        "length_p90": deciles[8],
        "length_max": lengths[-1],
        "functions_mean": fmean(len(fact.names) for fact in facts),
        "balance": min(functions.values()) / max(functions.values()) if functions else 0.0,
        "functions": dict(sorted(functions.items(), key=lambda item: int(item[0].removeprefix("func_")))),
    }


def real_depths(applied: Sequence[Call]) -> list[int]:
    """Return for each step how many operators on the longest path from x to it change what they are given.

    A no-op adds nothing, and neither does anything below a constant, which folds into a literal: its depth is -1.
    """
    depths: list[int] = []
    for step in applied:
        below = max([-1 if isinstance(s, str) else 0 if s == INPUT else depths[s] for s in step.sources])
        depths.append(below if below < 0 or step.value in step.given else below + 1)
    return depths


@lru_cache(maxsize=200_000)
def _input_matters(expression: Expression) -> bool:
    return uses_input(expression) and len({evaluate(expression, probe) for probe in PROBES}) > 1


def _in_wrong_stream(x: str, metadata: Mapping[str, Any]) -> bool:
    """Return whether a clean row's input has a checksum that belongs to another split or seed."""
    seed = metadata.get("seed")
    return seed is not None and owner(x) != (metadata.get("split"), seed % SEED_CLASSES)


def _share(facts: Sequence[StringFacts], test: Callable[[StringFacts], bool]) -> float:
    return sum(map(test, facts)) / len(facts)
