"""Two functions of verl, replaced in every process: it imports this module by the launcher's variables (hooks.py).

``critic.model.external_lib`` would be imported by the driver alone, and not by the worker that builds the critic.
"""

import os
from typing import Any

from compositionality.train.settings import OptimSettings


def rising(optimizer: Any, num_warmup_steps: int, last_epoch: int = -1) -> Any:
    """Return, in the form of verl's function, a schedule that is constant once the rate has risen.

    It rises as the single-file trainer's does; verl's begins at 0, so that the first update changes nothing.
    """
    from torch.optim.lr_scheduler import LambdaLR

    from compositionality.train.policy import learning_rate_at

    shape = OptimSettings(lr=1.0, warmup_steps=num_warmup_steps)
    return LambdaLR(optimizer, lambda step: learning_rate_at(step, 1, shape), last_epoch)


def value_model(local_path: str, torch_dtype: Any, model_config: Any, trust_remote_code: bool) -> Any:
    """Return PPO's critic: the model with a head for a value of each token, all 0 to begin with, with any attention.

    verl's takes flash-attn whatever the configuration says, and draws the head at random.
    """
    import torch
    from transformers import AutoModelForTokenClassification

    model = AutoModelForTokenClassification.from_pretrained(
        local_path, dtype=torch_dtype, config=model_config, trust_remote_code=trust_remote_code
    )
    for weight in model.score.parameters():
        torch.nn.init.zeros_(weight)
    return model


def install() -> None:
    from verl.utils import model, torch_functional

    torch_functional.get_constant_schedule_with_warmup = rising
    model.load_valuehead_model = value_model


if __name__ in os.environ.get("VERL_USE_EXTERNAL_MODULES", "").split(","):
    install()
