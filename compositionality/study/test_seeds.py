"""The ledger of test seeds: test problems that one study was decided on are known, and no new test of another."""

import json
from pathlib import Path

from compositionality.data.artefact import write_text
from compositionality.errors import UserError
from compositionality.yaml_files import read_yaml_mapping

TEST_SEEDS = Path(__file__).parents[2] / "results" / "records" / "test_seeds.yaml"


REGISTERED = "registration "
"""What the name of a registered study begins with."""


def check_test_seed(seed: int, by: str, path: Path = TEST_SEEDS) -> None:
    """Raise UserError if something else than ``by`` used the test seed first, or the ledger is damaged.

    ``by``: ``registration NAME HASH`` or, of what was not registered, a version of the code. Without a ledger, nothing
    is known.
    """
    user, record = _user(seed, path)
    if user not in ("", by):
        raise UserError(
            f"{path}: test seed {seed} was used by {user} ({record}), not by {by}: its problems are known; set "
            "TEST_SEED (test_seed of a registration) to a number that is not there"
        )


def check_not_registered(seed: int, path: Path = TEST_SEEDS) -> None:
    """Raise UserError if the test seed is a registered study's, on whose problems nothing else may be measured."""
    user, record = _user(seed, path)
    if user.startswith(REGISTERED):
        raise UserError(f"TEST_SEED={seed}: kept for {user} ({record}); choose a number that is not in {path}")


def _user(seed: int, path: Path) -> tuple[str, str]:
    """Return who used it, and the first record; both empty if nobody has."""
    ledger = read_yaml_mapping(path) if path.exists() else {}
    if str(seed) not in ledger:
        return "", ""
    known = ledger[str(seed)]
    if not isinstance(known, dict) or not all(isinstance(known.get(key), str) for key in ("by", "record")):
        raise UserError(f"{path}: {seed}: give {{by: NAME, record: NAME}}")
    return known["by"], known["record"]


def note_test_seed(seed: int, by: str, record: str, path: Path = TEST_SEEDS) -> None:
    """Enter a seed with its user and first record, unless it is there already. UserError as above."""
    check_test_seed(seed, by, path)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if not text or str(seed) not in read_yaml_mapping(path):
        line = f"{seed}: {{by: {json.dumps(by)}, record: {json.dumps(record)}}}\n"
        write_text(path, f"{text.rstrip()}\n{line}".lstrip())
