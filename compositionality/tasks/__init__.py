"""What is asked, and how an answer is judged. Imports nothing of ours but the vocabulary, and no heavy package."""

from compositionality.tasks.registry import judge, known_data_sources
from compositionality.tasks.task import Task
from compositionality.types import Message, Problem, Reason, Verdict

__all__ = ["Message", "Problem", "Reason", "Task", "Verdict", "judge", "known_data_sources"]
