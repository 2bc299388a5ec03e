"""A server on this machine that plays another: it answers as a function says, and keeps what it was asked."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """A request: its path, its JSON (None of a GET) and its headers."""

    path: str
    body: Any
    headers: Message


class Reply(NamedTuple):
    """A status and a payload: bytes, pieces of bytes as they come (without a length), else JSON."""

    content: Any
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})


class PlayedServer(ThreadingHTTPServer):
    """``play`` gives the reply to a request; None closes the connection without one."""

    daemon_threads, request_queue_size = True, 256

    def __init__(self, play: Callable[[Asked], Reply | None]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.play, self.seen, self.url = play, [], f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: PlayedServer

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        asked = Asked(self.path, json.loads(body) if body else None, self.headers)
        self.server.seen.append(asked)
        reply = self.server.play(asked)
        if reply is None:
            self.connection.close()
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        pieces: Iterable[bytes] = reply.content if isinstance(reply.content, Iterator) else [as_bytes(reply.content)]
        if isinstance(pieces, list):
            self.send_header("Content-Length", str(len(pieces[0])))
        self.end_headers()
        with suppress(OSError):
            for piece in pieces:
                self.wfile.write(piece)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


def as_bytes(content: Any) -> bytes:
    return content if isinstance(content, bytes) else json.dumps(content).encode()


@contextmanager
def playing(play: Callable[[Asked], Reply | None]) -> Iterator[PlayedServer]:
    server = PlayedServer(play)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
