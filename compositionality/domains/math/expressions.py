"""The LaTeX that may reach sympy, by a list of what it reads as what it is and by bounds on its work; letters in it."""

import re
from collections.abc import Iterator
from math import inf, prod

from compositionality.tasks.answers import depths

DEEPEST = 12  # brackets of an expression that is compared by symbols
LARGEST_POWER = 400  # product of the exponents of brackets
LARGEST_EXPONENT, LARGEST_OF_NUMBERS = 9999, 99  # of an exponent, of which letters are less than 3; of its numbers

_HEAVY = re.compile(r"\d{16}|\^\(|!|\d_|'")  # long numbers; what would be worked out, or is no expression
_GROWS = re.compile(r"\^|\\(?:exp|sinh|cosh)(?![a-z])(?:\^\{?\d\}?)?")
_RAISED = re.compile(r"-?\d+|\\[a-zA-Z]+(?![a-zA-Z{])|[a-zA-Z]")
_SMALL_POWER = re.compile(r"([a-zA-Z])\^(?:([2-4])|\{([2-4])\})")
_JOINED = re.compile(r"[})\]a-zA-Z]\d")  # right after a bracket or a letter: a product, an index or a slip
_COMMAND = re.compile(r"\\(?:begin|end)\{[a-z]?matrix\}|\\[a-zA-Z]+")
_LETTERS = """
alpha beta delta epsilon varepsilon eta theta vartheta kappa lambda mu nu xi pi rho sigma tau phi varphi chi psi omega
Delta Theta Lambda Xi Sigma Phi Psi Omega ell hbar
"""
_KNOWN = """
frac binom sqrt cdot times div pm mp sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan log ln exp
infty emptyset vec hat bar overline mathbb in le leq leqslant ge geq geqslant lt gt ne neq lfloor rfloor lceil rceil
lvert rvert vert
"""
"""Commands that math-verify reads as what they are; of others, as ``\\ldots``, it leaves out a part without a word."""
_COMMANDS = re.compile(
    rf"(?:\\(?:{'|'.join([*_KNOWN.split(), *_LETTERS.split()])})(?![a-zA-Z])|\\(?:begin|end)\{{pmatrix\}}"
    r"|\\\\|[\w {}()\[\]+\-*/^=<>,.|&])+"
)
SUBSCRIPTS = re.compile(r"_(?:\w|\{[^{}]*\})")
_BINOMIAL = re.compile(r"\\binom\{(?:\w|\d\d|\d?[a-z](?:[+-]\d)?)\}\{(?:\w|\d\d|[a-z][+-]\d)\}")
_NO_FACTOR = "cdot times div pm mp le leq leqslant ge geq geqslant lt gt ne neq in mid end rfloor rceil rvert vert"
_FACTOR = rf"(?=[a-zA-Z({{\[]|\\(?!(?:{'|'.join(_NO_FACTOR.split())})(?![a-zA-Z]))[a-zA-Z])"
_BRACES = r"\{[^{}]*\}"
_DIVISOR = (
    rf"(?:\d+(?:\.\d+)?|(?:[a-zA-Z]|\\(?:{'|'.join(_LETTERS.split())})(?![a-zA-Z]) ?)(?:_(?:\w|{_BRACES}))?"
    rf"|\\(?:frac|binom){_BRACES}{_BRACES}|\\(?!frac|binom)[a-z]+(?:\[\w\])?{_BRACES}|\((?:[^()]|\([^()]*\))*\)|\|[^|]*\|)"
)
_UNCLEAR = re.compile(
    rf"(?:/|\\div(?![a-zA-Z]) ?)-?{_DIVISOR}(?:\^(?:\w|{_BRACES}))?{_FACTOR}"
    rf"|(?<![\^_\d.])\d+\\frac\{{(\d+)\}}\{{(\d+)\}}{_FACTOR}"
)
"""Text with two readings: ``1/2x``, ``12/2(3)``, ``2\\frac{1}{2}x``."""
_LONG_NAME = re.compile(r"[a-zA-Z_]{4,}")


