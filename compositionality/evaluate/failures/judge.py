"""A language model as a second judge of some responses: its question, and the classes that it gives."""

import hashlib
import heapq
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.data.artefact import Recipe, write_derived
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.evaluate.failures.judge_client import JudgeClient, Question
from compositionality.evaluate.failures.labels import responses_of
from compositionality.evaluate.failures.settings import FailureSettings
from compositionality.evaluate.failures.sources import Problems, Source
from compositionality.evaluate.study import Group
from compositionality.rollout.reading import read_rollouts
from compositionality.tasks import Message
from compositionality.tasks.string.diagnosis.program import Program
from compositionality.tasks.string.functions import ALIASES
from compositionality.types import Failure

STEP = "judge_failures"
FILE = "judge.parquet"
MALFORMED = "malformed"
"""An answer that is none of the classes: counted, and never taken for one."""
LONGEST_RESPONSE = 6000
MEANINGS = {
    Failure.CORRECT: "The final answer is the true one.",
    Failure.IGNORES: "Several operators were to be applied and only one was, or none.",
    Failure.INCOMPLETE: "The operators are applied in the right order and rightly, but the work stops before the last.",
    Failure.INCORRECT: "The operators are applied in another order than asked, or one is left out or added.",
    Failure.ATOMIC: "The operators and their order are right, but the result of one of them is wrong or miscopied.",
    Failure.FORMAT: "No final answer can be read.",
}
SYSTEM = """You check how a student worked out a nested call of string functions. You see the functions' definitions,
which the student did not see, the true value after every operator, and the student's response. Find the first thing
that went wrong in it and say which one of these classes it is:
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
        ("model", pa.string()),
        ("problems", pa.string()),
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

    Answers are kept as they come, in ``output``/judge_answers.jsonl: what was asked once is not asked again.
    """
    client = JudgeClient.of_settings(settings, SCHEMA, output / "judge_answers.jsonl")
    recipe = _recipe(settings, client.model, labels)
    target = output / FILE
    write_derived(target, recipe, lambda path: _write(settings, sources, labels, client, path), force=settings.force)


def _write(settings: FailureSettings, sources: Sequence[Source], labels: Path, client: JudgeClient, path: Path) -> None:
    rows = [row for source in sources for row in _questions(source, _chosen(settings, source, labels))]
    if not rows:
        raise UserError(f"level={settings.level}: no response to judge; choose a level that the problems have")
    answers = client.ask([question for _, question in rows])
    judged = [{**row, "judge": judged_class(answer)} for (row, _), answer in zip(rows, answers, strict=True)]
    write_table(pa.Table.from_pylist(judged, schema=COLUMNS), path)


def question(program: Program, response: str) -> list[Message]:
    """The chat that asks for the class of a response."""
    names = dict.fromkeys(step.node.operator for step in program.steps if step.name)
    sources = "\n\n".join(ALIASES[name].source() for name in names)
    steps = "\n".join(f"{number}. {_operator(program, number - 1)}" for number in range(1, len(program.steps) + 1))
    shown = response if len(response) <= LONGEST_RESPONSE else response[:LONGEST_RESPONSE] + " […]"
    asked = f"Input: {json.dumps(program.input)}\nTrue steps, in order:\n{steps}"
    user = f"Definitions:\n\n{sources}\n\n{asked}\n\nThe student's response, between the lines:\n-----\n{shown}\n-----"
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


def _operator(program: Program, number: int) -> str:
    step = program.steps[number]
    given = ", ".join(
        json.dumps(source if isinstance(source, str) else program.input if source < 0 else program.steps[source].value)
        for source in step.sources
    )
    parameter = "" if step.node.parameter is None else f", {step.node.parameter!r}"
    return f"{step.node.operator}({given}{parameter}) = {json.dumps(step.value)}"


def _recipe(settings: FailureSettings, model: str, labels: Path) -> Recipe:
    wording = hashlib.sha256(json.dumps([SYSTEM, SCHEMA, list(MEANINGS.values())]).encode()).hexdigest()[:16]
    kept: dict[str, Any] = {"judge": model, "wording": wording, "level": settings.level}
    kept |= {"responses": settings.judge_responses, "max_tokens": settings.judge_max_tokens}
    return Recipe(STEP, kept, {"labels": labels})


def _chosen(settings: FailureSettings, source: Source, labels: Path) -> dict[Place, str]:
    """Classes by place of the responses to ask about: drawn by the hash of their places, so always the same ones.

    Overlong responses are left out: that they were cut off is no judgement.
    """
    found = (
        (hashlib.blake2b(f"{row['problem']}/{row['sample']}".encode(), digest_size=8).digest(), row)
        for row in _rows(labels)
        if (row["model"], row["problems"]) == (source.model, source.problems)
        and Group("", row["data_source"]).level == settings.level
        and row["class"] != Failure.OVERLONG
    )
    if settings.judge_responses:
        drawn = heapq.nsmallest(settings.judge_responses, found, key=lambda pair: pair[0])
    else:
        drawn = list(found)
    return {(row["problem"], row["sample"]): row["class"] for _, row in drawn}


def _rows(labels: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(labels) as table:
        for batch in table.iter_batches(
            8192, columns=["model", "problems", "problem", "sample", "data_source", "class"]
        ):
            yield from batch.to_pylist()


def _questions(source: Source, chosen: dict[Place, str]) -> Iterator[tuple[dict[str, Any], Question]]:
    problems = Problems(source.problems, source.path)
    for shard in read_rollouts(source.rollouts):
        for problem, sample, response in responses_of(shard, problems):
            program_says = chosen.get((problem, sample))
            if program_says is not None:
                row = {"model": source.model, "problems": source.problems, "problem": problem, "sample": sample}
                messages = question(problems.program(problem), response.text)
                yield {**row, "program": program_says}, tuple(messages)
