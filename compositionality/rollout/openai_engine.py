"""Any server that speaks the OpenAI chat protocol: vLLM, SGLang, llama.cpp or a paid one."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from compositionality.errors import UserError
from compositionality.rollout.engine import Completion, Request, SamplingOptions, Tick, no_tick
from compositionality.rollout.side_by_side import side_by_side

KEY_VARIABLE = "OPENAI_API_KEY"


class OpenAIEngine:
    """``concurrency`` requests at a time; the client library repeats a failed one ``retries`` times, waiting longer."""

    parallel_calls = 1

    def __init__(
        self, base_url: str, model: str, *, concurrency: int = 64, retries: int = 5, timeout_s: float = 600.0
    ) -> None:
        from openai import OpenAI

        key = os.environ.get(KEY_VARIABLE) or "none"  # a local server asks for none, the client for one
        self._client = OpenAI(base_url=base_url, api_key=key, max_retries=retries, timeout=timeout_s)
        self._base_url, self._model, self._concurrency = base_url, model, concurrency

    def generate(self, requests: Sequence[Request], options: SamplingOptions, tick: Tick = no_tick) -> list[Completion]:
        """One completion per request, in order."""
        calls = [partial(self._ask, request, options) for request in requests]
        return side_by_side(calls, self._concurrency, tick)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _ask(self, request: Request, options: SamplingOptions) -> Completion:
        from openai import OpenAIError

        extra = {"top_k": options.top_k} if options.top_k else {}  # no part of the protocol, but vLLM knows it
        messages: Any = list(request.messages)
        try:
            answer = self._client.chat.completions.create(
                model=self._model,
                messages=messages,
                temperature=options.temperature,
                top_p=options.top_p,
                max_tokens=options.max_tokens,
                seed=request.seed,
                extra_body=extra,
            )
        except OpenAIError as error:
            raise UserError(f"{self._base_url}: {' '.join(str(error).split())[:300]}") from error
        if answer.usage is None or not answer.choices:
            raise UserError(f"{self._base_url}: the server's answer has no choices or no usage (token counts)")
        choice = answer.choices[0]
        reason = "length" if choice.finish_reason == "length" else "stop"
        return Completion(choice.message.content or "", answer.usage.completion_tokens, reason)
