"""The variables of ``bash/env.sh``: settings that a person gave, the profile's numbers for the rest."""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from compositionality.config.problem_sets import read_set
from compositionality.config.profile import Profile, in_training, load_profile
from compositionality.errors import UserError
from compositionality.gpus import VISIBLE, visible_gpus
from compositionality.study.arms import load_study
from compositionality.train.common.chat_template import OWN, check_name

MARK = "SETTINGS_OF"
MOST_LANES = 4
"""On a CPU."""
AT_LEAST = {
    **dict.fromkeys(("SEED", "FUNCTION_SPLIT", "TEST_SEED", "ITERATION", "WORKERS"), 0),
    **dict.fromkeys(("SEEDS", "LANES", "PROCESSES", "CORES", "NNODES", "N_GPUS", "RFT_RL_ROLLOUTS"), 1),
}
AT_MOST = 10**9
CHOICES = {"DRY_RUN": ("1",), "DEVICE": ("cpu", "gpu"), "EVALUATE_ON": ("test", "validation")}
GONE = re.compile(r"ONLY|(?!IGSM_SFT_COUNT)(STRING|COUNTDOWN|IGSM|SCALING)_(\w+_)?(MODE|LAW|LEVELS|COUNT|PER_LEVEL)")
"""Variables of problem files; their sizes are in the profile."""
PATHS = (
    "DATA_DIR",
    "CKPT_DIR",
    "SEED_CKPT_DIR",
    "RESULTS_DIR",
    "COUNTDOWN_RESULTS_DIR",
    "BASE_MODEL",
    "SOURCE_MODEL",
    "MODEL_PATH",
    "OUTPUT",
)


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Every variable of bash/env.sh. What ``given`` has is kept; an empty value counts as not given.

    UserError for a profile, an engine, a choice or a number that there is not, or a path that no list can hold.
    """
    chosen = {key: value for key, value in given.items() if value or key == VISIBLE}
    name = chosen.get("PROFILE") or ("single" if chosen.get("DEVICE") != "cpu" and visible_gpus(chosen) else "tiny")
    profile = load_profile(name, chosen.get("ENGINE", "")).of_study(chosen.get("SECTION", "section41_42"))
    defaults = {
        "PROFILE": name,
        "ENGINE": profile.engine,
        "ROLLOUT_ENGINE": profile.sampling.engine,
        "ARMS": " ".join(load_study(chosen.get("SECTION", "section41_42")).trained or profile.arms),
        "SECTION": "section41_42",
        "SEED": "0",
        "SEEDS": "1",
        "FUNCTION_SPLIT": "0",
        "TEST_SEED": "2027",
        "ITERATION": "0",
        **numbers(profile),
    }
    check_given(chosen, profile)
    if chosen.get("FUNCTION_SPLIT", "0") != "0" and read_set("string", profile).mode == "paper":
        raise UserError(
            f"FUNCTION_SPLIT={chosen['FUNCTION_SPLIT']}: the paper's problems have the paper's split; leave it out"
        )
    variables = {key: chosen.get(key, value) for key, value in defaults.items()}
    variables["RL_ROLLOUT_ENGINE"] = "vllm" if profile.engine == "verl" else in_training(variables["ROLLOUT_ENGINE"])
    variables |= _folders(profile, variables, chosen)
    return variables | resources(profile, variables, chosen) | {MARK: mark(variables)}


def check_given(chosen: Mapping[str, str], profile: Profile) -> None:
    """UserError for the first variable that is out of its range. A profile's 0 is a size that it does without."""
    if gone := next(filter(GONE.fullmatch, chosen), ""):
        raise UserError(
            f"{gone}={chosen[gone]}: give problems.SET.FILE in the profile, or files=[…] count=… behind a script"
        )
    sizes = {key: min(int(value), 1) for key, value in numbers(profile).items() if value.isdecimal()}
    for key, least in {**AT_LEAST, **sizes}.items():
        value = chosen.get(key, str(least))
        if (key, value) == ("PROCESSES", "null"):
            continue
        if not re.fullmatch("0|[1-9][0-9]{0,9}", value) or not least <= int(value) <= AT_MOST:  # to bash, 08 is octal
            raise UserError(f"{key}={value}: give a whole number from {least} to {AT_MOST}, without leading zeros")
    for key, choices in CHOICES.items():
        if chosen.get(key, choices[0]) not in choices:
            raise UserError(f"{key}={chosen[key]}: choose {' or '.join(choices)}, or leave it out")
    for key in PATHS:
        if found := re.search(r"[\x00-\x1f\\]|\$\{", chosen.get(key, "")):
            raise UserError(f"{key}={chosen[key]!r}: a path with {found[0]!r} in it; choose another")


