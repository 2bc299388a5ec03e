"""Checkpoints of a sharded policy and its optimizer, which any number of ranks can load; folders of whole models.

Checkpoints are pickles, which can run anything: they are read as tensors and plain data, and run nothing.
"""

import json
import os
import pickle
import shutil
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import Any, Self

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import ReadItem
from torch.distributed.tensor import DTensor  # its module registers the classes of sharded tensors as safe
from torch.optim import Optimizer

from compositionality.data.artefact import Recipe, exclusive, write_text
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError
from compositionality.ranges import ALL, CountOrAll
from compositionality.train.dist import on_first_rank, rank
from compositionality.train.metrics import DAMAGED, STEP_ROW, step_row
from compositionality.train.run_folder import (
    HASHES,
    OR,
    fingerprint,
    folder,
    is_finished,
    mark_complete,
    prune,
    publish_models,
    record_score,
    resume,
    validated_on,
    write_seal,
)

Figures = Mapping[str, Any]
STATE = "state.json"
MODEL_FOLDER = "huggingface"
warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # one process is meant to be one


class RunFolder:
    """The folder of a run for all its ranks: methods are called on every rank, and the first writes.

    As a context it is held against other processes: longer than by ``artefact.make``, which keeps no checkpoints.
    """

    def __init__(
        self, out: Path, recipe: Recipe, *, force: bool, keep: CountOrAll = ALL, keep_best: bool = False
    ) -> None:
        self.out, self.steps, self.recipe, self.force = out, out / "steps", recipe, force
        self.keep, self.keep_best = keep, keep_best
        self.held = ExitStack()

    def is_finished(self) -> bool:
        """Return whether final/ exists. UserError if it was made from something else."""
        return on_first_rank(lambda: is_finished(self.out / "final", self.recipe, force=self.force))

    def __enter__(self) -> Self:
        on_first_rank(lambda: self.held.enter_context(exclusive(self.out)))
        return self

    def __exit__(self, *_: object) -> None:
        self.held.close()

    def resume(self, val_files: Sequence[str] | None = None, *numbers: int | None) -> int:
        """Return the step to go on from, 0 for a start. Scores by other validation problems or numbers are dropped."""
        basis = "" if val_files is None else validated_on(val_files, *numbers)
        return on_first_rank(lambda: resume(self.out, self.recipe, force=self.force, validation=basis))

    def save(
        self, step: int, policy: Any, optimizer: Optimizer, tokenizer: Any, *, state: Figures, row: Figures
    ) -> None:
        """Write a checkpoint; complete ones that are neither among the last ``keep`` nor the best are deleted."""
        save_checkpoint(self.steps, step, policy, optimizer, tokenizer, state=state, row=row)
        if rank() == 0:
            prune(self.steps, self.keep, keep_best=self.keep_best)

    def load(self, step: int, policy: Any, optimizer: Optimizer) -> tuple[dict[str, Any], dict[str, Any]]:
        """Restore policy and optimizer; return the state and the row of metrics that were saved with them."""
        checkpoint = folder(self.steps, step)
        return load_checkpoint(checkpoint, policy, optimizer), step_row(checkpoint)

    def record_score(self, step: int, score: float) -> None:
        """Keep the score of a validation: the checkpoint with the highest is the best."""
        if rank() == 0:
            record_score(self.steps, step, score)

    def publish(self) -> None:
        """Copy the models of the last checkpoint and, if it is kept, of the best one to final/ and best/."""
        on_first_rank(lambda: publish_models(self.out, self.recipe, copy_model, keep_best=self.keep_best))


@contextmanager
def interrupt_afterwards() -> Iterator[None]:
    """Hold SIGINT back until the body is done, then raise KeyboardInterrupt; a second one stops the body at once.

    torch makes an error of its own of a KeyboardInterrupt. Without effect outside the main thread, and where SIGINT is
    handled in a way of its own.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    count = 0

    def hold(_number: int, _frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    except BaseException as error:
        if count > 1:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if count:
        raise KeyboardInterrupt


def whole_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield all weights under their Hugging Face names, gathered and merged one at a time. A collective call."""
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def whole(name: str) -> Tensor:
        return weights[name].full_tensor() if isinstance(weights[name], DTensor) else weights[name]

    if not any("lora_" in name for name in weights):
        yield from ((name, whole(name)) for name in weights)
        return
    from compositionality.train.lora import merged, scale_of, stored

    scale = scale_of(model)
    for name, parts in stored(weights).items():
        yield name, merged(*map(whole, parts), scale=scale)


