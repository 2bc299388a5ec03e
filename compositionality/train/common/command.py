"""How a single-file trainer runs as a command: its settings from YAML, bad input in one line, ranks that agree."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch.distributed as dist
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from compositionality.errors import UserError

Settings = TypeVar("Settings")
Result = TypeVar("Result")
_PR_SET_PDEATHSIG = 1


def read_settings(schema: type[Settings], config: Path, overrides: Sequence[str]) -> Settings:
    """``config`` (YAML), then ``key.sub=value``, on top of ``schema``'s defaults; UserError for what does not fit."""
    if not config.is_file():
        raise UserError(f"{config}: no such configuration file")
    wrong = next((word for word in overrides if "=" not in word), None)
    if wrong is not None:
        raise UserError(f"{wrong!r}: give settings as key=value")
    try:
        given = [OmegaConf.load(config), OmegaConf.from_dotlist([*overrides])]
        merged = OmegaConf.merge(OmegaConf.structured(schema), *given)
        missing = sorted(OmegaConf.missing_keys(merged))
        if missing:
            raise UserError(f"no value for {', '.join(missing)}; give it as key=value")
        settings: Any = OmegaConf.to_object(merged)
    except (OmegaConfBaseException, ValueError) as error:
        raise UserError(" ".join(str(error).split())) from error
    return settings  # type: ignore[no-any-return]


def run_in_one_line(body: Callable[[], object]) -> NoReturn:
    """Run ``body`` and exit: 0, or 2 after one line on stderr for a UserError, told by the first rank alone."""
    code = 0
    try:
        body()
    except UserError as error:
        code = error.exit_code
        if os.environ.get("RANK", "0") == "0":
            print(f"error: {error}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # Without Python's clean-up: a thread of gloo that wakes up in the middle of it would abort the process.
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def on_first_rank(body: Callable[[], Result]) -> Result:
    """What ``body`` returns on the first rank, or the UserError that it raises there, on every rank."""
    if not dist.is_initialized():
        return body()
    outcome: list[Any] = [None, None]
    if dist.get_rank() == 0:
        try:
            outcome[0] = body()
        except UserError as error:
            outcome[1] = str(error)
    dist.broadcast_object_list(outcome)
    if outcome[1] is not None:
        raise UserError(outcome[1])
    result: Result = outcome[0]
    return result


def die_with_parent() -> None:
    """Be killed when the parent is: a killed torchrun must not leave ranks behind that still hold the result's lock."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
