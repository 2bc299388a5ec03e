"""A language model as second judge of failures: its prompt, its answers, and its agreement with the program.

Works with any server of the OpenAI chat protocol with JSON schemas. Every answer is stored at once as a JSON line with
the hash of its request (model, chat, schema, sampling), so that no question is sent twice. The server's address is not
in the hash: a model may move.
"""

import contextlib
import hashlib
import json
import math
import os
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from rich.console import Console

from compositionality.data.artefact import Recipe, make, verify
from compositionality.data.parquet import read_table, write_table
from compositionality.errors import UserError
from compositionality.http_json import JsonClient, ServerError, address_of
from compositionality.rollout.engines.base import run_concurrently
from compositionality.rollout.engines.openai import read_text
from compositionality.stats.estimate import CONFIDENCE, Counts
from compositionality.tasks.diagnosis import FAILURES, Failure
from compositionality.tasks.registry import task_of
from compositionality.types import Message, Problem

if TYPE_CHECKING:
    from compositionality.evaluate.failures import FailureSettings

STEP = "judge_failures"
JUDGED, ANSWERS = "judge.parquet", "judge_answers.jsonl"
URL_VARIABLE, MODEL_VARIABLE = "JUDGE_BASE_URL", "JUDGE_MODEL"
KEY_VARIABLES = ("JUDGE_API_KEY", "OPENAI_API_KEY")
RETRIES, TIMEOUT_S = 5, 600.0
DRAWS = 2000
MALFORMED = "malformed"  # an answer that is not a class
LONGEST_RESPONSE = 6000
MEANINGS = {
    Failure.CORRECT: "The final answer is the true one.",
    Failure.IGNORES: "Several operators were to be applied and only one was, or none.",
    Failure.INCOMPLETE: "The operators are applied in the right order and rightly, but the work stops before the last.",
    Failure.INCORRECT: "The operators are applied in another order, or to the input in place of a result, or one is "
    "left out or added.",
    Failure.MISCOPIED: "The operators and their order are right, but one starts from another string than the last "
    "result.",
    Failure.ATOMIC: "The operators and their order are right, but the result of one of them is wrong.",
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
RESPONSE = ["arm", "file", "problem", "sample"]  # columns that identify a response
Texts = Iterable[tuple[tuple[str, str, int, int], Problem, str]]  # responses by name, with the problem and the text


def judge_server(settings: "FailureSettings") -> tuple[str, str]:
    """Return address and name of the judge, from the settings or the environment. UserError if one is missing."""
    base_url = settings.judge_base_url or os.environ.get(URL_VARIABLE, "")
    model = settings.judge_model or os.environ.get(MODEL_VARIABLE, "")
    if not base_url or not model:
        raise UserError(f"judge=true: set {URL_VARIABLE}=http://HOST:PORT/v1 and {MODEL_VARIABLE}=NAME")
    address_of(base_url)
    return base_url, model


def judge_labels(settings: "FailureSettings", table: Path, labels: pd.DataFrame, texts: Texts, output: Path) -> None:
    """Write ``output``: the judge's and the program's class (``labels``, read from ``table``) of responses."""
    _, model = judge_server(settings)
    wording = hashlib.sha256(json.dumps([SYSTEM, SCHEMA, list(MEANINGS.values())]).encode()).hexdigest()[:16]
    recipe_settings = {"judge": model, "wording": wording, "level": settings.level}
    recipe_settings |= {"responses": settings.judge_responses, "max_tokens": settings.judge_max_tokens}

    def write(path: Path) -> None:
        chosen = choose(labels, settings.level, settings.judge_responses).set_index(RESPONSE)["class"].rename("program")
        chats = {key: judge_prompt(problem, text) for key, problem, text in texts if key in chosen.index}
        if not chats:
            raise UserError(f"level={settings.level}: no response to judge; choose a level of the problems")
        answers = ask(settings, list(chats.values()), output.with_name(ANSWERS))
        judged = chosen.loc[list(chats)].to_frame().assign(judge=list(map(judged_class, answers)))
        write_table(pa.Table.from_pandas(judged.reset_index(), preserve_index=False), path)

    make(output, Recipe(STEP, recipe_settings, {"labels": table}), write, force=settings.force, follows=True)


def choose(labels: pd.DataFrame, level: int, n: int) -> pd.DataFrame:
    """Return the labels of ``n`` responses (0: all) of every model and file, chosen by a hash of their names."""
    rows = labels[(labels["level"] == level) & (labels["class"] != Failure.OVERLONG)]  # cut off: nothing to judge
    names = zip(rows["problem"], rows["sample"], strict=True)
    hashes = [hashlib.blake2b(f"{problem}/{sample}".encode(), digest_size=8).digest() for problem, sample in names]
    rows = rows.assign(drawn=hashes).sort_values("drawn")
    return rows.groupby(["arm", "file"]).head(n) if n else rows


def judge_prompt(problem: Problem, response: str) -> list[Message]:
    """Return the chat that asks for the class of a response. UserError for a task without a reference."""
    reference = task_of(problem.data_source).reference(problem)
    if reference is None:
        raise UserError(f"judge=true: {problem.data_source} has no reference steps to show a judge; leave judge out")
    shown = response if len(response) <= LONGEST_RESPONSE else response[:LONGEST_RESPONSE] + " […]"
    user = f"{reference}\n\nThe student's response, between the lines:\n-----\n{shown}\n-----"
    classes = "\n".join(f"- {failure.value}: {meaning}" for failure, meaning in MEANINGS.items())
    return [{"role": "system", "content": SYSTEM.format(classes=classes)}, {"role": "user", "content": user}]


def judged_class(answer: str) -> str:
    """Return the class that an answer names, or MALFORMED."""
    try:
        content = json.loads(answer)
    except (ValueError, RecursionError):
        return MALFORMED
    name = content.get("class") if isinstance(content, dict) and set(content) == {"class"} else None
    return name if name in NAMES else MALFORMED


def ask(settings: "FailureSettings", questions: Sequence[Sequence[Message]], answers: Path) -> list[str]:
    """Return the answers in order; missing ones are requested, and stored in ``answers`` at once."""
    base_url, model = judge_server(settings)
    form = {"type": "json_schema", "json_schema": {"name": "failure", "strict": True, "schema": SCHEMA}}
    options = {"temperature": 0.0, "seed": 0, "max_tokens": settings.judge_max_tokens, "response_format": form}
    contents = [json.dumps([model, question, options], sort_keys=True) for question in questions]
    keys = [hashlib.sha256(content.encode()).hexdigest() for content in contents]
    stored = read_answers(answers)
    unsent = {key: question for key, question in zip(keys, questions, strict=True) if key not in stored}
    print(f"judge {model}: {len(unsent)} of {len(keys)} requests to send")
    if not unsent:
        return [stored[key] for key in keys]
    secret = next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), "")
    server, lock = JsonClient(base_url, key=secret, retries=RETRIES, timeout_s=TIMEOUT_S), threading.Lock()

    def ask_one(key: str, question: Sequence[Message]) -> None:
        content = {"model": model, "messages": list(question), **options}
        try:
            stored[key] = server.call("/chat/completions", content, read_text)
        except ServerError as error:
            raise UserError(f"{server.name}: the server of the judge failed: {error}; fix it and run again") from error
        with lock, answers.open("a") as stream:  # on a new line: the last one may be torn
            stream.write("\n" + json.dumps({"key": key, "answer": stored[key]}) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    run_concurrently([partial(ask_one, *item) for item in unsent.items()], settings.judge_concurrency)
    return [stored[key] for key in keys]


def read_answers(path: Path) -> dict[str, str]:
    """Return the stored answers by hash of the request; an incomplete line of a killed process is ignored."""
    answers = {}
    for line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError, TypeError, KeyError):
            entry = json.loads(line)
            answers[str(entry["key"])] = str(entry["answer"])
    return answers


