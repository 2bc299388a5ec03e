"""Problems, and how their completions are judged: one package per task behind one interface (README.md)."""

from compositionality.tasks.registry import all_tasks, find_task, task_of
from compositionality.tasks.task import Column, Identity, Mode, Task

__all__ = ["Column", "Identity", "Mode", "Task", "all_tasks", "find_task", "task_of"]
