"""The scorers of the library, on entries that have been JSON. They run in processes of the judge pool only."""

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from typing import Any

SECONDS = 5.0  # of CPU time for one answer: less than the pool's limit, whose processes end with what they judge
_SAMPLES = {"propositional_logic": "example_answer", "rubiks_cube": "example_correct_answer"}
_TUPLES = ("arc_agi", "rearc")


def library_score(dataset: str, answer: str, entry: dict[str, Any]) -> float:
    """What the library's scorer says of ``answer``. Raises whatever it raises, and TimeoutError after ``SECONDS``."""
    asked = deepcopy(entry)  # some scorers change it
    if dataset in _TUPLES:  # the scorer compares with tuples, which are lists in JSON
        asked["metadata"]["output"] = tuple(map(tuple, asked["metadata"]["output"]))
    scorer = _scorer(dataset)
    with _cpu_limit(SECONDS):
        return float(scorer(answer, asked))


def known_answer(entry: dict[str, Any]) -> str | None:
    """An answer that is right: the entry's, or the sample that its metadata hold; None if there is none.

    Where sympy found no antiderivative, the entry's answer repeats the question as ``Integral(…)``, which is none.
    """
    if entry["answer"] is not None:
        return None if "Integral(" in str(entry["answer"]) else str(entry["answer"])
    metadata = entry["metadata"]
    if "possible_answer" in metadata:
        return json.dumps(metadata["possible_answer"])
    sample = metadata.get(_SAMPLES.get(metadata["source_dataset"], ""))
    return None if sample is None else str(sample)


@cache
def _scorer(dataset: str) -> Any:
    import reasoning_gym

    return reasoning_gym.get_score_answer_fn(dataset)


@contextmanager
def _cpu_limit(seconds: float) -> Iterator[None]:
    """TimeoutError in the main thread once it has used ``seconds`` of CPU time; in other threads there is no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(*_: object) -> None:
    raise TimeoutError(f"the scorer took more than {SECONDS:g} s of CPU time")
