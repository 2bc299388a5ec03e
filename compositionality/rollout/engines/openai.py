"""Any server that speaks the OpenAI chat protocol: vLLM, SGLang, llama.cpp or a paid one."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from compositionality.errors import UserError
from compositionality.rollout.engines.base import Chat, SamplingOptions, Tick, no_tick, run_concurrently
from compositionality.types import LENGTH, STOP, Completion

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

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Tick = no_tick
    ) -> list[Completion]:
        """One completion per prompt and seed, in order."""
        calls = [partial(self._complete, prompt, seed, options) for prompt, seed in zip(prompts, seeds, strict=True)]
        return run_concurrently(calls, self._concurrency, tick)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _complete(self, prompt: Chat, seed: int, options: SamplingOptions) -> Completion:
        from openai import OpenAIError

        extra = {"top_k": options.top_k} if options.top_k else {}  # no part of the protocol, but vLLM knows it
        messages: Any = list(prompt)
        try:
            reply = self._client.chat.completions.create(
                model=self._model,
                messages=messages,
                temperature=options.temperature,
                top_p=options.top_p,
                max_tokens=options.max_tokens,
                seed=seed,
                extra_body=extra,
            )
        except OpenAIError as error:
            raise UserError(f"{self._base_url}: {' '.join(str(error).split())[:300]}") from error
        if reply.usage is None or not reply.choices:
            raise UserError(f"{self._base_url}: the server's reply has no choices or no usage (token counts)")
        choice = reply.choices[0]
        reason = LENGTH if choice.finish_reason == LENGTH else STOP
        return Completion(choice.message.content or "", reply.usage.completion_tokens, reason)
