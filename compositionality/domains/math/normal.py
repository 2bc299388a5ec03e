"""One way of writing an answer, by rules that change no value, and the units after it."""

import re

from compositionality.domains.math.inequalities import AND, LESS, OR, without_sets
from compositionality.domains.math.parts import PLUS_MINUS, bare, brackets, split_parts, unbraced
from compositionality.domains.math.residues import spelled_classes, spelled_family, unbuilt
from compositionality.domains.math.units import without_unit

_BLANK, _GAP = " ", "  "  # a gap separates numbers, a blank may stand between thousands: 12 000
_UNIT_SIGNS = {
    **dict.fromkeys(("^{\\circ}", "^\\circ", "°", "\\degree"), "°"), "\\$": "USD", "¢": "cent",
}  # fmt: skip
_STYLES = "quad qquad displaystyle textstyle bf rm it sf small normalsize large Large LARGE huge Huge"
_WRITTEN = {
    **dict.fromkeys(("\\,", "\\;", "\\:", "\\ ", "~", "\\!"), _BLANK), ",\\!": ",",
    **dict.fromkeys(("\\(", "\\)", "\\[", "\\]", "$", "\\left", "\\right"), _GAP),
    **dict.fromkeys((f"\\{style}" for style in _STYLES.split()), _GAP), "\\colon": ":",
    **{f"\\{size}{side}": _GAP for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r")},
    **dict.fromkeys(_UNIT_SIGNS, _GAP), "\\%": "%",
    "\\dfrac": "\\frac", "\\tfrac": "\\frac", "\\cfrac": "\\frac", "{bmatrix}": "{pmatrix}",
    "\\dbinom": "\\binom", "\\tbinom": "\\binom",
    "−": "-", "–": "-", "×": "\\times ", "π": "\\pi ", "≈": "\\approx ", "{,}": ",", "{:}": ":",
    "\\varnothing": "\\emptyset",
    "\\lbrack": "[", "\\rbrack": "]", "\\lbrace": "\\{", "\\rbrace": "\\}",
    "∅": "\\emptyset ", "±": "\\pm ", "\\mathbb{R}": "(-\\infty,\\infty)", "\\lt": "<", "\\gt": ">",
    **dict.fromkeys(("≤", "⩽", "<=", "\\leqq"), "\\le "), **dict.fromkeys(("≥", "⩾", ">=", "\\geqq"), "\\ge "),
    "∈": "\\in ", "\\cup": "∪", "\\infin": "\\infty", "∞": "\\infty ", "∧": "\\land ",
    "∨": "\\lor ", "ℤ": "\\mathbb{Z}", "\\wedge": "\\land", "\\vee": "\\lor", "\\lnot": "\\neg", "¬": "\\neg ",
    "\\bigcup": "∪", "√": "\\sqrt", "\\backslash": "\\setminus", "≡": "\\equiv ",
}  # fmt: skip
_SIGN = re.compile(
    r",\\!|\^\\circ(?![A-Za-z])|\^\{\\circ\}|\\mathbb\{R\}|\{(?:[,:]|bmatrix)\}|\\[A-Za-z]+|\\.|[<>]=|[^\w\s\\]|[πℤ]",
    re.DOTALL,
)
"""Keys of this table: whole commands, as ``\\leftarrow`` is no ``\\left``."""
_DEGREES = re.compile(r"(?:°|\\degree|\^\\circ|\^\{\\circ\})\s*(?:\\(?:text|mathrm)\{\s*)?([CF])(?![A-Za-z])\}?")
_BRACED = r"\{(?:[^{}]|\{[^{}]*\})*\}"
_NESTED, _UNPARTED = rf"(?:[^{{}}]|{_BRACED})*?", rf"(?:[^{{}}()=,]|{_BRACED}|\([^{{}}()=,]*\))*?"
_OVER = re.compile(
    rf"\{{(?P<above>{_NESTED})\\(over|choose)(?![a-zA-Z])({_NESTED})\}}"
    rf"|(?:(?<=[(=])|^)({_UNPARTED})\\(over|choose)(?![a-zA-Z])({_UNPARTED})(?=\)|$)"
)
_GROUP = re.compile(
    r"(^|[-+=<>(,\[{:*/]|\\(?:over|choose|times|cdot|pm|mp|div) ?)\{(\d+(?:\.\d+)?|[a-zA-Z])\}(?![\d{]|,\{|,\d{3})"
)
"""A number or a letter in braces that no command needs, which are not seen: ``-{5}``; ``{1},200`` stays a list."""
_ROOT_OF = re.compile(r"√\s*(?:(\d+(?:\.\d+)?|[a-zA-Z])|\(([^()]*)\))")
_ARRAY = re.compile(r"[(\[]\\begin\{(?:matrix\}|array\}\{[clr ]*\})(.*)\\end\{(?:matrix|array)\}[)\]]")
_LEAD = re.compile(r"\s*\\text\{\s*(?:the )?(?:final )?answer(?: is|:| is:)?\s*\}:?(?=.)", re.IGNORECASE)
_TO = re.compile(r"(?<=\d)\s*(?:\\text\{\s*to\s*\}|\sto\s)\s*(?=\d)")
_BASE = re.compile(r"(?<![\w^)}\]])[({](\w+)[)}](?=_\{?\d+\}?)")
_PRODUCT = re.compile(
    r"(?<![\d./])(?<!\\div)(\d+(?:\.\d*)?|\.\d+)"
    r"(?:(?:\\cdot |\\times |\*)(?=[A-Za-df-z]|e(?![\d+-]))|(?:\\cdot|\\times|\*)(?=\\pi))"
)
"""A number times a letter, but for ``1\\cdot e5``, which is no ``1e5``, and ``1/2\\cdot x``, which is no ``1/2x``."""
_JOINED = re.compile(
    r"\s*,?\s*\\(?:text(?:bf|it|rm|sf)?|mathrm|mbox)\{\s*,?\s*(and|or)\s*\}\s*"
    r"|\s*,?\s+(and|or)\s+(?=[-+\d(\\]|[A-Za-z](?:_\{?\w+\}?)?\s*(?:[=<>]|\\(?:[lgn]e|equiv)))"
    r"|\s*\\(land|lor)(?![a-zA-Z])\s*"
)
_JOINTS = {"and": AND, "land": AND, "or": OR, "lor": OR}
_UNEQUAL = re.compile(r"\\neq?(?![a-zA-Z])|≠")
_MODULUS = re.compile(r"\\equiv|mod(?![a-zA-Z])")
_NAMED = re.compile(r"([A-Za-z])(?:_\{?\w+\}?)?\s*=")
_MIXED = re.compile(r"(\d+)\s+(\d+)/(\d+)")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:\s\d{3})+(?:\.\d*)?")
_BLANKS = re.compile(r"(\\[A-Za-z]+)\s+(?=[A-Za-z])|(?<!\s)(?:(?<![\d.])\s+|\s+(?![\s\d.]))")
"""All blanks but those between digits, as ``1 2`` is not 12; one between a command and a letter is kept, too."""
_LISTED = re.compile(r"(?<=\d)(?:\s+,\s*|,\s+)(?=\d{3}(?!\d))")  # ``1, 200`` is a list; its sign keeps it one
_BOTH_SIGNS = re.compile(re.escape(PLUS_MINUS) + "(?![a-zA-Z])")  # \\pmod is none
_SUBSCRIPT = re.compile(r"_\{(\w)\}")
_INVERSE = re.compile(
    r"\\(sin|cos|tan)\s*\^\s*\{\s*-\s*1\s*\}|\\(?:operatorname|mathrm|text)\s*\{\s*arc(sin|cos|tan)\s*\}(?![a-zA-Z])"
)
_LETTER_OF_SET = re.compile(r"\\mathbb\s+([A-Z])(?![a-zA-Z])")
_NO_SOLUTION = re.compile(
    r"(?:there (?:is|are) |(?:it|the (?:equation|inequality|system)) has )?no solutions?(?: exists?)?"
    r"|(?:the )?empty set"
)
_SHORT_FRACTION = re.compile(r"\\(frac|binom) ?(?:\{([^{}]*)\}|(\w)) ?(?:\{([^{}]*)\}|(\w))")
_SHORT_BELOW = re.compile(rf"(\\frac\{{{_NESTED}\}})(\w)")
_SHORT_COMMAND = re.compile(r"\\(sqrt|vec|bar|hat|overline) ?(\w)")
_LAST_SIGN = re.compile(r"\s*[.,;]$")
_TEXT = re.compile(r"\\(?:text(?:bf|it|rm|sf)?|math(?:rm|bf|it|sf)|mbox|boldsymbol|bm|operatorname)\s*\{([^{}]*)\}")
_STYLE = re.compile(r"\s*(?:\\(?:math(?:bf|rm|it|sf)|boldsymbol|bm|textbf)\s*)?(?=\{)")
_WORDS = re.compile(r"[A-Za-z][A-Za-z' -]*")


