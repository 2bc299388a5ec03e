"""The settings of supervised fine-tuning with either engine, and their only defaults."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compositionality.data.artefact import Recipe, name_inputs, read_manifest
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, Effect, NoEffect, NonEmptyStr, OnlySingle, PositiveInt, Seed
from compositionality.train.settings import (
    ClusterSettings,
    Files,
    MeshSettings,
    ModelSettings,
    OptimSettings,
    Trainer,
    TrainerSettings,
    VerlsKeys,
    result_settings,
)
from compositionality.train.training_report import trained


@dataclass
class SftDataSettings:
    """Rows to learn from: files of whole chats, or of prompts and responses."""

    train_files: Files = REQUIRED  # parquet or JSON lines (.jsonl); the loss is on the assistant's turns
    val_files: Files = field(default_factory=list)  # of the same form; their loss is reported after each epoch
    messages_key: NonEmptyStr = "messages"  # column of whole chats
    prompt_key: NonEmptyStr = "prompt"  # of files without it: the column of prompts, text or chats
    response_key: NonEmptyStr = "response"  # and that of responses, text or one assistant's turn
    max_length: PositiveInt = 2048  # tokens of a row; longer ones are refused
    prompt_loss: OnlySingle[bool] = False  # the loss is on all tokens of a row, prompts too; that of val_files never
    seed: Seed = 1  # order of the rows, another one in every epoch

    def columns(self) -> tuple[str, str, str]:
        """Return the columns of chats, prompts and responses, as ``load_rows`` takes them."""
        return self.messages_key, self.prompt_key, self.response_key


@dataclass
class SftTrainerSettings(TrainerSettings):
    """The run: its folder, its length, and what is written how often. Steps count updates."""

    epochs: Effect[PositiveInt] = 2  # times that every row is seen
    steps: Effect[PositiveInt | None] = None  # exactly so many updates instead of whole epochs
    tokens: OnlySingle[Effect[PositiveInt | None]] = None  # instead, updates nearest to so many tokens, prompts too
    steps_of: str = ""  # instead: as many updates as this finished run of engine=single
    tokens_of: OnlySingle[str] = ""  # instead, as many tokens as that run
    part: str = "1/1"  # of steps_of and tokens_of: the K-th of N parts
    batch_rows: Effect[PositiveInt] = 128  # rows of an update, of all processes; single: fewer in the last of an epoch
    batch_tokens: OnlySingle[Effect[PositiveInt | None]] = None  # instead, rows with about so many trained tokens
    batch_of: OnlySingle[str] = ""  # instead, with as many as an update of this finished run has
    save_every: PositiveInt | None = None  # updates between checkpoints; null: one after each epoch
    log_every: OnlySingle[PositiveInt] = 1  # updates between rows of metrics.jsonl


@dataclass
class SftSettings:
    """Settings of ``examples/train_sft.py`` and ``compositionality/train/sft.py``."""

    engine: NoEffect[Trainer] = "single"  # single: compositionality/train/sft.py; verl: verl's SFT trainer
    model: ModelSettings = field(default_factory=ModelSettings)
    mesh: NoEffect[MeshSettings] = field(default_factory=MeshSettings)
    data: SftDataSettings = field(default_factory=SftDataSettings)
    optim: OptimSettings = field(
        default_factory=lambda: OptimSettings(lr=2e-5, beta2=0.95, warmup_steps=10, decay_power=1.0)
    )
    trainer: NoEffect[SftTrainerSettings] = field(default_factory=SftTrainerSettings)
    run: NoEffect[ClusterSettings] = field(default_factory=ClusterSettings)
    verl: VerlsKeys = field(default_factory=dict)  # its own keys by its own names, verl.KEY=value; come last
    force: NoEffect[bool] = False  # replace a result that was made from something else
    dry_run: NoEffect[bool] = False  # check the settings and show what would run


def settle_length(settings: SftSettings, *, dry: bool) -> None:
    """Set ``trainer.steps`` or ``tokens`` to those of the run that steps_of or tokens_of names, or to a part, and
    ``trainer.batch_tokens`` to those of the run that batch_of names.

    A dry run in which it is not finished leaves them. UserError for such a run, and for one that does not say.
    """
    trainer = settings.trainer
    if run := _trained(trainer.batch_of, dry=dry):
        trainer.batch_tokens, trainer.batch_of = max(1, round(run["loss_tokens"] / max(1, run["updates"]))), ""
    if run := _trained(trainer.steps_of or trainer.tokens_of, dry=dry):
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
    values = result_settings(settings)
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
