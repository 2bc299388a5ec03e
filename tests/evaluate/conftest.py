"""Engines that answer by a function, in place of models."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from compositionality.rollout.engines.base import Chat, SamplingOptions
from compositionality.types import Completion

Answer = Callable[[str, str, int], str]
"""Model, prompt, seed of the sample → response."""


class PlayedEngine:
    parallel_calls = 1

    def __init__(self, model: str, answer: Answer) -> None:
        self.model, self.answer = model, answer

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Any = None
    ) -> list[Completion]:
        asked = zip(prompts, seeds, strict=True)
        return [Completion(self.answer(self.model, chat[0]["content"], seed), 7, "stop") for chat, seed in asked]

    def close(self) -> None: ...


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], list[str]]:
    """Let engines give these answers; returns the models that are asked, in order. No folder needs to be a model."""

    def played(answer: Answer) -> list[str]:
        models: list[str] = []

        def opened(settings: Any, _: int) -> PlayedEngine:
            models.append(Path(settings.model).name)
            return PlayedEngine(models[-1], answer)

        monkeypatch.setattr("compositionality.evaluate.collect.open_engine", opened)
        return models

    monkeypatch.setattr("compositionality.rollout.collect._check_prompts", lambda *_: 1)
    monkeypatch.setattr("compositionality.evaluate.collect.longest_prompt", lambda _: 1)
    return played