def weight_buckets(policy: Any, megabytes: int) -> Iterator[list[tuple[str, Tensor]]]:
    """Yield all weights under their Hugging Face names, whole, in buckets of about ``megabytes``. A collective call."""
    bucket: list[tuple[str, Tensor]] = []
    size = 0
    for name, whole in whole_weights(policy.model):
        if bucket and size + whole.nbytes > megabytes << 20:
            yield bucket
            bucket, size = [], 0
        bucket.append((name, whole))
        size += whole.nbytes
    yield bucket


def export(policy: Any, tokenizer: Any, target: Path) -> None:
    """Write a Hugging Face folder with the float32 weights. A collective call; the first rank writes."""
    weights: dict[str, Tensor] = {}
    for bucket in weight_buckets(policy, 512):
        if rank() == 0:
            # A clone: what was gathered from uneven shards is a view of something larger.
            weights |= {name: weight.cpu().clone(memory_format=torch.contiguous_format) for name, weight in bucket}
    if rank() == 0:
        from huggingface_hub import save_torch_state_dict

        target.mkdir(parents=True, exist_ok=True)
        policy.model.config.architectures = [type(policy.model).__name__]  # vLLM and verl choose their code by it
        policy.model.config.save_pretrained(target)
        policy.model.generation_config.to_json_file(target / "generation_config.json")  # as it is, valid or not
        tokenizer.save_pretrained(target)
        write_for_both_generations(target)
        save_torch_state_dict(weights, target)


@interrupt_afterwards()
def save_checkpoint(
    steps: Path, step: int, policy: Any, optimizer: Optimizer, tokenizer: Any, *, state: Figures, row: Figures
) -> None:
    """Write ``steps``/global_step_N: model and optimizer (DCP), a Hugging Face folder, ``state`` (JSON types),
    the step's ``row`` of metrics; marked complete at the end. A collective call.

    A complete one of this step holds these weights already: its state alone is replaced, and it stays complete.
    """
    import torch.distributed.checkpoint as dcp

    path = folder(steps, step)
    if on_first_rank((path / HASHES).is_file):
        on_first_rank(lambda: replace_sealed(path / STATE, lambda partial: write_text(partial, json.dumps(state))))
        return
    dcp.save(distributed_state(policy, optimizer), checkpoint_id=path)
    export(policy, tokenizer, path / MODEL_FOLDER)
    if rank() == 0:
        write_text(path / STATE, json.dumps(state))
        write_text(path / STEP_ROW, json.dumps(row))
        mark_complete(steps, step)
    if dist.is_initialized():
        dist.barrier()


def replace_sealed(file: Path, write: Callable[[Path], object]) -> None:
    """Replace a file at the top of a complete checkpoint, which stays complete, by what ``write(path)`` makes.

    Until the new file is in its place, the seal holds for either.
    """
    path, partial = file.parent, file.with_name(f".{file.name}.partial")
    sealed = read_json_object(path / HASHES, DAMAGED)
    write(partial)
    new = fingerprint(partial)
    write_seal(path, sealed | {file.name: f"{sealed[file.name]}{OR}{new}"})
    os.replace(partial, file)
    write_seal(path, sealed | {file.name: new})


@interrupt_afterwards()
def load_checkpoint(path: Path, policy: Any, optimizer: Optimizer) -> dict[str, Any]:
    """Restore model and optimizer, on any number of ranks; returns the content of ``state.json``."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_state_dict

    state = distributed_state(policy, optimizer)
    try:
        dcp.load(state, storage_reader=CheckpointReader(path), planner=CheckpointPlanner())
    except (RuntimeError, ValueError, KeyError, pickle.UnpicklingError, dcp.api.CheckpointException) as error:
        raise UserError(f"{path}: not a checkpoint of this model: {' '.join(str(error).split())[:200]}") from error
    options = StateDictOptions(flatten_optimizer_state_dict=True)
    set_state_dict(
        policy, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"], options=options
    )
    return read_json_object(path / STATE, DAMAGED)


def copy_model(checkpoint: Path, target: Path) -> dict[str, Any]:
    """Copy the model folder that every checkpoint holds."""
    shutil.copytree(checkpoint / MODEL_FOLDER, target)
    return {}


def distributed_state(policy: Any, optimizer: Optimizer) -> dict[str, Any]:
    """Return weights and Adam's moments by parameter name, so that they fit any grouping and any mesh."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    options = StateDictOptions(flatten_optimizer_state_dict=True)
    is_new = not optimizer.state
    model, moments = get_state_dict(policy, optimizer, options=options)
    for state in optimizer.state.values() if is_new else ():  # filled by a step of zero gradients, which Adam counted
        state["step"].zero_()
    return {"model": model, "optimizer": moments}


