"""The forward pass of Llama, Qwen2 and Qwen3 for sampling: few kernels; the caller supplies the attention.

Names of tensors: N tokens of any rows, C model width, F feed-forward width, V vocabulary, H query heads,
G key-value heads, D head width, E = D/2.
"""

# ruff: noqa: N803, N806

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from compositionality.errors import UserError

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Stores the new keys and values of a layer and attends: (layer, q NHD, k NGD, v NGD) → NHD."""


class Decoder:
    """Weights in fused form and the layers over them.

    Heads are stored with each rotating pair of coordinates side by side (Hugging Face has them half a head apart):
    a rotation is then one complex product. Queries and keys are permuted alike, so their products are the same.
    """

    def __init__(self, config: Any, device: torch.device, dtype: torch.dtype) -> None:
        """Build the layers. UserError for a model of one of the FAMILIES with another activation or attention."""
        if config.hidden_act != "silu":
            raise UserError(
                f"hidden_act {config.hidden_act}: the built-in sampler supports only silu; give engine=transformers"
            )
        if "sliding_attention" in (getattr(config, "layer_types", None) or ()):
            raise UserError(
                "sliding-window attention: the built-in sampler does not support it; give engine=transformers"
            )
        self.layers: int = config.num_hidden_layers
        self.heads: int = config.num_attention_heads
        self.kv_heads: int = config.num_key_value_heads or self.heads
        self.head_width: int = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.max_positions: int = config.max_position_embeddings
        self.vocabulary: int = config.vocab_size
        self.device, self.dtype = device, dtype
        self._eps: float = config.rms_norm_eps
        self._rotations_TE = rotations(config, self.head_width).to(device)
        self._embedding = torch.empty(config.vocab_size, config.hidden_size, device=device, dtype=dtype)
        self._norm = torch.empty(config.hidden_size, device=device, dtype=dtype)
        self._head = self._embedding if config.tie_word_embeddings else torch.empty_like(self._embedding)
        self._blocks = [_Layer(config, self) for _ in range(self.layers)]
        # Where a Hugging Face name goes, and whether its rows rotate in pairs.
        self._places = {"model.embed_tokens.weight": (self._embedding, False), "model.norm.weight": (self._norm, False)}
        for number, layer in enumerate(self._blocks):
            for name, place, paired in layer.places():
                self._places[f"model.layers.{number}.{name}"] = (place, paired)
        self._places["lm_head.weight"] = (self._head, False)
        self._missing = set(self._places) - ({"lm_head.weight"} if config.tie_word_embeddings else set())

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Load Hugging Face weights by name, any subset. UserError for an unknown name or a wrong shape."""
        for name, tensor in weights:
            if name not in self._places:
                raise UserError(f"sampler: the model has no weight named {name}; is it of another architecture?")
            place, paired = self._places[name]
            if tensor.shape != place.shape:
                raise UserError(f"sampler: {name} has shape {list(tensor.shape)}, the model {list(place.shape)}")
            if paired:  # in Hugging Face's order: head, half, pair, …
                half = self.head_width // 2
                place = place.view(-1, half, 2, *place.shape[1:]).transpose(1, 2)
                tensor = tensor.reshape(-1, 2, half, *tensor.shape[1:])
            with torch.no_grad():
                place.copy_(tensor)
            self._missing.discard(name)

    def check_loaded(self) -> None:
        if self._missing:
            raise UserError(f"sampler: weight {min(self._missing)} was never loaded")

    def hidden(self, tokens_N: Tensor, positions_N: Tensor, attend: Attend) -> Tensor:
        """Return the last layer's output (N, C), before the final norm."""
        eps, width = self._eps, (self._embedding.shape[1],)
        rotations_N1E = self._rotations_TE[positions_N].unsqueeze(1)
        x_NC = self._embedding[tokens_N]
        for number, layer in enumerate(self._blocks):
            y_NC = functional.rms_norm(x_NC, width, layer.norm_before_attention, eps)
            read_NA = self._attention(number, layer, y_NC, rotations_N1E, attend)
            x_NC = _add_product(x_NC, read_NA, layer.o, layer.o_bias)
            y_NC = functional.rms_norm(x_NC, width, layer.norm_before_mlp, eps)
            gate_NF, up_NF = functional.linear(y_NC, layer.gate_up, layer.gate_up_bias).chunk(2, dim=1)
            x_NC = _add_product(x_NC, functional.silu(gate_NF).mul_(up_NF), layer.down, layer.down_bias)
        return x_NC

    def logits(self, x_NC: Tensor) -> Tensor:
        """Return float32 logits (N, V) of the last layer's output."""
        y_NC = functional.rms_norm(x_NC, x_NC.shape[1:], self._norm, self._eps)
        return functional.linear(y_NC, self._head).float()

    def _attention(self, number: int, layer: "_Layer", y_NC: Tensor, rotations_N1E: Tensor, attend: Attend) -> Tensor:
        """Return the output of attention, all heads concatenated (N, H·D)."""
        heads, both = self.heads, self.heads + self.kv_heads
        qkv_NXD = functional.linear(y_NC, layer.qkv, layer.qkv_bias).view(len(y_NC), -1, self.head_width)
        qk_NYD, v_NGD = qkv_NXD[:, :both], qkv_NXD[:, both:]
        if layer.q_norm is not None and layer.k_norm is not None:
            q_NHD = functional.rms_norm(qk_NYD[:, :heads], (self.head_width,), layer.q_norm, self._eps)
            k_NGD = functional.rms_norm(qk_NYD[:, heads:], (self.head_width,), layer.k_norm, self._eps)
            qk_NYD = torch.cat([q_NHD, k_NGD], dim=1)
        qk_NYD = _rotated(qk_NYD, rotations_N1E)
        return attend(number, qk_NYD[:, :heads], qk_NYD[:, heads:], v_NGD).reshape(len(y_NC), -1)


