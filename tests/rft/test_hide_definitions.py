"""Definitions vanish from the prompts of Stage 1, in every style, and nothing else does."""

import pytest

from compositionality.tasks.string.prompts import hide_definitions, json_prompt, main_solution

DEFINITION = 'def func_3(s):\n    """Sort the characters."""\n    return "".join(sorted(s))'
WITH_IMPORT = "import math\n\n" + DEFINITION


@pytest.mark.parametrize("definitions", [DEFINITION, WITH_IMPORT, DEFINITION + "\n\ndef func_4(s):\n    return s"])
def test_json_style(definitions: str) -> None:
    main = main_solution("func_3(x)")
    assert hide_definitions(json_prompt(f"{definitions}\n\n{main}", "ba")) == json_prompt(main, "ba")


def test_a_published_prompt_keeps_its_opening_and_its_question() -> None:
    opening, question = "Look at this code:\n\n", '\n\nWhat comes out of it? End with {"output": ...}'
    main = "def main_solution(x):\n    return func_3(x)"
    assert hide_definitions(f"{opening}{DEFINITION}\n\n{main}{question}") == f"{opening}{main}{question}"
    assert hide_definitions(f"{opening}```python\n{DEFINITION}\n\n{main}\n```") == f"{opening}```python\n{main}\n```"


def test_compact_style() -> None:
    assert hide_definitions("func_3=sort_chars;func_17=recursive_reverse;func_17func_3:ba") == "func_17func_3:ba"
    assert hide_definitions("func_1=repeat_str;func_1[3]:ba") == "func_1[3]:ba"


@pytest.mark.parametrize("prompt", ["func_3:ba", json_prompt(main_solution("func_3(x)"), "ba"), "Add 1; then 2."])
def test_a_prompt_without_definitions_stays(prompt: str) -> None:
    assert hide_definitions(prompt) == prompt
