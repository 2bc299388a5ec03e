"""Completions of checkpoints to problem files: one engine per checkpoint, collected where they are missing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from compositionality.data.artefact import is_to_be_checked
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.rollout.collect import check, collect
from compositionality.rollout.engines.base import Chat, Engine, SamplingOptions, Tick, no_tick
from compositionality.rollout.engines.factory import choose_engine, open_engine
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.rollout.prompts import prompt_tokens
from compositionality.rollout.settings import CollectSettings, SamplingSettings
from compositionality.types import Completion


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

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Tick = no_tick
    ) -> list[Completion]:
        """One completion per prompt and seed, in order."""
        return self._opened().generate(prompts, seeds, options, tick)

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
        form = self._settings.form()
        chats = (chat for file in self._files for chat in read_problems(Path(file), form)["prompt"].to_pylist())
        return max(len(prompt_tokens(tokenizer, chat)) for chat in chats)


def check_jobs(
    settings: SamplingSettings, models: Mapping[str, str], files: Mapping[str, str], output: Path, *, force: bool
) -> None:
    """A dry run's: every model on every problem file, as far as they are there. UserError as ``collect`` has it."""
    known = bool(settings.base_url) or is_to_be_checked(*models.values(), dry=True)  # with which engine all are asked
    if known:
        settings = replace(settings, engine=choose_engine(settings.engine, settings.base_url, list(models.values())))
    for model, path in models.items():
        for job in jobs_of(settings, model, path, files, output).values():
            check(replace(job, force=force or not known))


Folders = Mapping[tuple[str, str], Path]
"""Rollout folders by (checkpoint name, problem file name)."""
Jobs = Mapping[tuple[str, str], CollectSettings]


def jobs_of(settings: SamplingSettings, model: str, path: str, files: Mapping[str, str], output: Path) -> Jobs:
    """What to collect of one checkpoint: ``output``/rollouts/MODEL/PROBLEMS for every problem file."""
    return {
        (model, name): settings.collection(path, file, output / "rollouts" / model / name)
        for name, file in files.items()
    }


def engine_for(jobs: Jobs) -> SharedEngine:
    """The engine of one checkpoint for all its problem files."""
    return SharedEngine(next(iter(jobs.values())), [str(job.problems) for job in jobs.values()])


def all_collected(jobs: Jobs, engine: Engine, *, force: bool) -> dict[tuple[str, str], Path]:
    """Collect the answers of one checkpoint to every problem file; what is there already stays."""
    return {key: collected(job, engine, force=force) for key, job in jobs.items()}


def collected(job: CollectSettings, engine: Engine, *, force: bool) -> Path:
    """Collect; ``force`` replaces answers of another checkpoint or with other settings, and only those."""
    try:
        return collect(job, engine)
    except UserError:
        if not force:
            raise
    return collect(replace(job, force=True), engine)
