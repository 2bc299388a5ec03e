"""What can be known to go wrong before the first step, in one line each."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from compositionality.data.artefact import is_to_be_checked
from compositionality.errors import UserError
from compositionality.rollout.model_folder import check_context, check_model
from compositionality.train.chat_rows import Lengths, check_template, measure, read_rows
from compositionality.train.lora import check_adapters
from compositionality.train.settings import LoraSettings
from compositionality.train.verl.memory import check_training

REFUSALS = (AssertionError, ValueError, TypeError, NotImplementedError, HydraException, OmegaConfBaseException)


def check_lengths(path: Path, lengths: Lengths, limit: int, truncation: str) -> None:
    """Rows over the limit are refused, or reported where they are to be cut."""
    if not lengths.over:
        return
    message = lengths.describe(path, limit)
    if truncation == "error":
        raise UserError(
            f"{message}; raise data.max_length, filter the rows, or cut their ends with verl.data.truncation=right"
        )
    print(f"{message}; their {'ends' if truncation == 'right' else 'beginnings'} are cut", flush=True)


def check_settings(config: DictConfig, ranks: int) -> None:
    """Settings that verl does not take, on ``ranks`` processes. Neither the model nor the rows need be there."""
    batch, shared = config.data.train_batch_size, config.engine.ulysses_sequence_parallel_size
    if ranks % shared:
        raise UserError(f"verl.engine.ulysses_sequence_parallel_size={shared} does not divide the {ranks} processes")
    if batch % (ranks // shared):
        raise UserError(f"trainer.batch_rows={batch} is not a multiple of the {ranks // shared} processes")
    if config.data.use_dynamic_bsz and config.data.max_token_len_per_gpu < config.data.max_length:
        raise UserError(
            f"trainer.micro_batch_tokens={config.data.max_token_len_per_gpu} is less than "
            f"data.max_length={config.data.max_length}: a long row would not fit into a micro-batch"
        )
    for key, value in {"pad_mode": "no_padding", "apply_chat_template_kwargs": {}}.items():
        if config.data.custom_cls.path and config.data[key] != value:
            raise UserError(
                f"verl.data.{key}={config.data[key]}: the rows that both engines read do not have it; "
                "verl.data.custom_cls.path=null takes verl's own"
            )
    check_as_verl_does(config)


def check_as_verl_does(config: DictConfig) -> None:
    """UserError for what verl's own classes of settings refuse. The first call imports verl, 4 s of processor time."""
    with verls_refusals():
        from verl.utils.config import omega_conf_to_dataclass

        for part in (config.engine, config.optim, config.checkpoint):
            omega_conf_to_dataclass(part)


@contextmanager
def verls_refusals() -> Iterator[None]:
    """What verl prints is dropped, what it raises becomes a UserError of one line."""
    try:
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except REFUSALS as error:
        reason = error.__cause__ or error  # Hydra's names the class that it could not make
        raise UserError(f"verl refuses its configuration: {' '.join(str(reason).split())}") from error


def check_targets(folder: Path, model: DictConfig) -> None:
    """UserError for layers to adapt that the model in ``folder`` does not have."""
    targets = model.get("target_modules") or []
    check_adapters(folder, LoraSettings(model.lora_rank, targets=[] if isinstance(targets, str) else list(targets)))


def check_model_and_data(config: DictConfig) -> None:
    """All checks of an SFT run that need its model and its files; in a dry run of those that are there."""
    dry = config.run.dry_run
    if not is_to_be_checked(config.run.model, dry=dry):
        return
    model = check_model(Path(config.run.model))
    check_context(model, config.data.max_length, "data.max_length")
    check_template(model.path, model.tokenizer)
    check_targets(model.path, config.model)
    columns = (config.data.messages_key, config.data.prompt_key, config.data.response_key)
    counts = {}
    for path in (*config.run.train_files, *config.run.val_files):
        if is_to_be_checked(path, dry=dry):
            tokens = [len(row.tokens) for row in read_rows(Path(path), model.tokenizer, columns)]
            lengths = measure(tokens, config.data.max_length)
            check_lengths(Path(path), lengths, config.data.max_length, config.data.truncation)
            counts[path] = lengths.rows
    if counts.keys() >= set(config.run.train_files):
        rows, batch = sum(counts[path] for path in config.run.train_files), config.data.train_batch_size
        if rows < batch:
            files = ", ".join(config.run.train_files)
            raise UserError(f"{files}: {rows} rows are less than one batch; trainer.batch_rows={batch}")
    check_training(config)
