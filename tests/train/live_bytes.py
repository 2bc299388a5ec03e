"""How many bytes of tensors are alive, and were at most, while a piece of eager torch code runs."""

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):  # type: ignore[misc]
    """Counts every storage that an operation returns until it is freed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.known: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                self.add(tensor)
        self.peak = max(self.peak, self.now)
        return out

    def add(self, tensor: torch.Tensor) -> None:
        """Count the tensor's storage, unless it is known."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.known:
            self.known[key] = storage.nbytes()
            self.now += storage.nbytes()
            weakref.finalize(storage, self.drop, key)

    def drop(self, key: int) -> None:
        """Called when the storage is freed."""
        self.now -= self.known.pop(key)
