"""The shape of a model from its configuration alone: parameters on ``meta`` tensors, no weights are read."""

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.rollout.model_folder import HUB_ID, read_config, text_config
from compositionality.yaml_files import read_yaml_mapping

KNOWN = Path(__file__).parents[2] / "config" / "models"
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a causal language model. ``tensors``: the sizes of its parameters, a tied head counted once."""

    layers: int
    width: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    tied: bool
    stored_bytes: int  # of a weight in the model's folder
    tensors: tuple[int, ...]

    @cached_property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(self.tensors)

    @property
    def ends(self) -> int:
        """Weights outside the blocks: embedding, head if it is not tied, the last norm."""
        return self.vocabulary * self.width * (1 if self.tied else 2) + self.width

    @property
    def block(self) -> int:
        """Weights of a block."""
        return (self.parameters - self.ends) // self.layers

    def cache_bytes(self, bytes_each: int) -> int:
        """Bytes of keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head_width * bytes_each


def shape_of(config: dict[str, Any], source: str) -> ModelShape:
    """The shape of the model that a config.json describes; UserError naming ``source`` for one that is not known."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    flat = text_config(config)
    known = {key: value for key, value in flat.items() if key not in ("model_type", "quantization_config")}
    try:
        settings = AutoConfig.for_model(flat["model_type"], **known)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(settings)
        return _sizes(settings, tuple(parameter.numel() for parameter in model.parameters()), flat)
    except Exception as error:  # of a foreign config anything
        raise UserError(f"{source}: not the config of a causal language model whose sizes are known here") from error


def _sizes(settings: Any, tensors: tuple[int, ...], flat: dict[str, Any]) -> ModelShape:
    heads = settings.num_attention_heads
    return ModelShape(
        layers=settings.num_hidden_layers,
        width=settings.hidden_size,
        feed_forward=getattr(settings, "intermediate_size", None) or 4 * settings.hidden_size,
        heads=heads,
        kv_heads=getattr(settings, "num_key_value_heads", None) or heads,
        head_width=getattr(settings, "head_dim", None) or settings.hidden_size // heads,
        vocabulary=settings.vocab_size,
        tied=bool(settings.tie_word_embeddings),
        stored_bytes=BYTES.get(str(flat.get("dtype") or flat.get("torch_dtype")).removeprefix("torch."), 4),
        tensors=tensors,
    )


def shape_of_model(model: str | Path) -> ModelShape:
    """The shape of a model folder (its config.json is enough), a config.json, a Hub id or a name that is known.

    Nothing is downloaded: of a Hub id the config in the cache counts, else the files of config/models/.
    UserError if there is none of them.
    """
    path = Path(model).expanduser()
    if path.is_file():
        return shape_of(read_config(path.parent) if path.name == "config.json" else read_yaml_mapping(path), str(path))
    if path.is_dir():
        return shape_of(read_config(path), str(path))
    if HUB_ID.fullmatch(str(model)) and (cached := cached_config(str(model))):
        return shape_of(read_config(cached.parent), str(model))
    for file in sorted(KNOWN.glob("*.yaml")):
        if path.name.startswith(file.stem):
            return shape_of(read_yaml_mapping(file), str(file))
    names = ", ".join(file.stem for file in sorted(KNOWN.glob("*.yaml")))
    raise UserError(f"{model}: no such model here; give model=FOLDER, a config.json, or one that is known: {names}")


def is_forecast(model: Path) -> bool:
    """False for a model folder whose memory is not known here: of a family without these sizes, or quantised."""
    config = read_config(model)
    if "quantization_config" in text_config(config):
        return False
    try:
        shape_of(config, str(model))
    except UserError:
        return False
    return True


def cached_config(hub_id: str) -> Path | None:
    """The config.json of a Hub model in the Hugging Face cache; None if it is not there."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(hub_id, "config.json")
    return Path(found) if isinstance(found, str) else None


def pinned_bytes(shape: ModelShape, ranks: int, bytes_each: int) -> int:
    """Host memory of one rank's shards of all parameters: torch's pinned allocator rounds each up to a power of two.

    (``CachingHostAllocatorImpl::allocate`` in c10; verl copies with ``non_blocking=True``, utils/fsdp_utils.py.)
    """
    return sum(1 << (math.ceil(size / ranks) * bytes_each - 1).bit_length() for size in shape.tensors)
