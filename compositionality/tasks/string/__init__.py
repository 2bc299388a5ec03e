"""The string task: nested functions on short strings, in the paper's mode and in a clean one."""

from compositionality.tasks.string.task import TASK

__all__ = ["TASK"]
