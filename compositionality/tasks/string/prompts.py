"""How a problem is put to a model: the JSON style (English around code) and the compact style (tiny models)."""

import re
from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring as _quote

from compositionality.tasks.string.functions import ALIASES, Chain, Operation

_TASK = """Below is a Python program.

{code}

What does `main_solution` return for the input "{text}"? Work it out by reasoning, step by step; do not write code.
Close your answer with a JSON object that has one key, "output", and the returned string as its value."""

_MAIN = "def main_solution("
_CODE_BEGINS = re.compile(r"^(?:@\w|import \w|from \w+ import |class \w)|\bdef \w+\(", re.MULTILINE)
_COMPACT_DEFINITION = re.compile(r"func_\d+=\w+;")


def main_solution(expression: str) -> str:
    """The program whose result is asked for."""
    return f"def main_solution(x):\n    return {expression}"


def json_prompt(code: str, text: str) -> str:
    """The JSON style's prompt. It holds no JSON object itself, so echoing it is not an answer."""
    return _TASK.format(code=code, text=text)


def ground_truth(x: str, output: str, code: str, style: str = "json") -> str:
    """The JSON text that the judge reads: the published keys, and the style unless it is "json"."""
    words = f'{{"ref_input": {{"x": {_quote(x)}}}, "ref_output": {_quote(output)}, "ref_code": {_quote(code)}'
    tail = "" if style == "json" else f', "style": {_quote(style)}'
    return f'{words}, "funcname": "main_solution"{tail}}}'


def compact_name(operation: Operation) -> str:
    """``func_3``, with its parameter in brackets unless that is frozen."""
    if operation.parameter is None or operation.frozen:
        return operation.function.alias
    return f"{operation.function.alias}[{operation.parameter}]"


def compact_definitions(chain: Iterable[Operation]) -> str:
    """``func_3=recursive_reverse;`` for each distinct function, in order of first use."""
    distinct = dict.fromkeys(operation.function for operation in chain)
    return "".join([f"{function.alias}={function.name};" for function in distinct])


def compact_prompt(chain: Chain, text: str, *, show_definitions: bool = False) -> str:
    """The compact style's prompt: names, outermost first, a colon, the input."""
    shown = compact_definitions(chain) if show_definitions else ""
    return shown + "".join([compact_name(operation) for operation in chain]) + ":" + text


def run_steps(chain: Sequence[Operation], text: str) -> list[str]:
    """The strings after each step, innermost operation first."""
    results = []
    for operation in reversed(chain):
        text = operation(text)
        results.append(text)
    return results


def compact_trace(chain: Chain, text: str) -> str:
    """The gold response of the compact style: per step ``REST,CALL:before=after``, innermost first."""
    names = [compact_name(operation) for operation in chain]
    lines = []
    for done, result in enumerate(run_steps(chain, text), 1):
        rest = "".join(names[:-done])
        lines.append(f"{rest},{names[-done]}:{text}={result}")
        text = result
    return "\n".join(lines)


def sources(names: Iterable[str]) -> str:
    """Definitions of the named functions, each once, in order of first use, ready to stand before the program."""
    return "".join([ALIASES[name].source() + "\n\n" for name in dict.fromkeys(names)])


def hide_definitions(prompt: str) -> str:
    """A prompt of either style without the definitions that it shows (the paper does this before Stage-1 SFT).

    Imports and definitions before ``main_solution`` go, the words before the code stay; so the paper's published
    prompts are served too. A prompt that shows no definition stays as it is.
    """
    program = prompt.find(_MAIN)
    if program < 0:
        return prompt.rpartition(";")[2] if _COMPACT_DEFINITION.match(prompt) else prompt
    code = _CODE_BEGINS.search(prompt, 0, program)
    return prompt if code is None else prompt[: code.start()] + prompt[program:]
