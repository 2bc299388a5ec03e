"""What may stand behind a number without changing it: units of measure, money, and things that are counted."""

import re

_MEASURED = """
m meter metre|cm centimeter centimetre|mm millimeter millimetre|km kilometer kilometre|in inch|ft foot feet|yd yard
mi mile|g gram|kg kilogram|mg milligram|lb pound|oz ounce|L l liter litre|mL ml milliliter|s sec second|min minute
h hr hour|N newton|J joule|W watt|V volt|A ampere amp|Hz hertz|Pa pascal|Ω ohm|K kelvin|°C C celsius|°F F fahrenheit
° deg degree|mol mole|USD dollar|EUR euro|GBP|am a.m AM A.M|pm p.m PM P.M|mph|kmh
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
_NAMES = {word: group[0] for group in _GROUPS for word in group}
_POWERS = {"square": "2", "sq": "2", "cubic": "3", "cu": "3"}
_WORD = re.compile(
    r"((?:square|cubic|sq|cu)\.?\s+)?([^\W\d_.²³]+(?:\.m)?|°[CF]?)\.?(?:\^\{?(-?\d)\}?|([²³]))?", re.IGNORECASE
)
_BETWEEN = re.compile(r"\s*/\s*|\s+per\s+|(?:\s*[·⋅-]\s*|\s*\\cdot\s*|\s+)")


def unit_of(text: str) -> str | None:
    """Return one way of writing a unit, as of ``m/s^2`` or ``square feet``; None if a word is not on the list."""
    unit, place = "", 0
    text = text.strip()
    while word := _WORD.match(text, place):
        square, name, power, raised = word.groups()
        known = _known(name)
        if known is None:
            return None
        power = _POWERS[square.strip(" .").lower()] if square else power or {"²": "2", "³": "3"}.get(raised or "", "")
        unit, place = unit + known + power, word.end()
        if place == len(text):
            return unit
        between = _BETWEEN.match(text, place)
        if between is None:
            return None
        unit, place = unit + ("/" if "/" in between[0] or "per" in between[0] else "·"), between.end()
    return None


def _known(name: str) -> str | None:
    """Return the symbol or singular of a name on the list; symbols of up to three letters keep their case."""
    if name in _NAMES:
        return _NAMES[name]
    if len(name) < 3:
        return None
    return next(
        (_NAMES[name.lower().removesuffix(end)] for end in ("", "s", "es") if name.lower().removesuffix(end) in _NAMES),
        None,
    )
