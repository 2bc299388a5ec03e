"""Calls of a server that speaks JSON: repeated where that can help, and no fault of it is taken for a reply.

A server fails if it cannot be reached, is busy (status 408, 409, 425, 429, 500 and above), or replies what it should
not: text that is no JSON, or JSON of another shape. Any other status above 299 is a mistake of the request.
"""

import base64
import contextlib
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from compositionality.errors import HIDDEN, SHORTEST_SECRET, UserError, without_secrets

Json = dict[str, Any]
Result = TypeVar("Result")
BUSY = (408, 409, 425, 429)
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 8.0
LONGEST_ASKED_WAIT_S = 60.0  # that a server may ask for by Retry-After
LONGEST_REPLY = 64 << 20  # bytes
SHOWN = 200  # characters of a reply in a message


class ServerError(Exception):
    """The server failed on a request. ``reply``: what it said instead; ``wait_s``: how long it asks to wait."""

    def __init__(self, reason: str, reply: object = "", wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reply, self.wait_s = reply, wait_s


class JsonServer:
    """The server at ``url``, which may hold a login and a query, for many threads at once.

    ``base``: the end of the URL's path that is no part of the address.
    """

    def __init__(
        self, url: str, *, key: str = "", base: str = "", connections: int, retries: int, timeout_s: float
    ) -> None:
        import httpx

        self.name, self._url = without_secrets(url), address_of(url)
        if not (key.isascii() and key.isprintable()):
            raise UserError(f"{self.name}: the API key holds characters that no HTTP header can have; correct it")
        self._path = self._url.path.rstrip("/").removesuffix(base)
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(timeout=timeout_s, limits=limits, headers=headers, follow_redirects=True)
        login = f"{self._url.username}:{self._url.password}"
        query = [value for _, value in self._url.params.multi_items()]
        self._secrets = [key, self._url.password, base64.b64encode(login.encode()).decode(), *query]
        self._retries, self._timeout_s = retries, timeout_s
        self._lock = threading.Lock()
        self._given_up = threading.Event()
        self._why = UserError(f"{self.name}: given up")
        self.repeated = 0

    def call(self, path: str, content: Json | None, read: Callable[[Json], Result]) -> Result:
        """POST ``content`` to ``path`` (None: GET) → what ``read`` makes of the JSON object in reply.

        ``read`` raises a ServerError, LookupError, TypeError or ValueError for an object that it cannot use. The last
        ServerError, its reply in the message, if every repeat fails; UserError if the server refuses the request.
        """
        for attempt in range(self._retries + 1):
            try:
                return _read(self._reply(path, content), read)
            except ServerError as error:
                if attempt == self._retries:
                    raise ServerError(f"{error}{self._shown(error.reply)}") from error
                if self._given_up.wait(_pause(attempt, error.wait_s)):
                    raise self._why from error
            with self._lock:
                self.repeated += 1
        raise AssertionError("a call has at least one attempt")

    def give_up(self, why: UserError) -> None:
        """Repeat nothing from now on: calls that wait for it raise ``why``."""
        self._why = why
        self._given_up.set()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _reply(self, path: str, content: Json | None) -> Json:
        import httpx

        url, method = self._url.copy_with(path=self._path + path), "GET" if content is None else "POST"
        deadline = time.monotonic() + self._timeout_s  # httpx's own limit is for each piece of a reply
        try:
            with self._client.stream(method, url, json=content) as response:
                body = _whole(response.iter_bytes(), deadline)
        except httpx.HTTPError as error:
            raise ServerError(f"no answer ({type(error).__name__})") from error
        status, text = response.status_code, body.decode("utf-8", "replace")
        if status in BUSY or status >= 500:
            raise ServerError(f"status {status}", text, _seconds(response.headers.get("Retry-After")))
        if not response.is_success:
            raise UserError(f"{self.name}: the server refuses {path} (status {status}){self._shown(text)}")
        try:
            reply = json.loads(body) if body else {}
        except (ValueError, RecursionError) as error:
            raise ServerError("the reply is not JSON", text) from error
        if not isinstance(reply, dict):
            raise ServerError("the reply is no JSON object", text)
        return reply

    def _shown(self, reply: object) -> str:
        """The beginning of a reply for a message: one line, without secrets."""
        text = " ".join(str(reply).split())
        for secret in self._secrets:
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, HIDDEN)
        return f": {without_secrets(text)[:SHOWN]}" if text else ""


def address_of(url: str) -> Any:
    """``url`` in its parts (``httpx.URL``). UserError if it is none."""
    import httpx

    with contextlib.suppress(httpx.InvalidURL):
        found = httpx.URL(url)
        if found.scheme in ("http", "https") and found.host:
            return found
    raise UserError(f"{without_secrets(url)}: no address of a server; give http://HOST:PORT")


def _whole(pieces: Iterator[bytes], deadline: float) -> bytes:
    """All of a reply; ServerError if it is not there in time, or has no end."""
    body = bytearray()
    for piece in pieces:
        body += piece
        if time.monotonic() > deadline or len(body) > LONGEST_REPLY:
            raise ServerError("the reply does not end")
    return bytes(body)


def _read(reply: Json, read: Callable[[Json], Result]) -> Result:
    try:
        return read(reply)
    except (LookupError, TypeError, ValueError) as error:
        raise ServerError("the reply lacks what was asked for", reply) from error


def _pause(attempt: int, asked_s: float | None) -> float:
    """Seconds before the next attempt: twice as long each time, unless the server asks for another pause."""
    if asked_s is not None:
        return asked_s
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**attempt) * random.uniform(0.75, 1.0)


def _seconds(retry_after: str | None) -> float | None:
    """A header Retry-After in seconds; None for a date, or more than a minute."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds <= LONGEST_ASKED_WAIT_S else None
