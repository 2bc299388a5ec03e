"""One engine for all problem files of a checkpoint, opened only if a file has answers missing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from compositionality.data.problems import read_problems
from compositionality.rollout.engine import Completion, Engine, Request, SamplingOptions, Tick, no_tick
from compositionality.rollout.engines import open_engine
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.rollout.prompts import prompt_tokens
from compositionality.rollout.settings import CollectSettings


class SharedEngine:
    """Opens the engine of ``settings`` at the first question, wide enough for the prompts of all ``files``."""

    def __init__(self, settings: CollectSettings, files: Sequence[str]) -> None:
        self._settings = settings
        self._files = files
        self._engine: Engine | None = None

    @property
    def parallel_calls(self) -> int:
        """As the engine behind it."""
        return self._opened().parallel_calls

    def generate(self, requests: Sequence[Request], options: SamplingOptions, tick: Tick = no_tick) -> list[Completion]:
        """One completion per request, in order."""
        return self._opened().generate(requests, options, tick)

    def close(self) -> None:
        """Close the engine if it was opened."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> Engine:
        if self._engine is None:
            self._engine = open_engine(self._settings, self._longest_prompt())
        return self._engine

    def _longest_prompt(self) -> int:
        """In tokens; a server checks its own (0)."""
        if self._settings.engine == "openai":
            return 0
        tokenizer = load_tokenizer(Path(self._settings.model))
        chats = (chat for file in self._files for chat in read_problems(Path(file))["prompt"].to_pylist())
        return max(len(prompt_tokens(tokenizer, chat)) for chat in chats)
