"""Reading free English text: which function was said to give which string, in order.

A step is a function's name (``func_3`` or a call) followed by a stated result: a quoted string after ``=``, ``→``,
":", *returns*, *becomes*, *gives* and the like, or an unquoted word after ``=`` or an arrow. A result in the sentence
of the name comes before those in later ones; of several, the last counts (``"ab" + "c" = "abc"``). Of a call inside a
call, what it gives is stated by writing it again with the result in its place. A step stated twice counts once, and
with another result it is a correction. Text that names no function, but with as many stated results as there are
operators, is read by position. One pass, linear in the text; no text is executed.
"""

import re
from dataclasses import dataclass, field

from compositionality.tasks.string.reference import Reference, StatedStep, Trace

LONGEST_TEXT, LONGEST_CALL, LONGEST_GAP, LONGEST_BARE = 40_000, 400, 60, 210
_SYMBOL = r"==?|→|⇒|->|=>|⟶"
_WORD = (
    r"\b(?:returns?|returned|returning|becomes?|became|gives?|giving|gave|yields?|yielding|produces?|producing|outputs?"
    r"|results?|resulting|gets?|getting|obtains?|equals?|is|into)\b"
)
_TAKES = r"\b(?:to|on|of|with|for|takes|[Ii]nput(?: string)?(?: is)?)\b:?"
_TOKEN = re.compile(
    r"(?P<call>\bfunc_\d{1,3})"
    r'|"(?P<quoted>[^"\n]{0,400})"'
    r"|(?<![\w])'(?P<single>[^'\n]{0,400})'(?!\w)"
    rf"|(?P<symbol>{_SYMBOL})(?:[ \t]*(?P<bare>[^\s\"'(),;=+→]{{2,200}})(?=[\s.,;]|$))?"
    rf"|(?P<word>{_WORD})|(?P<colon>:)|(?P<takes>{_TAKES})|(?P<line>\n|[.;](?=\s))"
)
_CODE = re.compile(r"`([^`\n]{1,400})`")
_NO_WORD = frozenset("\"'()=")
_LEFT = re.compile(r":[ \t]*+([^\s\"'(),;:=+→]{1,200})[ \t]*$")
_ARGUMENT = re.compile(r"""\s*(?:\w+\s*=\s*)?(?:"([^"]*)"|'([^']*)')\s*(?:([+,])|$)""")
_INNER = re.compile(r"func_\d{1,3}\([^()]{0,400}\)")
_NAMES_INPUT = re.compile(r"(?:\bx|\binput(?: string)?|\bstring|\btext)\s*(?:=|is|:)?\s*$")


@dataclass
class _Open:
    """A function that was named and whose result is awaited."""

    name: str
    strings: tuple[str, ...] | None
    result: str | None = None
    same_sentence: bool = True
    settled: bool = False  # a result in the sentence of the name: later ones do not change it
    link: str = ""  # kind of the link before the result

    def take(self, result: str, link: str = "") -> None:
        if not self.settled or self.same_sentence:
            self.result, self.settled, self.link = result, self.same_sentence, link


