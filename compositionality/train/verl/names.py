"""Answer settings by verl's names with ours: which of our keys changes verl's is found by changing each once."""

import copy
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict
from functools import cache, reduce
from typing import Any

from omegaconf import OmegaConf

from compositionality.errors import UserError
from compositionality.train.grpo_settings import GAE, GrpoSettings
from compositionality.train.run_folder import flatten
from compositionality.train.sft_settings import SftSettings
from compositionality.train.verl.configure import (
    ADVANTAGES,
    DTYPES,
    LOSS_AGGREGATIONS,
    grpo_config,
    grpo_keys,
    sft_config,
    sft_keys,
)

ELSEWHERE = {
    "trainer.n_gpus_per_node": "run.processes",
    "trainer.nnodes": "run.nodes",
    "custom_reward_function.path": "reward.function",
    "reward.custom_reward_function.path": "reward.function",
}
"""verl's key → ours, where ``configure.py`` does not say it."""
WORDS = ("none", "k1", *DTYPES, *ADVANTAGES, *LOSS_AGGREGATIONS)


def answer(schema: Any, key: str) -> str:
    """Return ``here KEY`` for verl's ``key`` that ``schema`` has by another name, or how to pass it on; else empty."""
    if schema not in (GrpoSettings, SftSettings):
        return ""
    key, config = key.lstrip("+~"), grpo_config if schema is GrpoSettings else sft_config
    if names := [ELSEWHERE[key]] if key in ELSEWHERE else deciding(schema).get(key):
        return f"here {' and '.join(names)}"
    is_verls = key.startswith(("actor_rollout_ref.", "critic."))
    with suppress(UserError):  # verl is not installed
        is_verls = is_verls or OmegaConf.select(config(example(schema)), key) is not None
    return f"give it as verl.{key}=… with engine=verl" if is_verls else ""


def example(schema: type[GrpoSettings] | type[SftSettings]) -> Any:
    """Return settings under which every key that we set of verl's is there."""
    settings: Any = schema(engine="verl")
    settings.model.path, settings.model.lora.rank, settings.trainer.output = "model", 1, "run"
    settings.run.device, settings.run.processes, settings.run.nodes = "gpu", 1, 1
    if isinstance(settings, GrpoSettings):
        settings.data.train_files, settings.data.val_files = ["train"], ["val"]
        settings.algorithm.advantage, settings.algorithm.kl = GAE, "k3"
        settings.trainer.epochs, settings.trainer.micro_batch_tokens = 1, 1 << 20
    else:
        settings.data.train_files = ["train"]
    return settings


@cache
def deciding(schema: Any) -> dict[str, list[str]]:
    """Return, by each of verl's keys that we set, the keys of ``schema`` on which it depends."""
    settings, translate = example(schema), grpo_keys if schema is GrpoSettings else sft_keys
    before, names = translate(settings), defaultdict[str, dict[str, None]](dict)
    for name, value in flatten(asdict(settings)).items():
        *path, field = name.split(".")
        for alternative in alternatives(value):
            changed = copy.deepcopy(settings)
            setattr(reduce(getattr, path, changed), field, alternative)
            with suppress(UserError, KeyError, ZeroDivisionError):  # what no run can have
                for key, translated in translate(changed).items():
                    if translated != before.get(key):
                        names[key][name] = None
    return {key: [*deciders] for key, deciders in names.items()}


def alternatives(value: Any) -> tuple[Any, ...]:
    """Return values that a setting may have instead."""
    if isinstance(value, bool | int | float):
        return (not value,) if isinstance(value, bool) else (2 * value or 1, 0)
    return (["x"],) if isinstance(value, list) else (3,) if value is None else WORDS