def letters_in(text: str) -> set[str]:
    """Return the letters, Greek ones by name; math-verify takes x for X."""
    named = {command[1:] for command in re.findall(r"\\[a-zA-Z]+", text)} & set(_LETTERS.split())
    return named | set(re.findall("[a-zA-Z]", _COMMAND.sub(" ", text)))


def is_expression(text: str) -> bool:
    """Return whether ``text`` is LaTeX of bounded work: commands, signs, digits, names of at most three letters."""
    open_ = depths(text)
    if min(open_) < 0 or open_[-1] or max(open_) > DEEPEST or text.count("{") != text.count("}"):
        return False
    if not text.isascii() or _HEAVY.search(text) or _JOINED.search(_COMMAND.sub(" ", SUBSCRIPTS.sub("_n ", text))):
        return False
    if text.count("\\binom") != len(_BINOMIAL.findall(text)) or _UNCLEAR.search(text):
        return False
    sizes = [(_size(exponent), base) for exponent, base in _exponents(text)]
    if max(sizes, default=(0, ""))[0] > LARGEST_EXPONENT or _LONG_NAME.search(_COMMAND.sub(" ", text)):
        return False
    of_brackets = prod(size for size, base in sizes if base in (")", "}", "]"))
    return of_brackets <= LARGEST_POWER and _COMMANDS.fullmatch(text) is not None


def _exponents(text: str) -> Iterator[tuple[str, str]]:
    """Yield the exponents, what ``\\exp`` and its kin are of too, each with the sign before it."""
    for sign in _GROWS.finditer(text):
        after_sign, is_power = text[sign.end() :], sign[0] == "^"
        open_, word = depths(after_sign), _RAISED.match(after_sign)
        if after_sign[:1] in ("{", "("):
            end = open_.index(0, 1)
        elif is_power:
            end = word.end() if word else 0
        else:  # up to a sign or a bracket that ends the argument
            levels = enumerate(zip(after_sign[1:], open_[2:], strict=True), 1)
            ends = (place for place, (char, level) in levels if level < 0 or (not level and char in "-+,=<>&"))
            end = next(ends, len(after_sign))
        unclear = is_power and (not end or after_sign[end : end + 1] == "^")
        yield "^" if unclear else after_sign[:end], text[sign.start() - 1 : sign.start()]


def _size(exponent: str) -> float:
    """Return a bound of an exponent; infinite where there are powers in it, but of letters up to the fourth."""
    plain = _SMALL_POWER.sub(lambda power: power[1] * int(power[2] or power[3]), exponent)
    numbers = [*map(float, re.findall(r"\d+(?:\.\d+)?", plain))]
    letters = len(re.findall(r"\\[a-zA-Z]+|[a-zA-Z]", plain))
    if _GROWS.search(plain) or "\\binom" in plain or max(numbers, default=0) > LARGEST_OF_NUMBERS:
        return inf
    return prod(1 + number for number in numbers) * 3**letters if letters or len(numbers) > 1 else sum(numbers)


_UNUSUAL = ("chi", "xi", "tau", "eta", "kappa", "psi")
_LETTER = re.compile(r"\\[a-zA-Z]+|[a-zA-Z]")


def with_letters_apart(*texts: str) -> list[str]:
    """Return texts with a Greek letter for ``N`` where there is an ``n`` as well, which math-verify takes for it."""
    letters = set().union(*map(letters_in, texts))
    large = sorted(letter for letter in letters if not letter.islower() and letter.lower() in letters)
    unused = [name for name in _UNUSUAL if name not in {letter.lower() for letter in letters}]
    renamed = {f"\\{letter}" if len(letter) > 1 else letter: name for letter, name in zip(large, unused, strict=False)}
    return [
        _LETTER.sub(lambda sign: f"\\{renamed[sign[0]]} " if sign[0] in renamed else sign[0], text) for text in texts
    ]
