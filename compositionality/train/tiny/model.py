"""The tiny model: a Llama from a config, in Hugging Face format."""

from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge

from compositionality.memory import ModelShape
from compositionality.ranges import PositiveFloat, PositiveInt
from compositionality.rollout.model_folder import shape_of
from compositionality.train.tiny.tokenizer import MAX_LENGTH


@dataclass
class TinyConfig:
    """Shape of the model. Four heads of 16 learn better here than two of 32, and faster than four of 32.

    vLLM's CPU attention takes no head narrower than 32: a model for the verl engine is made with ``head_width=32``.
    """

    layers: PositiveInt = 3  # blocks
    width: PositiveInt = 64  # of the residual stream
    heads: PositiveInt = 4  # of the attention
    head_width: Annotated[int, Ge(2)] = 16  # of a head; vLLM on a CPU takes 32
    feed_forward: PositiveInt = 176  # width of the MLP
    rope_theta: PositiveFloat = 1000.0  # base of the rotary embedding


def build_model(shape: TinyConfig, tokenizer: Any, seed: int) -> Any:
    """Return a freshly initialised float32 LlamaForCausalLM whose vocabulary is exactly the tokenizer's."""
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        **_sizes(shape, len(tokenizer)),
        max_position_embeddings=MAX_LENGTH,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    model = LlamaForCausalLM(config).to(torch.float32)
    _initialise(model, seed)
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=True
    )
    return model


def tiny_shape(shape: TinyConfig, vocabulary: int) -> ModelShape:
    """Return the sizes of the model that ``build_model`` would make."""
    return shape_of({"model_type": "llama", "dtype": "float32", **_sizes(shape, vocabulary)}, "model")


def _sizes(shape: TinyConfig, vocabulary: int) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": shape.width,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": shape.head_width,
        "tie_word_embeddings": False,
    }


def _initialise(model: Any, seed: int) -> None:
    """Scale by fan-in, half as much where a block writes to the residual stream; transformers' 0.02 learns slowly."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        if weight.dim() != 2:
            continue
        spread = 0.5 if "embed_tokens" in name else weight.shape[1] ** -0.5
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            spread *= 0.5
        torch.nn.init.normal_(weight, std=spread, generator=generator)
