"""Gates of a claim: what must hold for a comparison to be decided; else it is not testable. Part of ``types``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compositionality.types import Comparison


@dataclass(frozen=True, slots=True)
class Headroom:
    """What the claim asks for lies below ``ceiling``, and not both arms lie below ``floor``. Shares."""

    ceiling: float
    floor: float


@dataclass(frozen=True, slots=True)
class Trained:
    """Every arm but ``starts`` was trained, in all seeds together and in each.

    ``groups``: least share of groups with signal; ``updates``: least share of updates with signal; ``least_updates``:
    least number of them in any seed.
    """

    groups: float
    updates: float
    least_updates: int
    starts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """What must hold in the same study, ``text`` in a phrase: a positive control, a premise.

    Of ``comparisons`` the first that was run must hold.
    """

    text: str
    comparisons: "tuple[Comparison, ...]"


@dataclass(frozen=True, slots=True)
class Sensitive:
    """Of claims that there is no effect: the study can show one (assay sensitivity).

    On the very problems ``model`` is ahead of ``base`` (empty: its own figure is) by more than the threshold, in
    ``part`` (empty: the same part).
    """

    model: str
    base: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """Of claims that there is no effect: at ``level`` the model lost at most ``loss`` (a share) to its base."""

    level: int
    loss: float


Gate = Headroom | Trained | Shown | Sensitive | Kept
