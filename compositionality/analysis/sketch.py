"""Gradients as features with the inner products of the gradients, exactly or nearly; functions of ``seed``.

*exact*: all components. *sketch*: each component is added with a random sign to one of ``size`` features, in
``repeats`` independent ways (a sparse Johnson-Lindenstrauss projection). *lora*: of attention matrices alone, what the
gradient of a fresh LoRA adapter would be (G·Aᵀ, A Gaussian), then the sketch.
"""

# ruff: noqa: N806

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Annotated

import torch
from torch import Tensor

from compositionality.errors import UserError
from compositionality.ranges import NonNegativeInt, OneOf, PositiveInt

KINDS = ("exact", "sketch", "lora")
_ATTENTION = re.compile(r"self_attn\.[qkvo]_proj\.weight$")


@dataclass
class ProjectionSettings:
    """How gradients become features."""

    kind: Annotated[str, OneOf(KINDS)] = "exact"  # exact, sketch or lora
    size: PositiveInt = 8192  # features of a sketch
    repeats: PositiveInt = 4  # features that a component goes to
    rank: PositiveInt = 64  # of the LoRA adapters
    seed: NonNegativeInt = 0  # of signs, places and adapters

    def check(self) -> None:
        """Raise UserError for sizes that do not fit."""
        if self.kind != "exact" and self.size % self.repeats:
            raise UserError(f"projection.size={self.size}: not a multiple of projection.repeats={self.repeats}")


class Projection:
    """Map gradients by name to one vector of features."""

    def __init__(self, settings: ProjectionSettings) -> None:
        self.settings = settings
        self._adapter, self._buckets = cache(self._draw_adapter), cache(self._draw_buckets)

    def __call__(self, gradients: Mapping[str, Tensor]) -> Tensor:
        """Return the features (F), float32; UserError if kind=lora finds no attention matrices."""
        if self.settings.kind == "exact":
            return torch.cat([gradient.flatten().float() for gradient in gradients.values()])
        if self.settings.kind == "lora":
            attention = [(name, gradient.float()) for name, gradient in gradients.items() if _ATTENTION.search(name)]
            gradients = {name: g @ self._adapter(name, g.shape[1]).to(g.device).T for name, g in attention}
            if not gradients:
                raise UserError("projection.kind=lora: the model has no weights self_attn.{q,k,v,o}_proj; use sketch")
        repeats, size = self.settings.repeats, self.settings.size // self.settings.repeats
        device = next(iter(gradients.values())).device
        features_RF = torch.zeros(repeats, size, device=device)
        for name, gradient in gradients.items():
            flat = gradient.flatten().float()
            for repeat in range(repeats):
                buckets, signs = self._buckets(name, repeat, len(flat))
                features_RF[repeat].index_add_(0, buckets.to(device), flat * signs.to(device))
        return features_RF.flatten() / repeats**0.5

    def _draw_adapter(self, name: str, width: int) -> Tensor:
        """Draw the first factor (rank, width) of a LoRA adapter, whose second is 0 and has the gradient."""
        return torch.randn(self.settings.rank, width, generator=self._generator(name)) / self.settings.rank**0.5

    def _draw_buckets(self, name: str, repeat: int, n: int) -> tuple[Tensor, Tensor]:
        """Draw the feature and the sign of each of n components."""
        generator = self._generator(f"{name}/{repeat}")
        buckets = torch.randint(self.settings.size // self.settings.repeats, (n,), generator=generator)
        return buckets.to(torch.int32), torch.randint(2, (n,), generator=generator, dtype=torch.int8) * 2 - 1

    def _generator(self, name: str) -> torch.Generator:
        digest = blake2b(f"{self.settings.seed}/{name}".encode(), digest_size=7).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest, "big"))
