"""The instructions of four published systems beside ours (instructions.yaml), and the page that is rendered from them.

``python tests/instructions.py`` writes examples/README.md.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, model_validator

from compositionality.yaml_files import read_yaml

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).with_suffix(".yaml")
PAGE = ROOT / "examples" / "README.md"
RENDER = "python tests/instructions.py"
KINDS = {
    "dry_run": ("dry run", "a test dry-runs the command: every check that its start makes"),
    "test": ("test", "a test runs the real thing"),
    "record": ("record", "a committed record says what came of it, *not run* included"),
    "refused": ("refused", "refused in one line that says what to do; a test holds the line and the exit code"),
    "missing": ("not here", "with the reason"),
}
"""Of a row: how it is held, as the page calls it, and what that means."""


class Strict(BaseModel):
    """A part of the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Row(Strict):
    """One instruction, option, file, figure or takeaway of theirs."""

    there: str
    command: str = ""
    note: str = ""
    dry_run: str = ""
    test: str = ""
    record: str = ""
    refused: str = ""
    missing: str = ""
    claim: str = ""
    full: bool = False
    slow: bool = False

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return next(kind for kind in KINDS if getattr(self, kind))

    @model_validator(mode="after")
    def _one_kind(self) -> "Row":
        kinds = [kind for kind in KINDS if getattr(self, kind)]
        if len(kinds) != 1:
            raise ValueError(f"{self.there}: give one of {', '.join(KINDS)}, not {kinds}")
        if not (self.command or self.note or self.missing):
            raise ValueError(f"{self.there}: give a command or a note")
        return self


class Part(Strict):
    """Rows of one table; behind: the command that the rows' words follow."""

    part: str
    rows: tuple[Row, ...]
    behind: str = ""


class System(Strict):
    """One of the four."""

    system: str
    about: str
    start: str
    parts: tuple[Part, ...]


class Command(NamedTuple):
    """A command of the table taken apart: VARIABLE=value …, the program (bash, python or torchrun), its words."""

    variables: dict[str, str]
    program: str
    script: str
    words: tuple[str, ...]


def load() -> tuple[System, ...]:
    """All four. ValidationError for a row that is none."""
    return tuple(System.model_validate(one) for one in read_yaml(DATA))


def rows(systems: tuple[System, ...]) -> Iterator[tuple[System, Part, Row]]:
    """Every row with its system and part."""
    for system in systems:
        for part in system.parts:
            for row in part.rows:
                yield system, part, row


def command(text: str) -> Command:
    """``VARIABLE=value … bash SCRIPT word …``, or a Python program in place of the script."""
    words = shlex.split(text)
    head = next(number for number, word in enumerate(words) if not re.match("[A-Z_]+=", word))
    script = next(word for word in words[head + 1 :] if not word.startswith("-"))
    assert words[head] in ("bash", "python", "torchrun"), text
    variables = dict(word.split("=", 1) for word in words[:head])
    return Command(variables, words[head], script, tuple(words[words.index(script) + 1 :]))


def decision(row: Row) -> str:
    """What the record says of its claim; where Holm's correction changes that, both. StopIteration if it has none."""
    claims = json.loads((ROOT / row.record).read_text())["claims"]
    claim = next(claim for claim in claims if claim["claim"] == row.claim)
    corrected = claim.get("decision_holm") or claim["decision"]
    return claim["decision"] + (f", after Holm {corrected}" if corrected != claim["decision"] else "")


def render(systems: tuple[System, ...]) -> str:
    """The page: how many rows of each kind, then a table for each part."""
    lines = [
        "# The entry points",
        "",
        "One Python program for each verb of the command `compositionality`; `--help` says what it reads, writes and",
        "takes ([all](../compositionality/config/verbs.md)). The scripts under [bash](../bash) run them. Below: what",
        "readers of four published systems type, set or look for, and what it is here.",
        "",
        f"<!-- Rendered from tests/instructions.yaml: {RENDER} -->",
        "",
        *_counts(systems),
    ]
    for system in systems:
        about = system.about[0].upper() + system.about[1:]
        lines += ["", f"## Coming from {system.system}", "", f"{about}. {system.start}"]
        for part in system.parts:
            lines += ["", f"**{part.part}**" + (f", added to `{part.behind}`" if part.behind else ""), ""]
            lines += ["| there | here | held by |", "|---|---|---|"]
            for row in part.rows:
                here = "; ".join(filter(None, [f"`{row.command}`" if row.command else "", row.note, row.missing]))
                lines.append(f"| {_cell(row.there)} | {_cell(here)} | {_held(row)} |")
    return "\n".join(lines) + "\n"


def _counts(systems: tuple[System, ...]) -> Iterator[str]:
    """How many rows of each kind each system has."""
    titles = [f"Coming from {system.system}" for system in systems]
    anchors = [re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in titles]
    links = [f"[{system.system}](#{anchor})" for system, anchor in zip(systems, anchors, strict=True)]
    yield f"| held by | {' | '.join(links)} | |"
    yield "|---" * (len(systems) + 2) + "|"
    counts = Counter((system.system, row.kind) for system, _, row in rows(systems))
    for kind, (name, meaning) in KINDS.items():
        yield f"| {name} | {' | '.join(str(counts[system.system, kind]) for system in systems)} | {meaning} |"


def _held(row: Row) -> str:
    """What holds the row, with a link."""
    name = KINDS[row.kind][0]
    match row.kind:
        case "test":
            path, test = row.test.split("::")
            return f'[{name}](../{path} "{test}")'
        case "record":
            return f"[{f'{row.claim}: {decision(row)}' if row.claim else name}](../{row.record})"
        case "refused":
            return f"{name}: {_cell(row.refused)}"
        case _:
            return name


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render(load()))
    print(f"{PAGE.relative_to(ROOT)}: {sum(1 for _ in rows(load()))} rows")
