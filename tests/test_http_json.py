"""What the client of JSON servers does that no engine's own test asks for: redirects, cut replies, names to escape."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from compositionality.errors import UserError
from compositionality.http_json import JsonClient, ServerError


class Handler(BaseHTTPRequestHandler):
    """Redirect to the server's ``moved_to``, else say what came; with a length that is wrong below /cut."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if location := self.server.moved_to.get(self.path):
            self.send_response(307)
            self.send_header("Location", location)
            self.end_headers()
            return
        reply = json.dumps([self.path, self.headers["Authorization"], json.loads(body)])
        payload = b"" if self.path.startswith("/cut") else json.dumps({"got": reply}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(payload) or 5))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def servers() -> Iterator[list[ThreadingHTTPServer]]:
    pair = [ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
    for server in pair:
        server.moved_to = {}
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield pair
    for server in pair:
        server.shutdown()
        server.server_close()


def address(server: ThreadingHTTPServer, path: str = "") -> str:
    return f"http://127.0.0.1:{server.server_port}{path}"


def got(client: JsonClient, path: str) -> list[Any]:
    answer: list[Any] = json.loads(client.call(path, {"a": "é"}, lambda reply: reply["got"]))
    return answer


def test_a_redirect_gets_the_same_request_and_the_login_only_on_the_same_server(servers):
    here, other = servers
    here.moved_to = {"/v1/near": "/v1/near/", "/v1/far": address(other, "/far")}
    client = JsonClient(address(here, "/v1/"), key="a-key-of-ours", retries=0, timeout_s=5)
    assert got(client, "/near") == ["/v1/near/", "Bearer a-key-of-ours", {"a": "é"}]
    assert got(client, "/far") == ["/far", None, {"a": "é"}]
    here.moved_to = {"/v1/round": "/v1/round"}
    with pytest.raises(ServerError, match="no answer"):
        got(client, "/round")


def test_p05_a_reply_that_is_cut_short_is_none(servers):
    client = JsonClient(address(servers[0], "/cut"), retries=1, timeout_s=5)
    with pytest.raises(ServerError, match=r"no answer \(IncompleteRead\)"):
        client.call("/x", {}, dict)
    assert client.repeated == 1


def test_an_address_may_hold_what_must_be_escaped(servers):
    client = JsonClient(address(servers[0], "/größe 1?q=a b"), retries=0, timeout_s=5)
    assert got(client, "/x")[0] == "/gr%C3%B6%C3%9Fe%201/x?q=a%20b"
    with pytest.raises(UserError, match="no HTTP header"):
        JsonClient("http://host", key="a\nb", retries=0, timeout_s=5)
