"""How each claim stands to the registration of its study: registered, changed since, or exploratory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from compositionality.data.artefact import file_hash
from compositionality.errors import UserError
from compositionality.evaluate.claims.catalogue import Catalogue, read_catalogue
from compositionality.evaluate.registration import Frozen, claims_path
from compositionality.types import Claim, Comparison

WORDING = ("text", "paper", "source", "origin")
"""Fields of a claim on which no decision depends."""


class Standing(StrEnum):
    """What a claim was when the study began."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    POST_HOC = "post hoc"  # added or changed since results exist
    EXPLORATORY = "exploratory"  # not registered


@dataclass(frozen=True)
class Standings:
    """The standing of every claim, what was changed of those that are post hoc, and what a reader must know."""

    registration: Mapping[str, Any]
    standings: Mapping[str, Standing]
    changes: Mapping[str, list[str]]
    notes: tuple[str, ...]

    def of(self, claim: str) -> dict[str, Any]:
        """Columns of one claim."""
        return {"standing": self.standings[claim], "changes": self.changes.get(claim, [])}


def standings_of(frozen: Frozen, claims: str, catalogue: Catalogue, *, post_hoc: bool) -> Standings:
    """Of the claims that are decided now, in the file called ``claims``.

    UserError for a registered file that changed since the study began, unless ``post_hoc``.
    """
    then, now = read_catalogue(str(frozen.claims)), {one.name: one for one in _all(catalogue)}
    changed = frozen.changed()
    if changed and not post_hoc:
        raise UserError(f"{changed[0]}; restore it, or pass --post-hoc, which marks what was changed")
    old = {one.name: one for one in _all(then)}
    same_file = claims_path(claims).resolve() == claims_path(frozen.registration.claims).resolve()
    changes = {name: _changes(old.get(name), one) for name, one in now.items()} if same_file else {}
    changes = {name: found for name, found in changes.items() if found}
    standings = {name: _standing(name, one, old, frozen, changes) for name, one in now.items()}
    removed = [name for name in old if name not in now] if same_file else []
    notes = [f"Post hoc: {_shown(line)}." for line in changed]
    notes += [f"Post hoc: claim {name} was registered and is not decided any more." for name in removed]
    return Standings({**frozen.facts, "claims_sha256": file_hash(frozen.claims)}, standings, changes, tuple(notes))


def _all(catalogue: Catalogue) -> tuple[Claim, ...]:
    return (*catalogue.claims, *catalogue.controls)


def _standing(
    name: str, claim: Claim, old: Mapping[str, Claim], frozen: Frozen, changes: Mapping[str, list[str]]
) -> Standing:
    if name in changes:
        return Standing.POST_HOC
    registered = frozen.registration
    if name not in old or list(_changes(old[name], claim)):  # of another file of claims
        return Standing.EXPLORATORY
    if name in registered.primary:
        return Standing.PRIMARY
    return Standing.SECONDARY if name in registered.secondary else Standing.EXPLORATORY


def _changes(then: Claim | None, now: Claim) -> list[str]:
    """``added``, or each thing that the decision depends on with its value then and now."""
    if then is None:
        return ["added"]
    found: list[str] = []
    for key in (field.name for field in fields(Claim) if field.name not in WORDING):
        old, new = getattr(then, key), getattr(now, key)
        if old == new:
            continue
        if key == "comparisons" and len(old) == len(new):
            found += [line for one, other in zip(old, new, strict=True) for line in _differences(one, other)]
        elif key == "comparisons":
            found.append(f"{len(old)} comparisons → {len(new)}")
        else:
            found.append(f"{key} changed")
    return list(dict.fromkeys(found))


def _differences(then: Comparison, now: Comparison) -> Iterator[str]:
    for key in (field.name for field in fields(Comparison)):
        old, new = getattr(then, key), getattr(now, key)
        if old != new:
            yield "gates changed" if key == "gates" else f"{key} {_value(old)} → {_value(new)}"


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value) or "none"


def _shown(line: str) -> str:
    path, _, rest = line.partition(": ")
    return f"{Path(path).name}: {rest}"
