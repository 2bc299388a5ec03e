"""Answers brought to one way of writing, by rules that change no value."""

import re

_REPLACED = (
    ("\\left", ""), ("\\right", ""), ("\\!", ""), ("\\,", ""), ("\\;", ""), ("\\:", ""), ("~", ""),
    ("\\$", ""), ("$", ""), ("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"), ("\\cfrac", "\\frac"), ("bmatrix", "pmatrix"),
    ("^{\\circ}", ""), ("^\\circ", ""), ("°", ""), ("\\degree", ""), ("−", "-"), ("×", "\\times"), ("π", "\\pi"),
    ("{,}", ","), ("–", "-"), ("\\varnothing", "\\emptyset"),
    ("\\lbrace", "\\{"), ("\\rbrace", "\\}"), ("\\cup", "∪"), ("\\infin", "\\infty"), ("∞", "\\infty"),
)  # fmt: skip
_PERCENT = re.compile(r"\\?%(?!\.?\w)")
_JOINED_BY_WORDS = re.compile(r"\s*,?\s*\\(?:text|mathrm)\{\s*(?:and|or)\s*\}\s*")
_PLUS_MINUS = re.compile(r"((?:[a-zA-Z]=)?)\\pm(\d+(?:\.\d+)?|\d*\\sqrt(?:\{\w+\}|\w)|\d*[a-z]|\\frac\{\w+\}\{\w+\})")
_MIXED = re.compile(r"(\d+)\s+(\d+)/(\d+)")
_THOUSANDS = re.compile(r"\d{1,3}(?:\s\d{3})+")
_BLANKS = re.compile(r"(?<!\d)\s+|\s+(?!\d)")
"""All but those between digits: ``1 2`` is not 12."""
_LETTER = re.compile(r"\(([A-Za-z])\)")
_SHORT_FRACTION = re.compile(r"\\frac(?:\{(\w)\}|(\w))(?:\{(\w)\}|(\w))")
_SHORT_ROOT = re.compile(r"\\sqrt(\w)")
_SPACE = re.compile(r"(?<!\\)\\ ")
_UNIT = re.compile(r"(.*[\d}])\s*\\(?:text|mathrm)\{([^{}]*)\}(?:\^\{?\d\}?)?")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|textit|mathbf|operatorname)\s*\{([^{}]*)\}")
_PLAIN_UNIT = re.compile(r"(-?[\d.,]*\d)\s+([a-z]{4,}(?:\s[a-z]{4,})?)")
_NAME = re.compile(r"(?:[A-Za-z](?:_\{?\w\}?)?(?:\([a-z]\))?=(?=[^=])|\([a-z](?:,[a-z])+\)=(?=\()|[a-z]\\in(?=[(\[]))")
_WORDS = re.compile(r"[A-Za-z][A-Za-z' -]*")
_MULTIPLES = frozenset(
    {
        "hundred", "thousand", "million", "billion", "trillion", "k", "mn", "bn", "dozen", "percent", "mod",
        "or", "and", "e", "i", "j", "x", "y", "z", "n", "not", "but", "if", "plus", "minus", "time", "over",
        "squared", "cubed",
        "fifth", "sixth", "eighth", "tenth", "hundredth", "thousandth", "les", "more", "fold",
        "half", "halve", "third", "quarter", "root", "choose", "factorial",
    }
)  # fmt: skip
"""Words behind a number that are part of its value, or join it to more, without a last s; none of them is a unit."""
_UNITS = re.compile(r"[a-z°µμω/.'()²³·-]+")


def normal(text: str) -> str:
    """``text`` without blanks, signs of money, percent and degree, and with one way of writing fractions and roots.

    A unit in ``\\text{…}`` behind a number is dropped, a text by itself is its words in small letters.
    """
    for old, new in _REPLACED:
        text = text.replace(old, new)
    text = _JOINED_BY_WORDS.sub(",", _PERCENT.sub("", text))
    text = _without_unit(_SPACE.sub(" ", text).strip().removesuffix("."))
    text = _TEXT.sub(lambda found: found[1], text)
    if _WORDS.fullmatch(text.strip()) and len(text.strip()) > 1:
        return " ".join(text.lower().split())
    text = _MIXED.sub(r"\1\\frac{\2}{\3}", text.strip())
    if _THOUSANDS.fullmatch(text):
        text = re.sub(r"\s", "", text)
    text = _BLANKS.sub("", text)
    if found := _PLUS_MINUS.fullmatch(text):
        text = f"{found[1]}{found[2]},{found[1]}-{found[2]}"
    if found := _LETTER.fullmatch(text):
        text = found[1]
    text = _SHORT_ROOT.sub(r"\\sqrt{\1}", text)
    return _SHORT_FRACTION.sub(lambda found: "\\frac{%s}{%s}" % (found[1] or found[2], found[3] or found[4]), text)  # noqa: UP031


def unnamed(text: str) -> str:
    """A normal answer without a name before it: ``x=5`` is ``5``."""
    found = _NAME.match(text)
    rest = text[found.end() :] if found else ""
    return rest if rest and "=" not in rest else text


def split_top(text: str) -> list[str]:
    """The parts between the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def brackets(text: str) -> tuple[str, str, str] | None:
    """Opening and closing bracket around all of ``text`` and what is between; None without such a pair."""
    for opened, closed in (("\\{", "\\}"), ("(", ")"), ("[", "]"), ("(", "]"), ("[", ")")):
        inner = text[len(opened) : len(text) - len(closed)]
        if (
            text.startswith(opened)
            and text.endswith(closed)
            and len(text) >= len(opened) + len(closed)
            and _even(inner)
        ):
            return opened, closed, inner
    return None


def _even(text: str) -> bool:
    """Whether no bracket of ``text`` is closed before it is opened."""
    depth = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            return False
    return depth == 0


def _without_unit(text: str) -> str:
    found = _UNIT.fullmatch(text) or _PLAIN_UNIT.fullmatch(text)
    words = found[2].lower().split() if found else []
    unit = (
        words
        and _UNITS.fullmatch("".join(words).replace("\\cdot", ""))
        and not _MULTIPLES & {word.removesuffix("s") for word in words}
    )
    return found[1] if found and unit else text
