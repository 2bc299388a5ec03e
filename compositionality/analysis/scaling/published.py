"""What the paper has published of its scaling laws, and what follows from it."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from compositionality.yaml_files import read_yaml_mapping

PUBLISHED = Path(__file__).with_name("published.yaml")


@dataclass(frozen=True)
class PublishedFit:
    """Constants of log L = E − k(N) log X; ``N0`` in billions of parameters, ``resource``: compute or data."""

    family: str
    resource: str
    scheme: str
    K_max: float
    N0: float
    r_squared: float

    def slope(self, billions: float) -> float:
        """k(N): what the loss falls by, in logarithms, for each e-fold of the resource."""
        return self.K_max / (1 + self.N0 / billions)


@cache
def published() -> dict[str, Any]:
    """The file."""
    return read_yaml_mapping(PUBLISHED)


def published_fits() -> list[PublishedFit]:
    """All of them, in the order of the paper's table."""
    return [PublishedFit(**one) for one in published()["fits"]]
