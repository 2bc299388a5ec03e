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
from collections.abc import Sequence
from dataclasses import replace

from compositionality.errors import UserError
from compositionality.tasks.diagnosis import NOT_READ, Diagnosis, Failure, ReadChain
from compositionality.tasks.string.english import read_english
from compositionality.tasks.string.program import INPUT
from compositionality.tasks.string.reference import Fault, Reference, StatedStep, Trace, read_compact, read_reference
from compositionality.types import LENGTH, Completion, Problem, Reason, Verdict

_CLASSES = {Fault.INPUT_AGAIN: Failure.INCORRECT, Fault.MISCOPIED: Failure.MISCOPIED, Fault.RESULT: Failure.ATOMIC}
_UNREADABLE = (Reason.NO_ANSWER, Reason.MALFORMED)


def diagnose(problem: Problem, completion: Completion, verdict: Verdict) -> Diagnosis:
    """Return the class of a judged completion and its first fault. UserError if the row does not hold its reference."""
    reference = read_reference(problem.ground_truth, problem.prompt)
    trace = read_trace(reference, completion.text)
    return replace(
        classify(reference, trace, completion, verdict),
        expected=reference.operators,
        chain=_chain(reference, trace),
        applied=tuple(applications(reference, trace)),
    )


def read_chain(problem: Problem, text: str) -> ReadChain:
    """Return ``Diagnosis.chain`` alone; None for a row without its reference."""
    try:
        reference = read_reference(problem.ground_truth, problem.prompt)
    except UserError:
        return NOT_READ
    return _chain(reference, read_trace(reference, text))


def _chain(reference: Reference, trace: Trace) -> ReadChain:
    """Return what holds of the steps: one that does not state what goes in is taken to go on from those before it.

    English text in which no step was found tells nothing.
    """
    if not trace.steps and not reference.compact:
        return NOT_READ
    if tuple(stated.name for stated in trace.steps) != reference.names:
        return ReadChain(names_in_order=False, handed_on=False, right_chain=False)
    values: dict[int, str] = {}
    handed_on = True
    right = trace.broken is None
    for number, stated in zip(reference.named, trace.steps, strict=True):
        handed_on &= stated.strings is None or stated.strings == reference.strings(number, values)
        right &= stated.result == reference.steps[number].value
        values[number] = stated.result
    return ReadChain(names_in_order=True, handed_on=handed_on, right_chain=handed_on and right)


def read_trace(reference: Reference, text: str) -> Trace:
    return read_compact(text) if reference.compact else read_english(text, reference)


def classify(reference: Reference, trace: Trace, completion: Completion, verdict: Verdict) -> Diagnosis:
    """Return the class of a completion; of a right compact answer with a faulty trace, the fault is kept."""
    if verdict.reason == Reason.CORRECT:
        diagnosis = _walk(reference, trace, verdict.answer) if reference.compact else Diagnosis(Failure.CORRECT)
        return replace(diagnosis, failure=Failure.CORRECT) if diagnosis.fault else Diagnosis(Failure.CORRECT)
    if completion.finish_reason == LENGTH:
        return Diagnosis(Failure.OVERLONG)
    if verdict.reason in _UNREADABLE:
        return Diagnosis(Failure.FORMAT)
    if verdict.reason == Reason.ERROR:
        return Diagnosis(Failure.UNPARSED)
    if _ignores_composition(reference, trace, verdict.answer):
        return Diagnosis(Failure.IGNORES)
    return _walk(reference, trace, verdict.answer)


def applications(reference: Reference, trace: Trace) -> list[tuple[str, bool]]:
    """Return for every stated step of the problem's functions its ``func_N``, and whether the result is wrong."""
    steps = {step.name: step for step in reference.steps if step.name}
    applied = []
    for stated in trace.steps:
        step = steps.get(stated.name)
        if step is not None and stated.strings is not None and len(stated.strings) == len(step.call.open_slots):
            applied.append((step.call.operator, step.call(*stated.strings) != stated.result))
    return applied


def _ignores_composition(reference: Reference, trace: Trace, answer: str | None) -> bool:
    if len(reference.steps) < 2 or len(trace.steps) > 1:
        return False
    if trace.steps:
        only = trace.steps[0]
        on_input = only.strings is None or set(only.strings) == {reference.input}
        return trace.broken is None and (reference.compact or (on_input and answer == only.result))
    single = (step.call(*[reference.input] * len(step.call.open_slots)) for step in reference.steps)
    return answer is not None and (answer == reference.input or answer in set(single))


