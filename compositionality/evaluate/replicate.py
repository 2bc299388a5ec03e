"""Which replicate of a study an evaluation is of: the seed that its answers were sampled with, its function split."""

from collections.abc import Iterable
from pathlib import Path

from compositionality.data.artefact import read_manifest
from compositionality.errors import UserError
from compositionality.rollout.store import rollout_manifest

SPLIT = "function_split"
"""The option of a task that says it, as the manifest of a problem file holds it."""


def replicate_of(rollouts: Iterable[Path], problems: Iterable[Path]) -> dict[str, int]:
    """``seed`` and ``function_split``, 0 where nothing says one. UserError for problems of two splits."""
    seeds = [rollout_manifest(folder).settings.get("seed", 0) for folder in rollouts]
    splits: dict[int, Path] = {}
    for path in problems:
        manifest = read_manifest(path)
        splits.setdefault(manifest.settings.get(SPLIT, 0) if manifest else 0, path)
    named = {split: path for split, path in splits.items() if split}
    if len(named) > 1:
        (one, first), (two, second), *_ = named.items()
        raise UserError(f"{first} and {second}: of function splits {one} and {two}; evaluate those of one split")
    return {"seed": next(iter(seeds), 0), SPLIT: next(iter(named), 0)}
