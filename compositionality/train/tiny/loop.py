"""The pretraining loop's parts: one step, its learning rate, the batches, and progress that survives a kill."""

import ctypes
import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.train.tiny.batches import PackedBatches

CLIP = 1.0
SMOOTHING = 0.98
LOWEST_RATE = 1e-5
_PR_SET_PDEATHSIG = 1


@dataclass
class State:
    """Everything that training changes. ``loss`` is smoothed over about 50 steps."""

    model: Any
    optimizer: Any
    step: int = 0
    loss: float = math.nan


def new_state(model: Any, learning_rate: float, weight_decay: float) -> State:
    """A state before the first step, with AdamW."""
    import torch

    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning_rate, betas=(0.9, 0.98), weight_decay=weight_decay, fused=True
    )
    return State(model.train(), optimizer)


def train_step(state: State, batch: tuple[Any, Any], learning_rate: float) -> None:
    """One update on (tokens, mask), both (rows, length); the loss counts masked tokens only."""
    import torch

    tokens, mask = batch
    for group in state.optimizer.param_groups:
        group["lr"] = learning_rate
    wanted = mask[:, 1:].bool()
    hidden = state.model.model(input_ids=tokens[:, :-1], use_cache=False).last_hidden_state
    loss = torch.nn.functional.cross_entropy(state.model.lm_head(hidden[wanted]), tokens[:, 1:][wanted])
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(state.model.parameters(), CLIP)
    state.optimizer.step()
    value = loss.item()
    if not math.isfinite(value):
        raise UserError(f"the loss is {value} at step {state.step + 1}; lower learning_rate and run the same command")
    state.loss = value if state.step == 0 else SMOOTHING * state.loss + (1 - SMOOTHING) * value
    state.step += 1


def learning_rate_at(step: int, steps: int, peak: float, warmup: int) -> float:
    """Linear warm-up, then a fall to almost zero, slow at first."""
    return peak * min(1.0, (step + 1) / max(1, warmup)) * float((1 - step / steps) ** 0.7) + LOWEST_RATE


def stream(batches: PackedBatches, start: int) -> Iterator[tuple[Any, Any]]:
    """The batches from ``start`` on, made ahead of time by one background process."""
    from torch.utils.data import DataLoader

    steps = range(start, len(batches))
    yield from DataLoader(
        batches,
        batch_size=None,
        sampler=steps,
        num_workers=1,
        prefetch_factor=16,
        worker_init_fn=_settle_worker,
    )


def _settle_worker(_: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads would take the trainer's cores
    if sys.platform == "linux":
        # A killed trainer must not leave a worker behind that still holds the lock on the result.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def save_progress(state: State, path: Path, identity: str) -> None:
    """Write the state whole or not at all."""
    import torch

    partial = path.with_name(path.name + ".partial")
    content = {"identity": identity, "step": state.step, "loss": state.loss}
    weights = {"model": state.model.state_dict(), "optimizer": state.optimizer.state_dict()}
    with partial.open("wb") as file:
        torch.save({**content, **weights}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def load_progress(state: State, path: Path, identity: str) -> bool:
    """Put the saved state into ``state``; False if there is none, or only one of another recipe."""
    import torch

    if not path.is_file():
        return False
    saved = torch.load(path, weights_only=True)
    if saved["identity"] != identity:
        return False
    state.model.load_state_dict(saved["model"])
    state.optimizer.load_state_dict(saved["optimizer"])
    state.step, state.loss = saved["step"], saved["loss"]
    return True


class Reporter:
    """Prints loss, speed and time left, at most every ``seconds`` seconds."""

    def __init__(self, steps: int, first: int, tokens_per_step: int, seconds: float = 10.0):
        self.steps, self.first, self.tokens, self.seconds = steps, first, tokens_per_step, seconds
        self.started = self.last = time.monotonic()

    def tell(self, step: int, loss: float) -> None:
        """Print a line if it is time, and after the last step."""
        now = time.monotonic()
        if now - self.last < self.seconds and step < self.steps:
            return
        self.last = now
        rate = (step - self.first) / max(now - self.started, 1e-9)
        left = (self.steps - step) / rate
        print(
            f"step {step:,}/{self.steps:,}  loss {loss:.3f}  {rate * self.tokens:,.0f} tok/s  {left:.0f} s left",
            flush=True,
        )