def mark(variables: Mapping[str, str]) -> str:
    """What bash/env.sh holds its variables against, to see whether they are there already."""
    return "/".join(variables[key] for key in ("PROFILE", "ENGINE", "SECTION", "SEED", "SEEDS", "FUNCTION_SPLIT"))


def numbers(profile: Profile) -> dict[str, str]:
    """The profile's own sizes and files: ``rft.prompts`` is RFT_PROMPTS, lists are words."""
    found = {}
    for section, node in vars(profile).items():
        if is_dataclass(node) and not isinstance(node, type) and section != "sampling":
            for key, value in asdict(node).items():
                words = " ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
                found[f"{section}_{key}".upper()] = words
    training = read_set("scaling", profile).choose(["train*"])
    found["SCALING_TRAIN_FILES"] = " ".join(f"scaling_task/{name}" for name in training)
    return found | {"IGSM_SFT_COUNT": str(read_set("igsm", profile).count("sft"))}


def study_name(profile: Profile, variables: Mapping[str, str], engine: str) -> str:
    """The folder of a study but for its seed: the profile, the study's ending where it has a base model of its own,
    the engine where it is not the profile's."""
    name, section = variables["PROFILE"], variables["SECTION"]
    own_base = not profile.base_model and f"{section}/stage0_pretrain" in profile.steps
    if own_base and (ending := load_study(section).ending):
        name += f"-{ending}"
    return name if engine == load_profile(variables["PROFILE"]).engine else f"{name}-{engine}"


def _folders(profile: Profile, variables: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    group = study_name(profile, variables, chosen.get("STUDY_ENGINE", variables["ENGINE"]))
    shared = group if variables["SEED"] == "0" else f"{group}-seed{variables['SEED']}"
    split = "" if variables["FUNCTION_SPLIT"] == "0" else f"-split{variables['FUNCTION_SPLIT']}"
    study = shared + split
    results = chosen.get("RESULTS_DIR", f"results/{study}")
    folders = {
        "DATA_DIR": f"data/{study}",
        "CKPT_DIR": f"checkpoints/{study}",
        "RESULTS_DIR": results,
        "COUNTDOWN_RESULTS_DIR": _of_countdown(results, study, profile, variables["PROFILE"]),
        "WANDB_RUN_GROUP": group,
    }
    folders = {key: chosen.get(key, value) for key, value in folders.items()}
    folders["SEED_CKPT_DIR"] = chosen.get("SEED_CKPT_DIR", chosen.get("CKPT_DIR", f"checkpoints/{shared}"))
    return {
        **folders,
        "STUDY": study,
        "WANDB_TAGS": f"seed{variables['SEED']}{split}",
        **_base_model(profile, f"{folders['SEED_CKPT_DIR']}/base", chosen),
    }


def _base_model(profile: Profile, made: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """The model that a study starts from: with another chat template than its own, ``made`` of SOURCE_MODEL in stage 0.

    UserError for a template that there is not, and where stage 0 would pretrain a model, which has its own.
    """
    template = chosen.get("CHAT_TEMPLATE") or profile.chat_template or OWN
    check_name(template, "CHAT_TEMPLATE")
    given = chosen.get("BASE_MODEL") or profile.base_model
    found = {"CHAT_TEMPLATE": template, "PRETRAINS": "" if profile.base_model else "1"}
    if template == OWN:
        return {**found, "SOURCE_MODEL": "", "BASE_MODEL": given or made}
    source = chosen.get("SOURCE_MODEL") or given
    if not (source or chosen.get("MODEL_PATH")):
        raise UserError(
            f"CHAT_TEMPLATE={template}: the model that this profile makes has a chat template of its own; "
            "leave it out, or give BASE_MODEL"
        )
    return {**found, "SOURCE_MODEL": source, "BASE_MODEL": made}


def _of_countdown(results: str, study: str, profile: Profile, name: str) -> str:
    """Where section 4.3 puts its results beside the ``results`` of sections 4.1 and 4.2."""
    folder = Path(results)
    if profile.base_model or not folder.name.startswith(study):
        return results
    return str(folder.with_name(folder.name.replace(name, f"{name}-countdown", 1)))


def resources(profile: Profile, variables: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    """What the study is run on: device, cores, how many arms side by side, processes of a training that is alone."""
    gpus = int(chosen.get("N_GPUS", "0")) or len(visible_gpus(chosen))
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
        found[VISIBLE] = ""
        if variables["ENGINE"] == "single":  # small matrices: a second thread gains little
            found["OMP_NUM_THREADS"] = "1"
    return found


def as_shell(variables: Mapping[str, Any]) -> str:
    """Assignments for bash to evaluate, exported."""
    return "\n".join(f"export {key}={shlex.quote(str(value))}" for key, value in variables.items())
