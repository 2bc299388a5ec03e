"""Let the learning rate of verl's constant schedule rise as the single-file trainer's does (``optim.warmup_steps``).

verl's own begins at 0, so that the first update changes nothing. verl imports this module in every process (hooks.py).
"""

import os
from typing import Any

from compositionality.train.settings import OptimSettings


def rising(optimizer: Any, num_warmup_steps: int, last_epoch: int = -1) -> Any:
    """Return, in the form of verl's function, a schedule that is constant once the rate has risen."""
    from torch.optim.lr_scheduler import LambdaLR

    from compositionality.train.policy import learning_rate_at

    shape = OptimSettings(lr=1.0, warmup_steps=num_warmup_steps)
    return LambdaLR(optimizer, lambda step: learning_rate_at(step, 1, shape), last_epoch)


def install() -> None:
    from verl.utils import torch_functional

    torch_functional.get_constant_schedule_with_warmup = rising


if __name__ in os.environ.get("VERL_USE_EXTERNAL_MODULES", "").split(","):
    install()
