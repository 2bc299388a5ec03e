"""How every entry point runs: Hydra overrides in, a typed object out, bad input as one line and exit code 2."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from typing import Any, NoReturn, TypeVar

from hydra import compose, initialize
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from compositionality.errors import UserError

Settings = TypeVar("Settings")
SWITCHES = {f"--{name}": f"{name}=true" for name in ("force", "check")}


def run(schema: type[Settings], step: Callable[[Settings], object], doc: str | None) -> NoReturn:
    """Run ``step`` with settings read from the command line (``key=value`` Hydra overrides), then exit.

    ``--force`` stands for ``force=true`` and ``--check`` for ``check=true``; ``--cfg`` prints the settings and stops;
    ``--help`` lists them.
    """
    arguments = [SWITCHES.get(word, word) for word in sys.argv[1:]]
    if {"-h", "--help"} & set(arguments):
        with_errors_in_one_line(lambda: print(help_text(schema, doc or "")))
    with_errors_in_one_line(lambda: _run(schema, step, arguments))


def with_errors_in_one_line(body: Callable[[], object]) -> NoReturn:
    """Run ``body`` and exit: 0, or 2 after one line on stderr for a UserError, or 130 after Ctrl-C."""
    try:
        body()
        sys.stdout.flush()  # a reader that has gone is found out here, not by the interpreter at its end
    except UserError as error:
        if os.environ.get("RANK", "0") == "0":  # one of torchrun's processes is enough to say so
            print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted; run the same command again to continue", file=sys.stderr, flush=True)
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    sys.exit(0)


def parse(schema: type[Settings], overrides: Sequence[str]) -> Settings:
    """Settings of type ``schema`` from Hydra overrides; UserError for an unknown key, a bad or a missing value."""
    name = schema.__name__
    ConfigStore.instance().store(name=name, node=schema)
    try:
        with initialize(version_base="1.3", config_path=None):
            config = compose(config_name=name, overrides=list(overrides))
        missing = OmegaConf.missing_keys(config)
        if missing:
            raise UserError(f"no value for {', '.join(sorted(missing))}; give it as key=value")
        settings: Any = OmegaConf.to_object(config)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(in_one_line(error)) from error
    return settings  # type: ignore[no-any-return]


def in_one_line(error: HydraException | OmegaConfBaseException) -> str:
    """Hydra's message without its line breaks, the offending override first where Hydra knows it."""
    override = getattr(error, "override", None)
    message = " ".join(str(error).split())
    return f"setting {override!r}: {message}" if override else message


def help_text(schema: type[Any], doc: str) -> str:
    """The entry point's docstring, then its keys with their types and defaults."""
    lines = [doc.strip(), "", "Settings (key=value):"]
    for entry in fields(schema):
        default = entry.default if entry.default_factory is MISSING else entry.default_factory()
        kind = getattr(entry.type, "__name__", str(entry.type))
        shown = "required" if str(default) == "???" else f"default {default}"
        lines.append(f"  {entry.name:<28} {kind}, {shown}")
    return "\n".join(lines)


def _run(schema: type[Settings], step: Callable[[Settings], object], arguments: Sequence[str]) -> None:
    show_only = "--cfg" in arguments
    settings = parse(schema, [word for word in arguments if word != "--cfg"])
    if show_only:
        print(OmegaConf.to_yaml(OmegaConf.structured(settings)), end="")
        return
    step(settings)
