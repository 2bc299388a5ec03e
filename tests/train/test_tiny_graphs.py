"""The iGSM part of the pretraining text: every line true, problems short and not those of tests, names as tokens."""

import re
from collections import Counter
from random import Random

import pytest
from igsm_reader import nouns_of, read_prompt

from compositionality.tasks.igsm.generate import BINS, bin_of, draw_item, template_of
from compositionality.train.tiny.corpus import Mix, corpus_tokenizer
from compositionality.train.tiny.graphs import DEEPEST, GraphText, quantity_tokens

TEXT = GraphText(10)
FORM = re.compile(r"[-+*()0-9]+")


def drawn(kind: str, count: int = 300) -> list[tuple[str, str]]:
    rng = Random(7)
    return [getattr(TEXT, kind)(rng) for _ in range(count)]


@pytest.mark.parametrize("kind", ["calculation", "look_up", "total", "step", "problem"])
def test_every_form_of_a_line_has_the_lines_value(kind: str) -> None:
    checked = 0
    for _, response in drawn(kind):
        for line in response.split("\n"):
            forms = [form for form in line.split("=") if FORM.fullmatch(form)]
            assert forms
            assert len({eval(form) % 10 for form in forms}) == 1, line
            checked += len(forms) > 1
    assert checked or kind == "look_up"


def test_look_ups_answer_what_is_asked_in_its_order() -> None:
    for prompt, response in drawn("look_up"):
        facts = dict(part.split("=") for part in prompt.split(";") if "=" in part)
        asked = [part.rstrip("?") for part in prompt.split(";")[1:] if "=" not in part]
        assert response == "\n".join(f"{code}={facts[code]}" for code in asked)


def test_problems_are_short_right_and_none_of_a_test() -> None:
    levels = Counter[int]()
    rng = Random(3)
    for _ in range(200):
        found = draw_item(TEXT.options, "train", 1, rng.randrange(2**40)).problem
        levels[found.level] += 1
        assert bin_of(found, found.level, template_of(found)) in BINS["train"]
    assert set(levels) == set(range(1, DEEPEST + 1))
    for prompt, response in drawn("problem"):
        assert int(response.rpartition("=")[2]) == read_prompt(prompt, nouns_of([])).answer()


def test_half_of_the_problems_have_subgoals() -> None:
    long = [response for _, response in drawn("problem") if re.search(r"=[^=\n]*[-+*][^=\n]*[-+*][^=\n]*=", response)]
    with_subgoals = [one for one in long if re.search(r"=[^=\n]*[-+*][^=\n]*=[^=\n]*[-+*][^=\n]*=", one)]
    assert 0.3 < len(with_subgoals) / len(long) < 0.7


def test_a_quantity_and_its_sign_are_one_token() -> None:
    """And only where the text has iGSM: other base models keep their tokenizer."""
    tokenizer = corpus_tokenizer(Mix(igsm=1.0))
    cut = ["b1a0=", "3", "*", "(", "b0a1", "+", "c2b", ")", ";", "c2b", "?"]
    assert tokenizer.tokenize("".join(cut)) == cut
    names = set(quantity_tokens())
    assert {code for text in TEXT.codes for code in (text, f"{text}=")} <= names
    assert not names & set(corpus_tokenizer(Mix()).get_vocab())