def _walk(reference: Reference, trace: Trace, answer: str | None) -> Diagnosis:
    values: dict[int, str] = {}
    remaining = list(reference.named)
    for stated in trace.steps:
        number = _next_step(reference, stated, remaining, values)
        if number is None:
            return _left_out(reference, stated, remaining, values) or _incorrect(reference, trace, remaining)
        remaining = remaining[remaining.index(number) + 1 :]
        fault = _check(reference, number, stated, values)
        if fault is not None:
            return _at(reference, number, _CLASSES[fault], fault)
        values[number] = stated.result
    if trace.broken is not None:
        return Diagnosis(Failure.FORMAT, len(trace.steps) + 1)
    return _ending(reference, trace, remaining, values, answer)


def _next_step(
    reference: Reference, stated: StatedStep, remaining: Sequence[int], values: dict[int, str]
) -> int | None:
    """Return which of the steps left is stated: the next, or (English) a later one from its true strings."""
    if remaining and reference.steps[remaining[0]].name == stated.name:
        return remaining[0]
    if reference.compact or stated.strings is None:
        return None
    for number in remaining:
        if reference.steps[number].name == stated.name and reference.strings(number, values) == stated.strings:
            return number
    return None


def _left_out(
    reference: Reference, stated: StatedStep, remaining: Sequence[int], values: dict[int, str]
) -> Diagnosis | None:
    """Diagnose, in English, steps done silently before a stated one that starts from a wrong string of their making."""
    later = [number for number in remaining if reference.steps[number].name == stated.name]
    if reference.compact or not later or stated.strings in (None, reference.strings(remaining[0], values)):
        return None
    if remaining.index(later[0]) > 1:
        return Diagnosis(Failure.UNPARSED)
    return _at(reference, remaining[0], Failure.ATOMIC, Fault.RESULT)


def _check(reference: Reference, number: int, stated: StatedStep, values: dict[int, str]) -> Fault | None:
    step, expected = reference.steps[number], reference.strings(number, values)
    strings = stated.strings if stated.strings is not None and len(stated.strings) == len(expected) else expected
    if strings != expected:
        return Fault.INPUT_AGAIN if set(strings) == {reference.input} else Fault.MISCOPIED
    return None if step.call(*strings) == stated.result else Fault.RESULT


def _incorrect(reference: Reference, trace: Trace, remaining: Sequence[int]) -> Diagnosis:
    expected, stated = reference.names, [step.name for step in trace.steps]
    if Counter(expected) == Counter(stated):
        fault = Fault.WRONG_ORDER
    elif _is_within(stated, expected):
        fault = Fault.MISSING
    elif _is_within(expected, stated):
        fault = Fault.EXTRA
    else:
        fault = Fault.MIXED if set(stated) <= set(expected) else Fault.OTHER_FUNCTION
    if not remaining:
        return Diagnosis(Failure.INCORRECT, len(reference.steps) + 1, None, fault)
    return _at(reference, remaining[0], Failure.INCORRECT, fault)


def _is_within(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Return whether ``part`` is ``whole`` with some left out."""
    names = iter(whole)
    return all(name in names for name in part)


def _ending(
    reference: Reference, trace: Trace, remaining: Sequence[int], values: dict[int, str], answer: str | None
) -> Diagnosis:
    """Diagnose a trace without a fault by what the answer tells of the steps that are not stated."""
    if remaining and (reference.compact or (trace.steps and answer == trace.steps[-1].result)):
        return _at(reference, remaining[0], Failure.INCOMPLETE)
    final = len(reference.steps) - 1
    if final in values:
        return _at(reference, final, Failure.ATOMIC, None if values[final] == answer else Fault.ANSWER)
    reached = set(values)  # the stated steps and all that had to be done before them
    for number in range(final, -1, -1):
        if number in reached:
            reached.update(s for s in reference.steps[number].call.sources if isinstance(s, int) and s != INPUT)
    if len(reached) < final or answer is None:
        return Diagnosis(Failure.UNPARSED)
    return _at(reference, final, Failure.ATOMIC, Fault.RESULT)


def _at(reference: Reference, number: int, failure: Failure, fault: Fault | None = None) -> Diagnosis:
    return Diagnosis(failure, number + 1, reference.steps[number].call.operator, fault)
