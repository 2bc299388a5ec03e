"""The scorers of the Guru rewards as their rules are described, for counting what they pay for and what they miss.

Each gives the credit expected for a response, 0 to 1. Where they run text of a model, a value is computed for plain
arithmetic only. The table scorer's tolerance is read as absolute.
"""

import ast
import json
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}  # fmt: skip


def zebra(response: str, truth: dict[str, Any]) -> float:
    """Rows on one line, equal cells; the header is not looked at."""
    found = re.findall(r"<answer>(.*?)</answer>", response)
    for read in (ast.literal_eval, json.loads):
        try:
            rows = read(found[-1].strip())["rows"]
            right = [
                ours == theirs
                for a, b in zip(truth["rows"], rows, strict=True)
                for ours, theirs in zip(a, b, strict=True)
            ]
            return sum(right) / len(right)
        except (ValueError, SyntaxError, LookupError, TypeError):
            continue
    return 0.0


def ordering(response: str, truth: Sequence[str]) -> float:
    """Everything in quotes is an item."""
    found = re.findall(r"<answer>(.*?)</answer>", response, re.DOTALL)
    items = re.findall(r"""['"]([^'"]*)['"]""", found[-1]) if found else []
    return float([item.lower() for item in items] == [item.lower() for item in truth])


def graph(response: str, truth: str) -> float:
    """Letters alone."""
    found = re.findall(r"<answer>(.*?)</answer>", response, re.DOTALL)
    return float(bool(found) and found[-1].strip().isalpha() and found[-1].strip().lower() == truth.lower())


def arc(response: str, truth: list[list[int]]) -> float:
    """From the first [[ to the next ]]; both are padded with -1."""
    found = re.findall(r"<answer>(.*?)</answer>", response, re.DOTALL)
    text = found[-1].replace("\n", "").replace("...", "-1") if found else ""
    start = text.find("[[")
    try:
        grid = ast.literal_eval(text[start : text.find("]]", start) + 2]) if start >= 0 else [[0]]
        height, width = max(len(grid), len(truth)), max(len(row) for row in [*grid, *truth])
        return float(_padded(grid, height, width) == _padded(truth, height, width))
    except (ValueError, SyntaxError, TypeError):
        return 0.0


def _padded(grid: list[list[Any]], height: int, width: int) -> list[list[Any]]:
    return [[grid[y][x] if y < len(grid) and x < len(grid[y]) else -1 for x in range(width)] for y in range(height)]


def table(response: str, truth: str) -> float:
    """Lower case, sorted parts, numbers by evaluation, else text in the manner of MATH."""
    found = re.findall(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}", response.lower())
    given, right = (sorted(one.split("|")) for one in ((found or [""])[-1], truth.lower()))
    return float(len(given) == len(right) and all(map(_table_equal, given, right)))


def _table_equal(given: str, truth: str) -> bool:
    try:
        return abs(_value(given) - _value(truth)) <= 1e-3
    except (ValueError, SyntaxError, TypeError, ZeroDivisionError):
        return _math_text(given) == _math_text(truth)


def _math_text(text: str) -> str:
    text = re.sub(r"\\text\{ [^{}]*\}$", "", text).replace("\\$", "").replace("\\%", "").replace("\\!", "")
    return re.sub(r"^\\text\{([^{}]*)\}$", r"\1", text).replace(" ", "")


def _value(text: str) -> float:
    def walk(node: ast.AST) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -walk(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            return float(_OPERATIONS[type(node.op)](walk(node.left), walk(node.right)))
        raise ValueError(text)

    return walk(ast.parse(text.strip(), mode="eval").body)


def choice(response: str, truth: str) -> float:
    """The first letter from A to J that the text contains; without any a random one."""
    found = re.findall(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}", response) or re.findall(
        r"(?:Final Answer:|The answer is:)(.*)", response
    )
    letters = [letter for letter in "ABCDEFGHIJ" if found and letter in found[-1]]
    return float(letters[0] == truth) if letters else 0.1
