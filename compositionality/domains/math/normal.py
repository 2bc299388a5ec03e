"""One way of writing an answer, by rules that change no value; the plain numbers that it may be; units after them."""

import re
from collections.abc import Sequence, Set
from fractions import Fraction

from compositionality.domains.math.expressions import letters_in
from compositionality.tasks.answers import depths

PLUS_MINUS, INTEGERS = "\\pm", "\\mathbb{Z}"
DIGITS, EXPONENT = 60, 300  # longest number that is read, in characters, and its largest power of 10

_BLANK, _GAP = " ", "  "  # a gap separates numbers, a blank may stand between thousands: 12 000
_UNIT_SIGNS = {
    **dict.fromkeys(("^{\\circ}", "^\\circ", "°", "\\degree"), "°"), "\\$": "USD", "¢": "cent",
}  # fmt: skip
_WRITTEN = {
    **dict.fromkeys(("\\,", "\\;", "\\:", "\\ ", "~", "\\!"), _BLANK), ",\\!": ",",
    **dict.fromkeys(("\\(", "\\)", "\\[", "\\]", "$", "\\left", "\\right"), _GAP),
    **dict.fromkeys(("\\quad", "\\qquad", "\\displaystyle"), _GAP),
    **{f"\\{size}{side}": _GAP for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r")},
    **dict.fromkeys(_UNIT_SIGNS, _GAP), "\\%": "%",
    "\\dfrac": "\\frac", "\\tfrac": "\\frac", "\\cfrac": "\\frac", "{bmatrix}": "{pmatrix}",
    "\\dbinom": "\\binom", "\\tbinom": "\\binom",
    "−": "-", "–": "-", "×": "\\times ", "π": "\\pi ", "≈": "\\approx ", "{,}": ",", "\\varnothing": "\\emptyset",
    "\\lbrack": "[", "\\rbrack": "]", "\\lbrace": "\\{", "\\rbrace": "\\}",
    "∅": "\\emptyset ", "±": "\\pm ", "≤": "\\le ", "≥": "\\ge ", "\\mathbb{R}": "(-\\infty,\\infty)",
    "∈": "\\in ", "\\cup": "∪", "\\infin": "\\infty", "∞": "\\infty ", "∧": "\\land ",
    "∨": "\\lor ", "ℤ": "\\mathbb{Z}",
}  # fmt: skip
_SIGN = re.compile(
    r",\\!|\^\\circ(?![A-Za-z])|\^\{\\circ\}|\\mathbb\{R\}|\{(?:,|bmatrix)\}|\\[A-Za-z]+|\\.|[^\w\s\\]|[πℤ]", re.DOTALL
)
"""What is looked up in this table: whole commands, as ``\\leftarrow`` is no ``\\left``."""
_DEGREES = re.compile(r"(?:°|\\degree|\^\\circ|\^\{\\circ\})\s*(?:\\(?:text|mathrm)\{\s*)?([CF])(?![A-Za-z])\}?")
_OVER = re.compile(
    r"\{(?P<above>[^{}]*)\\(?P<sign>over|choose)(?![a-zA-Z])(?P<below>[^{}]*)\}"
    r"|(?:(?<=\()|^)([^{}()=,]*)\\over(?![a-zA-Z])([^{}()=,]*)(?=\)|$)"
)
_PRODUCT = re.compile(r"(?<=\d)(?:(?:\\cdot |\\times |\*)(?=[A-Za-df-z]|e(?![\d+-]))|(?:\\cdot|\\times|\*)(?=\\pi))")
"""A number times a letter, but for ``1\\cdot e5``, which is no ``1e5``."""
_JOINED = re.compile(
    r"\s*,?\s*\\(?:text|mathrm)\{\s*(and|or)\s*\}\s*"
    r"|\s*,?\s+(and|or)\s+(?=[-+\d(\\]|[A-Za-z](?:_\{?\w+\}?)?\s*(?:[=<>]|\\[lgn]e))|\s*\\(land|lor)(?![a-zA-Z])\s*"
)
AND, OR = "∧", "∨"
"""Before an inequality, or a part of a formula, that is joined to the one before it; a comma stands before these."""
_JOINTS = {"and": AND, "land": AND, "or": OR, "lor": OR}
_UNEQUAL = re.compile(r"\\neq?(?![a-zA-Z])|≠")
_NAMED = re.compile(r"([A-Za-z])(?:_\{?\w+\}?)?\s*=")
_MIXED = re.compile(r"(\d+)\s+(\d+)/(\d+)")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:\s\d{3})+(?:\.\d*)?")
_BLANKS = re.compile(r"(\\[A-Za-z]+)\s+(?=[A-Za-z])|(?<!\s)(?:(?<![\d.])\s+|\s+(?![\s\d.]))")
"""All blanks but those between digits, as ``1 2`` is not 12; one between a command and a letter is kept, too."""
_LISTED = re.compile(r"(?<=\d)(?:\s+,\s*|,\s+)(?=\d{3}(?!\d))")  # ``1, 200`` is a list; its sign keeps it one
_SIGNED = re.compile(r"([+-])\(([^(),+-]+)\)")
_SUBSCRIPT = re.compile(r"_\{(\w)\}")
_INVERSE = re.compile(
    r"\\(sin|cos|tan)\s*\^\s*\{\s*-\s*1\s*\}|\\(?:operatorname|mathrm|text)\s*\{\s*arc(sin|cos|tan)\s*\}(?![a-zA-Z])"
)
_LETTER_OF_SET = re.compile(r"\\mathbb\s+([A-Z])(?![a-zA-Z])")
_INTEGERS = re.compile(
    r"(.*[^\s,(]) ?(?:, ?\(?|\(| (?=where|for|with|\())(?:(?:where|for|with) )?(?:(?:all|any|some|every|\\forall) )?"
    r"(?:integers? ([a-zA-Z])|([a-zA-Z]) (?:(?:is|are) )?(?:(?:an|any) )?integers?"
    r"|([a-zA-Z]) ?\\in ?(\\mathbb\{[NZ]\}|Z))\)?"
)
"""A family and the words that say what its letter stands for; its text is without styles and with single blanks."""
_BUILT = re.compile(
    r"\\\{(?:([a-z])(?:\||\\mid ?|:)(?=\1=))?((?:(?!\\\}).)+?)(?:,|\||\\mid ?|:)([a-zA-Z]\\in\\mathbb\{[NZ]\})\\\}"
)
"""A family between the braces of a set."""
_NO_SOLUTION = re.compile(
    r"(?:there (?:is|are) |(?:it|the (?:equation|inequality|system)) has )?no solutions?(?: exists?)?"
    r"|(?:the )?empty set"
)
_SHORT_FRACTION = re.compile(r"\\(frac|binom) ?(?:\{([^{}]*)\}|(\w)) ?(?:\{([^{}]*)\}|(\w))")
_SHORT_ROOT = re.compile(r"\\sqrt ?(\w)")
_LAST_SIGN = re.compile(r"\s*[.,;]$")
_TEXT = re.compile(r"\\(?:text(?:bf|it|rm|sf)?|math(?:rm|bf|it|sf)|mbox|boldsymbol|bm|operatorname)\s*\{([^{}]*)\}")
_WORDS = re.compile(r"[A-Za-z][A-Za-z' -]*")
_UNIT = re.compile(r"(.*\S)\s*\\(?:text(?:rm)?|mathrm|mbox)\{([^{}]*)\}((?:\^\{?\d\}?)?)")
_OPERATION = re.compile(r"\*|\\(?:pm|mp|cdot|times|div)(?![a-zA-Z])")
_PERCENT = re.compile(r"(.*\S)\s*(%)()")
_PLAIN_UNIT = re.compile(r"(\s*-?[\d.,:/]*\d)\s+([a-zA-Z].+)()")
_NAME = re.compile(
    r"(?:[A-Za-z](?:_\{?\w\}?)?(?:\([a-z]\))?=(?=[^=])|\([a-z](?:,[a-z])+\)=(?=\()|[a-z]\\in(?=[(\[]|\\{|\\emptyset))"
)


