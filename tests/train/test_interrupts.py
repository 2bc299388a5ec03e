"""Ctrl-C is held back until a checkpoint is whole; a second one is not."""

import os
import signal
from collections.abc import Iterator

import pytest

from compositionality.train.checkpoint import interrupt_afterwards


@pytest.fixture(autouse=True)
def as_in_a_terminal() -> Iterator[None]:
    """A shell starts what it puts in the background without SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@interrupt_afterwards()
def interrupted(done: list[int], times: int) -> None:
    """A library that makes an error of its own of a KeyboardInterrupt."""
    try:
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt as interrupt:
        raise RuntimeError("checkpoint failed") from interrupt
    done.append(times)


@pytest.mark.parametrize(("times", "done"), [(1, [1]), (2, [])])
def test_one_waits_for_the_end_and_a_second_does_not(times: int, done: list[int]) -> None:
    found: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(found, times)
    assert found == done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_one_nothing_happens() -> None:
    found: list[int] = []
    interrupted(found, 0)
    assert found == [0]
    with pytest.raises(ValueError, match="other"), interrupt_afterwards():
        raise ValueError("other")
