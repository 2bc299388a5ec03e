"""The data sets of reasoning-gym as one task: each is a ``data_source`` of its own, ``reasoning_gym/NAME``."""

from compositionality.domains.reasoning_gym.task import TASK as TASK