def normal(text: str) -> tuple[str, frozenset[str]]:
    """Return ``text`` without blanks, signs of money, percent and degree, with one form of fractions and roots.

    Then its units: those signs, and what stood after a number. A text by itself is its words in small letters.
    """
    text = _DEGREES.sub(r"\\text{ degree\1}", text)
    units = {_UNIT_SIGNS[sign] for sign in _SIGN.findall(text) if sign in _UNIT_SIGNS}
    text = _SIGN.sub(lambda sign: _WRITTEN.get(sign[0], sign[0]), text)
    text = _LETTER_OF_SET.sub(r"\\mathbb{\1}", _INVERSE.sub(lambda name: f"\\arc{name[1] or name[2]} ", text))
    text = _LAST_SIGN.sub("", text.strip())
    text = text if "," in text else text.replace(";", ", ")
    family = _INTEGERS.fullmatch(" ".join(_TEXT.sub(r" \1 ", text).split()))
    if family and not depths(family[1])[-1]:
        body, *letters, numbers = family.groups()
        text = f"{body}, {''.join(filter(None, letters))}\\in {INTEGERS if numbers in (None, 'Z') else numbers}"
    styled = _TEXT.fullmatch(text)
    text = _LAST_SIGN.sub("", styled[1].strip()) if styled else text
    text, unit = _without_unit(_JOINED.sub(_comma, text).strip())
    all_units = frozenset(units | {unit} - {""})
    text = _TEXT.sub(r"\1", text)
    if _WORDS.fullmatch(word := " ".join(text.split())) and len(word) > 1:
        is_product = len(word) == 2 and not styled and not word.istitle()  # xy is no XY
        said = word if is_product else word.lower()
        return "\\emptyset" if _NO_SOLUTION.fullmatch(said) else said, all_units
    text = _MIXED.sub(r"\1\\frac{\2}{\3}", text.strip())
    if _THOUSANDS.fullmatch(text):
        text = re.sub(r"\s", "", text)
    text = _BLANKS.sub(lambda blank: f"{blank[1]} " if blank[1] else "", _LISTED.sub(",+", text))
    text = _OVER.sub(_fraction, _PRODUCT.sub("", text))
    text = ",".join(
        f"{part.replace(PLUS_MINUS, '+')},{part.replace(PLUS_MINUS, '-')}" if part.count(PLUS_MINUS) == 1 else part
        for part in split_parts(text)
    )
    text = _SUBSCRIPT.sub(r"_\1", text)
    text = _SHORT_FRACTION.sub(r"\\\1{\2\3}{\4\5}", _SHORT_ROOT.sub(r"\\sqrt{\1}", text))
    text = bare(_unbuilt(text))
    text = "\\emptyset" if text == "\\{\\}" else text
    return text, all_units


