"""Parts of an answer: what stands between commas, in brackets, after a name."""

import re
from collections.abc import Sequence

from compositionality.domains.math.numbers import number_of
from compositionality.tasks.answers import depths

PLUS_MINUS = "\\pm"
GREEK = r"\\(?:alpha|beta|gamma|delta|theta|phi|varphi|lambda|mu|omega|sigma|rho)(?![a-zA-Z])"
LETTER = rf"(?:[A-Za-z]|{GREEK}|\\(?:vec|bar|hat|overline|overrightarrow)\{{[A-Za-z]{{1,2}}\}})"
"""A variable: a letter, or one or two below an arrow, a bar or a hat."""

_SIGNED = re.compile(r"([+-])\(([^(),+-]+)\)")
_NAME = re.compile(
    rf"(?:[a-z](?::[a-z])+=|{LETTER}(?:_\{{?\w\}}?)?(?:\([a-z]\))?=(?=[^=])|\([a-z](?:,[a-z])+\)=(?=\()"
    rf"|{LETTER}\\in(?=[(\[]|\\{{|\\emptyset))"
)


def bare(text: str) -> str:
    """Return what stands in round brackets around all of a single answer, or around a number after its sign."""
    while (pair := brackets(text)) and pair[:2] in (("(", ")"), ("{", "}")) and len(split_parts(pair[2])) == 1:
        text = pair[2].strip()
    signed = _SIGNED.fullmatch(text)
    number = bare(signed[2]) if signed else ""
    return signed[1] + number if signed and number_of(number) is not None else text


def unbraced(text: str) -> str:
    """Return a single answer without the plain braces around it, which are not seen: ``{1\\over 2}``."""
    while (pair := brackets(text)) and pair[0] == "{" and len(split_parts(pair[2])) == 1:
        text = pair[2]
    return text


def unnamed(text: str) -> str:
    """Return a normal answer without a name before it: ``x=5`` is ``5``; ``(y,x)=(1,2)`` is not ``(1,2)``."""
    name = _NAME.match(text)
    letters = re.findall("[a-z]", name[0]) if name and re.search("[,:]", name[0]) else []
    if letters != sorted(letters):
        return text
    rest = text[name.end() :] if name else ""
    return rest if rest and "=" not in rest else text


def names(parts: Sequence[str]) -> list[str]:
    return [part.removesuffix(unnamed(part)) for part in parts]


def point(text: str) -> dict[str, str]:
    """Return the values of ``(x,y)=(1,2)`` and of ``x=1,y=2`` by their letters; none of what is no such text."""
    parts = split_parts(text)
    letters = [name[:-1] for name in names(parts) if name.endswith("=")]
    values = [unnamed(part) for part in parts]
    if len(parts) == len(letters) == 1 and letters[0][0] == "(" and (pair := brackets(values[0])):
        letters, values = letters[0][1:-1].split(","), split_parts(pair[2])
    return dict(zip(letters, values, strict=True)) if 1 < len({*letters}) == len(letters) == len(values) else {}


def split_parts(text: str) -> list[str]:
    """Return the parts between the commas that stand in no bracket."""
    parts, start = list[str](), 0
    for place, (char, depth) in enumerate(zip(text, depths(text), strict=False)):
        if char == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def brackets(text: str) -> tuple[str, str, str] | None:
    """Return the brackets around all of ``text`` and what is between them; None without such a pair."""
    for opened, closed in (("\\{", "\\}"), ("(", ")"), ("[", "]"), ("(", "]"), ("[", ")"), ("{", "}")):
        if text.startswith(opened) and text.endswith(closed) and len(text) >= len(opened) + len(closed):
            inner = text[len(opened) : len(text) - len(closed)]
            if min(depths(inner)) >= 0:
                return opened, closed, inner
    return None