def normal(text: str) -> tuple[str, frozenset[str]]:
    """Return ``text`` without blanks, signs of money, percent and degree, with one form of fractions and roots.

    Then its units: those signs, and what stood after a number. A text by itself is its words in small letters.
    """
    text = _DEGREES.sub(r"\\text{ degree\1}", _ROOT_OF.sub(r"\\sqrt{\1\2}", _LEAD.sub("", _undressed(text), count=1)))
    units = {_UNIT_SIGNS[sign] for sign in _SIGN.findall(text) if sign in _UNIT_SIGNS}
    text = _SIGN.sub(lambda sign: _WRITTEN.get(sign[0], sign[0]), _LETTER_OF_SET.sub(r"\\mathbb{\1}", text))
    text = _INVERSE.sub(lambda name: f"\\arc{name[1] or name[2]} ", text)
    text = _LAST_SIGN.sub("", text.strip())
    text = text if "," in text else text.replace(";", ", ")
    text = spelled_family(_TEXT.sub(r" \1 ", text)) or text
    styled = _TEXT.fullmatch(text)
    text = _LAST_SIGN.sub("", styled[1].strip()) if styled else text
    text, unit = without_unit(_JOINED.sub(_comma, _TO.sub(":", text)).strip())
    all_units = frozenset(units | {unit} - {""})
    text = _TEXT.sub(r"\1", text)
    if _WORDS.fullmatch(word := bare(" ".join(text.split()))) and len(word) > 1:
        is_product = len(word) == 2 and not styled and not word.istitle()  # xy is no XY
        plain = word if is_product else word.lower()
        return "\\emptyset" if _NO_SOLUTION.fullmatch(plain) else plain, all_units
    text = _MIXED.sub(r"\1\\frac{\2}{\3}", text.strip())
    if _THOUSANDS.fullmatch(text):
        text = re.sub(r"\s", "", text)
    text = _BLANKS.sub(lambda blank: f"{blank[1]} " if blank[1] else "", _LISTED.sub(",+", text))
    while (shorter := _GROUP.sub(_ungrouped, text)) != text:
        text = shorter
    text = _ARRAY.sub(r"\\begin{pmatrix}\1\\end{pmatrix}", _BASE.sub(r"\1", text))
    text = _with_both_signs(_OVER.sub(_fraction, _PRODUCT.sub(r"\1", text)))
    text = _SUBSCRIPT.sub(r"_\1", text)
    text = _SHORT_FRACTION.sub(r"\\\1{\2\3}{\4\5}", _SHORT_COMMAND.sub(r"\\\1{\2}", text))
    text = without_sets(spelled_classes(bare(unbuilt(_SHORT_BELOW.sub(r"\1{\2}", text)))))
    if (pair := brackets(text)) and pair[0] == "(" and {AND, OR} & {*text}:
        text = pair[2]
    text = "\\emptyset" if text == "\\{\\}" else text
    return text, all_units