def _comma(words: re.Match[str]) -> str:
    """Return a comma for the word between two answers; after it which word it was, where that counts."""
    joint, text = _JOINTS[words[1] or words[2] or words[3]], words.string
    letters, unequal = _NAMED.findall(text), _UNEQUAL.search(text)
    if joint == AND:
        counts = LESS.search(text) or (words[3] and not unequal)
    else:  # x=1 or y=2
        counts = LESS.search(text) or words[3] or unequal or 1 < len(letters) == len(set(letters))
    return f", {joint}" if counts else ", "


def _without_unit(text: str) -> tuple[str, str]:
    """Return a text without the unit after it, and that; of a list, in brackets too, after each part that has it."""
    if pair := brackets(text):
        inner, unit = _without_unit(pair[2])
        return f"{pair[0]}{inner}{pair[1]}", unit
    parts = split_parts(text)
    matches = [_UNIT.fullmatch(part) or _percent(part) or _PLAIN_UNIT.fullmatch(part) for part in parts]
    units = {unit_of(measured[2] + measured[3]) for measured in matches if measured}
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


def _fraction(over: re.Match[str]) -> str:
    """Return ``{1\\over 2}`` as ``\\frac``, in braces where it had some: they may be another command's."""
    numerator, denominator = (over["above"] or over[4] or "", over["below"] or over[5] or "")
    name = "binom" if over["sign"] == "choose" else "frac"
    fraction = f"\\{name}{{{numerator.strip()}}}{{{denominator.strip()}}}"
    return fraction if over["above"] is None or over[0] == over.string else f"{{{fraction}}}"


