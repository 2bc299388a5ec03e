"""How the entry points of the trainers run: their settings are verl's whole configuration, with ours on top."""

import sys
from collections.abc import Callable
from typing import NoReturn

from omegaconf import DictConfig, OmegaConf

from compositionality.config.cli import with_errors_in_one_line
from compositionality.train.verl.launch import CONFIG_DIR, compose_config


def run_trainer(name: str, step: Callable[[DictConfig], object], doc: str | None) -> NoReturn:
    """Entry point of a trainer: Hydra overrides of ``config/NAME.yaml`` in, ``step`` done, bad input in one line.

    ``--force`` and ``--dry-run`` stand for ``lab.force=true`` and ``lab.dry_run=true``; ``--cfg`` prints the whole
    configuration and stops.
    """
    words = {"--force": "lab.force=true", "--dry-run": "lab.dry_run=true"}
    arguments = [words.get(word, word) for word in sys.argv[1:]]
    if {"-h", "--help"} & set(arguments):
        print((doc or "").strip() + "\n\nOur own settings (every key of verl can be given too; --cfg shows all):")
        print((CONFIG_DIR / f"{name}.yaml").read_text().partition("lab:\n")[2], end="")
        sys.exit(0)

    def body() -> None:
        config = compose_config(name, [word for word in arguments if word != "--cfg"])
        if "--cfg" in arguments:
            print(OmegaConf.to_yaml(config), end="")
        else:
            step(config)

    with_errors_in_one_line(body)
