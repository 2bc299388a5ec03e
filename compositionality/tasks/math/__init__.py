"""Mathematics with a final answer in a box."""

from compositionality.tasks.math.task import MathTask

TASK = MathTask()
