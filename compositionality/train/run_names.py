"""What a run is part of, by its place and by what its folder kept of its start: study, replicate, arm; its tags."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from compositionality.train.run_folder import RUN, facts_at_start, run_path

REPLICATE = re.compile(r"seed(\d+)(?:-split(\d+))?")
"""The name of a replicate's folder."""
TAGS = {"profile": "", "engine": "", "task": "", "arm": "", "seed": "seed", "split": "split"}
"""Facts of a run by which it can be found, some of several values, and what stands before these."""
LONGEST_TAG = 64
"""Characters that wandb takes."""


def facts_of(result: Path) -> dict[str, str]:
    """Return study, seed, split and arm of a result by its place, and what its run folder kept of its start.

    What has no run folder is of the run that the environment says.
    """
    places = [folder / RUN for folder in (result, run_path(result.absolute()))]
    file = next(filter(Path.is_file, places), None)
    facts = json.loads(file.read_text()) if file else facts_at_start("", ())
    *above, arm = place_of(result)
    if above and (match := REPLICATE.fullmatch(above[-1])):
        facts = {"study": above[0], **facts, "seed": match[1], "split": match[2] or "0"}
    return {name: value for name, value in {**facts, "arm": arm}.items() if value}


def place_of(result: Path) -> tuple[str, ...]:
    """Return the study and the replicate that a result lies in, else its folder, and after them the arm.

    That is the path below the replicate, without the name of the stage that the arms have in common.
    """
    *folders, name = result.absolute().parts
    parts = (*folders, name.removesuffix(".json"))
    place = next((number for number, part in enumerate(parts) if REPLICATE.fullmatch(part)), None)
    if place is None or place == len(parts) - 1:
        return parts[-2:]
    return parts[place - 1], parts[place], "-".join(parts[place + 1 :]).removeprefix("stage2-")


def tags_of(facts: Mapping[str, str]) -> list[str]:
    """Return the tags of a run with these facts, and those that WANDB_TAGS gives."""
    own = [before + tag for name, before in TAGS.items() for tag in facts.get(name, "").split(",") if tag]
    given = os.environ["WANDB_TAGS"].split(",") if os.environ.get("WANDB_TAGS") else []
    return list(dict.fromkeys([*(tag[:LONGEST_TAG] for tag in own), *given]))
