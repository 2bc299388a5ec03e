"""What a completion is judged by: the JSON text of a row's ground truth."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.igsm.graph import Equation, Quantity, QuantityGraph, quantity
from compositionality.tasks.igsm.names import LayerNames, Names
from compositionality.tasks.igsm.wording import STYLES, compact_equations

_RIGHT = re.compile(r"(?:(\d{1,4})(?:([*+])(?=[(a-d])|$))?\(?((?:[b-d]\d[a-d]\d?[+-]?)*)\)?")
_CODE = re.compile(r"[b-d]\d[a-d]\d?")


@dataclass(frozen=True)
class IgsmTruth:
    """The answer and the quantity in question; for judging the whole chain also the problem and its names."""

    answer: int
    style: str
    asked: str
    problem: QuantityGraph | None = None
    names: Names | None = None


def ground_truth(problem: QuantityGraph, names: Names | None, *, process: bool) -> str:
    """The JSON text that the judge reads; the compact style has no names."""
    style = "text" if names else "compact"
    content: dict[str, Any] = {"answer": problem.answer, "asked": problem.asked.code, "style": style}
    if process:
        content |= graph_of(problem, names)
    return json.dumps(content)


def graph_of(problem: QuantityGraph, names: Names | None) -> dict[str, Any]:
    """The problem as JSON: equations in the order of the text, the order of the solution, modulus, names."""
    layers = [[layer.noun, layer.plural, *layer.kinds] for layer in names.layers] if names else []
    return {
        "facts": compact_equations(problem),
        "order": [one.code for one in problem.order],
        "modulus": problem.modulus,
        **({"names": layers} if layers else {}),
    }


@lru_cache(maxsize=4096)
def read_ground_truth(text: str) -> IgsmTruth:
    """From the JSON text of a row; UserError if it is damaged."""
    try:
        content = json.loads(text)
        truth = IgsmTruth(content["answer"], content["style"], content["asked"], *read_graph(content))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise UserError(f"ground_truth {text[:80]!r} is damaged ({error!r}); make the problem file again") from error
    if type(truth.answer) is not int or truth.style not in STYLES or quantity(truth.asked) is None:
        raise UserError(f"ground_truth {text[:80]!r}: needs a whole answer, a style and what is asked for")
    return truth


def read_graph(content: Mapping[str, Any]) -> tuple[QuantityGraph | None, Names | None]:
    """What ``graph_of`` wrote; none where it did not. ValueError, KeyError or the like for what it cannot be."""
    if "facts" not in content:
        return None, None
    order = tuple(_quantity(code) for code in content["order"])
    facts = dict(_equation(line) for line in content["facts"])
    problem = QuantityGraph(facts, order[-1], order, int(content["modulus"]))
    layers = [LayerNames(noun, plural, tuple(kinds)) for noun, plural, *kinds in content.get("names", [])]
    return problem, Names(tuple(layers)) if layers else None


def _quantity(code: str) -> Quantity:
    found = quantity(code)
    if found is None:
        raise ValueError(f"{code} is no quantity")
    return found


def _equation(line: str) -> tuple[Quantity, Equation]:
    left, _, right = line.partition("=")
    found = _RIGHT.fullmatch(right)
    if not found:
        raise ValueError(f"{line} is no equation")
    parents = tuple(_quantity(code) for code in _CODE.findall(found[3]))
    constant = int(found[1]) if found[1] else None
    if constant is None and not parents:
        raise ValueError(f"{line} is no equation")
    return _quantity(left), Equation(constant, parents, found[2] == "*", "-" in right)
