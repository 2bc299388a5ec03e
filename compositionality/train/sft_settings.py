"""The settings of supervised fine-tuning with either engine, their only defaults, and what no run can have."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from compositionality.data.artefact import Recipe, name_inputs, read_manifest
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, CountOrAll, NonEmptyStr, PositiveInt, Seed
from compositionality.train.checks import NEEDS_VERL, check_loggers, check_lora, check_mesh, refuse_foreign_keys
from compositionality.train.run_folder import flatten
from compositionality.train.settings import (
    NOT_THE_RESULT,
    ClusterSettings,
    FloatType,
    Logger,
    MeshSettings,
    ModelSettings,
    OptimSettings,
    Trainer,
)
from compositionality.train.training_report import trained
from compositionality.validation import check_ranges

THE_RESULT = ("trainer.epochs", "trainer.steps", "trainer.tokens", "trainer.batch_rows", "trainer.batch_tokens")


@dataclass
class SftDataSettings:
    """Rows to learn from: files of whole chats, or of prompts and responses."""

    train_files: list[str] = REQUIRED  # parquet or JSON lines (.jsonl); the loss is on the assistant's turns
    val_files: list[str] = field(default_factory=list)  # of the same form; their loss is reported after each epoch
    messages_key: NonEmptyStr = "messages"  # column of whole chats
    prompt_key: NonEmptyStr = "prompt"  # of files without it: the column of prompts, text or chats
    response_key: NonEmptyStr = "response"  # and that of responses, text or one assistant's turn
    max_length: PositiveInt = 2048  # tokens of a row; longer ones are refused
    prompt_loss: bool = False  # single: the loss is on all tokens of a row, prompts too; that of val_files never
    seed: Seed = 1  # order of the rows, another one in every epoch

    def columns(self) -> tuple[str, str, str]:
        """Return the columns of chats, prompts and responses, as ``load_rows`` takes them."""
        return self.messages_key, self.prompt_key, self.response_key


@dataclass
class SftTrainerSettings:
    """The run: its folder, its length, and what is written how often. Steps count updates."""

    output: NonEmptyStr = REQUIRED  # run folder: final/ is the trained model
    epochs: PositiveInt = 2  # times that every row is seen
    steps: PositiveInt | None = None  # exactly so many updates instead of whole epochs
    tokens: PositiveInt | None = None  # single: instead, updates that come nearest to so many tokens, prompts too
    steps_of: str = ""  # instead: as many updates as this finished run of engine=single
    tokens_of: str = ""  # single: instead, as many tokens as that run
    part: str = "1/1"  # of steps_of and tokens_of: the K-th of N parts
    batch_rows: PositiveInt = 128  # rows of an update, over all processes; single: the last of an epoch may have fewer
    batch_tokens: PositiveInt | None = None  # single: instead, rows with about so many trained tokens, in any epoch
    batch_of: str = ""  # single: instead, with as many as an update of this finished run has
    micro_batch_tokens: PositiveInt = 16384  # tokens in one forward pass of a process, padding included
    save_every: PositiveInt | None = None  # updates between checkpoints; null: one after each epoch
    log_every: PositiveInt = 1  # updates between rows of metrics.jsonl
    keep: CountOrAll = 2  # checkpoints to keep, the last so many, or all
    threads: PositiveInt = 1  # of each process, on a CPU
    logger: list[Logger] = field(
        default_factory=list
    )  # tensorboard, wandb, verl's others; metrics.jsonl is always written
    export_dtype: FloatType = "float32"  # verl: of final/; float32 is exact


@dataclass
class SftSettings:
    """What ``examples/train_sft.py`` and ``compositionality/train/sft.py`` take."""

    engine: Trainer = "single"  # single: compositionality/train/sft.py; verl: verl's SFT trainer
    model: ModelSettings = field(default_factory=ModelSettings)
    mesh: MeshSettings = field(default_factory=MeshSettings)
    data: SftDataSettings = field(default_factory=SftDataSettings)
    optim: OptimSettings = field(
        default_factory=lambda: OptimSettings(lr=2e-5, beta2=0.95, warmup_steps=10, decay_power=1.0)
    )
    trainer: SftTrainerSettings = field(default_factory=SftTrainerSettings)
    run: ClusterSettings = field(default_factory=ClusterSettings)
    verl: dict[str, Any] = field(default_factory=dict)  # verl: its own keys by its own names, verl.KEY=value; come last
    force: bool = False  # replace a result that was made from something else
    dry_run: bool = False  # check the settings and show what would run


def check_settings(settings: SftSettings) -> None:
    """Raise UserError for settings that no run can have, with either engine."""
    check_ranges(settings)
    check_loggers(settings.trainer.logger, settings.engine)
    if not settings.data.train_files:
        raise UserError("data.train_files: give at least one file of rows")
    trainer = settings.trainer
    for keys in (("steps", "tokens", "steps_of", "tokens_of"), ("batch_tokens", "batch_of")):
        given = [key for key in keys if getattr(trainer, key)]
        if len(given) > 1:
            value = getattr(trainer, given[1])
            raise UserError(f"trainer.{given[1]}={value}: give trainer.{given[0]} or this, not both")
    match = re.fullmatch("([1-9][0-9]*)/([1-9][0-9]*)", trainer.part)
    if not match or int(match[1]) > int(match[2]):
        raise UserError(f"trainer.part={trainer.part}: give K/N, the K-th of N parts")
    if settings.engine == "single":
        refuse_foreign_keys(settings, NEEDS_VERL)
        check_mesh(settings.mesh, settings.model.dtype, settings.run)
        check_lora(settings.model, settings.mesh)


def settle_length(settings: SftSettings) -> None:
    """Set ``trainer.steps`` or ``tokens`` to those of the run that steps_of or tokens_of names, or to a part, and
    ``trainer.batch_tokens`` to those of the run that batch_of names.

    A dry run in which it is not finished leaves them. UserError for such a run, and for one that does not say.
    """
    trainer = settings.trainer
    if run := _trained(trainer.batch_of, dry=settings.dry_run):
        trainer.batch_tokens, trainer.batch_of = max(1, round(run["loss_tokens"] / max(1, run["updates"]))), ""
    if run := _trained(trainer.steps_of or trainer.tokens_of, dry=settings.dry_run):
        number, parts = map(int, trainer.part.split("/"))
        whole = run["updates" if trainer.steps_of else "tokens"]
        length = max(1, whole * number // parts - whole * (number - 1) // parts)
        trainer.steps, trainer.tokens = (length, None) if trainer.steps_of else (None, length)
        trainer.steps_of = trainer.tokens_of = ""


def _trained(name: str, *, dry: bool) -> dict[str, int] | None:
    """Return what a finished run trained on; None without a name, and in a dry run before it is finished."""
    if not name or (dry and not Path(name, "final").is_dir()):
        return None
    if not Path(name, "final").is_dir():
        raise UserError(f"{name}: not finished, and this trains as long as it did; finish that run first")
    return trained(Path(name, "metrics.jsonl"))


def settle_validation(settings: SftSettings) -> None:
    """Leave out validation files of folders of rows that were made without one (examples/filter_rollouts.py)."""
    folders = {Path(path).parent for path in settings.data.train_files if Path(path).is_file()}
    without = {folder for folder in folders if read_manifest(folder)}
    settings.data.val_files = [
        path for path in settings.data.val_files if Path(path).exists() or Path(path).parent not in without
    ]


def make_recipe(settings: SftSettings) -> Recipe:
    """Return what the trained weights depend on, but for the last bits: those also know how a batch is cut."""
    flat = flatten(asdict(settings))
    values = {key: value for key, value in flat.items() if key in THE_RESULT or not key.startswith(NOT_THE_RESULT)}
    if settings.trainer.batch_tokens is None:
        del values["trainer.batch_tokens"]
    values |= order_of(settings.data.train_files)
    return Recipe("sft", values, {"model": Path(settings.model.path), **train_inputs(settings.data.train_files)})


def order_of(paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the setting that says in which order several files of rows are read, each as often as it is named."""
    return {"train_files": name_inputs("train_files", paths)} if len(paths) > 1 else {}


def train_inputs(paths: Sequence[str]) -> dict[str, Path]:
    """Return the files of rows by name, as inputs of a recipe."""
    return dict(zip(name_inputs("train_files", paths), map(Path, paths), strict=True))
