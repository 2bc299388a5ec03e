"""Export a sharded checkpoint of verl (FSDP2) as a Hugging Face folder with the very same weights.

verl's own ``hf_model`` in ``save_contents`` writes the same bytes of weights, but with LoRA unmerged ones under peft's
names, which no reader takes, beside a config.json that says bfloat16 of float32 weights, and into every checkpoint,
since the best is known only later: a third more disk, and the whole model in the memory of rank 0. verl's merger rounds
to bfloat16. Here tensors are read from memory-mapped shards one after the other, written, and read again.
"""

import json
import logging
import pickle
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.data.artefact import Recipe, check_target, is_to_be_checked, make, write_text
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonEmptyStr
from compositionality.train.lora import merged, stored
from compositionality.train.run_folder import HASHES
from compositionality.train.settings import FloatType

SHARD_BYTES = 4 * 2**30
PEFT, LORA = "base_model.model.", "lora_train_meta.json"
"""The prefix that peft puts before names; verl's file of rank and alpha."""


@dataclass
class ExportSettings:
    """Settings of ``examples/export_checkpoint.py``."""

    checkpoint: NonEmptyStr = REQUIRED  # OUT/steps/global_step_N of SFT or RL
    output: NonEmptyStr = REQUIRED  # model folder to make
    dtype: FloatType = "float32"  # of the weights
    force: bool = False  # replace a result that was made from something else


def check(settings: ExportSettings) -> None:
    """Dry run: check the place of the result, and the checkpoint if it exists."""
    inputs = {"checkpoint": Path(settings.checkpoint)}
    if is_to_be_checked(settings.checkpoint, dry=True):
        inputs = _inputs(find_state(Path(settings.checkpoint)))
    check_target(Path(settings.output), _recipe(settings, inputs), force=settings.force)


def export_step(settings: ExportSettings) -> None:
    """Export one checkpoint as an artefact of its own."""
    source, target = find_state(Path(settings.checkpoint)), Path(settings.output)
    recipe = _recipe(settings, _inputs(source))
    if facts := make(target, recipe, lambda folder: export(source, folder, settings.dtype), force=settings.force):
        print(f"{target}: {facts['parameters']:,} parameters, {settings.dtype}, verified")


def _inputs(source: Path) -> dict[str, Path]:
    return {path.name: path for path in [*state_files(source), source / "huggingface"]}


def _recipe(settings: ExportSettings, inputs: Mapping[str, Path]) -> Recipe:
    return Recipe("export_checkpoint", {"dtype": settings.dtype}, inputs)


def export(source: Path, target: Path, dtype: str = "float32") -> dict[str, Any]:
    """Write ``source`` (a checkpoint folder) as a model folder ``target`` and check it; figures for its manifest."""
    source = find_state(source)
    weights = Weights(source)
    names = weight_names(source / "huggingface", weights.parts)
    target.mkdir(parents=True)
    copy_texts(source / "huggingface", target, dtype)
    parameters = write_weights(weights, names, target, dtype)
    return {"parameters": parameters, "dtype": dtype, "checkpoint": source.name}


def find_state(checkpoint: Path) -> Path:
    """Return the folder with the model's state: the checkpoint itself (SFT) or its ``actor`` (RL)."""
    for folder in (checkpoint, checkpoint / "actor"):
        if (folder / "fsdp_config.json").is_file():
            return folder
    if not checkpoint.is_dir():
        raise UserError(f"{checkpoint}: no such folder; give …/steps/global_step_N of a run of verl")
    if (checkpoint / HASHES).is_file():
        raise UserError(f"{checkpoint}: of engine=single, which has its model folder in it: {checkpoint}/huggingface")
    raise UserError(f"{checkpoint}: no checkpoint of verl (fsdp_config.json is missing); give …/steps/global_step_N")


def state_files(source: Path) -> list[Path]:
    """Return the model's shards in the order of ranks; UserError if one is missing."""
    ranks = read_json_object(source / "fsdp_config.json", "use another checkpoint", {"world_size": int})["world_size"]
    paths = [source / f"model_world_size_{ranks}_rank_{rank}.pt" for rank in range(ranks)]
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path}: missing shard of a checkpoint; use another checkpoint")
    return paths


