"""What a prompt says, from its words alone: the check that a problem's text determines its answer.

Shares nothing with what made the problem but the naming systems, which say what belongs to which category.
"""

import re
from dataclasses import dataclass

Nouns = dict[str, tuple[int, str]]  # the layer of each category, 0 the finest, and its noun; by noun and by plural
Name = tuple[str, str]  # owner and what is counted in it: two items, or an item and a category
_PHRASE = re.compile(r"the (?:total )?number of (\w+(?: \w+)?) in each (\w+ \w+)", re.IGNORECASE)
_FACT = re.compile(r"^(The number of \w+ \w+ in each \w+ \w+) equals (.+)\.$", re.MULTILINE)
_QUESTION = re.compile(r"^What is (.+)\?", re.MULTILINE)
_MODULO = re.compile(r"modulo (\d+),|^%(\d+);")
_CODE = re.compile(r"([b-d]\d)([a-d]\d?)")
_CONSTANT = re.compile(r"(\d+)(?:$| (times|more) |([*+]))")
_DEEPEST = 200


@dataclass(frozen=True)
class Reading:
    """``facts``: right sides by quantity, as text."""

    facts: dict[Name, str]
    asked: Name
    modulus: int
    nouns: Nouns

    def answer(self) -> int:
        """The value of the quantity in question."""
        return self._value(self.asked, {}, 0)

    def _value(self, name: Name, known: dict[Name, int], depth: int) -> int:
        assert depth <= _DEEPEST, f"{name} depends on itself"
        if name not in known:
            value = self._fact(name, known, depth + 1) if name in self.facts else self._total(name, known, depth + 1)
            known[name] = value % self.modulus if self.modulus else value
        return known[name]

    def _total(self, name: Name, known: dict[Name, int], depth: int) -> int:
        owner, category = name
        held = [item for holder, item in self.facts if holder == owner]
        assert held, f"nothing is said of {name}"
        assert self._layer(category) < self._layer(owner)
        counts = [self._value((owner, item), known, depth) for item in held]
        if self._layer(held[0]) == self._layer(category):
            return sum(counts)
        return sum(
            count * self._value((item, category), known, depth) for count, item in zip(counts, held, strict=True)
        )

    def _fact(self, name: Name, known: dict[Name, int], depth: int) -> int:
        text = self.facts[name]
        constant = _CONSTANT.match(text)
        values = [self._value(part, known, depth) for part in names_in(text, self.nouns)]
        if not values:
            return int(text)
        value = values[0] - values[1] if "difference" in text or "-" in text else sum(values)
        if not constant:
            return value
        number = int(constant[1])
        return number * value if (constant[2] or constant[3]) in ("times", "*") else number + value

    def _layer(self, thing: str) -> int:
        return self.nouns[noun_of(thing)][0]


def read_prompt(prompt: str, nouns: Nouns) -> Reading:
    modulo = _MODULO.search(prompt)
    modulus = int(modulo[1] or modulo[2]) if modulo else 0
    if " " in prompt:
        question = _QUESTION.search(prompt)
        sides = [(fact[1], fact[2]) for fact in _FACT.finditer(prompt)]
        asked = names_in(question[1], nouns) if question else []
    else:
        *facts, question_text = prompt.split(";")
        sides = [(left, right) for left, equals, right in (fact.partition("=") for fact in facts) if equals]
        asked = names_in(question_text.removesuffix("?"), nouns)
    assert asked, "no question"
    assert sides, "nothing said"
    return Reading({names_in(left, nouns)[0]: right for left, right in sides}, asked[0], modulus, nouns)


def names_in(text: str, nouns: Nouns) -> list[Name]:
    """The quantities that a text names, in order, in the singular."""
    if " " not in text:
        return [(owner, what) for owner, what in _CODE.findall(text)]
    return [(owner, _single(what, nouns)) for what, owner in _PHRASE.findall(text)]


def noun_of(thing: str) -> str:
    """The category of an item, or itself: the last word; in the compact style the letter."""
    return thing.rpartition(" ")[2] if thing[:1].isupper() else thing[0]


def _single(thing: str, nouns: Nouns) -> str:
    kind, blank, noun = thing.rpartition(" ")
    return f"{kind}{blank}{nouns[noun][1]}" if noun in nouns else thing


def nouns_of(systems) -> Nouns:
    """The nouns of naming systems, each from coarse to fine, and the compact style's letters."""
    nouns = {letter: (layer, letter) for layer, letter in enumerate("abcd")}
    for system in systems:
        for layer, category in enumerate(reversed(system)):
            nouns |= dict.fromkeys((category.noun, category.plural), (layer, category.noun))
    return nouns
