"""Whole weights of a sharded policy; checkpoints of model and optimizer that any number of ranks can load."""

import json
import pickle
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from compositionality.data.artefact import write_text
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError
from compositionality.train.common.checkpoints import folder, mark_complete
from compositionality.train.common.interrupts import interrupt_afterwards
from compositionality.train.common.lora import whole_weights
from compositionality.train.common.metrics import DAMAGED, STEP_ROW
from compositionality.train.common.model_texts import write_for_both_generations
from compositionality.train.common.processes import rank
from compositionality.train.common.safe_loading import CheckpointPlanner, CheckpointReader

STATE = "state.json"
MODEL_FOLDER = "huggingface"
warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # one process is meant to be one


def weight_buckets(policy: Any, megabytes: int) -> Iterator[list[tuple[str, Tensor]]]:
    """All weights under their Hugging Face names, whole, in buckets of about ``megabytes``. A collective call."""
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
        policy.model.generation_config.save_pretrained(target)
        tokenizer.save_pretrained(target)
        write_for_both_generations(target)
        save_torch_state_dict(weights, target)


@interrupt_afterwards()
def save_checkpoint(
    steps: Path,
    step: int,
    policy: Any,
    optimizer: torch.optim.Optimizer,
    tokenizer: Any,
    *,
    state: Mapping[str, Any],
    row: Mapping[str, Any],
) -> None:
    """``steps``/global_step_N: model and optimizer (DCP), the model as a Hugging Face folder, ``state`` (JSON types),
    the step's ``row`` of metrics; marked complete at the end. A collective call."""
    import torch.distributed.checkpoint as dcp

    path = folder(steps, step)
    dcp.save(distributed_state(policy, optimizer), checkpoint_id=path)
    export(policy, tokenizer, path / MODEL_FOLDER)
    if rank() == 0:
        write_text(path / STATE, json.dumps(state))
        write_text(path / STEP_ROW, json.dumps(row))
        mark_complete(steps, step)
    if dist.is_initialized():
        dist.barrier()


@interrupt_afterwards()
def load_checkpoint(path: Path, policy: Any, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
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


def distributed_state(policy: Any, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Weights and Adam's moments by parameter name, so that they fit any grouping and any mesh."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    options = StateDictOptions(flatten_optimizer_state_dict=True)
    model, moments = get_state_dict(policy, optimizer, options=options)
    return {"model": model, "optimizer": moments}
