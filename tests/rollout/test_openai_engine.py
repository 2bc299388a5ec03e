import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from fake_engine import write_problems

from compositionality.errors import UserError
from compositionality.rollout.collect import collect
from compositionality.rollout.engines.base import SamplingOptions
from compositionality.rollout.engines.openai import OpenAIEngine
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import read_rollouts


class Handler(BaseHTTPRequestHandler):
    """Answers each chat with its own last word in JSON; the first try of every third seed fails."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((body, self.headers["Authorization"]))
        first_try = body["seed"] not in self.server.seeds
        self.server.seeds.add(body["seed"])
        if self.server.broken or (body["seed"] % 3 == 0 and first_try):
            self.reply(self.server.broken or 503, {"error": {"message": "busy"}})
            return
        text = json.dumps({"output": body["messages"][-1]["content"]})
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        if body["max_tokens"] < 5:
            choice["finish_reason"] = "length"
        usage = {"prompt_tokens": 3, "completion_tokens": len(text), "total_tokens": 3 + len(text)}
        self.reply(200, {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"],
                         "choices": [choice], "usage": usage})  # fmt: skip

    def reply(self, status, content):
        payload = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.send_header("Retry-After", "0.01")
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.seeds, server.broken = [], set(), 0
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def url(server):
    return f"http://127.0.0.1:{server.server_port}/v1"


def inputs(count):
    return [[{"role": "user", "content": f"w{i}"}] for i in range(count)], range(count)


def test_answers_come_in_order_with_lengths_and_after_retries(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    engine, ticks = OpenAIEngine(url(server), "m", concurrency=8), []
    answers = engine.generate(*inputs(30), SamplingOptions(top_k=5, top_p=0.9), ticks.append)
    assert [json.loads(answer.text)["output"] for answer in answers] == [f"w{i}" for i in range(30)]
    assert [answer.n_tokens for answer in answers] == [len(answer.text) for answer in answers]
    assert sum(ticks) == 30
    assert len(server.seen) == 40
    body, key = server.seen[0]
    assert (body["model"], body["top_k"], body["top_p"], key) == ("m", 5, 0.9, "Bearer secret")
    assert engine.generate(*inputs(1), SamplingOptions(max_tokens=2))[0].finish_reason == "length"


def test_the_options_of_others_are_not_sent(server):
    OpenAIEngine(url(server), "m").generate(*inputs(1), SamplingOptions())
    assert "top_k" not in server.seen[0][0]


def test_a_server_that_refuses_is_one_line(server):
    server.broken = 401
    with pytest.raises(UserError, match=r"http://127\.0\.0\.1:\d+/v1: .*busy"):
        OpenAIEngine(url(server), "m").generate(*inputs(5), SamplingOptions())


def test_no_server_is_one_line():
    with pytest.raises(UserError, match="Connection error"):
        OpenAIEngine("http://127.0.0.1:9/v1", "m", retries=0).generate(*inputs(1), SamplingOptions())


def test_a_whole_collection_from_a_server(server, tmp_path):
    problems = write_problems(tmp_path / "problems.parquet", 20)
    collect(CollectSettings(problems, tmp_path / "out", "m", "openai", url(server), n_samples=2))
    rows = [row for table in read_rollouts(tmp_path / "out") for row in table.to_pylist()]
    assert len(rows) == 40
    assert {row["reason"] for row in rows} == {"correct"}
    assert len({body["seed"] for body, _ in server.seen}) == 40
