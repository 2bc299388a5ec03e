"""What is asked, and how an answer is judged. Imports nothing of ours but the errors, and no heavy package."""

from compositionality.tasks.base import Message, Problem, Reason, Task, Verdict
from compositionality.tasks.registry import judge, known_data_sources

__all__ = ["Message", "Problem", "Reason", "Task", "Verdict", "judge", "known_data_sources"]
