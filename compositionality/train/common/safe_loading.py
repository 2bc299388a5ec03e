"""Checkpoints are pickles, which can run anything: these readers take tensors and plain data, and run nothing."""

import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
import torch.distributed.tensor  # registers the classes of sharded tensors as safe
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import ReadItem

from compositionality.errors import UserError

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


def load_state(path: Path) -> dict[str, Any]:
    """The tensors and plain data of one file, memory-mapped. UserError if it is damaged or would run code."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:
        raise UserError(f"{path}: holds more than tensors and would run code when read; use another one") from error
    except (RuntimeError, EOFError, OSError) as error:
        raise UserError(f"{path}: damaged checkpoint; use another one") from error
    return state


class CheckpointReader(FileSystemReader):  # type: ignore[misc]
    """Reads a distributed checkpoint whose ``.metadata`` holds what torch writes there and nothing else.

    pickle.UnpicklingError otherwise.
    """

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint holds."""
        with Path(self._get_metadata_path(kwargs.get("rank"))).open("rb") as stream:
            _MetadataUnpickler(stream).load()
        return super().read_metadata(*args, **kwargs)


class CheckpointPlanner(DefaultLoadPlanner):  # type: ignore[misc]
    """Takes plain data beside tensors, and no other object; pickle.UnpicklingError otherwise."""

    def load_bytes(self, read_item: ReadItem, value: BytesIO) -> None:
        """Put one entry that is no tensor in its place."""
        torch.load(value, weights_only=True)
        value.seek(0)
        super().load_bytes(read_item, value)


class _MetadataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        is_dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        if is_dtype or (module, name) in _METADATA_CLASSES:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a checkpoint")
