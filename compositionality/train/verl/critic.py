"""Build the critic of PPO for verl: with any attention, all values 0 to begin with.

verl's own builder takes flash-attn whatever the configuration says, and draws the head at random. verl imports this
module in every process of such a run (hooks.py): ``critic.model.external_lib`` would be imported by its driver alone,
which makes the critic's configuration and sends it to the worker.
"""

import os
from typing import Any


def value_model(local_path: str, torch_dtype: Any, model_config: Any, trust_remote_code: bool) -> Any:
    """Return the model with a head for a value of each token."""
    import torch
    from transformers import AutoModelForTokenClassification

    model = AutoModelForTokenClassification.from_pretrained(
        local_path, dtype=torch_dtype, config=model_config, trust_remote_code=trust_remote_code
    )
    for weight in model.score.parameters():
        torch.nn.init.zeros_(weight)
    return model


def install() -> None:
    from verl.utils import model

    model.load_valuehead_model = value_model


if __name__ in os.environ.get("VERL_USE_EXTERNAL_MODULES", "").split(","):
    install()