def bare(text: str) -> str:
    """Return what stands in round brackets around all of a single answer, or around a number after its sign."""
    while (pair := brackets(text)) and pair[:2] in (("(", ")"), ("{", "}")) and len(split_parts(pair[2])) == 1:
        text = pair[2]
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
    letters = re.findall("[a-z]", name[0]) if name and name[0][0] == "(" else []
    if letters != sorted(letters):
        return text
    rest = text[name.end() :] if name else ""
    return rest if rest and "=" not in rest else text


def names(parts: Sequence[str]) -> list[str]:
    return [part.removesuffix(unnamed(part)) for part in parts]


def are_solutions(text: str) -> bool:
    """Return whether all parts of a text are values of one letter: ``x=1 \\lor x=2`` is a list of two."""
    letters = {name[:1] for name in names(split_parts(_LETTERS_SET.sub("", text.replace(OR, ""))))}
    return len(letters) == 1 and "" not in letters


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


_PLAIN_LETTER = re.compile(r"(?<![a-zA-Z\\])[a-zA-Z]")
LESS = re.compile(r" ?(<|>|\\[lg]e(?:q(?:slant)?)?(?![a-zA-Z])) ?")


def intervals(text: str) -> str:
    """Return inequalities for one letter as an interval or a union, ``-2<x\\le7`` as ``(-2,7]``; else the text."""
    bounds = [_bounds(part.removeprefix(AND).removeprefix(OR)) for part in split_parts(text)]
    if None in bounds or len({letter for letter, _, _ in filter(None, bounds)}) > 1:
        return text
    sides = [(low, high) for _, low, high in filter(None, bounds)]
    if AND in text:  # of x>1 and x<3 each has one of the ends
        lows = [low for low, _ in sides if low != "(-\\infty"]
        highs = [high for _, high in sides if high != "\\infty)"]
        if len(sides) != 2 or len(lows) != 1 or len(highs) != 1 or OR in text:
            return text
        sides = [(lows[0], highs[0])]
    return "∪".join(map(",".join, sides))


def _bounds(text: str) -> tuple[str, str, str] | None:
    """Return the letter of an inequality, and the ends of its interval with their brackets."""
    sides = LESS.split(text)
    signs = {sign[:2] for sign in sides[1::2]}
    if signs <= {">", "\\g"}:
        sides.reverse()
    elif not signs <= {"<", "\\l"}:
        return None
    if len(sides) == 3:
        sides = ["-\\infty", "<", *sides] if sides[0].isalpha() else [*sides, "<", "\\infty"]
    if len(sides) != 5 or not re.fullmatch("[a-z]", sides[2]) or _PLAIN_LETTER.search(sides[0] + " " + sides[4]):
        return None
    low, first, letter, second, high = sides
    return letter, f"{'(' if first in '<>' else '['}{low}", f"{high}{')' if second in '<>' else ']'}"


_LETTERS_SET = re.compile(r",[a-zA-Z]\\in\\mathbb\{[NZ]\}$")
_FAMILY = re.compile(r"(.+),([a-zA-Z])\\in(\\mathbb\{[NZ]\})")


def _unbuilt(text: str) -> str:
    """Return a family without the braces of a set around it."""
    built = _BUILT.fullmatch(text)
    return f"{built[2]},{built[3]}" if built else text


