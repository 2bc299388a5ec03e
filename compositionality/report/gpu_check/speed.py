"""Floating-point operations of a step by the usual formula, and the share of the GPU's peak that they are (MFU).

A token costs 2 N in a forward pass and 6 N in an update (N: weights of matrix products, so without an input embedding
that is a look-up only), and its attention to T tokens 4 L W T or 12 L W T (L layers, W = heads × their width).
"""

from dataclasses import dataclass
from pathlib import Path

from compositionality.rollout.forecast.shape import shape_of_model

PEAKS = {
    "B200": 2250e12,
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L40": 181e12,
    "L4": 121e12,
    "A40": 150e12,
    "A10G": 70e12,
    "A10": 125e12,
    "RTX A6000": 155e12,
    "RTX 4090": 165e12,
    "RTX 3090": 71e12,
}
"""Dense bfloat16 FLOP/s by the words in a GPU's name, the longer names before those that they begin with."""


@dataclass(frozen=True)
class FlopShape:
    """What the operations of a model depend on: weights of matrix products, layers, width of all heads together."""

    weights: int
    layers: int
    width: int

    def flops(self, tokens: float, context: float, *, update: bool) -> float:
        """Of a forward pass over ``tokens`` that see ``context`` tokens each; ``update``: with the backward pass."""
        forward = tokens * (2 * self.weights + 4 * self.layers * self.width * context)
        return 3 * forward if update else forward


def shape_of(model: Path) -> FlopShape:
    """The shape of a model folder."""
    shape = shape_of_model(model)
    embedding = 0 if shape.tied else shape.vocabulary * shape.width
    return FlopShape(shape.parameters - embedding, shape.layers, shape.heads * shape.head_width)


def peak(name: str) -> float | None:
    """Dense bfloat16 FLOP/s of the GPU called ``name``; None for one that is not known."""
    words = name.replace("-", " ").split()
    if {"Laptop", "D", "MIG"} & set(words):
        return None
    for known, flops in PEAKS.items():
        parts = known.split()
        if any(words[place : place + len(parts)] == parts for place in range(len(words))):
            return flops
    return None


def mfu(flops_per_second: float, gpus: list[str]) -> float | None:
    """The share of the peak of all ``gpus``; None on a CPU and where one is not known."""
    peaks = [peak(name) for name in gpus]
    known = [one for one in peaks if one is not None]
    return flops_per_second / sum(known) if known and len(known) == len(peaks) else None
