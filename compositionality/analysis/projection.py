"""Gradients made small enough to be kept: features whose inner products are those of the gradients, nearly.

*exact*: all components. *sketch*: each component is added with a random sign to one of ``size`` features, in
``repeats`` independent ways (a sparse Johnson-Lindenstrauss projection). *lora*: of attention matrices alone, what the
gradient of a fresh LoRA adapter would be (G·Aᵀ, A Gaussian), then the sketch. All are functions of ``seed``.
"""

# ruff: noqa: N806

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated

import torch
from torch import Tensor

from compositionality.errors import UserError
from compositionality.ranges import NonNegativeInt, OneOf, PositiveInt

KINDS = ("exact", "sketch", "lora")
_ATTENTION = re.compile(r"self_attn\.[qkvo]_proj\.weight$")
Gradients = Mapping[str, Tensor]


@dataclass
class ProjectionSettings:
    """How gradients become features."""

    kind: Annotated[str, OneOf(KINDS)] = "exact"  # exact, sketch or lora
    size: PositiveInt = 8192  # features of a sketch
    repeats: PositiveInt = 4  # features that a component goes to
    rank: PositiveInt = 64  # of the LoRA adapters
    seed: NonNegativeInt = 0  # of signs, places and adapters

    def check(self) -> None:
        """UserError for sizes that do not fit."""
        if self.kind != "exact" and self.size % self.repeats:
            raise UserError(f"projection.size={self.size}: not a multiple of projection.repeats={self.repeats}")


class Projection:
    """From gradients by name to one vector of features."""

    def __init__(self, settings: ProjectionSettings) -> None:
        settings.check()
        self.settings = settings
        self._places: dict[tuple[str, int], tuple[Tensor, Tensor]] = {}
        self._adapters: dict[str, Tensor] = {}

    def __call__(self, gradients: Gradients) -> Tensor:
        """The features (F), float32. UserError for a model without attention matrices where these are needed."""
        if self.settings.kind == "exact":
            return torch.cat([gradient.flatten().float() for gradient in gradients.values()])
        if self.settings.kind == "lora":
            gradients = {
                name: self._of_adapter(name, one) for name, one in gradients.items() if _ATTENTION.search(name)
            }
            if not gradients:
                raise UserError("projection.kind=lora: the model has no weights self_attn.{q,k,v,o}_proj; use sketch")
        return self._sketched(gradients)

    def _of_adapter(self, name: str, gradient: Tensor) -> Tensor:
        """(out, rank): the gradient of an adapter's second factor, where the first is Gaussian and the second 0."""
        if name not in self._adapters:
            shape = self.settings.rank, gradient.shape[1]
            self._adapters[name] = torch.randn(shape, generator=self._generator(name)) / shape[0] ** 0.5
        return gradient.float() @ self._adapters[name].to(gradient.device).T

    def _sketched(self, gradients: Gradients) -> Tensor:
        repeats, part = self.settings.repeats, self.settings.size // self.settings.repeats
        device = next(iter(gradients.values())).device
        features_RP = torch.zeros(repeats, part, device=device)
        for name, gradient in gradients.items():
            flat = gradient.flatten().float()
            for repeat in range(repeats):
                places, signs = self._places_of(name, repeat, len(flat))
                features_RP[repeat].index_add_(0, places.to(device), flat * signs.to(device))
        return features_RP.flatten() / repeats**0.5

    def _places_of(self, name: str, repeat: int, size: int) -> tuple[Tensor, Tensor]:
        """Feature and sign of each component."""
        key = name, repeat
        if key not in self._places:
            generator = self._generator(f"{name}/{repeat}")
            part = self.settings.size // self.settings.repeats
            places = torch.randint(part, (size,), generator=generator)
            signs = torch.randint(2, (size,), generator=generator, dtype=torch.int8) * 2 - 1
            self._places[key] = places.to(torch.int32), signs
        return self._places[key]

    def _generator(self, name: str) -> torch.Generator:
        word = blake2b(f"{self.settings.seed}/{name}".encode(), digest_size=7).digest()
        return torch.Generator().manual_seed(int.from_bytes(word, "big"))