class _Layer:
    """One block's weights; (out, in) as in Hugging Face."""

    def __init__(self, config: Any, model: Decoder) -> None:
        def new(*shape: int) -> Tensor:
            return torch.empty(shape, device=model.device, dtype=model.dtype)

        def new_if(exists: bool, *shape: int) -> Tensor | None:
            return new(*shape) if exists else None

        width, feed = config.hidden_size, config.intermediate_size
        queries, keys = model.heads * model.head_width, model.kv_heads * model.head_width
        self.norm_before_attention, self.norm_before_mlp = new(width), new(width)
        self.qkv, self.o = new(queries + 2 * keys, width), new(width, queries)
        self.gate_up, self.down = new(2 * feed, width), new(width, feed)
        is_qwen2, is_qwen3 = config.model_type == "qwen2", config.model_type == "qwen3"
        biased, mlp_biased = (bool(getattr(config, f"{part}_bias", False)) for part in ("attention", "mlp"))
        self.qkv_bias = new_if(biased or is_qwen2, queries + 2 * keys)
        self.o_bias = new_if(biased and not is_qwen2, width)
        self.gate_up_bias, self.down_bias = new_if(mlp_biased, 2 * feed), new_if(mlp_biased, width)
        self.q_norm, self.k_norm = new_if(is_qwen3, model.head_width), new_if(is_qwen3, model.head_width)
        self._split = [queries, keys, keys]

    def places(self) -> Iterable[tuple[str, Tensor, bool]]:
        """Yield Hugging Face's name of each weight, its place here, and whether its rows rotate in pairs."""
        yield "input_layernorm.weight", self.norm_before_attention, False
        yield "post_attention_layernorm.weight", self.norm_before_mlp, False
        for suffix, qkv, o, gate_up, down in (
            ("weight", self.qkv, self.o, self.gate_up, self.down),
            ("bias", self.qkv_bias, self.o_bias, self.gate_up_bias, self.down_bias),
        ):
            if qkv is not None:
                q, k, v = qkv.split(self._split)
                yield f"self_attn.q_proj.{suffix}", q, True
                yield f"self_attn.k_proj.{suffix}", k, True
                yield f"self_attn.v_proj.{suffix}", v, False
            if gate_up is not None:
                gate, up = gate_up.chunk(2)
                yield f"mlp.gate_proj.{suffix}", gate, False
                yield f"mlp.up_proj.{suffix}", up, False
            for name, place in (("self_attn.o_proj", o), ("mlp.down_proj", down)):
                if place is not None:
                    yield f"{name}.{suffix}", place, False
        for name, norm in (("q_norm", self.q_norm), ("k_norm", self.k_norm)):
            if norm is not None:
                yield f"self_attn.{name}.weight", norm, True


def rotations(config: Any, head_width: int) -> Tensor:
    """Return the complex rotations (positions, E) of RoPE, times the config's RoPE scaling."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    parameters = config.rope_parameters
    kind = parameters["rope_type"]
    if kind == "longrope" or (kind != "default" and kind not in ROPE_INIT_FUNCTIONS):
        raise UserError(f"rope_type {kind}: the built-in sampler does not support it; use another engine")
    scaling = 1.0
    if kind == "default":
        exponents_E = torch.arange(0, head_width, 2, dtype=torch.int64).float() / head_width
        frequencies_E = 1.0 / parameters["rope_theta"] ** exponents_E
    else:
        frequencies_E, scaling = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"))
    angles_TE = torch.outer(torch.arange(config.max_position_embeddings).float(), frequencies_E.float())
    return torch.complex(angles_TE.cos() * scaling, angles_TE.sin() * scaling)


def _rotated(qk_NYD: Tensor, rotations_N1E: Tensor) -> Tensor:
    """Rotate every pair of neighbouring coordinates by its angle, in float32."""
    pairs = torch.view_as_complex(qk_NYD.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotations_N1E).flatten(-2).to(qk_NYD.dtype)


def _add_product(x_NC: Tensor, y_NA: Tensor, weight_CA: Tensor, bias_C: Tensor | None) -> Tensor:
    """Return x + y·Wᵀ (+ bias), in one kernel if there is no bias."""
    sum_NC = torch.addmm(x_NC, y_NA, weight_CA.t())
    return sum_NC if bias_C is None else sum_NC + bias_C
