"""The ledger of test seeds: the test problems of one study are known, so no other study may be tested on them."""

import json
from pathlib import Path

from compositionality.data.artefact import write_text
from compositionality.errors import UserError
from compositionality.yaml_files import read_yaml_mapping

TEST_SEEDS = Path(__file__).parents[2] / "results" / "records" / "test_seeds.yaml"


REGISTERED = "registration "
"""Prefix of a registered study's name in the ledger."""


def check_test_seed(seed: int, by: str, path: Path = TEST_SEEDS) -> None:
    """Raise UserError if another user than ``by`` used the test seed first, or the ledger is damaged.

    ``by``: ``registration NAME HASH``, or a version of the code if nothing was registered. A missing ledger is empty.
    """
    user, record = _user(seed, path)
    if user not in ("", by):
        raise UserError(
            f"{path}: test seed {seed} was used by {user} ({record}), not by {by}: its problems are known; set "
            "TEST_SEED (test_seed of a registration) to a number that is not in this file"
        )


def check_not_registered(seed: int, path: Path = TEST_SEEDS) -> None:
    """Raise UserError if the test seed belongs to a registered study: nothing else may be measured on its problems."""
    user, record = _user(seed, path)
    if user.startswith(REGISTERED):
        raise UserError(f"TEST_SEED={seed}: reserved for {user} ({record}); choose a number that is not in {path}")


def _user(seed: int, path: Path) -> tuple[str, str]:
    """Return who used the seed, and the first record; both are empty if it is unused."""
    ledger = read_yaml_mapping(path) if path.exists() else {}
    if str(seed) not in ledger:
        return "", ""
    entry = ledger[str(seed)]
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("by", "record")):
        raise UserError(f"{path}: {seed}: give {{by: NAME, record: NAME}}")
    return entry["by"], entry["record"]


def note_test_seed(seed: int, by: str, record: str, path: Path = TEST_SEEDS) -> None:
    """Add a seed with its user and first record, unless the ledger has it. UserError as in ``check_test_seed``."""
    check_test_seed(seed, by, path)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if not text or str(seed) not in read_yaml_mapping(path):
        line = f"{seed}: {{by: {json.dumps(by)}, record: {json.dumps(record)}}}\n"
        write_text(path, f"{text.rstrip()}\n{line}".lstrip())
