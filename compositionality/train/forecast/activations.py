"""Bytes that a forward and backward pass holds at its peak: activations, attention masks, logits.

D width, Q and K width of all heads and of all key-value heads, F width of the MLP, V vocabulary, c bytes of a number in
the data type of the computation; bytes a token. The norms of transformers compute in float32 (LlamaRMSNorm).
"""

# ruff: noqa: N806

from dataclasses import dataclass

from compositionality.rollout.forecast.shape import ModelShape
from compositionality.train.forecast.batch import BatchSize

HEAD_TOKENS = 2048
HEAD_NUMBERS = 5
"""Float32 numbers for each logit at the peak of the single-file trainers' log-probabilities and entropy."""


@dataclass(frozen=True)
class Pass:
    """How a micro-batch goes through the model. ``tensor``: ranks that share a layer."""

    batch: BatchSize
    bytes_each: int
    checkpointing: bool
    attention: str
    head: str  # single or verl
    entropy: bool = False  # verl: of all tokens, with a gradient
    tempered: bool = False  # verl: the logits are divided by a temperature, into a copy
    tensor: int = 1

    @property
    def masked(self) -> bool:
        """Whether attention reads a mask: sdpa and eager do, where rows are packed or padded by verl."""
        return self.head == "verl" and self.attention != "flash_attention_2"


def norm_bytes(shape: ModelShape, c: int) -> int:
    """A norm and what it hands on: its input in float32, its output before and after the weight."""
    return shape.width * (4 + 2 * c)


def block_bytes(shape: ModelShape, how: Pass) -> int:
    """What a block keeps of a token for its backward pass (transformers' modelling_llama.py, without dropout).

    Two norms; queries, keys, values and the output of attention with its log-sum; four tensors of the MLP. With a mask
    sdpa cannot share the keys and values among heads, so that they are repeated (integrations/sdpa_attention.py).
    """
    c, Q = how.bytes_each, shape.heads * shape.head_width
    K = Q if how.masked else shape.kv_heads * shape.head_width
    scores = 0
    if how.attention == "eager":
        scores = how.batch.mask * shape.heads * (4 + (c if c < 4 else 0)) // max(how.batch.computed, 1)
    inner = c * (2 * Q + 2 * K + 4 * shape.feed_forward) + 4 * shape.heads + scores
    return 2 * norm_bytes(shape, c) + inner // how.tensor


def mask_bytes(shape: ModelShape, how: Pass) -> int:
    """The mask, a byte an entry, and sdpa's copy of it in the data type of the computation."""
    del shape
    return how.batch.mask * (1 + how.bytes_each) if how.masked else 0


def head_bytes(shape: ModelShape, how: Pass) -> int:
    """Logits and what is computed from them, at the peak, in bytes of the whole micro-batch.

    verl (transformer_impl.py, prepare_model_outputs): the logits in the data type of the computation, whose gradient
    takes their place; padded rows are copied without their padding, a temperature and entropy cost copies too. The
    single-file trainers: five float32 numbers a logit, with activation checkpointing of 2,048 tokens at a time.
    """
    V, c, batch = shape.vocabulary // how.tensor, how.bytes_each, how.batch
    if how.head == "single":
        tokens = min(batch.computed, HEAD_TOKENS) if how.checkpointing else batch.computed
        return HEAD_NUMBERS * 4 * tokens * V
    copies = batch.computed + (0 if batch.packed else batch.tokens) + (batch.computed if how.tempered else 0)
    return c * V * copies + (batch.computed * V * (c + 12) if how.entropy else 0)


def parts(shape: ModelShape, how: Pass) -> dict[str, float]:
    """Activations, masks and logits at the peak of a micro-batch.

    With activation checkpointing only the input of each block is kept, and one block at a time is computed again: after
    the logits, which are gone by then.
    """
    c, tokens = how.bytes_each, how.batch.computed
    block, end = block_bytes(shape, how) * tokens, norm_bytes(shape, c) * tokens
    backward = c * (2 * shape.feed_forward // how.tensor + 2 * shape.width) * tokens
    head = head_bytes(shape, how)
    if not how.checkpointing:
        return {
            "activations": shape.layers * block + max(end, backward - head),
            "logits": head,
            "attention mask": mask_bytes(shape, how),
        }
    kept = shape.layers * shape.width * c * tokens
    found = {"checkpointed activations": kept, "attention mask": mask_bytes(shape, how)}
    if end + head > block + backward:
        return {**found, "logits": end + head}
    return {**found, "activations of a block": block + backward}
