"""Which learning rate tuning chooses."""

import json
from pathlib import Path

import pytest

from compositionality.errors import UserError
from compositionality.study.rates import choice, mean_accuracy


def evaluation(path: Path, shares: dict[tuple[str, str, int], float]) -> str:
    rows = [
        {"model": rate, "by": "level", "group": group, "level": level, "accuracy": share}
        for (rate, group, level), share in shares.items()
    ]
    everything = {"model": "1e-4", "by": "all", "group": None, "level": None, "accuracy": 1.0}
    path.write_text(json.dumps({"results": [everything, *rows]}))
    return str(path)


def test_the_rate_with_the_highest_mean_over_seeds_and_levels_of_trained_functions(tmp_path: Path) -> None:
    one = evaluation(
        tmp_path / "10.json",
        {("1e-4", "trained", 1): 1.0, ("1e-4", "trained", 2): 0.2, ("3e-4", "trained", 1): 0.9,
         ("3e-4", "trained", 2): 0.5, ("1e-4", "heldout", 2): 0.9, ("3e-4", "heldout", 2): 0.1},
    )  # fmt: skip
    other = evaluation(
        tmp_path / "11.json",
        {("1e-4", "trained", 1): 1.0, ("1e-4", "trained", 2): 0.4, ("3e-4", "trained", 1): 0.8,
         ("3e-4", "trained", 2): 0.6},
    )  # fmt: skip
    assert mean_accuracy([one, other]) == pytest.approx({1e-4: 0.65, 3e-4: 0.7})
    assert choice([one, other]).splitlines()[-1] == "chosen: optim.lr=0.0003"


def test_equal_rates_and_files_that_do_not_fit(tmp_path: Path) -> None:
    equal = evaluation(tmp_path / "10.json", {("1e-4", "trained", 1): 0.5, ("3e-5", "trained", 1): 0.5})
    assert choice([equal]).endswith("chosen: optim.lr=3e-05")
    other = evaluation(tmp_path / "11.json", {("1e-4", "trained", 1): 0.5})
    with pytest.raises(UserError, match="not the same rates and levels of group trained in each"):
        choice([equal, other])
