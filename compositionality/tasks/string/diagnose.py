"""One class for every response, by executing the problem's own operators on the strings that the response states.

Of the whole response, the first that holds: *correct* (the judge's verdict), *overlong* (cut off), *format* (no
readable answer), *ignores composition* (the problem has several operators and the trace has one step; or it has none,
and the answer is the input or what one of the operators makes of it). Then the trace is walked from its first step,
and the first fault decides: an unreadable line is *format*; a step that is not the problem's next one, or starts from
the problem's input in place of an earlier result, is *incorrect composition*; one that starts from yet another string
than the last result has a *miscopied string*; one with another result is an *atomic error*. A trace without a fault
that ends too early is an *incomplete trace*. So a wrong result before a missing operator is an atomic error, and the
other way round it is an incorrect composition.

English text may leave steps out: those count as done where the next one starts from their true result. One that must
have given a wrong string is an atomic error; where two or more may have, it is *unparsed*, as is a text
without any step whose answer tells nothing. A verifier's failure is unparsed too. Nothing that a model wrote is
executed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from compositionality.errors import UserError
from compositionality.tasks.string.english import read_english
from compositionality.tasks.string.expression import INPUT
from compositionality.tasks.string.program import Fault, Program, StatedStep, Trace, read_compact, read_program
from compositionality.types import LENGTH, NOT_READ, Completion, Diagnosis, Failure, Problem, ReadChain, Reason, Verdict

_CLASSES = {
    Fault.INPUT_AGAIN: Failure.INCORRECT,
    Fault.MISCOPIED: Failure.MISCOPIED,
    Fault.RESULT: Failure.ATOMIC,
}
_UNREADABLE = (Reason.NO_ANSWER, Reason.MALFORMED)


def diagnose(problem: Problem, completion: Completion, verdict: Verdict) -> Diagnosis:
    """Return the class of a judged completion and its first fault. UserError if the row does not hold its program."""
    program = read_program(problem.ground_truth, problem.prompt)
    trace = read_trace(program, completion.text)
    return replace(
        classify(program, trace, completion, verdict),
        expected=program.operators,
        chain=_chain(program, trace),
        applied=tuple(applications(program, trace)),
    )


def read_chain(problem: Problem, text: str) -> ReadChain:
    """Return ``Diagnosis.chain`` alone; nothing is told of a row that does not hold its program."""
    try:
        program = read_program(problem.ground_truth, problem.prompt)
    except UserError:
        return NOT_READ
    return _chain(program, read_trace(program, text))


def _chain(program: Program, trace: Trace) -> ReadChain:
    """Return what holds of the steps: one that does not state what goes in is taken to go on from those before it.

    English text in which no step was found tells nothing.
    """
    if not trace.steps and not program.compact:
        return NOT_READ
    if tuple(stated.name for stated in trace.steps) != program.names:
        return ReadChain(names_in_order=False, handed_on=False, right_chain=False)
    known: dict[int, str] = {}
    handed_on = True
    right = trace.broken is None
    for number, stated in zip(program.named, trace.steps, strict=True):
        handed_on &= stated.given is None or stated.given == program.given(number, known)
        right &= stated.result == program.steps[number].value
        known[number] = stated.result
    return ReadChain(names_in_order=True, handed_on=handed_on, right_chain=handed_on and right)


def read_trace(program: Program, text: str) -> Trace:
    """Read the steps that a response states, in the problem's style."""
    return read_compact(text) if program.compact else read_english(text, program)


def classify(program: Program, trace: Trace, completion: Completion, verdict: Verdict) -> Diagnosis:
    """Return the class of a completion; of a right compact answer with a faulty trace, the fault is kept."""
    if verdict.reason == Reason.CORRECT:
        diagnosis = _walk(program, trace, verdict.answer) if program.compact else Diagnosis(Failure.CORRECT)
        return replace(diagnosis, failure=Failure.CORRECT) if diagnosis.fault else Diagnosis(Failure.CORRECT)
    if completion.finish_reason == LENGTH:
        return Diagnosis(Failure.OVERLONG)
    if verdict.reason in _UNREADABLE:
        return Diagnosis(Failure.FORMAT)
    if verdict.reason == Reason.ERROR:
        return Diagnosis(Failure.UNPARSED)
    if _ignores_composition(program, trace, verdict.answer):
        return Diagnosis(Failure.IGNORES)
    return _walk(program, trace, verdict.answer)


def applications(program: Program, trace: Trace) -> list[tuple[str, bool]]:
    """Return for every stated step of the problem's functions its ``func_N``, and whether the result is wrong."""
    steps = {step.name: step for step in program.steps if step.name}
    applied = []
    for stated in trace.steps:
        step = steps.get(stated.name)
        if step is not None and stated.given is not None and len(stated.given) == len(step.open_slots):
            applied.append((step.node.operator, step.apply(stated.given) != stated.result))
    return applied