def of_one_family(gold: str, answer: str) -> tuple[str, str]:
    """Return two families without their letters' set, both in the gold one's letter; other texts as they are."""
    family, answers = (_FAMILY.fullmatch(_unbuilt(text)) for text in (gold, answer))
    if not family or not answers or family[3] != answers[3]:
        return gold, answer
    letter, old = family[2], answers[2]
    renamed = re.sub(rf"(?<![\\a-zA-Z]){old}(?![a-zA-Z])", letter, answers[1])
    if letter != old and (letter in letters_in(answers[1]) or old in letters_in(renamed)):
        return gold, answer
    return family[1], renamed


# ---- plain numbers, read exactly: 12, -3.5, 1,234, 3/4, \frac{3}{4}, 1\frac{1}{2}, 1.2 \times 10^{5}

_WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_REAL = rf"(?:{_WHOLE}(?:\.\d*)?|\.\d+)"
_FRACTION = re.compile(rf"([+-]?)(?:(\d+))?\\frac\{{([+-]?{_WHOLE})\}}\{{([+-]?{_WHOLE})\}}")
_RATIO = re.compile(rf"([+-]?{_REAL})/({_WHOLE})")
_DECIMAL = re.compile(rf"([+-]?{_REAL})(?:(?:\\times|\\cdot|\*)10\^\{{?([+-]?\d+)\}}?|[eE]([+-]?\d+))?")
_REPEATING = re.compile(r"([+-]?\d+)\.(\d*)\\overline\{(\d+)\}")
_POWER_OF_TEN = re.compile(r"10\^(?:\{([+-]?\d{1,3})\}|(\d))")


def number_of(text: str) -> Fraction | None:
    """Return the number that ``text``, without blanks, is; None if it is no plain number, or too large to be read."""
    if len(text) > DIGITS or not text.isascii():
        return None
    if fraction := _FRACTION.fullmatch(text):
        sign, whole, numerator, denominator = fraction.groups()
        if whole and not numerator[0].isdigit():
            return None
        part = _divided(numerator, denominator)
        return None if part is None else (-1 if sign == "-" else 1) * (int(whole or 0) + part)
    if ratio := _RATIO.fullmatch(text):
        return _divided(ratio[1], ratio[2])
    if repeating := _REPEATING.fullmatch(text):
        start, digits, period = repeating.groups()
        return Fraction(int(start + digits + period) - int(start + digits), 10 ** len(digits) * (10 ** len(period) - 1))
    if ten := _POWER_OF_TEN.fullmatch(text):
        return Fraction(10) ** int(ten[1] or ten[2])
    decimal = _DECIMAL.fullmatch(text)
    power = int(decimal[2] or decimal[3] or 0) if decimal else 0
    if decimal is None or abs(power) > EXPONENT:
        return None
    return Fraction(decimal[1].replace(",", "")) * Fraction(10) ** power


def _divided(numerator: str, denominator: str) -> Fraction | None:
    divisor = Fraction(denominator.replace(",", ""))
    return Fraction(numerator.replace(",", "")) / divisor if divisor else None


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


def unit_of(text: str) -> str | None:
    """Return one way of writing a unit, as of ``m/s^2`` or ``square feet``; None if a word is not on the list."""
    unit, place = "", 0
    text = text.strip()
    while word := _UNIT_WORD.match(text, place):
        square, name, power, raised = word.groups()
        symbol = _known(name)
        if symbol is None:
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
        known = unit_of(glued[1])
        if known in asked:
            return f"\\text{{ {glued[1]}}}"
        return f" {glued[1]}" if known and glued[1][1:2].isalpha() else glued[0]

    return _GLUED.sub(unit, text)


def _known(name: str) -> str | None:
    """Return the symbol or singular of a name on the list; symbols of up to three letters keep their case."""
    if name in _UNITS:
        return _UNITS[name]
    if len(name) < 3:
        return None
    return next(
        (_UNITS[name.lower().removesuffix(end)] for end in ("", "s", "es") if name.lower().removesuffix(end) in _UNITS),
        None,
    )
