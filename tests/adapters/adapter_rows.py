"""What clients are tested on: a problem file of two tasks, a model made here, a server that answers as OpenAI's."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from played_server import Asked, Reply, playing

from compositionality.data.create_problems import create_problems, settings_for
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import to_table
from compositionality.types import Problem

ROOT = Path(__file__).parents[2]
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


def smoke_model(problems: Path, count: int) -> Path:
    """A model of the smoke profile, made once for all clients; ``problems`` gets what it is asked.

    Single functions with their definitions. A model that is there from the same settings is not trained again.
    """
    model = ROOT / ".clients/smoke-model"
    study = ["profile=smoke", "step=section41_42/stage0_pretrain", f"output={model}", "steps=2000"]
    subprocess.run([sys.executable, ROOT / "examples/pretrain_tiny.py", *study], check=True)
    asked = {"show_definitions": True, "style": "compact", "drop": [0, 3], "frozen_parameters": True}
    sizes = {"alphabet": "abcdefghij", "input_length": [3, 6], "max_length": 10, "count": count}
    create_problems(settings_for("string", output=str(problems), functions="all", levels=[1], **asked, **sizes))
    return model


def own_accuracy(model: Path, problems: Path, max_tokens: int) -> float:
    """The share of right greedy answers by the project's own evaluation."""
    output = problems.parent / "own"
    words = [f"models=[model:{model}]", f"problems=[{problems}]", f"output={output}", "temperature=0", "engine=builtin"]
    words += [f"max_tokens={max_tokens}", "dtype=float32"]
    subprocess.run([sys.executable, ROOT / "examples/evaluate.py", *words], check=True)
    table = read_table(output / "results.parquet").to_pandas()
    return float(table["right"].sum() / table["judged"].sum())


@contextlib.contextmanager
def chat_server(replies: dict[str, str]) -> Iterator[str]:
    """The base URL of a server that answers ``replies[the last turn]`` up to a stop word, streamed if asked to."""

    def play(asked: Asked) -> Reply:
        turn = asked.body["messages"][-1]["content"]
        text = replies[turn if isinstance(turn, str) else turn[0]["text"]]
        for word in asked.body.get("stop") or []:
            text = text.split(word)[0]
        message, head = {"role": "assistant", "content": text}, {"id": "1", "created": 0, "model": "m"}
        if not asked.body.get("stream"):
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            return Reply(whole, headers={"Content-Type": "application/json"})
        events = ({"delta": message, "finish_reason": None}, {"delta": {}, "finish_reason": "stop"})
        chunks = ({**head, "object": "chat.completion.chunk", "choices": [{"index": 0, **event}]} for event in events)
        pieces = [*map(json.dumps, chunks), "[DONE]"]
        return Reply((f"data: {piece}\n\n".encode() for piece in pieces), headers={"Content-Type": "text/event-stream"})

    with playing(play) as served:
        yield f"{served.url}/v1"
