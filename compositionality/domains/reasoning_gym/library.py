"""Entries of reasoning-gym, drawn in a process apart, where the same seed always gives the same entry.

The library draws from more than its seed: from the order of Python's sets, from generators that the whole process
shares, from the day, and in codeio from programs of which some have another result each time. That process fixes the
former and leaves out the latter; it ends with the one that started it.
"""

import ast
import atexit
import datetime
import json
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from queue import SimpleQueue
from threading import Lock, Thread
from types import SimpleNamespace
from typing import Any

from compositionality.errors import UserError

DAY = datetime.datetime(2024, 1, 1)
"""The day of times that have none."""
OWN_STATE = {"id", "hash", "time", "now", "today", "utcnow", "uuid", "secrets", "urandom", "frozenset"}
"""Names in a program whose result need not be the same each time."""
_ASKING = Lock()


def entry_text(dataset: str, seed: int, parameters: Mapping[str, Any]) -> str:
    """Return the first entry of a data set as JSON. UserError where the library refuses the parameters."""
    with _ASKING:
        process = _drawing_process(os.getpid())  # a fork has one of its own
        try:
            process.stdin.write(pickle.dumps((dataset, seed, dict(parameters))))
            process.stdin.flush()
            text, error = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError):
            _drawing_process.cache_clear()
            text, error = "", f"the process that draws it ended with exit code {process.wait()}; draw again"
        except BaseException:  # Ctrl-C: the next request would read the answer to this one
            _drawing_process.cache_clear()
            process.kill()
            raise
    if error:
        raise UserError(f"dataset={dataset} parameters={dict(parameters)}: {error}")
    return str(text)


@cache
def _drawing_process(_owner: int) -> Any:
    """Start the process that draws for this one."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": "0"},
        start_new_session=True,
    )  # fmt: skip
    atexit.register(process.communicate)  # its input ends, and so does it
    return process


# ---- in that process


def main() -> None:
    """Answer requests on stdin; end with it, also within a draw. Programs of the library read and print nothing."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    for descriptor in (0, 1):
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    asked = SimpleQueue[Any]()
    Thread(target=_read_requests, args=(requests, asked), daemon=True).start()
    while True:
        pickle.dump(_draw(*asked.get()), answers)
        answers.flush()


def _read_requests(requests: Any, asked: SimpleQueue[Any]) -> None:
    try:
        while requests.peek(1):
            asked.put(pickle.load(requests))
    finally:
        os._exit(0)


def _draw(dataset: str, seed: int, parameters: Mapping[str, Any]) -> tuple[str, str]:
    """Return an entry as JSON, and why there is none."""
    import numpy as np
    import reasoning_gym
    from reasoning_gym.arithmetic import time_intervals

    vars(time_intervals)["parser"] = SimpleNamespace(parse=partial(import_module("dateutil.parser").parse, default=DAY))
    try:
        made = reasoning_gym.create_dataset(dataset, seed=seed, size=1, **parameters)
        if dataset == "codeio":
            programs = [one for one in made._jsonl_data if has_one_answer(one["code_sample"], one["input_generator"])]
            type(made)._jsonl_data = programs
        random.seed(seed)
        np.random.seed(seed % 2**32)
        entry = made[0]
        entry["metadata"].setdefault("source_dataset", dataset)
        return json.dumps({key: entry[key] for key in ("question", "answer", "metadata")}, default=str), ""
    except Exception as error:  # noqa: BLE001 - whatever the library refuses parameters with
        return "", " ".join(str(error).split()) or type(error).__name__


@cache
def has_one_answer(*programs: str) -> bool:
    """Return whether programs do not ask for the time or for names of the system's, nor for the place of an object in
    memory, by which a set orders objects of the program's own classes."""
    nodes = [node for program in programs for node in ast.walk(ast.parse(program))]
    names = {getattr(node, "id", getattr(node, "attr", getattr(node, "name", None))) for node in nodes}
    sets = "set" in names or any(isinstance(node, ast.Set | ast.SetComp) for node in nodes)
    return not names & OWN_STATE and not (sets and any(isinstance(node, ast.ClassDef) for node in nodes))