@dataclass
class _Reader:
    """The state of one pass over a text."""

    reference: Reference
    text: str
    steps: list[StatedStep] = field(default_factory=list)
    nameless: list[str] = field(default_factory=list)
    open: _Open | None = None
    link: tuple[str, int] = ("", -LONGEST_GAP)  # kind and end of the last linking word or sign
    last: tuple[str, int] = ("", -LONGEST_GAP)  # the last quoted string and its end
    named: bool = False  # a function was named
    nested: tuple[str, str, str] | None = None  # the last call with a call inside: its text before and after, that call
    before: str | None = None  # the string to the left of the last link, if it stands right beside it

    def read(self) -> Trace:
        position = 0
        while token := _TOKEN.search(self.text, position):
            position = self._take(token)
        self._close()
        if not self.named and len(self.nameless) == len(self.reference.named) == len(self.reference.steps):
            stated = zip(self.reference.names, self.nameless, strict=True)
            return Trace(tuple(StatedStep(name, None, result) for name, result in stated))
        return Trace(tuple(self.steps))

    def _take(self, token: re.Match[str]) -> int:
        if token["call"]:
            return self._call(token)
        if token["line"]:
            if self.open:
                self.open.same_sentence = False
        elif token["symbol"] or token["word"] or token["colon"]:
            beside = token.start() - self.last[1] <= 2
            bare = _LEFT.search(self.text, max(0, token.start() - LONGEST_BARE), token.start())
            self.before = self.last[0] if beside else bare[1] if bare and token["symbol"] else None
            self.link = ("symbol" if token["symbol"] else "colon" if token["colon"] else "word", token.end())
            if token["bare"] and not token["bare"].startswith("func_"):
                self._result(token["bare"].rstrip(".:"), token.start())
        elif token["takes"]:
            self.link = ("takes", token.end())
        else:
            value = token["quoted"] if token["quoted"] is not None else token["single"]
            self._string(value, token)
        return token.end()

    def _call(self, token: re.Match[str]) -> int:
        """Take a function's name: what was open before is complete."""
        self._close()
        self.named = True
        arguments, end = _arguments(self.text, token.end())
        whole = self.text[token.start() : end]
        self._rewritten(whole)
        inner = _INNER.search(whole, 1)
        self.nested = (whole[: inner.start()], inner[0], whole[inner.end() :]) if inner else None
        if arguments is None or "func_" not in arguments:
            self.open = self._opened(token["call"], arguments)
        self.link = ("", end - LONGEST_GAP - 1)
        return end

    def _opened(self, name: str, arguments: str | None) -> _Open:
        return _Open(name, None if arguments is None else _literals(arguments, self._slots(name)))

    def _rewritten(self, call: str) -> None:
        """Read ``f(g("ab")) = f("ba")``, which states what g gives."""
        if self.nested is None:
            return
        head, inner, tail = self.nested
        if call.startswith(head) and call.endswith(tail):
            middle = _ARGUMENT.fullmatch(call[len(head) : max(len(head), len(call) - len(tail))])
            if middle and middle[3] is None:
                name, _, arguments = inner[:-1].partition("(")
                self.open = self._opened(name, arguments)
                self.open.take(middle[1] if middle[1] is not None else middle[2])
                self._close()

    def _string(self, value: str, token: re.Match[str]) -> None:
        kind, at = self.link
        near = token.start() - at <= LONGEST_GAP and "\n" not in self.text[at : token.start()]
        if near and kind == "takes" and self.open and self.open.strings is None and self.open.result is None:
            self.open.strings = (value,)
        elif near and kind in ("symbol", "word", "colon"):
            self._result(value, token.start())
        self.last = (value, token.end())

    def _result(self, value: str, start: int) -> None:
        if value == self.reference.input and _NAMES_INPUT.search(self.text[max(0, start - 20) : start]):
            return
        if self.open is None:
            if value != self.reference.input and self.nameless[-1:] != [value]:
                self.nameless.append(value)
            return
        is_left = self.open.result is None or (self.open.link == "colon" and self.open.result == self.before)
        if self.open.strings is None and self.before is not None and is_left:
            self.open.strings = (self.before,)
        self.open.take(value, self.link[0])

    def _close(self) -> None:
        """Keep the open step if it has a result and is not stated for the second time."""
        stated, self.open = self.open, None
        if stated is None or stated.result is None:
            return
        is_complete = stated.strings and len(stated.strings) == len(self._slots(stated.name))
        step = StatedStep(stated.name, stated.strings if is_complete else None, stated.result)
        for old in self.steps:
            if (
                old.name == step.name
                and old.result == step.result
                and (not step.strings or old.strings in (None, step.strings))
            ):
                return
        if self.steps and self.steps[-1].name == step.name:
            old = self.steps[-1]
            comparable = step.strings and old.strings
            is_correction = step.strings == old.strings if comparable else self.reference.names.count(step.name) < 2
            if is_correction:
                self.steps.pop()
        self.steps.append(step)

    def _slots(self, name: str) -> tuple[int, ...]:
        return next((step.call.open_slots for step in self.reference.steps if step.name == name), (0,))


def read_english(response: str, reference: Reference) -> Trace:
    """Read the steps that a text states before its final JSON object."""
    end = response.rfind("{", 0, max(response.rfind('"output"'), 0))
    text = response[: end if end >= 0 else len(response)][:LONGEST_TEXT]
    text = text.replace("“", '"').replace("”", '"').replace("**", "")
    return _Reader(reference, _CODE.sub(_quoted, text).replace("`", "")).read()


def _quoted(code: re.Match[str]) -> str:
    """Return what is marked as code, in quotes unless it is a function, an equation or quoted already."""
    return code[1] if _NO_WORD & set(code[1]) or code[1].startswith("func_") else f'"{code[1]}"'


def _arguments(text: str, start: int) -> tuple[str | None, int]:
    """Return what stands in the brackets of a call that may begin at ``start``, and where the call ends."""
    if text[start : start + 1] != "(":
        return None, start
    depth, quote = 0, ""
    for position in range(start, min(len(text), start + LONGEST_CALL)):
        char = text[position]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "()":
            depth += 1 if char == "(" else -1
            if depth == 0:
                return text[start + 1 : position], position + 1
    return None, start


def _literals(arguments: str, slots: tuple[int, ...]) -> tuple[str, ...] | None:
    """Return the strings in the open slots of a call; strings joined by + are one. None if one is no literal."""
    literals: list[str] = []
    joined, position = "", 0
    while piece := _ARGUMENT.match(arguments, position):
        joined += piece[1] if piece[1] is not None else piece[2]
        position = piece.end()
        if piece[3] != "+":
            literals.append(joined)
            joined = ""
    strings = [literals[slot] for slot in slots if slot < len(literals)]
    return tuple(strings) if len(strings) == len(slots) else None
