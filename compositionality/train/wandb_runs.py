"""Runs in wandb, where it can be used without a login."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compositionality.data.git import code_version
from compositionality.errors import without_secrets
from compositionality.train.run_facts import facts_of, place_of, tags_of

PROJECT = "compositionality"
"""In wandb, unless WANDB_PROJECT names another."""
OF_A_STUDY = ("claims", "report")
"""Jobs that read all its replicates; their results lie in its folder."""


def wandb_is_usable(environment: Mapping[str, str]) -> bool:
    """Return whether wandb would not ask for a login."""
    mode = environment.get("WANDB_MODE", "")
    return mode == "offline" or (bool(environment.get("WANDB_API_KEY")) and mode != "disabled")


def run_name(result: Path) -> str:
    """Return the name of a run in wandb: WANDB_NAME, or the arm and the replicate's folder, ``rl-level2/seed0``."""
    *_, place, arm = place_of(result)
    return os.environ.get("WANDB_NAME") or f"{arm}/{place}"


def open_wandb(
    result: Path,
    job: str,
    settings: Mapping[str, Any],
    identity: str,
    *,
    inside: bool = False,
    code: str = "",
    facts: Mapping[str, str] | None = None,
) -> Any:
    """Return the wandb run of this result; None, with a line, if wandb is not installed, refuses or does not answer.

    Its group is WANDB_RUN_GROUP, else the study whose folder it lies in. Its files lie beside the result, or
    ``inside``. ``code``: the version that made it, unless it is this one; ``facts``: more of them (``facts_of``).
    """
    try:
        import wandb
    except ImportError:
        print("wandb is left out: it is not installed (pip install wandb)", flush=True)
        return None
    files = result if inside else result.with_name(f"{result.name}.wandb")
    known, whole = facts_of(result) | {name: text for name, text in (facts or {}).items() if text}, job in OF_A_STUDY
    with or_left_out():
        files.mkdir(parents=True, exist_ok=True)
        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or PROJECT,
            name=run_name(result),
            group=os.environ.get("WANDB_RUN_GROUP") or known.get("study") or (place_of(result)[0] if whole else None),
            tags=tags_of(known),
            job_type=job,
            dir=str(files),
            id=identity,
            resume="allow",
            config={**_public(settings), "run": known | {"code": code or code_version()}},
            settings=wandb.Settings(quiet=True),
        )
        run.define_metric("val-core/*", step_metric="compute/flops" if job == "rl" else None, summary="last,max")
        return run
    return None


@contextmanager
def or_left_out() -> Iterator[None]:
    """Say in one line that a run goes on without wandb, if it fails here, and why: no training ends by it.

    What it raises is of many kinds: of its settings, its process, the network, the file system.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001
        print(f"wandb is left out: {' '.join(without_secrets(str(error)).split())[:200]}", flush=True)


def _public(settings: Any) -> Any:
    """Return the settings without the secrets that they may hold, such as a password in the URL of a server."""
    if isinstance(settings, Mapping):
        return {name: _public(value) for name, value in settings.items()}
    if isinstance(settings, list | tuple):
        return [_public(value) for value in settings]
    return without_secrets(str(settings)) if isinstance(settings, str | Path) else settings
