"""The variables of ``bash/env.sh``: settings that a person gave, the profile's numbers for the rest."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from compositionality.config.profile import Profile, in_training, load_profile
from compositionality.errors import UserError
from compositionality.study.arms import load_study
from compositionality.study.machine import count_gpus

MARK = "SETTINGS_OF"
MOST_LANES = 4
"""On a CPU."""


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Every variable of bash/env.sh. What ``given`` has is kept; an empty value counts as not given.

    UserError for a profile, an engine or a number that there is not.
    """
    chosen = {key: value for key, value in given.items() if value or key == "CUDA_VISIBLE_DEVICES"}
    name = chosen.get("PROFILE") or ("single" if count_gpus(chosen) and chosen.get("DEVICE") != "cpu" else "tiny")
    profile = load_profile(name, chosen.get("ENGINE", ""))
    defaults = {
        "PROFILE": name,
        "ENGINE": profile.engine,
        "ROLLOUT_ENGINE": profile.sampling.engine,
        "ARMS": " ".join(load_study(chosen.get("SECTION", "section41_42")).trained or profile.arms),
        "SECTION": "section41_42",
        "SEED": "0",
        "SEEDS": "1",
        "TEST_SEED": "2027",
        "ITERATION": "0",
        **numbers(profile),
    }
    variables = {key: chosen.get(key, value) for key, value in defaults.items()}
    for key in ("SEED", "SEEDS"):
        if not variables[key].isdecimal() or (key, variables[key]) == ("SEEDS", "0"):
            raise UserError(f"SEED={variables['SEED']} SEEDS={variables['SEEDS']}: whole numbers, SEEDS at least 1")
    variables["RL_ROLLOUT_ENGINE"] = "vllm" if profile.engine == "verl" else in_training(variables["ROLLOUT_ENGINE"])
    variables |= _folders(profile, variables, chosen)
    return variables | resources(profile, variables, chosen) | {MARK: mark(variables)}


def mark(variables: Mapping[str, str]) -> str:
    """What bash/env.sh holds its variables against, to see whether they are there already."""
    return "/".join(variables[key] for key in ("PROFILE", "ENGINE", "SECTION", "SEED", "SEEDS"))


def numbers(profile: Profile) -> dict[str, str]:
    """The profile's own sizes and files: ``string.stage2_count`` is STRING_STAGE2_COUNT, lists are words."""
    found = {}
    for section, node in vars(profile).items():
        if is_dataclass(node) and not isinstance(node, type) and section != "sampling":
            for key, value in asdict(node).items():
                words = " ".join(map(str, value)) if isinstance(value, list) else str(value)
                found[f"{section}_{key}".upper()] = words
    return found


def study_name(profile: Profile, variables: Mapping[str, str], engine: str) -> str:
    """The folder of a study but for its seed: the profile, -countdown where section 4.3 has a base model of its own,
    the engine where it is not the profile's."""
    name = variables["PROFILE"]
    own_base = not profile.base_model and "section43/stage0_pretrain" in profile.steps
    if variables["SECTION"] == "section43" and own_base:
        name += "-countdown"
    return name if engine == load_profile(variables["PROFILE"]).engine else f"{name}-{engine}"


def _folders(profile: Profile, variables: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    group = study_name(profile, variables, chosen.get("STUDY_ENGINE", variables["ENGINE"]))
    study = group if variables["SEED"] == "0" else f"{group}-seed{variables['SEED']}"
    folders = {
        "DATA_DIR": f"data/{study}",
        "CKPT_DIR": f"checkpoints/{study}",
        "RESULTS_DIR": f"results/{study}",
        "WANDB_RUN_GROUP": group,
    }
    folders = {key: chosen.get(key, value) for key, value in folders.items()}
    base = chosen.get("BASE_MODEL") or profile.base_model or f"{folders['CKPT_DIR']}/base"
    pretrains = not profile.base_model
    twin = study.replace(variables["PROFILE"], f"{variables['PROFILE']}-countdown", 1) if pretrains else study
    return {
        **folders,
        "STUDY": study,
        "WANDB_TAGS": f"seed{variables['SEED']}",
        "BASE_MODEL": base,
        "PRETRAINS": "1" if pretrains else "",
        "COUNTDOWN_STUDY": twin,
    }


def resources(profile: Profile, variables: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    """What the study is run on: device, cores, how many arms side by side, processes of a training that is alone."""
    gpus = int(chosen.get("N_GPUS", "0")) or count_gpus(chosen)
    device = profile.device or chosen.get("DEVICE") or ("gpu" if gpus else "cpu")
    cores = len(os.sched_getaffinity(0))
    if device == "cpu":
        lanes, processes = min(cores, MOST_LANES), str(min(cores, 2))
    else:
        lanes = gpus if gpus > 1 else max(profile.lanes, 1)
        processes = chosen.get("N_GPUS", "null")  # null: one for every GPU
    found = {"DEVICE": device, "CORES": str(cores), "PROCESSES": processes}
    found = {key: value if key == "DEVICE" else chosen.get(key, value) for key, value in found.items()}
    found["LANES"] = "1" if variables["ENGINE"] == "verl" else chosen.get("LANES", str(lanes))
    if device == "cpu":
        found["CUDA_VISIBLE_DEVICES"] = ""
        if variables["ENGINE"] == "single":  # small matrices: a second thread gains little
            found["OMP_NUM_THREADS"] = "1"
    return found


def as_shell(variables: Mapping[str, Any]) -> str:
    """Assignments for bash to evaluate, exported."""
    return "\n".join(f"export {key}={shlex.quote(str(value))}" for key, value in variables.items())
