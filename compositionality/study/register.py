"""``examples/register.py``: the hashes of a registration written, or checked as at the start of its study."""

from dataclasses import dataclass

from compositionality.ranges import REQUIRED, NonEmptyStr
from compositionality.study.confirmatory import registered_study
from compositionality.study.registration import register, registered


@dataclass
class RegisterSettings:
    """Settings of ``register_study``."""

    registration: NonEmptyStr = REQUIRED  # one of compositionality/config/registrations/ without .yaml, or a path
    check: bool = False  # write nothing; refuse what the study's start would refuse


def register_study(settings: RegisterSettings) -> None:
    """Write the hashes into the registration, or check it. UserError for what does not fit."""
    if not settings.check:
        print(f"{register(settings.registration)}: hashes written; commit it, then run bash/confirmatory.sh")
        return
    found = registered(settings.registration)
    registered_study(settings.registration, [], {}, dry=True)
    splits = sum(map(len, found.content.replicates.values()))
    print(
        f"{settings.registration}: {splits} replicates of {len(found.content.replicates)} seeds, commit {found.commit}"
    )
