"""Definitions vanish from the prompts of Stage 1, in every style, and nothing else does."""

from itertools import islice

import pytest

from compositionality.tasks.string.clean import StringGenerator, StringOptions
from compositionality.tasks.string.paper import StringPaperOptions, paper_problems
from compositionality.tasks.string.wording import hide_definitions, json_prompt, main_solution

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


@pytest.mark.parametrize("prompt", ["func_3:ba", json_prompt(main_solution("func_3(x)"), "ba"), "Add 1; then 2."])
def test_a_prompt_without_definitions_stays(prompt: str) -> None:
    assert hide_definitions(prompt) == prompt


@pytest.mark.parametrize(("style", "shape"), [("json", "chain"), ("json", "tree"), ("compact", "chain")])
def test_a_shown_problem_of_the_task_becomes_the_hidden_one(style: str, shape: str) -> None:
    shown, hidden = (
        StringGenerator(StringOptions(style=style, shape=shape, levels=(2,), show_definitions=show))
        for show in (True, False)
    )
    for index in range(50):
        prompt = shown.problem("train", 1, index).prompt
        assert hide_definitions(prompt) == hidden.problem("train", 1, index).prompt


def test_the_papers_stage_1_problems_keep_only_the_program() -> None:
    for made in islice(paper_problems(StringPaperOptions(), "train", 300), 300):
        prompt = hide_definitions(made.prompt)
        assert prompt.count("def ") == 1
        assert hide_definitions(prompt) == prompt
        assert made.prompt.startswith(prompt[: prompt.find("def ")])
