import itertools
import json
import time
from types import SimpleNamespace

import pytest
from bash_runs import typed
from fake_engine import write_problems
from played_server import Reply, playing

from compositionality.errors import UserError
from compositionality.rollout.collect import collect
from compositionality.rollout.engines.factory import open_engine
from compositionality.rollout.engines.openai import OpenAIEngine
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import read_rollouts, rollout_manifest
from compositionality.types import SamplingOptions


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("compositionality.http_json.FIRST_WAIT_S", 0.001)


@pytest.fixture
def server():
    """Answers each chat with its own last word in JSON; the first try of every third seed fails."""
    seeds = set()

    def play(asked):
        body, login = asked.body, asked.headers["Authorization"]
        first_try = body["seed"] not in seeds
        seeds.add(body["seed"])
        if served.broken or (body["seed"] % 3 == 0 and first_try):
            error = {"error": {"message": f"busy {login}"}}
            return Reply(error, served.broken or 503, {"Retry-After": "0.01"})
        text = json.dumps({"output": body["messages"][-1]["content"]})
        ended = "length" if body["max_tokens"] < 5 else "stop"
        content = {
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": ended}],
            "usage": {"prompt_tokens": 3, "completion_tokens": min(len(text), body["max_tokens"])},
        }
        return Reply(served.spoil(content) if served.spoils(body, first_try) else content)

    with playing(play) as served:
        served.broken, served.spoils = 0, lambda *_: False
        yield served


def url(server):
    return f"{server.url}/v1"


def engine_of(address, **changes):
    return OpenAIEngine(CollectSettings("openai", address, model="m", **changes))


def inputs(count):
    return [[{"role": "user", "content": f"w{i}"}] for i in range(count)], range(count)