_METADATA = "torch.distributed.checkpoint.metadata"
_METADATA_CLASSES = {
    *((_METADATA, name) for name in ("Metadata", "MetadataIndex", "StorageMeta", "TensorProperties")),
    *((_METADATA, name) for name in ("BytesStorageMetadata", "ChunkStorageMetadata", "TensorStorageMetadata")),
    (_METADATA, "_MEM_FORMAT_ENCODING"),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    ("torch.serialization", "_get_layout"),
    ("torch", "Size"),
    ("pathlib", "PosixPath"),
}


class CheckpointReader(FileSystemReader):  # type: ignore[misc]
    """Reads a distributed checkpoint whose ``.metadata`` holds what torch writes there and nothing else.

    pickle.UnpicklingError otherwise.
    """

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        with Path(self._get_metadata_path(kwargs.get("rank"))).open("rb") as stream:
            _MetadataUnpickler(stream).load()
        return super().read_metadata(*args, **kwargs)


class CheckpointPlanner(DefaultLoadPlanner):  # type: ignore[misc]
    """Takes plain data beside tensors, and no other object; pickle.UnpicklingError otherwise."""

    def load_bytes(self, read_item: ReadItem, value: BytesIO) -> None:
        torch.load(value, weights_only=True)
        value.seek(0)
        super().load_bytes(read_item, value)


class _MetadataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        is_dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        if is_dtype or (module, name) in _METADATA_CLASSES:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a checkpoint")


# ---- the texts of a model folder

FULL, LOCAL = "full_attention", "sliding_attention"
OF_NO_SCALING = {"rope_theta", "partial_rotary_factor"}


def write_for_both_generations(folder: Path) -> None:
    """Add to the configurations of model and tokenizer in ``folder`` what transformers 4 reads; 5 reads as before.

    transformers 5 writes the base of rotary positions inside ``rope_parameters``, where 4 does not look: it would take
    its own default and answer wrong without a word. The tokenizer's class and extra tokens have new names too.
    """
    changes = {"config.json": with_old_config_keys, "tokenizer_config.json": with_old_tokenizer_words}
    for file, change in ((folder / name, change) for name, change in changes.items()):
        if file.is_file():
            content = change(json.loads(file.read_text()))
            write_text(file, json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def with_old_config_keys(config: dict[str, Any]) -> dict[str, Any]:
    """Return ``config`` with ``rope_theta``, ``rope_scaling`` and ``torch_dtype``, also in configurations in it."""
    parts = {
        key: with_old_config_keys(value)
        for key, value in config.items()
        if key.endswith("_config") and isinstance(value, dict)
    }
    old = _old_rope_keys(config.get("rope_parameters") or {})
    if isinstance(config.get("dtype"), str):
        old["torch_dtype"] = config["dtype"]
    return {**config, **parts, **old}


def with_old_tokenizer_words(config: dict[str, Any]) -> dict[str, Any]:
    """Return ``config`` with a tokenizer class that both know, and extra special tokens by the name both read."""
    new = dict(config)
    if new.get("tokenizer_class") == "TokenizersBackend":
        new["tokenizer_class"] = "PreTrainedTokenizerFast"
    if isinstance(new.get("extra_special_tokens"), list):  # 4 takes a mapping under this name
        new["additional_special_tokens"] = new.pop("extra_special_tokens")
    return new


def _old_rope_keys(rope: dict[str, Any]) -> dict[str, Any]:
    """Return what 4 calls the rotary settings, which 5 keeps in one mapping, or in one for each kind of attention."""
    if isinstance(rope.get(FULL), dict):
        local = rope.get(LOCAL) or {}
        base = {"rope_local_base_freq": local["rope_theta"]} if "rope_theta" in local else {}
        return _old_rope_keys(rope[FULL]) | base
    old = {key: rope[key] for key in sorted(OF_NO_SCALING & rope.keys())}
    scaling = {key: value for key, value in rope.items() if key not in OF_NO_SCALING}
    if scaling and scaling != {"rope_type": "default"}:
        old["rope_scaling"] = scaling
    return old