def agreement(judged: Path) -> dict[str, Any]:
    """Return the agreement in judge.parquet; malformed answers are counted and left out. None: undefined."""
    judge = verify(judged).settings["judge"]
    rows = read_table(judged, [*RESPONSE, "program", "judge"]).to_pandas()
    valid = rows[rows["judge"] != MALFORMED]
    clusters = valid.groupby(["file", "problem"]).ngroup().to_numpy(np.int64)
    numbers = [valid[name].map(FAILURES.index).to_numpy(np.int64) for name in ("program", "judge")]
    tables = np.zeros((int(clusters.max(initial=-1)) + 1, len(FAILURES), len(FAILURES)), np.int64)
    np.add.at(tables, (clusters, *numbers), 1)
    agreed = float((valid["program"] == valid["judge"]).mean()) if len(valid) else None
    counts = {"model": judge, "n": len(valid), "malformed": len(rows) - len(valid), "agreement": agreed}
    return counts | dict(zip(("kappa", "low", "high"), kappa_with_interval(tables), strict=True))


def kappa_with_interval(tables: Counts) -> tuple[float | None, float | None, float | None]:
    """Return Cohen's kappa of the summed contingency tables of C problems (C, K, K) and the 95 % interval of a
    bootstrap over problems; None if chance agreement is 1."""
    from statsmodels.stats.inter_rater import cohens_kappa

    if not (n := len(tables)):
        return None, None, None
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)  # (D, C)
    drawn = (weights @ tables.reshape(n, -1)).reshape(-1, *tables.shape[1:])  # (D, K, K)
    with np.errstate(invalid="ignore", divide="ignore"):
        value, *resampled = (float(cohens_kappa(table, return_results=False)) for table in (tables.sum(0), *drawn))
    if not math.isfinite(value):
        return None, None, None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(np.where(np.isfinite(resampled), resampled, np.nan), [tail, 1 - tail])
    return value, float(low), float(high)


def print_agreement(judge: dict[str, Any], console: Console) -> None:
    kappa = "undefined" if judge["kappa"] is None else "{kappa:.2f} [{low:.2f}, {high:.2f}]".format(**judge)
    agreed = "–" if judge["agreement"] is None else f"{100 * judge['agreement']:.1f} %"
    console.print(
        f"\njudge {judge['model']}: {judge['n']} responses, agreement {agreed}, Cohen's kappa {kappa}, "
        f"{judge['malformed']} malformed answers left out"
    )
