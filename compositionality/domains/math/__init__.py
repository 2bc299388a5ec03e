"""Mathematics with a final answer in a box."""

from compositionality.domains.math.task import TASK as TASK
