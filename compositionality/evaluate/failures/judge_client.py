"""Asking the judge: any server that speaks the OpenAI chat protocol with JSON schemas, each question only once.

Answers are kept in a file of lines, each with the hash of its request (model, chat, schema, sampling); a line that a
killed process left unfinished is passed over. The server's address is no part of the hash: a model may move.
"""

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from compositionality.errors import UserError
from compositionality.evaluate.failures.settings import FailureSettings
from compositionality.rollout.engine import no_tick
from compositionality.rollout.side_by_side import side_by_side
from compositionality.tasks import Message

URL_VARIABLE, MODEL_VARIABLE = "JUDGE_BASE_URL", "JUDGE_MODEL"
KEY_VARIABLES = ("JUDGE_API_KEY", "OPENAI_API_KEY")
Question = tuple[Message, ...]


class JudgeClient:
    """``concurrency`` questions at a time, at temperature 0; the client library repeats failed ones."""

    def __init__(
        self, base_url: str, model: str, schema: Mapping[str, Any], answers: Path, *, max_tokens: int, concurrency: int
    ) -> None:
        self.model, self._base_url, self._answers = model, base_url, answers
        self._schema, self._max_tokens, self._concurrency = schema, max_tokens, concurrency
        self._lock = threading.Lock()

    @classmethod
    def of_settings(cls, settings: FailureSettings, schema: Mapping[str, Any], answers: Path) -> Self:
        """UserError unless address and name of the judge are given, as settings or in the environment."""
        base_url = settings.judge_base_url or os.environ.get(URL_VARIABLE, "")
        model = settings.judge_model or os.environ.get(MODEL_VARIABLE, "")
        if not base_url or not model:
            raise UserError(f"judge=true: set {URL_VARIABLE}=http://HOST:PORT/v1 and {MODEL_VARIABLE}=NAME")
        limits = {"max_tokens": settings.judge_max_tokens, "concurrency": settings.judge_concurrency}
        for name, value in (*limits.items(), ("responses", settings.judge_responses + 1)):
            if value < 1:
                raise UserError(f"judge_{name}: too small; give a whole number from {int(name != 'responses')} on")
        return cls(base_url, model, schema, answers, **limits)

    def ask(self, questions: Sequence[Question]) -> list[str]:
        """The answers in order; what is not yet known is asked and kept at once."""
        keys = [self._key(question) for question in questions]
        known = dict(self._known())
        missing = {key: q for key, q in zip(keys, questions, strict=True) if key not in known}
        print(f"judge {self.model}: {len(missing)} of {len(keys)} questions to ask")
        if missing:
            known |= dict(zip(missing, self._ask_all(missing), strict=True))
        return [known[key] for key in keys]

    def _ask_all(self, missing: Mapping[str, Question]) -> list[str]:
        from openai import OpenAI

        key = next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), "none")
        self._answers.parent.mkdir(parents=True, exist_ok=True)
        with OpenAI(base_url=self._base_url, api_key=key, max_retries=5, timeout=600.0) as client:
            calls = [partial(self._ask, client, key, question) for key, question in missing.items()]
            return side_by_side(calls, self._concurrency, no_tick)

    def _ask(self, client: Any, key: str, question: Question) -> str:
        from openai import OpenAIError

        try:
            answer = client.chat.completions.create(model=self.model, messages=list(question), **self._options())
        except OpenAIError as error:
            raise UserError(f"{self._base_url}: {' '.join(str(error).split())[:300]}") from error
        if not answer.choices:
            raise UserError(f"{self._base_url}: the server's answer has no choices")
        text = answer.choices[0].message.content or ""
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
