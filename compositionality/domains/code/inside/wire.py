"""Plain data between the process of the tests and the process of the solution.

Both ends ask (call, look up an attribute, a few operators) and answer by JSON; nothing that arrives is evaluated. What
is no plain data stays where it is and is named by a handle. Classes that the problem itself defines (ListNode) are
known to both ends, so their objects travel as attributes.
"""

import builtins
import json
import os
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

MAX_MESSAGE = 32 << 20
_SMALL = 2**63
_FLAT = {str, bool, type(None), float}


class GoneError(BaseException):
    """The other process has ended, or sends what cannot be read; no ``except Exception`` of a test may hide it."""


def send(fd: int, message: Any) -> None:
    """Write one message with its length in front."""
    text = json.dumps(message).encode()
    data = memoryview(struct.pack("<I", len(text)) + text)
    while data:
        data = data[os.write(fd, data) :]


def receive(fd: int) -> Any:
    """Return the next message; raise GoneError at the end of the stream or for a message that is too long."""
    try:
        (length,) = struct.unpack("<I", _read(fd, 4))
        if length > MAX_MESSAGE:
            raise GoneError("a message is too long")
        return json.loads(_read(fd, length))
    except (OSError, ValueError, RecursionError) as error:
        raise GoneError(str(error)) from error


def _read(fd: int, length: int) -> bytes:
    parts = []
    while length:
        part = os.read(fd, min(length, 1 << 20))
        if not part:
            raise GoneError("the other process has ended")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


