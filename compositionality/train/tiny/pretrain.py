"""Pretraining the tiny model: a plain PyTorch loop that can be killed at any step.

Progress is saved every ``save_every`` steps beside the result. The same command continues there, and ends with the
same bytes as a run that was never stopped, on the same machine with the same number of threads.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path

from omegaconf import MISSING

from compositionality.data.artefact import Recipe, config_hash, exclusive, is_done, new_artefact
from compositionality.errors import UserError
from compositionality.train.tiny.batches import PackedBatches, Packing
from compositionality.train.tiny.corpus import Corpus, Mix, definition_names
from compositionality.train.tiny.loop import (
    Reporter,
    State,
    learning_rate_at,
    load_progress,
    new_state,
    save_progress,
    stream,
    train_step,
)
from compositionality.train.tiny.model import TinyConfig, build_model, save_model
from compositionality.train.tiny.tokenizer import build_tokenizer


@dataclass
class PretrainSettings:
    """What ``examples/pretrain_tiny.py`` takes."""

    output: str = MISSING
    steps: int = 6000
    learning_rate: float = 4e-3
    warmup: int = 100
    weight_decay: float = 0.01
    drop: list[int] = field(default_factory=lambda: [0, 3])
    mix: Mix = field(default_factory=Mix)
    packing: Packing = field(default_factory=Packing)
    model: TinyConfig = field(default_factory=TinyConfig)
    seed: int = 0
    threads: int = 2
    save_every: int = 500
    force: bool = False


SHORTEST_ROW = 64
_NO_EFFECT = ("output", "threads", "save_every", "force")


def pretrain(settings: PretrainSettings) -> None:
    """Make the base model at ``settings.output`` unless it is already there."""
    out = Path(settings.output)
    recipe = Recipe("pretrain_tiny", {key: value for key, value in asdict(settings).items() if key not in _NO_EFFECT})
    if is_done(out, recipe, force=settings.force):
        print(f"{out} is already there")
        return
    _check(settings)
    with exclusive(out):
        _pretrain(settings, out, recipe)


def progress_path(out: Path) -> Path:
    """Where an unfinished run keeps its state."""
    return out.with_name(f".{out.name}.progress.pt")


def _check(settings: PretrainSettings) -> None:
    for name in ("steps", "threads", "save_every"):
        if getattr(settings, name) < 1:
            raise UserError(f"{name}={getattr(settings, name)}: must be at least 1")
    if settings.packing.rows < 1 or settings.packing.length < SHORTEST_ROW:
        raise UserError(f"packing: needs at least one row of {SHORTEST_ROW} tokens")
    if not 0 <= settings.mix.total() < 1:
        raise UserError("the shares of mix add up to 1 or more; leave some for the definitions of target functions")


def _pretrain(settings: PretrainSettings, out: Path, recipe: Recipe) -> None:
    import torch

    torch.set_num_threads(settings.threads)
    tokenizer = build_tokenizer(definition_names())
    model = build_model(settings.model, tokenizer, settings.seed)
    batches = PackedBatches(
        Corpus(settings.mix, settings.drop), tokenizer, settings.packing, settings.seed, settings.steps
    )
    state = new_state(model, settings.learning_rate, settings.weight_decay)
    _train(state, batches, settings, progress_path(out), config_hash(recipe.settings))
    facts = {"parameters": model.num_parameters(), "steps": state.step, "loss": round(state.loss, 4)}
    with new_artefact(out, recipe, facts) as folder:
        save_model(model, tokenizer, folder)
    progress_path(out).unlink(missing_ok=True)
    print(f"{out}: {facts['parameters']:,} parameters, loss {facts['loss']}")


def _train(state: State, batches: PackedBatches, settings: PretrainSettings, progress: Path, identity: str) -> None:
    """Train ``state`` to the last step, from the saved progress if there is some."""
    if load_progress(state, progress, identity):
        print(f"continuing at step {state.step:,}")
    reporter = Reporter(settings.steps, state.step, settings.packing.rows * settings.packing.length)
    for batch in stream(batches, state.step):
        train_step(
            state,
            batch,
            learning_rate_at(state.step, settings.steps, settings.learning_rate, settings.warmup),
        )
        reporter.tell(state.step, state.loss)
        if state.step % settings.save_every == 0 and state.step < settings.steps:
            save_progress(state, progress, identity)
