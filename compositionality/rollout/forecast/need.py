"""What a step needs at one time in one place, and whether it is there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from compositionality.errors import UserError
from compositionality.rollout.forecast.machine import Machine

GB = 1e9
GPU, HOST, DISK = "memory of each GPU", "memory of each node", "disk"


@dataclass(frozen=True)
class Need:
    """``parts``: bytes by what they are for. ``lower``: the settings to change where they are too many."""

    step: str
    place: str
    parts: Mapping[str, float]
    lower: str

    @property
    def total(self) -> float:
        """All bytes."""
        return sum(self.parts.values())

    def there(self, machine: Machine) -> float | None:
        """Bytes that the machine has; None where it has no such place."""
        return {GPU: machine.gpu_bytes, HOST: machine.host_bytes, DISK: machine.disk_bytes}[self.place]

    def fits(self, machine: Machine) -> bool:
        """Whether it is there, or not needed at all."""
        return self.total <= (self.there(machine) or 0) or not self.total

    def largest(self, count: int = 3) -> str:
        """The largest parts in words."""
        parts = sorted(self.parts.items(), key=lambda part: -part[1])[:count]
        return ", ".join(f"{name} {in_gb(size)}" for name, size in parts if size > 0)


def in_gb(size: float) -> str:
    """Bytes in GB, with as many digits as matter; in MB below 10 MB."""
    if size < GB / 100:
        return f"{size / 1e6:.2g} MB"
    return f"{size / GB:.{0 if size >= 99.5 * GB else 1 if size >= 0.95 * GB else 2}f} GB"


def check_needs(needs: Iterable[Need], machine: Machine) -> None:
    """UserError for the first need that the machine does not fill."""
    for need in needs:
        if not need.fits(machine):
            raise UserError(
                f"{need.step}: needs {in_gb(need.total)} of {need.place} ({need.largest()}), "
                f"{in_gb(need.there(machine) or 0)} are there; {need.lower}"
            )
