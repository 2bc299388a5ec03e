"""What the client of JSON servers does that no engine's own test asks for: redirects, cut replies, names to escape."""

from typing import Any

import pytest
from played_server import Asked, Reply, playing

from compositionality.errors import UserError
from compositionality.http_json import JsonClient, ServerError

MOVED: dict[str, str] = {}


def say(asked: Asked) -> Reply:
    """Redirect what has moved, else say what came; with a length that is wrong below /cut."""
    if asked.path in MOVED:
        return Reply(b"", 307, {"Location": MOVED[asked.path]})
    if asked.path.startswith("/cut"):
        return Reply(iter([b""]), headers={"Content-Length": "5"})
    return Reply({"got": [asked.path, asked.headers["Authorization"], asked.body]})


def got(client: JsonClient, path: str) -> list[Any]:
    answer: list[Any] = client.call(path, {"a": "é"}, lambda reply: reply["got"])
    return answer


def test_a_redirect_gets_the_same_request_and_the_login_only_on_the_same_server() -> None:
    with playing(say) as here, playing(say) as other:
        MOVED.update({"/v1/near": "/v1/near/", "/v1/far": f"{other.url}/far", "/v1/round": "/v1/round"})
        client = JsonClient(f"{here.url}/v1/", key="a-key-of-ours", retries=0, timeout_s=120)
        assert got(client, "/near") == ["/v1/near/", "Bearer a-key-of-ours", {"a": "é"}]
        assert got(client, "/far") == ["/far", None, {"a": "é"}]
        with pytest.raises(ServerError, match="no answer"):
            got(client, "/round")


def test_p05_a_reply_that_is_cut_short_is_none() -> None:
    with playing(say) as server:
        client = JsonClient(f"{server.url}/cut", retries=1, timeout_s=120)
        with pytest.raises(ServerError, match=r"no answer \(IncompleteRead\)"):
            client.call("/x", {}, dict)
    assert client.repeated == 1


def test_an_address_may_hold_what_must_be_escaped() -> None:
    with playing(say) as server:
        client = JsonClient(f"{server.url}/größe 1?q=a b", retries=0, timeout_s=120)
        assert got(client, "/x")[0] == "/gr%C3%B6%C3%9Fe%201/x?q=a%20b"
    with pytest.raises(UserError, match="HTTP headers do not allow"):
        JsonClient("http://host", key="a\nb", retries=0, timeout_s=120)
