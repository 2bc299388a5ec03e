"""The recipes of a study's seeds, held against each other: they may differ in seeds and splits alone."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from compositionality.data.artefact import MANIFEST, Manifest, read_manifest
from compositionality.errors import UserError
from compositionality.study.arms import folders_of_seeds

FREE = frozenset({"seed", "function_split", "rollout_budget", "entropies"})
"""Last parts of the settings in which seeds may differ; what RL gave follows from the run that it was taken from."""
LENGTHS = ("trainer.steps", "trainer.tokens")
"""Those of RFT in the updates or tokens of RL."""
TEST = "test"
CHECKPOINTS = "steps"


def check_recipes(variables: Mapping[str, str]) -> None:
    """UserError for the first step that two seeds were made by with other settings."""
    for kind in ("DATA_DIR", "CKPT_DIR"):
        known: dict[str, tuple[Path, Manifest]] = {}
        for folder in folders_of_seeds(variables[kind], variables):
            for target, manifest in _manifests(folder):
                first, other = known.setdefault(target.relative_to(folder).as_posix(), (target, manifest))
                _check_same(first, other, target, manifest)


def _is_free(key: str, target: Path, settings: Mapping[str, Any]) -> bool:
    """Test problems have one seed in all replicates."""
    if key in LENGTHS:
        return any(part.startswith("stage2-rft") for part in target.parts)
    return key.rpartition(".")[2] in FREE and not (key == "seed" and settings.get("split") == TEST)


def _manifests(folder: Path) -> Iterator[tuple[Path, Manifest]]:
    """What was made in a folder, but for a training's own checkpoints."""
    for path in sorted(folder.rglob(f"*{MANIFEST}")):
        target = path.parent if path.name == MANIFEST else path.with_name(path.name[1 : -len(MANIFEST) - 1])
        if CHECKPOINTS not in path.relative_to(folder).parts and (found := read_manifest(target)):
            yield target, found


def _check_same(first: Path, one: Manifest, second: Path, other: Manifest) -> None:
    mine, theirs = _recipe(first, one), _recipe(second, other)
    for key in sorted(mine.keys() | theirs):
        if mine.get(key) != theirs.get(key):
            raise UserError(
                f"{second}: made with {key}={theirs.get(key)}, but {first} with {mine.get(key)}: the seeds of a study "
                "have one recipe; make one of the two again with --force"
            )


def _recipe(target: Path, manifest: Manifest) -> dict[str, Any]:
    settings = manifest.settings
    kept = {key: value for key, value in settings.items() if not _is_free(key, target, settings)}
    return {"step": manifest.step, **kept}
