"""What string problems really hold: unused inputs, no-ops, real depth, steps and orders that do not matter, lengths,
balance, wrong gold answers.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, quantiles
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.string.asked import parsed_program
from compositionality.tasks.string.expression import (
    Expression,
    Input,
    Text,
    apply_bounded,
    evaluate,
    function_names,
    uses_input,
)
from compositionality.tasks.string.identity import PROBES
from compositionality.tasks.string.irreducible import is_reducible
from compositionality.tasks.string.orders import another_order, as_chain
from compositionality.tasks.string.partition import SEED_CLASSES, owner
from compositionality.types import Problem


@dataclass(frozen=True, slots=True)
class StringFacts:
    """One problem, evaluated again.

    reducible: without some operators the value is the same; other_order: in another order of the functions too (None:
    no chain). has_its_depth: the real depth (``walk``) is the level; wrong_stream: the input belongs to another split
    or seed.
    """

    names: list[str]
    length: int
    input_named: bool
    input_matters: bool
    has_its_depth: bool
    no_ops: int
    constants: int
    reducible: bool
    other_order: bool | None
    wrong_gold: bool
    wrong_stream: bool


def problem_facts(problem: Problem) -> StringFacts:
    """Evaluate a problem again and see what its parts do. UserError if it is no row of the string task."""
    try:
        truth = json.loads(problem.ground_truth)
        expression, x, output = parsed_program(truth["ref_code"]), truth["ref_input"]["x"], truth["ref_output"]
    except (KeyError, TypeError, UserError) as error:
        raise UserError(f"is no row of the string task ({error})") from error
    value, depth, no_ops, constants = walk(expression, x)
    chain = as_chain(expression)
    return StringFacts(
        names=function_names(expression),
        length=len(output),
        input_named=uses_input(expression),
        input_matters=_input_matters(expression),
        has_its_depth=depth == problem.level,
        no_ops=no_ops,
        constants=constants,
        reducible=is_reducible(expression, x),
        other_order=None if chain is None else another_order(chain, x, value),
        wrong_gold=value != output,
        wrong_stream=_in_wrong_stream(x, problem.metadata),
    )


def level_figures(facts: Sequence[StringFacts]) -> dict[str, Any]:
    """Figures of the problems of one level: shares of rows, ``other_order`` of ``chains``.

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
        "real_depth": _share(facts, lambda fact: fact.has_its_depth),
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


def walk(expression: Expression, x: str) -> tuple[str, int, int, int]:
    """Value, real depth, no-ops and constant operators of an expression on ``x``.

    The real depth counts operators on the longest path from x that change what they are given: a no-op adds
    nothing, and neither does anything below a constant, which folds into a literal.
    """
    if isinstance(expression, Input):
        return x, 0, 0, 0
    if isinstance(expression, Text):
        return expression.text, -1, 0, 0
    parts = [walk(argument, x) for argument in expression.arguments]
    values = [part[0] for part in parts]
    value, depth = apply_bounded(expression, values), max(part[1] for part in parts)
    constant, idle = depth < 0, value in values
    real = depth if constant or idle else depth + 1
    return value, real, sum(part[2] for part in parts) + idle, sum(part[3] for part in parts) + constant


@lru_cache(maxsize=200_000)
def _input_matters(expression: Expression) -> bool:
    return uses_input(expression) and len({evaluate(expression, probe) for probe in PROBES}) > 1


def _in_wrong_stream(x: str, metadata: Mapping[str, Any]) -> bool:
    """Whether a clean row's input has a checksum that belongs to another split or seed."""
    seed = metadata.get("seed")
    return seed is not None and owner(x) != (metadata.get("split"), seed % SEED_CLASSES)


def _share(facts: Sequence[StringFacts], test: Callable[[StringFacts], bool]) -> float:
    return sum(map(test, facts)) / len(facts)
