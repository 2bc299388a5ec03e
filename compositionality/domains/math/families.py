"""Answers with a letter for each whole number: 2k for k in Z, \\{2k : k in Z\\}, 2n for all integers n."""

import re

from compositionality.domains.math.expressions import letters_in
from compositionality.domains.math.inequalities import OR
from compositionality.domains.math.parts import names, split_parts
from compositionality.tasks.answers import depths

INTEGERS = "\\mathbb{Z}"
_INTEGERS = re.compile(
    r"(.*[^\s,(]) ?(?:, ?\(?|\(| (?=where|for|with|\())(?:(?:where|for|with) )?(?:(?:all|any|some|every|\\forall) )?"
    r"(?:integers? ([a-zA-Z])|([a-zA-Z]) (?:(?:is|are) )?(?:(?:an|any) )?integers?"
    r"|([a-zA-Z]) ?\\in ?(\\mathbb\{[NZ]\}|Z))\)?"
)
"""A family and the words that say what its letter stands for; its text is without styles and with single blanks."""
_BUILT = re.compile(
    r"(?:([a-z])\\in)?\\\{(?:([a-z])(?:\||\\mid ?|:)(?=\2=))?((?:(?!\\\}).)+?)"
    r"(?:,|\||\\mid ?|:)([a-zA-Z])(\\in\\mathbb\{[NZ]\})\\\}"
)
"""A family between the braces of a set, perhaps after the letter of its numbers."""
_LETTERS_SET = re.compile(r",[a-zA-Z]\\in\\mathbb\{[NZ]\}$")
_FAMILY = re.compile(r"(.+),([a-zA-Z])\\in(\\mathbb\{[NZ]\})")


def spelled_family(text: str) -> str:
    """Return a text without styles that is a family in words, ``2k for all integers k``, with its letter's set."""
    family = _INTEGERS.fullmatch(" ".join(text.split()))
    if not family or depths(family[1])[-1]:
        return ""
    body, *letters, numbers = family.groups()
    return f"{body}, {''.join(filter(None, letters))}\\in {INTEGERS if numbers in (None, 'Z') else numbers}"


def are_solutions(text: str) -> bool:
    """Return whether all parts of a text are values of one letter: ``x=1 \\lor x=2`` is a list of two."""
    letters = {name[:1] for name in names(split_parts(_LETTERS_SET.sub("", text.replace(OR, ""))))}
    return len(letters) == 1 and "" not in letters


def unbuilt(text: str) -> str:
    """Return a family without the braces of a set around it; one for its own letter, as in k=2k, with that."""
    built = _BUILT.fullmatch(text)
    if not built:
        return text
    own = f"{built[4]}=" if built[1] == built[4] else ""
    return f"{own}{built[3]},{built[4]}{built[5]}"


def of_one_family(gold: str, answer: str) -> tuple[str, str, str]:
    """Return two families without their letters' set, both in the gold one's letter, and that.

    Other texts as they are, but no text for the answer k=2k, which is 0.
    """
    family, answers = (_FAMILY.fullmatch(unbuilt(text)) for text in (gold, answer))
    if not family or not answers or family[3] != answers[3]:
        return gold, answer, ""
    letter, old = family[2], answers[2]
    if gold != answer and any(one[1].startswith((f"{one[2]}=", f"{one[2]}\\in")) for one in (family, answers)):
        return gold, "", ""
    renamed = re.sub(rf"(?<![\\a-zA-Z]){old}(?![a-zA-Z])", letter, answers[1])
    if letter != old and (letter in letters_in(answers[1]) or old in letters_in(renamed)):
        return gold, answer, ""
    return family[1], renamed, letter
