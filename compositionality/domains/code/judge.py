"""From a response to a verdict: the program in it, run on the tests in the sandbox."""

import logging
import re
from decimal import Decimal
from typing import NamedTuple

from compositionality.domains.code.sandbox import Limits, Run, SandboxError, run_script, run_tests
from compositionality.domains.code.truth import CodeTruth, read_truth
from compositionality.types import Reason, Verdict

_LOG = logging.getLogger(__name__)
MAX_PROGRAM = 200_000
TOLERANCE, SMALLEST = Decimal("1e-6"), Decimal("1e-9")
"""How far a number may be from the right one; the least such distance, which rounding may leave of 0."""
_PYTHON = ("python", "python3", "py")
_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^`]*)")
_DEFINES = re.compile(r"^(?:async def|def|class)\b", re.MULTILINE)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_REAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)


def judge_code(response: str, ground_truth: str) -> Verdict:
    """Judge a response; never raises on what a model wrote. ERROR where the sandbox or the tests cannot run."""
    truth = read_truth(ground_truth)
    program = last_program(response, called=bool(truth.tests))
    if program is None:
        return Verdict(0.0, Reason.NO_ANSWER)
    if len(program) > MAX_PROGRAM or "\0" in program:
        return Verdict(0.0, Reason.MALFORMED, program[:100])
    return run_verdict(program, truth, program)


def run_verdict(program: str, truth: CodeTruth, answer: str) -> Verdict:
    """The verdict on a program that the tests of ``truth`` are run on."""
    program = program.encode("utf-8", "replace").decode()
    try:
        passed = _passes_tests(program, truth) if truth.tests else _passes_cases(program, truth)
    except SandboxError as error:
        _LOG.warning("the sandbox failed: %s", error)
        return Verdict(0.0, Reason.ERROR, answer)
    return Verdict(1.0, Reason.CORRECT, answer) if passed else Verdict(0.0, Reason.WRONG, answer)


class CodeBlock(NamedTuple):
    """A fenced block: the first word of its info string in lower case, its text, whether its fence is closed."""

    language: str
    text: str
    closed: bool


def last_program(response: str, called: bool = False) -> str | None:
    """The last block that is marked as Python, else the last without a mark.

    ``called``: by tests, so the last that defines something, if one does: an example of its use may follow. A block
    that is never closed counts where no other does.
    """
    blocks = [block for block in code_blocks(response) if block.text.strip()]
    for choice in (
        [block for block in blocks if block.closed and block.language in _PYTHON],
        [block for block in blocks if block.closed and not block.language],
        [block for block in blocks if block.language in _PYTHON],
    ):
        if choice:
            defining = [block for block in choice if called and _DEFINES.search(block.text)]
            return (defining or choice)[-1].text.strip("\r\n")
    return None


def code_blocks(text: str) -> list[CodeBlock]:
    """The fenced blocks of Markdown, without the indentation of their fences.

    As CommonMark has it: a closing fence has the sign of the opening one, is as long, and stands less than four columns
    further right, so a fence within a docstring is text. Unlike there, one with a mark opens a block within a block.
    """
    blocks: list[CodeBlock] = []
    opened: tuple[str, str, str] | None = None  # indentation, fence, language
    lines: list[str] = []
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line.rstrip())
        indent, fence, info = found.groups() if found else ("", "", "")
        least, furthest = (opened[1], len(opened[0]) + 4) if opened else ("", len(line))
        if not fence or not fence.startswith(least) or len(indent) >= furthest:
            lines.append(line)
            continue
        if opened is not None and not info:
            blocks.append(CodeBlock(opened[2], _dedented(lines, opened[0]), closed=True))
            opened = None
        else:
            opened = indent, fence, re.split(r"[^a-z0-9+#]", info.lower(), maxsplit=1)[0]
        lines = []
    if opened is not None:
        blocks.append(CodeBlock(opened[2], _dedented(lines, opened[0]), closed=False))
    return blocks


def _dedented(lines: list[str], indent: str) -> str:
    return "\n".join(line.removeprefix(indent) for line in lines)


def same_output(printed: str, expected: str) -> bool:
    """Equal, or the same number of lines and of words in each, and the words match."""
    mine, theirs = (text.replace("\r\n", "\n").strip() for text in (printed, expected))
    if mine == theirs:
        return True
    mine_lines, their_lines = mine.split("\n"), theirs.split("\n")
    if len(mine_lines) != len(their_lines):
        return False
    for mine_line, their_line in zip(mine_lines, their_lines, strict=True):
        words, wanted = mine_line.split(), their_line.split()
        if len(words) != len(wanted) or not all(map(_same_word, words, wanted)):
            return False
    return True


def _same_word(word: str, wanted: str) -> bool:
    """Equal; yes and no in any case; whole numbers exactly, others within 1e-6, of the number itself below 1."""
    if word == wanted:
        return True
    if wanted.lower() in ("yes", "no"):
        return word.lower() == wanted.lower()
    if len(word) > 400 or len(wanted) > 400 or not (_REAL.fullmatch(word) and _REAL.fullmatch(wanted)):
        return False
    if _WHOLE.fullmatch(word) and _WHOLE.fullmatch(wanted):
        return int(word) == int(wanted)
    right = Decimal(wanted)
    return abs(Decimal(word) - right) <= max(TOLERANCE * min(Decimal(1), abs(right)), SMALLEST)


def _passes_tests(program: str, truth: CodeTruth) -> bool:
    return _checked(run_tests(program, truth.tests, truth.prefix, truth.style)).end == "passed"


def _passes_cases(program: str, truth: CodeTruth) -> bool:
    """Every input gives its output; the first that does not ends the job."""
    most = max(len(text) for text in truth.outputs)
    limits = Limits(output_mb=max(Limits().output_mb, 2 + (4 * most >> 20)))
    runs = run_script(program, truth.inputs, truth.prefix, limits)
    try:
        for expected in truth.outputs:
            run = next(runs)
            if run.end or run.exit_code or not same_output(run.output, expected):
                return False
        return True
    finally:
        runs.close()


def _checked(run: Run) -> Run:
    """SandboxError for tests that cannot be run at all."""
    if run.end == "broken":
        raise SandboxError(run.text)
    return run
