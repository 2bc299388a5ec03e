"""What a study is made of, as ``config/study/NAME.yaml`` has it."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Arm:
    """One way to train a model, and how it is drawn.

    ``model``: its folder below CKPT_DIR, ``{last}`` for the last iteration of RFT; empty: the base model.
    ``start``: the arm whose model it starts from. ``script``: what trains it (empty: a stage before the arms), with
    ``problems`` (files below DATA_DIR; empty: the script's own), ``arguments`` and environment ``variables``.
    ``new_problems``: settings of examples/create_problems.py for its file of problems, if no stage makes it.
    ``budget_of``: the arm of RL of which it may sample as many completions; where only the finished run of that arm
    tells how many (dynamic sampling), it comes after it. ``after``: arms whose finished runs its script reads.
    ``alone``: its script takes the whole machine, whatever the study's engine.
    """

    title: str
    model: str
    start: str = ""
    script: str = ""
    problems: list[str] = field(default_factory=list)
    new_problems: dict[str, Any] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    budget_of: str = ""
    after: list[str] = field(default_factory=list)
    alone: bool = False
    colour: str = ""
    marker: str = ""
    line: str = ""
    width: float = 1.5


@dataclass
class Stage:
    """One script of ``bash/`` (without .sh) that has the whole machine to itself."""

    script: str
    per_split: bool = False  # run for every split of the functions, not once for a seed


@dataclass
class Study:
    """What is compared: the stages before the arms in order, and the arms in the order of the tables.

    ``trained``: the arms that are trained unless ARMS names others, the longest first (empty: the profile's);
    ``evaluated``: those that are not, but evaluated all the same. ``ending``: of the names of its folders, where a
    profile makes it a base model. ``owns``: tasks whose sizes and settings in a profile it alone reads. ``reported``:
    scripts of each seed that a report runs before, ``compared`` those of all seeds together.
    """

    title: str
    stages: list[Stage]
    arms: dict[str, Arm]
    evaluated: list[str]
    trained: list[str] = field(default_factory=list)
    ending: str = ""
    owns: list[str] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)
