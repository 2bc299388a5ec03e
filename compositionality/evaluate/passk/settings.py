"""What pass@k can be told."""

from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import MISSING

from compositionality.errors import UserError
from compositionality.evaluate.settings import AskSettings


@dataclass
class PasskSettings(AskSettings):
    """Settings of ``passk``: who is asked what, how often, and what is compared."""

    models: list[str] = field(default_factory=list)  # NAME:PATH, asked here
    rollouts: list[str] = field(default_factory=list)  # NAME:FOLDER, asked before by collect_rollouts
    problems: list[str] = MISSING
    output: Path = MISSING
    n_samples: int = 1000
    levels: list[int] = field(default_factory=list)  # these only; empty = all
    per_level: int = 0  # the first so many problems of each level; 0 = all
    pairs: list[str] = field(default_factory=list)  # MODEL:BASE; empty = every one with the first
    ks: list[int] = field(default_factory=list)  # columns of the printed table; empty = 1, 2, 4, …, n_samples
    draws: int = 2000
    plan: bool = False  # say what differences can be seen and what it costs, then stop
    prior: str = ""  # folder of an earlier evaluation: how hard the problems are, for the plan
    probe: int = 256  # answers sampled to foretell time and disk; 0 = none
    answers_only: bool = False  # collect the answers, compute nothing: several processes may do that at the same time
    force: bool = False


def check_settings(settings: PasskSettings) -> None:
    """UserError for values that mean nothing."""
    if not settings.models and not settings.rollouts:
        raise UserError("models, rollouts: give at least one, as models=[NAME:PATH,...] or rollouts=[NAME:FOLDER,...]")
    if settings.rollouts and len(settings.problems) != 1:
        raise UserError("rollouts=[...] needs the one problem file that they answer, problems=[NAME:PATH]")
    if settings.n_samples < 2:
        raise UserError(f"n_samples={settings.n_samples}: pass@k needs at least 2 samples of each problem")
    if settings.models and settings.temperature <= 0:
        raise UserError("temperature=0: every sample of a problem would be the same; give one above 0")
    if settings.limit:
        raise UserError("limit: pass@k takes per_level, the first so many problems of each level")
    if settings.per_level < 0 or settings.probe < 0:
        raise UserError("per_level and probe must not be negative")
    if settings.draws < 200:
        raise UserError(f"draws={settings.draws}: an interval needs at least 200")
    beyond = [k for k in settings.ks if not 1 <= k <= settings.n_samples]
    if beyond:
        raise UserError(f"ks: {beyond[0]} does not lie between 1 and n_samples={settings.n_samples}")


def table_ks(settings: PasskSettings, largest: int) -> list[int]:
    """The k to print: those asked for, else powers of two and the largest."""
    powers = [1 << power for power in range(largest.bit_length()) if 1 << power < largest]
    return [k for k in settings.ks if k <= largest] if settings.ks else [*powers, largest]