class Weights:
    """The weights of a checkpoint by their Hugging Face names; adapters are merged as they are read."""

    def __init__(self, source: Path) -> None:
        # It warns that a mesh was unpickled outside a process group, which is the point here.
        logging.getLogger("torch.distributed.device_mesh").setLevel(logging.ERROR)
        states = map(load_state, state_files(source))
        self.shards = [{name.removeprefix(PEFT): tensor for name, tensor in state.items()} for state in states]
        self.parts = stored(self.shards[0])
        self.scale = 0.0
        if (source / LORA).is_file():
            content = read_json_object(source / LORA, "use another checkpoint", {"r": int, "lora_alpha": int})
            self.scale = content["lora_alpha"] / content["r"]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a weight, that of the whole of one which is sharded."""
        return tuple(self.shards[0][self.parts[name][0]].shape)

    def read(self, name: str, dtype: str) -> Any:
        import torch

        tensor = merged(*(join([shard[part] for shard in self.shards]) for part in self.parts[name]), scale=self.scale)
        return (tensor.to(getattr(torch, dtype)) if tensor.is_floating_point() else tensor).contiguous()


def load_state(path: Path) -> dict[str, Any]:
    """Return the tensors and plain data of one file, memory-mapped. UserError if it is damaged or would run code."""
    import torch

    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:
        raise UserError(f"{path}: holds more than tensors and would run code when read; use another one") from error
    except (RuntimeError, EOFError, OSError) as error:
        raise UserError(f"{path}: damaged checkpoint; use another one") from error
    return state


def join(pieces: Sequence[Any]) -> Any:
    """Return one whole tensor from what each rank holds of it."""
    import torch
    from torch.distributed.tensor import DTensor

    piece = pieces[0]
    if not isinstance(piece, DTensor):
        return piece
    if len(piece.placements) != 1:
        raise UserError("this checkpoint is replicated over groups of GPUs (fsdp_size); export takes plain FSDP2")
    placement = piece.placements[0]
    if placement.is_replicate():
        return piece.to_local()
    return torch.cat([piece.to_local() for piece in pieces], dim=placement.dim)


def weight_names(folder: Path, saved: Collection[str]) -> list[str]:
    """Return the names of the weights to write: those that transformers expects, tied ones once."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    buffers = model.state_dict().keys() - dict(model.named_parameters(remove_duplicate=False)).keys()
    expected = sorted({name for name, _ in model.named_parameters()} | buffers)
    if missing := [name for name in expected if name not in saved]:
        raise UserError(f"{folder.parent}: the checkpoint lacks {missing[0]} ({len(missing)} weights in all)")
    return expected


def copy_texts(source: Path, target: Path, dtype: str) -> None:
    """Copy configuration, tokenizer and chat template; the configuration tells the true dtype."""
    for path in sorted(source.iterdir()):
        if path.is_file() and path.suffix != ".safetensors" and not path.name.endswith(".index.json"):
            shutil.copyfile(path, target / path.name)
    config = read_json_object(target / "config.json", "use another checkpoint")
    write_text(target / "config.json", json.dumps(config | {"dtype": dtype}))
    from compositionality.train.checkpoint import write_for_both_generations  # it imports torch

    write_for_both_generations(target)


def write_weights(weights: Weights, names: Sequence[str], target: Path, dtype: str) -> int:
    """Write safetensors files of a few GB each, with an index if there is more than one; return the parameters.

    Every file is read again, and every number compared with the shards.
    """
    import torch
    from huggingface_hub import split_torch_state_dict_into_shards
    from safetensors import safe_open
    from safetensors.torch import save_file

    shapes = {name: torch.empty(weights.shape(name), dtype=getattr(torch, dtype), device="meta") for name in names}
    plan = split_torch_state_dict_into_shards(shapes, max_shard_size=SHARD_BYTES)
    for file, group in plan.filename_to_tensors.items():
        path = target / file
        save_file({name: weights.read(name, dtype) for name in group}, str(path), metadata={"format": "pt"})
        with safe_open(str(path), "pt") as stream:
            for name in group:
                if not torch.equal(weights.read(name, dtype), stream.get_tensor(name)):
                    raise UserError(f"{path}: {name} was not written as it is in the checkpoint; check the disk")
    if plan.is_sharded:
        index = {"metadata": plan.metadata, "weight_map": plan.tensor_to_filename}
        write_text(target / "model.safetensors.index.json", json.dumps(index, indent=1, sort_keys=True) + "\n")
    return sum(tensor.numel() for tensor in shapes.values())
