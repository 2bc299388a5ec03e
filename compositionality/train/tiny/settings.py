"""Settings of pretraining, and their check before it starts."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from compositionality.data.artefact import Recipe, check_target
from compositionality.errors import UserError
from compositionality.ranges import (
    REQUIRED,
    NoEffect,
    NonEmptyStr,
    NonNegativeFloat,
    NonNegativeInt,
    OneOf,
    PositiveFloat,
    PositiveInt,
    Seed,
)
from compositionality.tasks.string.prior import prior_functions
from compositionality.train.checks import check_mesh
from compositionality.train.launch import world_size
from compositionality.train.memory import check_here, pretraining_needs, ranks_of
from compositionality.train.run_folder import run_path
from compositionality.train.settings import FloatType, MeshSettings, OptimSettings, RunSettings, result_settings
from compositionality.train.sft_settings import SftTrainerSettings
from compositionality.train.tiny.corpus import Corpus, Mix, corpus_tokenizer
from compositionality.train.tiny.model import TinyConfig, tiny_shape
from compositionality.validation import check_ranges

SHORTEST_ROW = 64


@dataclass
class Packing:
    """``rows`` rows of ``length`` tokens a step; exchanges follow one another in a row, attention is not reset."""

    rows: PositiveInt = 8  # rows of a step
    length: PositiveInt = 192  # tokens of a row


@dataclass
class PretrainSettings:
    """Settings of ``examples/pretrain_tiny.py``. ``workers`` make text ahead of time, on spare cores."""

    output: NoEffect[NonEmptyStr] = REQUIRED  # model folder
    steps: PositiveInt = 14000  # updates
    optimizer: Annotated[str, OneOf(("adamw", "muon"))] = "adamw"  # muon: for the hidden matrices (mesh.shard=false)
    learning_rate: PositiveFloat = 4e-3  # highest, of AdamW; Muon's is five times as high
    warmup: NonNegativeInt = 100  # updates over which the rate rises
    weight_decay: NonNegativeFloat = 0.01  # of AdamW
    drop: list[NonNegativeInt] = field(default_factory=lambda: [0, 3])  # target functions that are left out
    mix: Mix = field(default_factory=Mix)  # what the text is made of
    packing: Packing = field(default_factory=Packing)  # size of a step
    model: TinyConfig = field(default_factory=TinyConfig)  # shape of the model
    seed: Seed = 0  # of weights and text
    mesh: NoEffect[MeshSettings] = field(default_factory=lambda: MeshSettings(shard=False))  # how processes share it
    dtype: FloatType = "float32"  # of the computation
    threads: NoEffect[PositiveInt] = 1  # of each process, on a CPU
    workers: NoEffect[NonNegativeInt] = 0  # processes that make text ahead of time
    save_every: NoEffect[PositiveInt] = 500  # steps between checkpoints
    log_every: NoEffect[PositiveInt] = 50  # steps between rows of metrics.jsonl
    run: NoEffect[RunSettings] = field(default_factory=RunSettings)  # where it computes
    force: NoEffect[bool] = False  # replace a result that was made from something else


def check(settings: PretrainSettings) -> Recipe:
    """Return the recipe. UserError for what no run can have, this machine cannot hold, or replaces a result."""
    recipe = make_recipe(settings)
    model, packing = tiny_shape(settings.model, len(corpus_tokenizer(settings.mix))), settings.packing
    ranks = ranks_of(settings.run)
    needs = pretraining_needs(model, settings.mesh, settings.dtype, packing.rows, packing.length, ranks)
    check_target(Path(settings.output), recipe, force=settings.force)
    check_here(needs, run_path(Path(settings.output)), settings.run.device)
    return recipe


def make_recipe(settings: PretrainSettings) -> Recipe:
    """Return what the model is made from. UserError for settings that no run can have."""
    check_ranges(settings)
    check_mesh(settings.mesh, settings.dtype, settings.run, "dtype")
    if settings.optimizer == "muon" and (settings.mesh.shard or settings.mesh.tensor > 1):
        raise UserError(
            "optimizer=muon: needs whole matrices; set mesh.shard=false and mesh.tensor=1, or optimizer=adamw"
        )
    prior_functions(settings.mix.prior_functions)
    Corpus(settings.mix, settings.drop)
    shape = settings.model
    if shape.width % shape.heads or shape.head_width % 2:
        raise UserError(
            f"model: width={shape.width} must be a multiple of heads={shape.heads}, head_width={shape.head_width} even"
        )
    ranks = world_size(settings.run) // settings.mesh.tensor
    if settings.packing.rows < ranks or settings.packing.length < SHORTEST_ROW:
        raise UserError(f"packing: needs a row for each of {ranks} processes, of at least {SHORTEST_ROW} tokens")
    if not 0 <= settings.mix.total() < 1:
        raise UserError("the shares of mix add up to 1 or more; leave some for the definitions of target functions")
    return Recipe("pretrain_tiny", result_settings(settings))


def model_of(run: Path) -> Path:
    """Return the model that the run in this folder makes."""
    return run.with_name(run.name.removesuffix(".run"))


def optim(settings: PretrainSettings) -> OptimSettings:
    """Return AdamW for training from scratch: a high rate that falls slowly."""
    return OptimSettings(
        lr=settings.learning_rate,
        beta2=0.98,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup,
        decay_power=0.7,
    )


def trainer(settings: PretrainSettings) -> SftTrainerSettings:
    return SftTrainerSettings(save_every=settings.save_every, log_every=settings.log_every, keep=1)
