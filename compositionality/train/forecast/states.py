"""Bytes of weights, gradients and Adam's moments: on each GPU, on each node, in a checkpoint."""

from dataclasses import dataclass

from compositionality.rollout.forecast.shape import ModelShape, pinned_bytes

WEIGHT, GRADIENT, MOMENTS = 4, 4, 8
"""Bytes of a weight, float32."""


@dataclass(frozen=True)
class Sharing:
    """``data`` ranks share weights and Adam if ``sharded`` (FSDP2); ``tensor`` ranks share each layer.

    ``resident``: where weights, gradients and Adam live during an update; False: in host memory (FSDP2's
    CPUOffloadPolicy, verl's offload_policy). ``parked``: verl moves them to host memory between updates (param_offload,
    optimizer_offload) and back for each (workers/engine/base.py), so that this saves nothing in an update.
    """

    data: int
    tensor: int = 1
    sharded: bool = True
    resident: bool = True
    parked_weights: bool = False
    parked_moments: bool = False
    deferred: bool = False  # verl: gradients stay whole until the last micro-batch
    trained: float = 1.0  # share of the weights that have gradients and moments: with LoRA little

    @property
    def ways(self) -> int:
        """Into how many parts the weights are split."""
        return self.tensor * (self.data if self.sharded else 1)


def states(shape: ModelShape, how: Sharing, *, reference: bool = False) -> dict[str, float]:
    """Of a GPU during an update."""
    part = shape.parameters / how.ways
    each = WEIGHT + (GRADIENT + MOMENTS) * how.trained
    found = {"weights, gradients and Adam": part * each if how.resident else 0.0}
    if reference:
        found["reference model"] = part * WEIGHT
    if how.deferred:
        found["whole gradients"] = shape.parameters / how.tensor * GRADIENT * how.trained
    return found


def trained_share(shape: ModelShape, lora_rank: int) -> float:
    """At most: two factors of this rank beside square matrices of the model's width; 1 without LoRA."""
    return min(1.0, 2 * lora_rank / shape.width) if lora_rank else 1.0


def gathered(shape: ModelShape, how: Sharing, c: int) -> tuple[float, float]:
    """Bytes of what FSDP2 holds whole: during the passes, and at their end.

    During: the root's group (embedding and head, which stay whole from the forward pass to the end of the backward
    pass, with their gradient), a block, the next one, and a block's gradient with its float32 copy for the reduction.
    At the end: the root's weights, its gradient, and the float32 copy.
    """
    if not how.sharded:
        return 0.0, 0.0
    root, block = shape.ends / how.tensor, shape.block / how.tensor
    return root * 2 * c + block * (3 * c + 4), root * (2 * c + 4)


def parked_between(shape: ModelShape, how: Sharing) -> float:
    """Bytes of a rank's states in host memory between updates, pinned, hence rounded up; all of them without GPU."""
    count = how.parked_weights + 2 * how.parked_moments
    if not how.resident:
        count = 4
    return float(count * pinned_bytes(shape, how.ways, WEIGHT))