def _undressed(text: str) -> str:
    """Return what stands in braces around a whole text that has commands or letters, perhaps with a style before."""
    while (style := _STYLE.match(text)) and (pair := brackets(text[style.end() :].strip())):
        if not re.search(r"\\|[a-zA-Z]" if style[0].isspace() or not style[0] else r"[\\{]", pair[2]):
            break
        text = pair[2]
        if re.search(r"\\(?:over|choose)(?![a-zA-Z])", text):
            return f"{{{text}}}"  # which may be theirs
    return text


def _comma(words: re.Match[str]) -> str:
    """Return a comma for the word between two answers; after it which word it was, where that counts."""
    joint, text = _JOINTS[words[1] or words[2] or words[3]], words.string
    letters, unequal, is_set = _NAMED.findall(text), _UNEQUAL.search(text), LESS.search(text) or _MODULUS.search(text)
    if joint == AND:
        counts = is_set or (words[3] and not unequal)
    else:  # x=1 or y=2
        counts = is_set or words[3] or unequal or 1 < len(letters) == len(set(letters))
    return f", {joint}" if counts else ", "


def _fraction(over: re.Match[str]) -> str:
    """Return ``{1\\over 2}`` as ``\\frac``, in braces where it had some: they may be another command's."""
    numerator, denominator = (unbraced((over[one] or over[other] or "").strip()) for one, other in ((1, 4), (3, 6)))
    name = "binom" if "choose" in (over[2], over[5]) else "frac"
    fraction = f"\\{name}{{{numerator}}}{{{denominator}}}"
    is_mixed = over.string[: over.start()][-1:].isdigit()
    return fraction if over["above"] is None or over[0] == over.string or is_mixed else f"{{{fraction}}}"


def _ungrouped(group: re.Match[str]) -> str:
    between = " " if group[1][:1] == "\\" and group[2].isalpha() else "+" * (group[1] == "," and group[2].isdigit())
    return group[1].rstrip() + between + group[2]


def _with_both_signs(text: str) -> str:
    """Return both values of each part with one sign ±, within the braces of a set too."""
    if (pair := brackets(text)) and pair[0] == "\\{":
        return f"{pair[0]}{_with_both_signs(pair[2])}{pair[1]}"
    return ",".join(
        f"{_BOTH_SIGNS.sub('+', part)},{_BOTH_SIGNS.sub('-', part)}" if len(_BOTH_SIGNS.findall(part)) == 1 else part
        for part in split_parts(text)
    )
