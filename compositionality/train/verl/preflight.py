"""What can be known to go wrong before the first step, in one line each."""

import json
import math
import shutil
from pathlib import Path

from omegaconf import DictConfig

from compositionality.data.artefact import is_to_be_checked
from compositionality.errors import UserError
from compositionality.gpus import count_gpus
from compositionality.rollout.model_folder import check_context, check_model
from compositionality.train.common.chat_rows import Lengths, check_rows, check_template

BYTES_PER_WEIGHT = 12  # fp32 weight and Adam's two moments, as verl saves them
TRAINING_BYTES_PER_WEIGHT = 16  # the same and the gradient
GB = 1e9


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
    """The global batch must be made of whole rows per process, a micro-batch must hold the longest row."""
    batch = config.data.train_batch_size
    if batch % ranks:
        raise UserError(f"trainer.batch_rows={batch} is not a multiple of the {ranks} processes")
    if config.data.use_dynamic_bsz and config.data.max_token_len_per_gpu < config.data.max_length:
        raise UserError(
            f"trainer.micro_batch_tokens={config.data.max_token_len_per_gpu} is less than "
            f"data.max_length={config.data.max_length}: a long row would not fit into a micro-batch"
        )


def check_batches(config: DictConfig, rows: int) -> None:
    """There must be a whole batch."""
    batch = config.data.train_batch_size
    if rows < batch:
        raise UserError(f"{config.run.train_file}: {rows} rows are less than one batch; trainer.batch_rows={batch}")


def check_disk(out: Path, weights: int, keep: int) -> None:
    """Room for the checkpoints that lie there at once (one more than are kept, while saving) and the export."""
    need = weights * (BYTES_PER_WEIGHT * (keep + 1) + 4)
    there = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) if out.is_dir() else 0
    parent = next(path for path in [out, *out.absolute().parents] if path.exists())
    free = shutil.disk_usage(parent).free + there
    if need > free:
        raise UserError(
            f"{out}: needs {need / GB:.1f} GB of disk ({weights * BYTES_PER_WEIGHT / GB:.1f} GB for each of "
            f"trainer.keep={keep} checkpoints, one more while saving, and the export), {free / GB:.1f} GB are free; "
            "free some or choose another trainer.output"
        )


def check_gpu_memory(weights: int, ranks: int, offload: bool) -> None:
    """Weights, gradients and Adam's moments must fit, spread over all GPUs."""
    import torch

    total = min(torch.cuda.get_device_properties(number).total_memory for number in range(torch.cuda.device_count()))
    need = weights * TRAINING_BYTES_PER_WEIGHT // ranks
    if need > total and not offload:
        raise UserError(
            f"{need / GB:.0f} GB on each of {ranks} GPUs for weights, gradients and Adam, but a GPU has "
            f"{total / GB:.0f} GB; use more GPUs, or verl.engine.param_offload=true verl.engine.optimizer_offload=true"
        )


def count_weights(model: Path) -> int:
    """Number of weights of a model folder, from the headers of its safetensors files."""
    return sum(_tensor_sizes(path) for path in model.glob("*.safetensors"))


def check_model_and_data(config: DictConfig, ranks: int) -> None:
    """All checks of an SFT run that need its model and its files; in a dry run of those that are there."""
    dry = config.run.dry_run
    if not is_to_be_checked(config.run.model, dry=dry):
        return
    model = check_model(Path(config.run.model))
    check_context(model, config.data.max_length, "data.max_length")
    check_template(model.path, model.tokenizer)
    for path in filter(None, (config.run.train_file, config.run.val_file)):
        if not is_to_be_checked(path, dry=dry):
            continue
        lengths = check_rows(Path(path), model.tokenizer, config.data.max_length)
        check_lengths(Path(path), lengths, config.data.max_length, config.data.truncation)
        if path == config.run.train_file:
            check_batches(config, lengths.rows)
    weights = count_weights(model.path)
    check_disk(Path(config.run.output), weights, config.run.keep)
    if config.run.device == "gpu" and not config.run.ray_address and (not dry or count_gpus()):  # as in GRPO
        check_gpu_memory(weights, ranks, config.engine.param_offload and config.engine.optimizer_offload)


def _tensor_sizes(path: Path) -> int:
    with path.open("rb") as stream:
        header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    shapes = (entry["shape"] for name, entry in header.items() if name != "__metadata__")
    return sum(math.prod(shape) for shape in shapes)
