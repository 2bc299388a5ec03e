"""Client for JSON servers: repeats failed calls where that can help, and never takes a failure for a reply.

A server fails if it cannot be reached, is busy (status 408, 409, 425, 429, 500 and above), or gives an invalid reply:
text that is not JSON, or JSON of another shape. Any other status above 299 is a mistake in the request. Needs only
the standard library, so that a reward worker can use it; proxies come from the environment.
"""

import base64
import contextlib
import json
import random
import ssl
import threading
import time
from collections.abc import Callable
from email.message import Message
from http.client import HTTPException, IncompleteRead
from typing import Any, TypeVar
from urllib.error import URLError
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit
from urllib.request import HTTPDefaultErrorHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from compositionality.errors import HIDDEN, SHORTEST_SECRET, UserError, without_secrets

Json = dict[str, Any]
Result = TypeVar("Result")
BUSY = (408, 409, 425, 429)
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 8.0
LONGEST_ASKED_WAIT_S = 60.0  # longest accepted Retry-After of a server
LONGEST_REPLY = 64 << 20  # bytes
SHOWN = 200  # characters of a reply in a message


class ServerError(Exception):
    """The server failed on a request. ``reply``: its invalid reply; ``wait_s``: the pause that it asks for."""

    def __init__(self, reason: str, reply: object = "", wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reply, self.wait_s = reply, wait_s


class JsonClient:
    """The server at ``url``, which may include a login and a query, for many threads at once.

    Every request has its own connection. ``base``: a suffix of the URL's path to ignore.
    """

    def __init__(self, url: str, *, key: str = "", base: str = "", retries: int, timeout_s: float) -> None:
        self.name, self._url = without_secrets(url), address_of(url)
        if not (key.isascii() and key.isprintable()):
            raise UserError(f"{self.name}: the API key has characters that HTTP headers do not allow; correct it")
        user, password = unquote(self._url.username or ""), unquote(self._url.password or "")
        login = base64.b64encode(f"{user}:{password}".encode()).decode() if user or password else ""
        self._authorization = f"Basic {login}" if login else f"Bearer {key}" if key else ""
        self._secrets = [key, password, login, *(value for _, value in parse_qsl(self._url.query))]
        self.path = self._url.path.rstrip("/").removesuffix(base)
        tls = [HTTPSHandler(context=ssl.create_default_context())] if self._url.scheme == "https" else []
        self._open = build_opener(_Redirects, _AnyStatus, *tls).open
        self._retries, self._timeout_s = retries, timeout_s
        self._lock = threading.Lock()
        self._given_up = threading.Event()
        self._why = UserError(f"{self.name}: given up")
        self.repeated = 0

    def call(self, path: str, content: Json | None, read: Callable[[Json], Result]) -> Result:
        """Send ``content`` to ``path`` by POST (None: GET); return ``read`` of the JSON object in the reply.

        ``read`` raises a ServerError, LookupError, TypeError or ValueError for an object that it cannot use. Raise the
        last ServerError, with its reply, if every repeat fails; UserError if the server refuses the request.
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
        """Stop repeating: calls that wait for a repeat raise ``why``."""
        self._why = why
        self._given_up.set()

    def _reply(self, path: str, content: Json | None) -> Json:
        status, pause_s, body = self._send(self._request(path, content))
        text = body.decode("utf-8", "replace")
        if status in BUSY or status >= 500:
            raise ServerError(f"status {status}", text, pause_s)
        if not 200 <= status < 300:
            refusal = f"{self.name}: the server refuses {path} (status {status}){self._shown(text)}"
            raise UserError(refusal) from ServerError(f"status {status}")
        try:
            reply = json.loads(body) if body else {}
        except (ValueError, RecursionError) as error:
            raise ServerError("the reply is not JSON", text) from error
        if not isinstance(reply, dict):
            raise ServerError("the reply is not a JSON object", text)
        return reply

    def _request(self, path: str, content: Json | None) -> Request:
        """Return the request; its URL is escaped and has no login."""
        host, query = self._url.netloc.rpartition("@")[2], f"?{self._url.query}" if self._url.query else ""
        url = f"{self._url.scheme}://{host}{quote(f'{self.path}{path}{query}', safe='!$&()*+,;=:@/?%~')}"
        headers = {"User-Agent": "compositionality", "Content-Type": "application/json"}
        request = Request(url, None if content is None else json.dumps(content).encode(), headers)
        if self._authorization:
            request.add_unredirected_header("Authorization", self._authorization)
        return request

    def _send(self, request: Request) -> tuple[int, float | None, bytes]:
        """Return the reply's status, the pause that it asks for in seconds, and its body."""
        deadline = time.monotonic() + self._timeout_s  # urllib's own limit is for each piece of a reply
        try:
            with self._open(request, timeout=self._timeout_s) as response:
                return response.status, _seconds(response.headers.get("Retry-After")), _whole(response, deadline)
        except (OSError, HTTPException) as error:
            kind = type(error).__name__
            if type(error) is URLError:  # before any reply
                kind = "ConnectTimeout" if isinstance(error.reason, TimeoutError) else "ConnectError"
            raise ServerError(f"no answer ({kind})") from error

    def _shown(self, reply: object) -> str:
        """Return the beginning of a reply for a message: one line, without secrets."""
        text = " ".join(str(reply).split())
        for secret in self._secrets:
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, HIDDEN)
        return f": {without_secrets(text)[:SHOWN]}" if text else ""


class _AnyStatus(HTTPDefaultErrorHandler):
    def http_error_default(self, _req: Request, fp: Any, _code: int, _msg: str, _headers: Message) -> Any:
        return fp


class _Redirects(HTTPRedirectHandler):
    """Follows redirects with the same request, and sends the login only to the same server."""

    def redirect_request(
        self, req: Request, _fp: Any, _code: int, _msg: str, _headers: Message, newurl: str
    ) -> Request:
        is_same_server = urlsplit(newurl)[:2] == urlsplit(req.full_url)[:2]
        return Request(newurl, req.data, {**req.headers, **(req.unredirected_hdrs if is_same_server else {})})


def address_of(url: str) -> SplitResult:
    """Split ``url``. UserError if it is not the address of a server."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port >= 0):
            return parts
    raise UserError(f"{without_secrets(url)}: not the address of a server; give http://HOST:PORT")


def _whole(response: Any, deadline: float) -> bytes:
    """Return the whole reply; raise ServerError if it is late, or too long."""
    body = bytearray()
    while piece := response.read1(1 << 16):
        body += piece
        if time.monotonic() > deadline or len(body) > LONGEST_REPLY:
            raise ServerError("the reply does not end")
    if response.length:
        raise IncompleteRead(bytes(body), response.length)
    return bytes(body)


def _read(reply: Json, read: Callable[[Json], Result]) -> Result:
    try:
        return read(reply)
    except (LookupError, TypeError, ValueError) as error:
        raise ServerError("the reply lacks the requested fields", reply) from error


def _pause(attempt: int, asked_s: float | None) -> float:
    """Return the seconds before the next attempt: doubled each time, unless the server asks for another pause."""
    if asked_s is not None:
        return asked_s
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**attempt) * random.uniform(0.75, 1.0)


def _seconds(retry_after: str | None) -> float | None:
    """Return a header Retry-After in seconds; None for a date, or more than a minute."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds <= LONGEST_ASKED_WAIT_S else None
