"""A wrong option of a task: one line that names the key, the value and what it may be, and nothing is written."""

import re
from pathlib import Path
from typing import Any

import pytest

from compositionality.data.create_problems import create_problems, settings_for
from compositionality.errors import UserError


def refused(folder: Path, task: str, mode: str, options: dict[str, Any]) -> str:
    with pytest.raises(UserError) as raised:
        create_problems(settings_for(task, mode, output=str(folder / "x.parquet"), **{"count": 2, **options}))
    assert not list(folder.glob("[!.]*"))
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"count": 0}, "count=0: give a whole number from 1 on"),
        ({"count": -4, "levels": [1, 2]}, "count=-4: give a multiple of 2, the number of levels"),
        ({"levels": []}, "levels=[]: give different whole numbers from 1 to 12"),
        ({"levels": [0]}, "levels=[0]: give different whole numbers from 1 to 12"),
        ({"levels": [2, 2]}, "levels=[2, 2]: give different"),
        ({"levels": [100_000]}, "levels=[100000]: give different whole numbers from 1 to 12"),
        ({"functions": "nosuch"}, "functions=nosuch: no such preset; known: trained, heldout, all"),
        ({"ids": [1, 1]}, "ids=[1, 1]: give every id once"),
        ({"ids": [99]}, "ids=[99]: no function has the id 99; ids go from 0 to 24"),
        ({"drop": [3, 77]}, "drop=[3, 77]: no function has the id 77"),
        ({"ids": [1], "drop": [1]}, "drop=[1]: no function is left; leave at least one of [1]"),
        ({"shape": "ring"}, "shape=ring: choose one of chain, tree"),
        ({"style": "yaml"}, "style=yaml: choose one of json, compact"),
        ({"input_length": [10, 3]}, "input_length=[10,3] max_length=100: need 3 <= shortest"),
        ({"input_length": [3, 10**8], "max_length": 10**9}, "need 3 <= shortest <= longest <= max_length <= 10000"),
        ({"alphabet": "ab"}, "alphabet='ab' is too small"),
        ({"split": "dev"}, "split=dev: no such split; known: train, validation, test, pretrain"),
    ],
)
def test_p18_options_of_string_problems(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    assert told in refused(tmp_path, "string", "clean", options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"stage": 3}, "stage=3: choose 1 or 2"),
        ({"split": "dev"}, "split=dev: choose one of train, test"),
        ({"min_level": 0}, "min_level=0 max_level=1: need 1 <= min_level <= max_level <= 16"),
        ({"min_level": 3}, "min_level=3 max_level=1: need 1 <= min_level <= max_level <= 16"),
        ({"max_level": 90}, "min_level=1 max_level=90: need 1 <= min_level <= max_level <= 16"),
        ({"count": 3, "max_level": 2}, "count=3: give a multiple of 2"),
    ],
)
def test_p18_options_of_the_papers_string_problems(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    assert told in refused(tmp_path, "string", "paper", options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"count": -2}, "count=-2: give a whole number from 1 on"),
        ({"levels": [1]}, "levels=[1]: give different whole numbers from 2 to 6"),
        ({"numbers": [1, 10**9]}, "numbers=[1, 1000000000]: levels up to 3 are solved with numbers up to 104031"),
        ({"operators": "/"}, "operators=/: choose one of +, *, +-"),
        ({"use": "some"}, "use=some: choose one of all, any"),
        ({"style": "latex"}, "style=latex: choose one of text, compact"),
    ],
)
def test_p18_options_of_countdown_problems(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    assert told in refused(tmp_path, "countdown", "clean", options)


def test_levels_that_have_no_more_problems_are_found_out_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compositionality.tasks.stream.MAX_CANDIDATES_WITHOUT_NEW", 100)
    options = {"levels": [2], "numbers": [1, 2], "target": [1, 3], "count": 10**6}
    told = refused(tmp_path, "countdown", "clean", options)
    found = re.fullmatch(r"level 2 has only (\d+) different problems among (\d+) candidates; .*", told)
    assert found
    assert int(found[2]) < 200


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"level": 0}, "level=0: give a whole number from 1 on"),
        ({"dataset": "spel_backward"}, "dataset=spel_backward: reasoning-gym has no such data set; near it are spell_"),
        ({"dataset": "xyz"}, "dataset=xyz: reasoning-gym has no such data set; there are ab, acre"),
        ({"parameters": {"foo": 1}}, "parameters.foo: spell_backward has no such parameter; it has min_word_len, "),
        ({"parameters": {"min_word_len": "abc"}}, "parameters.min_word_len=abc: a value like the default is needed, 3"),
        ({"parameters": {"min_word_len": True}}, "parameters.min_word_len=True: a value like the default is needed, 3"),
        ({"parameters": {"min_word_len": -5}}, "parameters={'min_word_len': -5}: min_word_len must be positive"),
        ({"count": 0}, "count=0: give a whole number from 1 on"),
    ],
)
def test_p18_options_of_reasoning_gym(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    assert told in refused(tmp_path, "reasoning_gym", "", options)
