"""Results that follow their inputs without asking: nothing is lost, all of it can be made again."""

import json
from collections.abc import Callable
from pathlib import Path

from compositionality.data.artefact import Recipe, is_done, new_artefact, read_manifest


def derive(path: Path, recipe: Recipe, body: Callable[[Path], object], *, force: bool) -> None:
    """Make ``path`` unless it is there from this very recipe; one that another step made is not touched (UserError)."""
    old = read_manifest(path) if path.is_file() else None
    if old is not None and old.step == recipe.step:
        step, kept, inputs = recipe.identity()
        force = force or (old.step, old.settings, old.inputs) != (step, json.loads(kept), inputs)
    if is_done(path, recipe, force=force):
        print(f"{path} is already there")
        return
    with new_artefact(path, recipe) as partial:
        body(partial)