def _ignores_composition(program: Program, trace: Trace, answer: str | None) -> bool:
    if len(program.steps) < 2 or len(trace.steps) > 1:
        return False
    if trace.steps:
        only = trace.steps[0]
        on_input = only.given is None or set(only.given) == {program.input}
        return trace.broken is None and (program.compact or (on_input and answer == only.result))
    single = (step.apply((program.input,) * len(step.open_slots)) for step in program.steps)
    return answer is not None and (answer == program.input or answer in set(single))


def _walk(program: Program, trace: Trace, answer: str | None) -> Diagnosis:
    """Return the first fault of a trace."""
    known: dict[int, str] = {}
    left = list(program.named)
    for stated in trace.steps:
        number = _next_step(program, stated, left, known)
        if number is None:
            return _left_out(program, stated, left, known) or _incorrect(program, trace, left)
        left = left[left.index(number) + 1 :]
        fault = _check(program, number, stated, known)
        if fault is not None:
            return Diagnosis(_CLASSES[fault], number + 1, program.steps[number].node.operator, fault)
        known[number] = stated.result
    if trace.broken is not None:
        return Diagnosis(Failure.FORMAT, len(trace.steps) + 1)
    return _ended_early(program, left) if program.compact and left else _ending(program, trace, left, known, answer)


def _next_step(program: Program, stated: StatedStep, left: Sequence[int], known: dict[int, str]) -> int | None:
    """Return which of the steps left is stated: the next, or (English) a later one from its true strings."""
    if left and program.steps[left[0]].name == stated.name:
        return left[0]
    if program.compact or stated.given is None:
        return None
    for number in left:
        if program.steps[number].name == stated.name and program.given(number, known) == stated.given:
            return number
    return None


def _left_out(program: Program, stated: StatedStep, left: Sequence[int], known: dict[int, str]) -> Diagnosis | None:
    """English: diagnose steps done silently before a stated one that starts from a wrong string of their making."""
    later = [number for number in left if program.steps[number].name == stated.name]
    if program.compact or not later or stated.given is None or stated.given == program.given(left[0], known):
        return None
    if left.index(later[0]) > 1:
        return Diagnosis(Failure.UNPARSED)
    return Diagnosis(Failure.ATOMIC, left[0] + 1, program.steps[left[0]].node.operator, Fault.RESULT)


def _check(program: Program, number: int, stated: StatedStep, known: dict[int, str]) -> Fault | None:
    step, expected = program.steps[number], program.given(number, known)
    given = stated.given if stated.given is not None and len(stated.given) == len(expected) else expected
    if given != expected:
        return Fault.INPUT_AGAIN if set(given) == {program.input} else Fault.MISCOPIED
    return None if step.apply(given) == stated.result else Fault.RESULT


def _incorrect(program: Program, trace: Trace, left: Sequence[int]) -> Diagnosis:
    step = left[0] if left else None
    function = None if step is None else program.steps[step].node.operator
    place = len(program.steps) + 1 if step is None else step + 1
    names = [stated.name for stated in trace.steps]
    return Diagnosis(Failure.INCORRECT, place, function, _structural_fault(program.names, names))


def _structural_fault(expected: Sequence[str], stated: Sequence[str]) -> Fault:
    if Counter(expected) == Counter(stated):
        return Fault.WRONG_ORDER
    if _is_within(stated, expected):
        return Fault.MISSING
    if _is_within(expected, stated):
        return Fault.EXTRA
    return Fault.MIXED if set(stated) <= set(expected) else Fault.OTHER_FUNCTION


def _is_within(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Return whether ``part`` is ``whole`` with some left out."""
    rest = iter(whole)
    return all(name in rest for name in part)


def _ended_early(program: Program, left: Sequence[int]) -> Diagnosis:
    return Diagnosis(Failure.INCOMPLETE, left[0] + 1, program.steps[left[0]].node.operator)


def _ending(
    program: Program, trace: Trace, left: Sequence[int], known: dict[int, str], answer: str | None
) -> Diagnosis:
    """Diagnose a trace without a fault by what the answer tells of the steps that are not stated."""
    last = len(program.steps) - 1
    if last in known:
        fault = None if known[last] == answer else Fault.ANSWER
        return Diagnosis(Failure.ATOMIC, last + 1, program.steps[last].node.operator, fault)
    if trace.steps and left and answer == trace.steps[-1].result:
        return _ended_early(program, left)
    if len(program.steps) - len(_behind(program, known)) > 1 or answer is None:
        return Diagnosis(Failure.UNPARSED)
    return Diagnosis(Failure.ATOMIC, last + 1, program.steps[last].node.operator, Fault.RESULT)


def _behind(program: Program, known: Iterable[int]) -> set[int]:
    """Return the stated steps and all that had to be done before them."""
    behind: set[int] = set()
    waiting = list(known)
    while waiting:
        number = waiting.pop()
        behind.add(number)
        waiting += [s for s in program.steps[number].sources if isinstance(s, int) and s != INPUT and s not in behind]
    return behind
