"""verl's whole configuration for a run: verl's defaults, ours, the program's keys, then ``verl.KEY=value``."""

import importlib.util
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from compositionality.errors import UserError
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.run_folder import flatten
from compositionality.train.sft_settings import SftSettings
from compositionality.train.verl.translate import grpo_keys, grpo_run, sft_keys, sft_run

CONFIG_DIR = Path(__file__).resolve().parents[2] / "config" / "verl"


def grpo_config(settings: GrpoSettings) -> DictConfig:
    """verl's configuration for GRPO; UserError for what verl does not have or know."""
    return compose_config("grpo", settings.run.device, grpo_keys(settings), grpo_run(settings), settings.verl)


def sft_config(settings: SftSettings) -> DictConfig:
    """verl's configuration for supervised fine-tuning; UserError for what verl does not have or know."""
    return compose_config("sft", settings.run.device, sft_keys(settings), sft_run(settings), settings.verl)


def compose_config(
    name: str, device: str, keys: Mapping[str, Any], run: Mapping[str, Any], own: Mapping[str, Any]
) -> DictConfig:
    """``config/verl/NAME.yaml`` on verl's defaults, with ``keys``, a section ``run``, and verl's ``own`` keys last."""
    words = (f"hydra.searchpath=[file://{_verl_folder() / 'trainer' / 'config'}]", f"{name}_device={device}")
    try:
        with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
            config = deepcopy(_composed(name, words))
        with open_dict(config):
            config.run = {**config.run, **run}
        for key, value in {**keys, **flatten(own)}.items():
            if key:
                set_key(config, key, value)
        OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(" ".join(str(error).partition("Config search path")[0].split())) from error
    return config


@cache  # the steps of a study share what Hydra composes
def _composed(name: str, words: tuple[str, ...]) -> DictConfig:
    return compose(config_name=name, overrides=[*words])


def set_key(config: DictConfig, key: str, value: Any) -> None:
    """Set a dotted key that is there already, or any below an empty mapping; UserError for another one or its type."""
    parent, _, last = key.rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    known = isinstance(node, DictConfig) and (last in node.keys() or not len(node))  # noqa: SIM118
    if not known or parent.partition(".")[0] == "run":
        raise UserError(f"verl.{key}={value}: verl has no such key; engine=verl --cfg lists its keys")
    with open_dict(node):
        OmegaConf.update(config, key, value, merge=False)


def _verl_folder() -> Path:
    """Where verl is installed, found without importing it (which takes seconds)."""
    spec = importlib.util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        fix = "run bash bash/setup.sh --full, or pip install 'compositionality[verl]'"
        raise UserError(f"engine=verl: verl is not installed; {fix}")
    return Path(spec.submodule_search_locations[0])
