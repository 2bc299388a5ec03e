"""Any server with the OpenAI chat protocol: vLLM, SGLang, llama.cpp or a paid one."""

import os
import threading
from collections.abc import Sequence
from functools import partial

from compositionality.errors import UserError
from compositionality.http_json import Json, JsonClient, ServerError
from compositionality.rollout.engines.base import Chat, Tick, no_tick, run_concurrently
from compositionality.rollout.settings import CollectSettings
from compositionality.types import FAILED, LENGTH, STOP, Completion, SamplingOptions

KEY_VARIABLE = "OPENAI_API_KEY"
CUT_BY_THE_SERVER = ("content_filter", "abort", "error")
"""Finish reasons of texts that the server cut or changed."""


class OpenAIEngine:
    """Sends ``concurrency`` requests at a time; repeats failed ones ``retries`` times, with growing pauses.

    Requests that still fail give a completion with the finish reason FAILED; more of them than ``max_error_rate`` of
    all requests raise UserError.
    """

    parallel_calls = 1

    def __init__(self, settings: CollectSettings) -> None:
        key = os.environ.get(KEY_VARIABLE, "")
        self._server = JsonClient(settings.base_url, key=key, retries=settings.retries, timeout_s=settings.timeout_s)
        self._settings, self._lock = settings, threading.Lock()
        self.requests = 0
        self.failed = 0

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Tick = no_tick
    ) -> list[Completion]:
        self.requests += len(prompts)
        calls = [partial(self._complete, prompt, seed, options) for prompt, seed in zip(prompts, seeds, strict=True)]
        return run_concurrently(calls, self._settings.concurrency, tick)

    def close(self) -> None:
        """Print how many requests were repeated and how many failed."""
        if self._server.repeated or self.failed:
            print(
                f"{self._server.name}: {self.failed} of {self.requests} requests failed; "
                f"{self._server.repeated} repeats of failed ones"
            )

    def _complete(self, prompt: Chat, seed: int, options: SamplingOptions) -> Completion:
        content: Json = {
            "model": self._settings.model,
            "messages": list(prompt),
            "temperature": options.temperature,
            "top_p": options.top_p,
            "max_tokens": options.max_tokens,
            "seed": seed,
        }
        if options.top_k:  # not in the protocol, but vLLM supports it
            content["top_k"] = options.top_k
        try:
            return self._server.call("/chat/completions", content, partial(read_reply, max_tokens=options.max_tokens))
        except ServerError as error:
            self._count_failure(error)
            return Completion("", 0, FAILED)

    def _count_failure(self, error: ServerError) -> None:
        """Count a failed request; raise UserError as soon as the limit is exceeded."""
        with self._lock:
            self.failed += 1
            failed = self.failed
        allowed = self._settings.max_error_rate
        if failed > allowed * self.requests:
            why = UserError(
                f"{self._server.name}: the server failed on {failed} of {self.requests} requests, more than the "
                f"{allowed:.2%} allowed; the last: {error}; fix the server or raise max_error_rate"
            )
            self._server.give_up(why)
            raise why from error


def read_reply(reply: Json, max_tokens: int) -> Completion:
    """Return the completion in a reply. ServerError if text, number of tokens or finish reason is invalid."""
    text, n_tokens = read_text(reply), reply["usage"]["completion_tokens"]
    if type(n_tokens) is not int or not 0 <= n_tokens <= 2 * max_tokens:
        raise ServerError(f"the reply's completion_tokens are not a number up to {max_tokens}", repr(n_tokens))
    return Completion(text, n_tokens, LENGTH if reply["choices"][0]["finish_reason"] == LENGTH else STOP)


def read_text(reply: Json) -> str:
    """Return the text of a reply's first choice. ServerError if it is missing, or the server cut or changed it."""
    choice = reply["choices"][0]
    text, reason = choice["message"]["content"], choice["finish_reason"]
    if not isinstance(reason, str) or reason in CUT_BY_THE_SERVER:
        raise ServerError("the reply's finish_reason", repr(reason))
    if text is None and reason == LENGTH:  # cut off during its reasoning, which some servers leave out
        return ""
    if not isinstance(text, str):
        raise ServerError("the reply's content is not a text", repr(text))
    return text
