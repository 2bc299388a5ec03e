"""How each claim stands to the registration of its study: registered, changed since, or exploratory."""

from enum import StrEnum
from pathlib import Path

from compositionality.errors import UserError
from compositionality.evaluate.claims.file import ClaimsFile, read_claims_file
from compositionality.evaluate.claims.model import Claim, decides_alike
from compositionality.evaluate.registration import Frozen, claims_path


class Standing(StrEnum):
    """What a claim was when the study began."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    POST_HOC = "post hoc"  # added or changed since results exist
    EXPLORATORY = "exploratory"  # not registered


def standings_of(
    frozen: Frozen, claims: str, now: ClaimsFile, *, post_hoc: bool
) -> tuple[dict[str, Standing], list[str]]:
    """Return the standing of every claim of the file called ``claims``, and notes on what was changed.

    UserError for a registered file that changed since the study began, unless ``post_hoc``.
    """
    changed = frozen.changed()
    if changed and not post_hoc:
        raise UserError(f"{changed[0]}; restore it, or pass --post-hoc, which marks what was changed")
    then = read_claims_file(str(frozen.claims))
    old, new = ({claim.name: claim for claim in (*file.claims, *file.controls)} for file in (then, now))
    same_file = claims_path(claims).resolve() == claims_path(frozen.registration.claims).resolve()
    registered = frozen.registration

    def standing(claim: Claim) -> Standing:
        if claim.name not in old or not decides_alike(old[claim.name], claim):
            return Standing.POST_HOC if same_file else Standing.EXPLORATORY
        if claim.name in registered.primary:
            return Standing.PRIMARY
        return Standing.SECONDARY if claim.name in registered.secondary else Standing.EXPLORATORY

    removed = [name for name in old if name not in new] if same_file else []
    lines = (line.partition(": ") for line in changed)
    notes = [f"Post hoc: {Path(path).name}: {why}; its differences: git diff." for path, _, why in lines]
    notes += [f"Post hoc: claim {name} was registered and is not decided any more." for name in removed]
    return {name: standing(claim) for name, claim in new.items()}, notes