def test_answers_come_in_order_with_lengths_and_after_retries(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    engine, ticks = engine_of(url(server), concurrency=8), []
    answers = engine.generate(*inputs(30), SamplingOptions(top_k=5, top_p=0.9), ticks.append)
    assert [json.loads(answer.text)["output"] for answer in answers] == [f"w{i}" for i in range(30)]
    assert [answer.n_tokens for answer in answers] == [len(answer.text) for answer in answers]
    assert sum(ticks) == 30
    assert len(server.seen) == 40
    assert engine.generate(*inputs(1), SamplingOptions(max_tokens=2))[0].finish_reason == "length"
    _, body, headers = server.seen[0]
    assert (body["model"], body["top_k"], body["top_p"]) == ("m", 5, 0.9)
    assert "top_k" not in server.seen[-1].body, "it is none of the protocol's"
    assert headers["Authorization"] == "Bearer secret"


def test_no_server_is_one_line():
    with pytest.raises(UserError, match=r"the server failed on 1 of 1 requests.*no answer \(ConnectError\)"):
        engine_of("http://127.0.0.1:9/v1", retries=0).generate(*inputs(1), SamplingOptions())


def with_choice(**changes):
    return lambda content: content | {"choices": [content["choices"][0] | changes]}


def with_content(content):
    return with_choice(message={"role": "assistant", "content": content})


def with_tokens(count):
    return lambda content: content | {"usage": {"completion_tokens": count}}


SPOILT = {
    "truncated": lambda content: json.dumps(content).encode()[:-20],
    "html": lambda _: b"<html><body>bad gateway</body></html>",
    "not utf-8": lambda _: b'{"choices": "\xff"}',
    "nothing": lambda _: b"",
    "a list": lambda content: [content],
    "an error": lambda _: {"error": {"message": "out of memory"}},
    "no message": with_choice(message=None),
    "choices of text": lambda content: content | {"choices": "none"},
    "no choices": lambda content: content | {"choices": []},
    "no usage": lambda content: content | {"usage": None},
    "negative tokens": with_tokens(-5),
    "endless tokens": with_tokens(10**9),
    "tokens as text": with_tokens("12"),
    "tokens as a yes": with_tokens(True),
    "content list": with_content([{"type": "text", "text": "ab"}]),
    "content number": with_content(7),
    "content null": with_content(None),
    "filtered": with_choice(finish_reason="content_filter"),
    "no finish reason": with_choice(finish_reason=None),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_p05_a_reply_outside_the_schema_is_asked_for_again(server, spoil, capsys):
    server.spoil, server.spoils = spoil, lambda body, first_try: first_try
    engine = engine_of(url(server), concurrency=4)
    answers = engine.generate([inputs(1)[0][0]] * 4, [1, 2, 4, 5], SamplingOptions())
    assert [(answer.text, answer.finish_reason) for answer in answers] == [('{"output": "w0"}', "stop")] * 4
    engine.close()
    assert "0 of 4 requests failed; 4 repeats" in capsys.readouterr().out


def test_p05_a_reply_that_stays_outside_it_stops_the_run(server):
    server.spoil, server.spoils = SPOILT["no choices"], lambda body, _: body["seed"] == 7
    engine = engine_of(url(server), retries=1)
    with pytest.raises(UserError, match=r"http://127\.0\.0\.1:\d+/v1: the server failed on 1 of 20 .*; the last: \w"):
        engine.generate(*inputs(20), SamplingOptions())
    assert [asked.body["seed"] for asked in server.seen].count(7) == 2


@pytest.mark.parametrize(("charset", "body"), [("rot13", b"busy"), ("base64", b"busy \x1b[31m\x00")])
def test_p05_an_error_page_in_any_encoding_is_a_server_error(charset, body):
    headers = {"Content-Type": f"text/html; charset={charset}"}
    with playing(lambda _: Reply(body, 500, headers)) as server, pytest.raises(UserError, match="status 500: busy"):
        engine_of(url(server), retries=0).generate(*inputs(1), SamplingOptions())


def test_p05_a_reply_that_drips_ends_when_the_request_may_last_no_longer(monkeypatch):
    clock = SimpleNamespace(monotonic=itertools.count(0, 1000).__next__)
    monkeypatch.setattr("compositionality.http_json.time", clock)
    drips = iter(lambda: time.sleep(0.05) or b" ", None)
    with playing(lambda _: Reply(drips)) as server, pytest.raises(UserError, match="the reply does not end"):
        engine_of(url(server), retries=0, timeout_s=999).generate(*inputs(1), SamplingOptions())


@pytest.fixture
def twenty(server, tmp_path):
    """A collection of two samples of 20 problems, of which the server fails on the fourth."""
    server.spoil, server.spoils = SPOILT["html"], lambda body, _: body["messages"][-1]["content"] == "word3"
    problems, out = write_problems(tmp_path / "problems.parquet", 20), tmp_path / "out"
    return CollectSettings("openai", url(server), problems=problems, output=out, model="m", n_samples=2, retries=1)


def test_p05_a_server_that_fails_stops_the_collection_and_no_judge_is_blamed(twenty):
    with pytest.raises(UserError, match=r"the server failed on [12] of 40 requests.*not JSON: <html>"):
        collect(twenty)
    assert not twenty.output.exists()


def test_p05_failed_requests_under_the_limit_are_errors_and_no_wrong_answers(twenty, server, capsys):
    twenty.max_error_rate = 0.05
    collect(twenty)
    assert len({asked.body["seed"] for asked in server.seen}) == 40
    rows = [row for table in read_rollouts(twenty.output) for row in table.to_pylist()]
    failed = [row for row in rows if row["reason"] != "correct"]
    told = ("problem", "reason", "response", "n_tokens", "finish_reason")
    assert [tuple(row[name] for name in told) for row in failed] == [(3, "error", "", 0, "failed")] * 2
    assert "2 of 40 requests failed" in capsys.readouterr().out
    assert rollout_manifest(twenty.output).facts["reasons"] == {"correct": 38, "error": 2}


def test_an_answer_cut_off_while_reasoning_is_overlong(server):
    server.spoils = lambda *_: True
    server.spoil = with_choice(message={"role": "assistant", "content": None}, finish_reason="length")
    answer = engine_of(url(server)).generate(*inputs(1), SamplingOptions())[0]
    assert (answer.text, answer.finish_reason) == ("", "length")


def test_timeout_and_retries_are_settings(server):
    server.broken = 500
    settings = CollectSettings(engine="openai", base_url=url(server), model="m", retries=2, timeout_s=7.5)
    engine = open_engine(settings, 0)
    with pytest.raises(UserError, match="the server failed on 1 of 1"):
        engine.generate(*inputs(1), SamplingOptions())
    assert len(server.seen) == 3
    assert engine._server._timeout_s == 7.5


@pytest.mark.parametrize("address", ["nowhere", "ftp://host", "http://", "http://[::1", "http://host:port"])
def test_no_address_is_one_line(address):
    with pytest.raises(UserError, match="not the address of a server"):
        engine_of(address)


def test_secrets_are_in_no_file_and_no_message(server, tmp_path, monkeypatch, capfd):
    """With a password in the URL, a key in its query and one in the environment; the server echoes what it gets."""
    problems = write_problems(tmp_path / "problems.parquet", 4)
    host = url(server).removeprefix("http://")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden-1")
    for status, address in ((0, f"http://me:hidden-2@{host}?key=hidden-3"), (401, f"http://{host}?key=hidden-3")):
        server.broken = status
        words = [f"problems={problems}", f"output={tmp_path / 'out'}", "model=m", "engine=openai"]
        code = typed("collect_rollouts", [*words, f"base_url='{address}'", "n_samples=2", "--force"])
        out, err = capfd.readouterr()
        assert code == (2 if status else 0), err
        files = [path.read_bytes().decode(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
        for secret in ("hidden-1", "hidden-2", "hidden-3"):
            assert not [text for text in (out, err, *files) if secret in text]
        assert "***" in (err if status else (tmp_path / "out" / "manifest.json").read_text())


def test_a_server_that_echoes_a_login_does_not_give_it_away(server):
    server.broken = 401
    with pytest.raises(UserError, match=r"^http://\*\*\*@127.*refuses .*busy Basic \*\*\*") as found:
        engine_of(url(server).replace("//", "//me:hidden@")).generate(*inputs(1), SamplingOptions())
    assert "hidden" not in str(found.value)
