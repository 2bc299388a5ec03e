"""The ledger of test seeds: test problems that one recipe was measured on are known, and no new test of another."""

import json
from pathlib import Path

from compositionality.data.artefact import write_text
from compositionality.data.yaml_files import read_yaml_mapping
from compositionality.errors import UserError

TEST_SEEDS = Path(__file__).parents[2] / "results" / "records" / "test_seeds.yaml"


def check_test_seed(seed: int, recipe: str, path: Path = TEST_SEEDS) -> None:
    """UserError if another recipe used the test seed first, or the ledger is damaged. No ledger: nothing is known."""
    if not path.exists():
        return
    known = read_yaml_mapping(path).get(str(seed))
    if known is None:
        return
    if not isinstance(known, dict) or not {"recipe", "record"} <= known.keys():
        raise UserError(f"{path}: {seed}: give {{recipe: HASH, record: FILE}}")
    if known["recipe"] != recipe:
        raise UserError(
            f"{path}: test seed {seed} was used by recipe {known['recipe']} ({known['record']}), not by {recipe}: its "
            "problems are known; set TEST_SEED (test_seed of a registration) to a number that is not there"
        )


def note_test_seed(seed: int, recipe: str, record: str, path: Path = TEST_SEEDS) -> None:
    """Enter a seed with its recipe and first record, unless the recipe has it already. UserError as above."""
    check_test_seed(seed, recipe, path)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if not text or str(seed) not in read_yaml_mapping(path):
        line = f"{seed}: {{recipe: {json.dumps(recipe)}, record: {json.dumps(record)}}}\n"
        write_text(path, text + line)
