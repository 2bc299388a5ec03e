"""A problem file of two tasks, right and wrong responses to it, and a server that answers as OpenAI's."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.types import Problem

PROBLEMS = [
    Problem("string-trained-level2", 2, "trained", "func_1func_2:abc", json.dumps({"ref_output": "cba"}), 0),
    Problem("countdown-clean-level2", 2, "countdown", "3, 4 → 12", json.dumps({"target": 12, "numbers": [3, 4]}), 1),
    Problem("string-trained-level3", 3, "trained", "func_1func_2func_3:x", json.dumps({"ref_output": "xx"}), 2),
]
RIGHT = ['{"output": "cba"}', "<answer>3 * 4</answer>", '{"output": "xx"}']
WRONG = ['{"output": "abc"}', "<answer>3 + 4</answer>", '{"output": "x"}']
NONE = "no idea"


def write_problems(path: Path) -> Path:
    write_table(to_table(PROBLEMS, "test"), path)
    return path


@contextlib.contextmanager
def chat_server(replies: dict[str, str]) -> Iterator[str]:
    """The base URL of a server that streams ``replies[the last turn]``."""

    class ChatHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            turn = body["messages"][-1]["content"]
            text = replies[turn if isinstance(turn, str) else turn[0]["text"]]
            events = [
                {"delta": {"role": "assistant", "content": text}, "finish_reason": None},
                {"delta": {}, "finish_reason": "stop"},
            ]
            head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in events:
                chunk = {**head, "choices": [{"index": 0, **event}]}
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), ChatHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
