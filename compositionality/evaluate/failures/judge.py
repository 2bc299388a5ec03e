"""Asking the judge: any server that speaks the OpenAI chat protocol with JSON schemas, each question only once.

Answers are kept in a file of lines, each with the hash of its request (model, chat, schema, sampling); a line that a
killed process left unfinished is passed over. The server's address is no part of the hash: a model may move.
"""

import contextlib
import hashlib
import heapq
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.data.artefact import Recipe, write_derived
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.evaluate.failures.labels import responses_of
from compositionality.evaluate.failures.sources import FailureSettings, Problems, Source, judge_server
from compositionality.rollout.engines.base import run_concurrently
from compositionality.rollout.engines.openai import read_text
from compositionality.rollout.engines.server import JsonServer, ServerError
from compositionality.rollout.store import read_rollouts
from compositionality.tasks.registry import task_of
from compositionality.types import Failure, Message, Problem

KEY_VARIABLES = ("JUDGE_API_KEY", "OPENAI_API_KEY")
RETRIES, TIMEOUT_S = 5, 600.0
Question = tuple[Message, ...]


class JudgeClient:
    """``concurrency`` questions at a time, at temperature 0; one that fails though repeated is a UserError."""

    def __init__(
        self, base_url: str, model: str, schema: Mapping[str, Any], answers: Path, *, max_tokens: int, concurrency: int
    ) -> None:
        self.model, self._base_url, self._answers = model, base_url, answers
        self._schema, self._max_tokens, self._concurrency = schema, max_tokens, concurrency
        self._lock = threading.Lock()

    @classmethod
    def of_settings(cls, settings: FailureSettings, schema: Mapping[str, Any], answers: Path) -> Self:
        """UserError unless address and name of the judge are given, as settings or in the environment."""
        base_url, model = judge_server(settings)
        limits = {"max_tokens": settings.judge_max_tokens, "concurrency": settings.judge_concurrency}
        return cls(base_url, model, schema, answers, **limits)

    def answers(self, questions: Sequence[Question]) -> list[str]:
        """The answers in order; what is not yet known is requested, and stored at once."""
        keys = [self._key(question) for question in questions]
        known = dict(self._known())
        missing = {key: q for key, q in zip(keys, questions, strict=True) if key not in known}
        print(f"judge {self.model}: {len(missing)} of {len(keys)} requests to send")
        if missing:
            known |= dict(zip(missing, self._ask_all(missing), strict=True))
        return [known[key] for key in keys]

    def _ask_all(self, missing: Mapping[str, Question]) -> list[str]:
        key = next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), "")
        server = JsonServer(
            self._base_url, key=key, connections=self._concurrency, retries=RETRIES, timeout_s=TIMEOUT_S
        )
        self._answers.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(server):
            calls = [partial(self._ask, server, key, question) for key, question in missing.items()]
            return run_concurrently(calls, self._concurrency)

    def _ask(self, server: JsonServer, key: str, question: Question) -> str:
        content = {"model": self.model, "messages": list(question), **self._options()}
        try:
            text = server.call("/chat/completions", content, read_text)
        except ServerError as error:
            raise UserError(f"{server.name}: the server of the judge failed: {error}; fix it and run again") from error
        self._keep(key, text)
        return text

    def _options(self) -> dict[str, Any]:
        schema = {"name": "failure", "strict": True, "schema": self._schema}
        form = {"type": "json_schema", "json_schema": schema}
        return {"temperature": 0.0, "seed": 0, "max_tokens": self._max_tokens, "response_format": form}

    def _key(self, question: Question) -> str:
        content = json.dumps([self.model, question, self._options()], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def _keep(self, key: str, text: str) -> None:
        """Begin on a new line: the last one may be torn."""
        line = "\n" + json.dumps({"key": key, "answer": text}) + "\n"
        with self._lock, self._answers.open("a") as stream:
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())

    def _known(self) -> Iterator[tuple[str, str]]:
        if not self._answers.is_file():
            return
        with self._answers.open(errors="replace") as stream:
            for line in stream:
                try:
                    kept = json.loads(line)
                    yield str(kept["key"]), str(kept["answer"])
                except (ValueError, TypeError, KeyError):
                    continue


STEP = "judge_failures"
JUDGED = "judge.parquet"
MALFORMED = "malformed"
"""An answer that is none of the classes: counted, and never taken for one."""
LONGEST_RESPONSE = 6000
MEANINGS = {
    Failure.CORRECT: "The final answer is the true one.",
    Failure.IGNORES: "Several operators were to be applied and only one was, or none.",
    Failure.INCOMPLETE: "The operators are applied in the right order and rightly, but the work stops before the last.",
    Failure.INCORRECT: "The operators are applied in another order, or to the input in place of a result, or one is "
    "left out or added.",
    Failure.ATOMIC: "The operators and their order are right, but the result of one of them is wrong or miscopied.",
    Failure.FORMAT: "No final answer can be read.",
}
SYSTEM = """You check how a student worked out a problem that takes several operators, one after another. You see their
definitions, which the student did not see, the true value after every operator, and the student's response. Find the
first thing that went wrong in it and say which one of these classes it is:
{classes}
Reply with a JSON object with one key, "class"."""
NAMES = [failure.value for failure in MEANINGS]
SCHEMA = {
    "type": "object",
    "properties": {"class": {"type": "string", "enum": NAMES}},
    "required": ["class"],
    "additionalProperties": False,
}
COLUMNS = pa.schema(
    [
        ("arm", pa.string()),
        ("file", pa.string()),
        ("problem", pa.int64()),
        ("sample", pa.int32()),
        ("program", pa.string()),
        ("judge", pa.string()),
    ]
)
Place = tuple[int, int]
"""A response of a source: problem and sample."""


