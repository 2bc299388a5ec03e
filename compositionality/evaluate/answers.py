"""The answers of checkpoints to problem files, collected where they are not there yet."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from compositionality.errors import UserError
from compositionality.evaluate.engine import SharedEngine
from compositionality.evaluate.settings import AskSettings
from compositionality.rollout.collect import collect
from compositionality.rollout.engine import Engine
from compositionality.rollout.settings import CollectSettings

Folders = Mapping[tuple[str, str], Path]
"""Rollout folders by (checkpoint name, problem file name)."""
Jobs = Mapping[tuple[str, str], CollectSettings]


def jobs_of(settings: AskSettings, model: str, path: str, files: Mapping[str, str], output: Path) -> Jobs:
    """What to collect of one checkpoint: ``output``/rollouts/MODEL/PROBLEMS for every problem file."""
    return {
        (model, name): settings.collection(path, file, output / "rollouts" / model / name)
        for name, file in files.items()
    }


def engine_for(jobs: Jobs) -> SharedEngine:
    """The engine of one checkpoint for all its problem files."""
    return SharedEngine(next(iter(jobs.values())), [str(job.problems) for job in jobs.values()])


def all_collected(jobs: Jobs, engine: Engine, *, force: bool) -> dict[tuple[str, str], Path]:
    """Collect the answers of one checkpoint to every problem file; what is there already stays."""
    return {key: collected(job, engine, force=force) for key, job in jobs.items()}


def collected(job: CollectSettings, engine: Engine, *, force: bool) -> Path:
    """Collect; ``force`` replaces answers of another checkpoint or with other settings, and only those."""
    try:
        return collect(job, engine)
    except UserError:
        if not force:
            raise
    return collect(replace(job, force=True), engine)
