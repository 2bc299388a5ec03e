"""LoRA (arXiv 2106.09685): low-rank adapters beside frozen weights, by peft; what is exported has them merged."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from compositionality.errors import UserError
from compositionality.train.settings import LoraSettings
from compositionality.validation import choices

ADAPTER = "default"
DOWN, UP, BASE = f".lora_A.{ADAPTER}.weight", f".lora_B.{ADAPTER}.weight", ".base_layer."
"""In the names of weights: peft's."""
HEAD = "lm_head"


def add_adapters(model: Any, settings: LoraSettings) -> None:
    """Add adapters beside the linear layers of ``model``, the same on every rank; they begin as no change at all.

    All other weights are frozen. UserError for layers that it does not have.
    """
    targets = adapted_layers(model, settings)
    from peft import LoraConfig, inject_adapter_in_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        inject_adapter_in_model(
            LoraConfig(r=settings.rank, lora_alpha=settings.alpha, target_modules=targets), model, ADAPTER
        )


def adapted_layers(model: Any, settings: LoraSettings) -> list[str]:
    """Return the names of the linear layers of ``model`` that get an adapter. UserError as ``add_adapters`` has it."""
    linear = {name.rpartition(".")[2] for name, layer in model.named_modules() if isinstance(layer, nn.Linear)} - {HEAD}
    for name in settings.targets:
        if name not in linear:
            raise UserError(f"model.lora.targets: no linear layers {name}; {choices(name, sorted(linear))}")
    return sorted(settings.targets or linear)


def check_adapters(folder: Path, settings: LoraSettings) -> None:
    """Raise UserError as ``add_adapters`` has it for the model in ``folder``, of which only the config is read."""
    from transformers import AutoConfig, AutoModelForCausalLM

    if settings.rank:
        with torch.device("meta"):
            config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
            adapted_layers(AutoModelForCausalLM.from_config(config), settings)


def scale_of(model: Any) -> float:
    """Return what an adapter's change is multiplied by, alpha / rank; 0 without adapters."""
    scales = (layer.scaling[ADAPTER] for layer in model.modules() if hasattr(layer, "lora_A"))
    return float(next(scales, 0.0))


def stored(names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return, for every weight by its Hugging Face name, the names of what makes it up: W, or W, A and B."""
    parts = dict[str, tuple[str, ...]]()
    for name in names:
        layer, _, kind = name.partition(BASE)
        adapter = (layer + DOWN, layer + UP) if kind == "weight" and layer + UP in names else ()
        if not name.endswith((DOWN, UP)):
            parts[name.replace(BASE, ".")] = (name, *adapter)
    return parts


def merged(weight: Tensor, *adapter: Tensor, scale: float) -> Tensor:
    """Return W + scale · B A, or W without an adapter; ``adapter``: A, B."""
    if not adapter:
        return weight
    down, up = adapter
    return weight + scale * (up @ down)
