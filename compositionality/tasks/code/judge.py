"""From a response to a verdict: the program in it, run on the tests in the sandbox."""

import logging
import re

from compositionality.tasks.code.sandbox import Limits, Run, SandboxError, run_script, run_tests
from compositionality.tasks.code.truth import CodeTruth, read_truth
from compositionality.types import Reason, Verdict

_LOG = logging.getLogger(__name__)
THOUGHTS_END = "</think>"
MAX_PROGRAM = 200_000
TOLERANCE = 1e-6
_PYTHON = ("python", "python3", "py")
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_REAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def judge_code(response: str, ground_truth: str) -> Verdict:
    """Judge a response; never raises on what a model wrote. ERROR where the sandbox or the tests cannot run."""
    truth = read_truth(ground_truth)
    program = last_program(response)
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


def last_program(response: str) -> str | None:
    """The last closed block that is marked as Python behind the last ``</think>``, else the last without a mark."""
    start = response.rfind(THOUGHTS_END)
    found: dict[bool, str] = {}
    language: str | None = None
    lines: list[str] = []
    for line in response[start + len(THOUGHTS_END) if start >= 0 else 0 :].split("\n"):
        fence = line.strip()
        if not fence.startswith("```"):
            lines.append(line)
            continue
        if language is not None and fence == "```":
            if (language in _PYTHON or not language) and "".join(lines).strip():
                found[bool(language)] = "\n".join(lines)
            language = None
        else:
            language = fence[3:].strip().lower()
        lines = []
    program = found.get(True, found.get(False))
    return program.strip("\r\n") if program is not None else None


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
    """Equal; yes and no in any case; whole numbers exactly, other numbers within 1e-6."""
    if word == wanted:
        return True
    if wanted.lower() in ("yes", "no"):
        return word.lower() == wanted.lower()
    if len(word) > 400 or len(wanted) > 400 or not (_REAL.fullmatch(word) and _REAL.fullmatch(wanted)):
        return False
    if _WHOLE.fullmatch(word) and _WHOLE.fullmatch(wanted):
        return int(word) == int(wanted)
    return abs(float(word) - float(wanted)) <= TOLERANCE


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