def judge_labels(settings: FailureSettings, sources: Sequence[Source], labels: Path, output: Path) -> None:
    """Write ``output``/judge.parquet: the judge's class beside the program's, for some responses at ``level``.

    Answers are kept as they come, in ``output``/judge_answers.jsonl: a request is sent only once.
    """
    client = JudgeClient.of_settings(settings, SCHEMA, output / "judge_answers.jsonl")
    recipe = _recipe(settings, client.model, labels)
    target = output / JUDGED
    write_derived(target, recipe, lambda path: _write(settings, sources, labels, client, path), force=settings.force)


def _write(settings: FailureSettings, sources: Sequence[Source], labels: Path, client: JudgeClient, path: Path) -> None:
    rows = [row for source in sources for row in _questions(source, _chosen(settings, source, labels))]
    if not rows:
        raise UserError(f"level={settings.level}: no response to judge; choose a level that the problems have")
    answers = client.answers([prompt for _, prompt in rows])
    judged = [{**row, "judge": judged_class(answer)} for (row, _), answer in zip(rows, answers, strict=True)]
    write_table(pa.Table.from_pylist(judged, schema=COLUMNS), path)


def judge_prompt(problem: Problem, response: str) -> list[Message]:
    """The chat that asks for the class of a response. UserError for a task that has no reference to show."""
    reference = task_of(problem.data_source).reference(problem)
    if reference is None:
        raise UserError(f"judge=true: {problem.data_source} has no reference steps to show a judge; leave judge out")
    shown = response if len(response) <= LONGEST_RESPONSE else response[:LONGEST_RESPONSE] + " […]"
    user = f"{reference}\n\nThe student's response, between the lines:\n-----\n{shown}\n-----"
    classes = "\n".join(f"- {failure.value}: {meaning}" for failure, meaning in MEANINGS.items())
    return [
        {"role": "system", "content": SYSTEM.format(classes=classes)},
        {"role": "user", "content": user},
    ]


def judged_class(answer: str) -> str:
    """The class that an answer names, or MALFORMED."""
    try:
        named = json.loads(answer)
    except (ValueError, RecursionError):
        return MALFORMED
    found = named.get("class") if isinstance(named, dict) and set(named) == {"class"} else None
    return found if found in NAMES else MALFORMED


def _recipe(settings: FailureSettings, model: str, labels: Path) -> Recipe:
    wording = hashlib.sha256(json.dumps([SYSTEM, SCHEMA, list(MEANINGS.values())]).encode()).hexdigest()[:16]
    kept: dict[str, Any] = {"judge": model, "wording": wording, "level": settings.level}
    kept |= {"responses": settings.judge_responses, "max_tokens": settings.judge_max_tokens}
    return Recipe(STEP, kept, {"labels": labels})


def _chosen(settings: FailureSettings, source: Source, labels: Path) -> dict[Place, str]:
    """Classes by place of the responses to judge: drawn by the hash of their places, so always the same ones.

    Overlong responses are left out: that they were cut off is no judgement.
    """
    found = (
        (hashlib.blake2b(f"{row['problem']}/{row['sample']}".encode(), digest_size=8).digest(), row)
        for row in _rows(labels)
        if (row["arm"], row["file"]) == (source.model, source.file)
        and row["level"] == settings.level
        and row["class"] != Failure.OVERLONG
    )
    if settings.judge_responses:
        drawn = heapq.nsmallest(settings.judge_responses, found, key=lambda pair: pair[0])
    else:
        drawn = list(found)
    return {(row["problem"], row["sample"]): row["class"] for _, row in drawn}


def _rows(labels: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(labels) as table:
        for batch in table.iter_batches(8192, columns=["arm", "file", "problem", "sample", "level", "class"]):
            yield from batch.to_pylist()


def _questions(source: Source, chosen: dict[Place, str]) -> Iterator[tuple[dict[str, Any], Question]]:
    problems = Problems(source.path)
    for shard in read_rollouts(source.rollouts):
        for problem, sample, completion, _ in responses_of(shard, problems):
            program_says = chosen.get((problem, sample))
            if program_says is not None:
                row = {"arm": source.model, "file": source.file, "problem": problem, "sample": sample}
                messages = judge_prompt(problems.problem(problem), completion.text)
                yield {**row, "program": program_says}, tuple(messages)