class Peer:
    """One end. ``classes`` are known to both ends by name. ``trusted``: the end of the tests."""

    trusted = False

    def __init__(self, fd: int, classes: Callable[[], dict[str, Any]]) -> None:
        self.fd = fd
        self.classes = classes
        self.exported: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}

    def export(self, value: Any) -> Any:
        number = self._numbers.setdefault(id(value), len(self._numbers))
        self.exported[number] = value
        return {"h": number}

    def perform(self, request: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def ask(self, operation: str, target: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Ask the other end and wait; it may ask back before it answers.

        Lists, sets, dicts and bytearrays among the arguments change as the other end changed its copies.
        """
        encoder = Encoder(self)
        sent = [encoder.value(list(args)), encoder.value(dict(kwargs or {}))]
        objects = encoder.finish()
        send(self.fd, {"ask": operation, "of": target, "args": sent, "table": encoder.table})
        while True:
            message = receive(self.fd)
            if not isinstance(message, dict):
                raise GoneError("no message")
            if "ask" not in message:
                break
            self.answer(message)
        try:
            if "error" in message:
                raise _exception(*message["error"], ends=operation == "next")
            decoder = WireDecoder(self, message["table"], objects)
            if message.get("args") is not None:
                changed, named = (decoder.value(part) for part in message["args"])
                for old, new in zip([*args, *(kwargs or {}).values()], [*changed, *named.values()], strict=True):
                    if isinstance(old, list | bytearray | deque):
                        old.clear()
                        old.extend(new)
                    elif isinstance(old, set | dict):
                        old.clear()
                        old.update(new)
            return decoder.value(message["value"])
        except (KeyError, ValueError, IndexError, AttributeError) as error:
            if "error" in message:
                raise
            raise GoneError("no answer") from error

    def answer(self, message: dict[str, Any]) -> None:
        """Do what the other end asks, and send the result, the exception or what became of its arguments."""
        try:
            decoder = WireDecoder(self, message["table"], [])
            args, kwargs = (decoder.value(part) for part in message["args"])
            value = self.perform(message, args, kwargs)
            encoder = Encoder(self, decoder.objects)
            after = [encoder.value(args), encoder.value(kwargs)]
            reply = {"value": encoder.value(value)}
            encoder.finish()
            changed = after != message["args"] or encoder.table[: len(decoder.objects)] != message["table"]
            reply |= {"table": encoder.table, "args": after if changed else None}
        except Exception as error:  # noqa: BLE001 - goes to the other end
            reply = {"error": [_builtin_name(error), str(error)[:1000]]}
        send(self.fd, reply)


class Encoder:
    """Values as JSON; objects of shared classes go into ``table``, those in ``shared`` first."""

    def __init__(self, peer: Peer, shared: Sequence[Any] = ()) -> None:
        self.peer, self.classes = peer, peer.classes()
        self.objects: list[Any] = []
        self.table: list[Any] = []
        self._places: dict[int, int] = {}
        for value in shared:
            self._place(value)

    def value(self, value: Any) -> Any:
        kind = type(value)
        if kind in _FLAT:
            return value
        if isinstance(value, bool | int):
            return int(value) if -_SMALL < value < _SMALL else {"i": hex(value)}
        if isinstance(value, float):
            return float(value)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, Remote):
            return {"H": object.__getattribute__(value, "_number")}
        if isinstance(value, list):
            return list(value) if set(map(type, value)) <= _FLAT else [self.value(item) for item in value]
        return self._tagged(value, kind)

    def _tagged(self, value: Any, kind: type) -> Any:
        for tag, form in _FORMS.items():
            if isinstance(value, form):
                return {tag: [self.value(item) for item in value]}
        if isinstance(value, dict):
            return {"d": [[self.value(key), self.value(item)] for key, item in value.items()]}
        if isinstance(value, bytes | bytearray):
            return {"b" if isinstance(value, bytes) else "B": bytes(value).decode("latin-1")}
        if isinstance(value, complex):
            return {"c": [value.real, value.imag]}
        if kind is range:
            return {"r": [value.start, value.stop, value.step]}
        if self.peer.trusted and hasattr(kind, "__next__"):
            return {"n": [self.value(item) for item in value]}
        if kind.__name__ in self.classes:
            return {"o": self._place(value)}
        return self.peer.export(value)

    def finish(self) -> list[Any]:
        """Write the attributes of all objects; returns the objects in the order of the table."""
        done = 0
        while done < len(self.objects):
            value = self.objects[done]
            has_dict = hasattr(value, "__dict__")
            names = vars(value) if has_dict else [name for name in type(value).__slots__ if hasattr(value, name)]
            self.table[done] = [type(value).__name__, {str(name): self.value(getattr(value, name)) for name in names}]
            done += 1
        return self.objects

    def _place(self, value: Any) -> int:
        if id(value) not in self._places:
            self._places[id(value)] = len(self.objects)
            self.objects.append(value)
            self.table.append(None)
        return self._places[id(value)]


class WireDecoder:
    """The way back; entries of ``table`` up to the length of ``known`` are these objects, with new attributes."""

    def __init__(self, peer: Peer, table: list[Any], known: Sequence[Any]) -> None:
        self.peer, classes = peer, peer.classes()
        self.objects = list(known)
        for name, _ in table[len(known) :]:
            self.objects.append(object.__new__(classes[name]))
        for target, (_, attributes) in zip(self.objects, table, strict=True):
            for name, value in attributes.items():
                is_method = callable(getattr(type(target), name, None))
                if name.isidentifier() and not name.startswith("__") and not is_method:
                    object.__setattr__(target, name, self.value(value))

    def value(self, value: Any) -> Any:
        if type(value) is list:
            return [self.value(item) for item in value]
        if type(value) is not dict:
            return value
        ((tag, body),) = value.items()
        if tag in _FORMS:
            return _FORMS[tag](self.value(item) for item in body)
        match tag:
            case "i":
                return int(body, 16)
            case "d":
                return {self.value(key): self.value(item) for key, item in body}
            case "b" | "B":
                return (bytes if tag == "b" else bytearray)(body.encode("latin-1"))
            case "c":
                return complex(*body)
            case "r":
                return range(*body)
            case "o":
                return self.objects[body]
            case "h":
                return Remote(self.peer, body)
            case "H":
                return self.peer.exported[body]
            case "n":
                return iter([self.value(item) for item in body])
            case "p" if not self.peer.trusted:
                return getattr(builtins, body)
        raise ValueError(tag)


_FORMS: dict[str, type[Any]] = {"t": tuple, "s": set, "f": frozenset, "q": deque}


def _builtin_name(error: BaseException) -> str:
    for kind in type(error).__mro__:
        name = str(kind.__name__)
        if getattr(builtins, name, None) is kind:
            return name
    return "Exception"


def _exception(name: Any, text: Any, *, ends: bool) -> Exception:
    """Return the builtin exception of this name; StopIteration only where it ``ends`` an iterator."""
    kind = getattr(builtins, str(name), Exception)
    if name in ("StopIteration", "StopAsyncIteration") and not ends:
        return RuntimeError(str(text))
    if not isinstance(kind, type) or not issubclass(kind, Exception):
        return Exception(str(text))
    return (Exception if issubclass(kind, UnicodeError | BaseExceptionGroup) else kind)(str(text))


class Remote:
    """An object of the other process. It equals itself only: an ``__eq__`` of the other side decides nothing here."""

    def __init__(self, peer: Peer, number: int) -> None:
        self._peer, self._number = peer, number

    def _ask(self, operation: str, *args: Any, **kwargs: Any) -> Any:
        return self._peer.ask(operation, self._number, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._ask("get", name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ask("call", *args, **kwargs)

    def __iter__(self) -> Any:
        return self._ask("iter")

    def __next__(self) -> Any:
        return self._ask("next")

    def __len__(self) -> int:
        return int(self._ask("len"))

    def __getitem__(self, key: Any) -> Any:
        return self._ask("getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ask("setitem", key, value)

    def __contains__(self, value: Any) -> bool:
        return any(item == value for item in self)  # what is looked for stays here

    def __str__(self) -> str:
        return str(self._ask("str"))

    def __repr__(self) -> str:
        return str(self._ask("repr"))

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remote) and other._number == self._number

    def __hash__(self) -> int:
        return hash(self._number)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Remote) and self._ask("instance", value) is True
