"""What a task is to the rest of the project."""

from typing import Protocol

from compositionality.types import Problem, Verdict


class Task(Protocol):
    """Makes problems and judges answers; pure and deterministic."""

    def problem(self, split: str, seed: int, index: int) -> Problem:
        """The problem at ``index`` of the stream (split, seed)."""
        ...

    def judge(self, response: str, ground_truth: str) -> Verdict:
        """Judge one response text. Never raises on what a model wrote; linear in its length."""
        ...
