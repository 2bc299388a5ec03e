"""Units by a list, and answers without the unit after them."""

import re
from collections.abc import Set

from compositionality.domains.math.parts import PLUS_MINUS, brackets, split_parts
from compositionality.tasks.answers import depths

_MEASURED = """
m meter metre|cm centimeter centimetre|mm millimeter millimetre|km kilometer kilometre|in inch|ft foot feet|yd yard
mi mile|g gram|kg kilogram|mg milligram|lb pound|oz ounce|L l liter litre|mL ml milliliter|s sec second|min minute
h hr hour|N newton|J joule|W watt|V volt|A ampere amp|Hz hertz|Pa pascal|Ω ohm|K kelvin
°C C celsius degreeC|°F F fahrenheit degreeF|° deg degree|rad radian|% percent
mol mole|USD dollar|EUR euro|GBP|cent|am a.m AM A.M|pm p.m PM P.M|mph|kmh
cal calorie|kcal|kJ|kW|kWh|eV|kPa|MHz|kHz|ms|nm|dm
"""
"""Units by their symbols, and their names in the singular."""
_COUNTED = """
unit acre hectare ton gallon quart pint cup day week month year coin bill people person man men woman women child
children boy girl student teacher player member worker friend family families customer passenger guest team class
game goal vote point ticket book page word letter problem question way solution digit number integer value element
subset triangle rectangle circle side edge vertices vertex face line segment diagonal path step row column seat
table chair box bag bottle can piece slice item apple orange banana egg cookie candies candy cake pie pizza flower
tree plant animal dog cat bird fish chicken cow horse sheep pig car bus truck train bike bicycle ball toy card marble
stamp pencil pen sticker photo picture song movie house room floor door window brick tile shirt shoe sock hat dress
"""
_GROUPS = [group.split() for group in (*re.split(r"[|\n]", _MEASURED.strip()), *_COUNTED.split())]
_UNITS = {word: group[0] for group in _GROUPS for word in group}
_POWERS = {"square": "2", "sq": "2", "cubic": "3", "cu": "3"}
_UNIT_WORD = re.compile(
    r"((?:square|cubic|sq|cu)\.?\s+)?([^\W\d_.²³]+(?:\.m)?|°[CF]?|%)\.?(?:\^\{?(-?\d)\}?|([²³]))?", re.IGNORECASE
)
_BETWEEN_UNITS = re.compile(r"\s*/\s*|\s+per\s+|(?:\s*[·⋅-]\s*|\s*\\cdot\s*|\s+)")
_UNIT = re.compile(r"(.*\S)\s*\\(?:text(?:rm)?|mathrm|mbox)\{([^{}]*)\}((?:\^\{?\d\}?)?)")
_WORD = re.compile(r"\(?(?:[A-Z]|\\text\{[^\d{}]*\})\)?")  # has no unit: B A is no B
_OPERATION = re.compile(r"\*|\\(?:pm|mp|cdot|times|div)(?![a-zA-Z])")
_PERCENT = re.compile(r"(.*\S)\s*(%)()")
_PLAIN_UNIT = re.compile(r"(\s*-?[\d.,:/]*\d)\s+([a-zA-Z].+)()")


def unit_of(text: str) -> str | None:
    """Return one way of writing a unit, as of ``m/s^2`` or ``square feet``; None if a word is not on the list."""
    unit, place = "", 0
    text = text.strip().removesuffix(".")
    while word := _UNIT_WORD.match(text, place):
        square, name, power, raised = word.groups()
        symbol = _known(name)
        if symbol is None:
            return None
        if square and (power or raised):  # square feet^2
            return None
        power = _POWERS[square.strip(" .").lower()] if square else power or {"²": "2", "³": "3"}.get(raised or "", "")
        unit, place = unit + symbol + power, word.end()
        if place == len(text):
            return unit
        between = _BETWEEN_UNITS.match(text, place)
        if between is None:
            return None
        unit, place = unit + ("/" if "/" in between[0] or "per" in between[0] else "·"), between.end()
    return None


_GLUED = re.compile(r"(?<=\d)\s*([a-zA-Z][a-zA-Z/^\d]*)(?![a-zA-Z{])")


def apart(text: str, asked: Set[str] = frozenset()) -> str:
    """Return a text with a blank between a digit and a unit of two letters or more: 5cm may be 5 cm, or 5·c·m.

    A unit that is ``asked`` for is taken for one whatever its length.
    """

    def unit(glued: re.Match[str]) -> str:
        parsed = unit_of(glued[1])
        if parsed in asked:
            return f"\\text{{ {glued[1]}}}"
        return f" {glued[1]}" if parsed and glued[1][1:2].isalpha() else glued[0]

    return _GLUED.sub(unit, text)


def _known(name: str) -> str | None:
    """Return the symbol or singular of a name on the list; symbols of up to three letters keep their case."""
    singulars = [name.lower().removesuffix(end) for end in ("", "s", "es")] if len(name) > 2 else []
    return next((_UNITS[word] for word in (name, *singulars) if word in _UNITS), None)


def without_unit(text: str) -> tuple[str, str]:
    """Return a text without the unit after it, and that; of a list, in brackets too, after each part that has it."""
    if pair := brackets(text):
        inner, unit = without_unit(pair[2])
        return f"{pair[0]}{inner}{pair[1]}", unit
    parts = split_parts(text)
    matches = [_UNIT.fullmatch(part) or _percent(part) or _PLAIN_UNIT.fullmatch(part) for part in parts]
    units = {None if _WORD.fullmatch(one[1].strip()) else unit_of(one[2] + one[3]) for one in matches if one}
    if len(units) != 1 or None in units:
        return text, ""
    comma = "," if matches.count(None) == len(matches) - 1 else ", "  # of 1 cm,234 cm is no thousand
    bare = [measured[1] if measured else part for part, measured in zip(parts, matches, strict=True)]
    return comma.join(bare), units.pop() or ""


def _percent(part: str) -> re.Match[str] | None:
    """Find the sign after a whole term: x+50% is no x+50."""
    percent = _PERCENT.fullmatch(part)
    term = percent[1].rpartition("=")[2].strip().removeprefix(PLUS_MINUS) if percent else ""
    signs = [sign for sign, depth in zip(term[1:], depths(term)[1:], strict=False) if not depth and sign in "+-%"]
    return None if signs or _OPERATION.search(term) else percent
