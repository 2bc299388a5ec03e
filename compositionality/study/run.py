"""``examples/run_study.py``: a study for one seed or several, from nothing to what it reports."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from compositionality.config.profile import Profile, load_profile, use_device
from compositionality.data.artefact import write_text
from compositionality.data.test_seeds import check_not_registered
from compositionality.errors import UserError
from compositionality.gpus import VISIBLE, visible_gpus
from compositionality.ranges import OneOf, PositiveInt, Seed
from compositionality.study.backends import Backend, Ray, choose_backend
from compositionality.study.confirmatory import registered_study
from compositionality.study.machine import MACHINE, machine, versions
from compositionality.study.model import BASH, Replicate, load_study, study_folder
from compositionality.study.plan import plan
from compositionality.study.request import Request
from compositionality.study.runner import Runner
from compositionality.study.scripts import STEP_VARIABLES
from compositionality.study.steps import Step, check_quietly
from compositionality.train.common.prompt_stream import check_problems_last
from compositionality.train.grpo_settings import generation_batch

MOST_LANES = 4
"""On a CPU."""
STARTS = {"composition": 1, "scaling": 3}
"""Seeds of a study where nobody says how many."""


@dataclass
class RunStudySettings:
    """What runs, for which seeds, and where. What is not given is a variable of bash/env.sh, or the profile's."""

    study: str = ""  # one of compositionality/config/study/
    registration: str = ""  # instead of a study: one of compositionality/config/registrations/, or a path
    profile: str = ""  # PROFILE: NAME or NAME/ENGINE
    seed: Seed | None = None  # SEED: the first seed
    seeds: PositiveInt | None = None  # SEEDS: how many
    arms: list[str] = field(default_factory=list)  # ARMS
    passk: list[str] = field(default_factory=list)  # models whose pass@k is measured
    variants: list[str] = field(default_factory=list)  # of a study that has some
    only: list[str] = field(default_factory=list)  # steps by name or pattern, such as rl-* or claims
    report: bool = False  # also what a report reads of every seed (pass@k, failure modes), the claims, the page
    countdown: str = ""  # study of section 4.3 that claims and page read; empty: countdown…
    lanes: PositiveInt | None = None  # steps side by side on this machine
    backend: str = ""  # BACKEND: local, ray or slurm
    ray_address: str = ""  # RAY_ADDRESS: of a running Ray cluster; empty: one is started here
    slurm_options: list[str] = field(default_factory=list)  # added to every sbatch
    print: Annotated[str, OneOf(("", "list", "bash", "make", "json"))] = ""  # write the plan and run nothing
    log: str = ""  # file for what the steps say; then a line for each step is all that is printed
    force: bool = False  # make everything again
    dry_run: bool = False  # DRY_RUN: check every step as its start would, run nothing


def run_study(settings: RunStudySettings, words: Sequence[str] = ()) -> None:
    """Run every step; ``words``: STEP:key=value. SystemExit with the first failure's exit code.

    UserError for a study, an arm, a step, a profile or a backend that there is not, and for a word that its step does
    not take.
    """
    if bool(settings.study) == bool(settings.registration):
        raise UserError("give study=NAME or registration=NAME")
    dry = settings.dry_run or bool(os.environ.get("DRY_RUN"))
    if settings.registration:
        steps, request = registered_study(settings.registration, words, os.environ, dry=dry or bool(settings.print))
    else:
        check_replaced(os.environ)
        request = request_of(settings, words, os.environ)
        check_not_registered(request.test_seed)
        steps = plan(request, settings.only)
        if settings.force:
            steps = [forced(step) for step in steps]
    for step in steps:
        _ = step.settings  # every word is known before anything starts
    check_lasting_problems(steps)
    if settings.print:
        print(shown(steps, settings.print))
        return
    use_device(request.settings)
    if dry:
        dry_run(steps)
        return
    backend = backend_of(settings, request)
    for name in STEP_VARIABLES:
        os.environ.pop(name, None)  # a step is given its own
    os.environ["WANDB_RUN_GROUP"] = os.environ.get("WANDB_RUN_GROUP") or request.name
    runner = Runner(steps, backend, times_file(request), Path(settings.log) if settings.log else None)
    if os.environ.get("BEGAN", "").isdecimal():
        runner.began = int(os.environ["BEGAN"])
    if code := asyncio.run(runner.run()):
        raise SystemExit(code)
    for step in steps:
        if settings.log and step.name == "page":
            print(f"The page, for any browser: {step.outputs[0]}/index.html")


def request_of(settings: RunStudySettings, words: Sequence[str], given: Mapping[str, str]) -> Request:
    """What a person asks for: the settings, then variables of bash/env.sh, then the profile's. UserError for both."""
    for name in STEP_VARIABLES:
        if given.get(name):
            raise UserError(
                f"{name}={given[name]}: of one script, and a study has many; a study starts from BASE_MODEL, "
                "and a key of one step is STEP:key=value"
            )
    study = load_study(settings.study)
    profile = settings.profile or given.get("PROFILE") or default_profile(given)
    number = settings.seeds or whole_number("SEEDS", given) or STARTS.get(study.name, 1)
    seed = settings.seed if settings.seed is not None else whole_number("SEED", given) or 0
    split, test_seed = whole_number("SPLIT", given) or 0, whole_number("TEST_SEED", given)
    if number > 1 and seed:
        raise UserError(f"SEED={seed} SEEDS={number}: give one of the two; SEEDS=N runs seeds 0 to N-1")
    if number > 1 and split:
        raise UserError(
            f"SPLIT={split} SEEDS={number}: give one of the two; bash/confirmatory.sh runs seeds with several splits"
        )
    name = given.get("STUDY") or study_name(study.name, profile, given)
    loaded = load_profile(profile)
    return Request(
        settings.study,
        profile,
        tuple(Replicate(name, seed + one, split) for one in range(number)),
        tuple(settings.arms or given.get("ARMS", "").split()),
        words=tuple(words),
        report=settings.report or bool(settings.only),
        passk=tuple(settings.passk),
        variants=tuple(settings.variants),
        countdown=settings.countdown or study_name("countdown", profile, given),
        record="record" in settings.only,
        test_seed=2027 if test_seed is None else test_seed,
        base_model=given.get("BASE_MODEL", ""),
        chat_template=given.get("CHAT_TEMPLATE", ""),
        gpu=on_gpu(loaded, given),
    )


def check_replaced(given: Mapping[str, str]) -> None:
    """UserError for a variable that scripts used to read, with what to give instead (bash/replaced.txt)."""
    for line in (BASH / "replaced.txt").read_text().splitlines():
        name, _, instead = line.partition(" ")
        if given.get(name):
            raise UserError(f"{name}={given[name]}: {instead}")


def default_profile(given: Mapping[str, str]) -> str:
    """Of this machine, as bash/env.sh chooses it."""
    return "single" if visible_gpus(given) else "tiny"


def study_name(name: str, profile: str, given: Mapping[str, str]) -> str:
    """The name of a study's folders: its own, with the profile where that is not the machine's default."""
    return name if profile == default_profile(given) else f"{name}-{profile.replace('/', '-')}"


def whole_number(name: str, given: Mapping[str, str]) -> int | None:
    """The number that a variable holds; None if it is not given. UserError for what is none."""
    value = given.get(name, "")
    if not value:
        return None
    least = 1 if name == "SEEDS" else 0
    if not value.isdecimal() or (value != "0" and value.startswith("0")) or not least <= int(value) <= 10**9:
        raise UserError(f"{name}={value}: give a whole number from {least}, without leading zeros")
    return int(value)


def on_gpu(profile: Profile, given: Mapping[str, str]) -> bool:
    """Whether the steps compute on GPUs."""
    return profile.device == "gpu" or (not profile.device and bool(visible_gpus(given)))


def forced(step: Step) -> Step:
    """The step, made again if its entry point can."""
    return replace(step, words=(*step.words, "force=true")) if "force" in step.flat else step


def backend_of(settings: RunStudySettings, request: Request) -> Backend:
    """Where the steps run. UserError for a backend that there is not, and for fewer GPUs than N_GPUS."""
    gpus = gpus_of_lanes(request.gpu)
    cpu_lanes = min(len(os.sched_getaffinity(0)), MOST_LANES)
    lanes = cpu_lanes if not request.gpu else len(gpus) if len(gpus) > 1 else max(request.settings.lanes, 1)
    verl = request.settings.engine == "verl"
    backend = choose_backend(
        settings.backend or os.environ.get("BACKEND") or "local",
        1 if verl else settings.lanes or lanes,
        gpus,
        settings.ray_address or os.environ.get("RAY_ADDRESS", ""),
        settings.slurm_options,
    )
    if isinstance(backend, Ray) and verl:
        backend.lanes = 1  # each of its trainings takes the GPUs of all nodes
    return backend


def gpus_of_lanes(gpu: bool) -> list[str]:
    """Ids of the GPUs that lanes of this machine share: the visible ones, the first N_GPUS of them if that is given.

    UserError if there are fewer.
    """
    visible = visible_gpus(os.environ) if gpu else []
    wanted = whole_number("N_GPUS", os.environ) or len(visible)
    if visible and wanted > len(visible):
        raise UserError(
            f"N_GPUS={wanted}, but the visible GPUs are {','.join(visible)} "
            f"({VISIBLE}={os.environ.get(VISIBLE, 'not set')}); lower N_GPUS, or make more visible"
        )
    return visible[:wanted]


def check_lasting_problems(steps: Sequence[Step]) -> None:
    """UserError for a step of RL by verl whose problems, where the plan makes them, do not last for its steps."""
    counts = {
        str(made.output): made.count
        for step in steps
        if isinstance(step.settings, dict)
        for made in step.settings.values()
    }
    for step in steps:
        if step.entry_point != "train_grpo" or step.settings.engine != "verl":
            continue
        settings, files = step.settings, step.settings.data.train_files
        if all(file in counts for file in files):
            trainer = settings.trainer
            length = step.flat.get(
                "verl.trainer.total_training_steps", trainer.steps if trainer.epochs else trainer.last_step()
            )
            epochs = int(step.flat.get("verl.trainer.total_epochs", trainer.epochs or 1))
            problems, batch = sum(counts[file] for file in files), generation_batch(settings)
            if trainer.epochs and length and problems * epochs < batch * length:
                length = None  # until they are used up
            names = ", ".join(Path(file).parent.name for file in files)
            check_problems_last(f"{step.name}: {names}", problems, epochs, batch, length)


def dry_run(steps: Sequence[Step]) -> None:
    """Print every command and check it as its start would, all in this process; a script of several steps says its own.

    UserError for the first step that would be refused.
    """
    for step in steps:
        if step.entry_point:
            print(f"+ {step.shell()}", flush=True)
            try:
                check_quietly(step)
            except UserError as error:
                raise UserError(f"{step.key}: {error}") from error
        else:
            variables = {**os.environ, **step.variables, "DRY_RUN": "1"}
            done = subprocess.run(step.command(sys.executable), cwd=BASH.parent, env=variables, check=False)
            if done.returncode:
                raise SystemExit(done.returncode)


def shown(steps: Sequence[Step], form: str) -> str:
    """The plan as a list with why each step runs, as bash, as make, or as JSON."""
    if form == "list":
        return "\n".join(f"{step.key}: {why}" if (why := step.why()) else f"{step.key}: done" for step in steps)
    if form == "bash":
        return "\n".join(["set -euo pipefail", *(f"{step.shell()}  # {step.key}" for step in steps)])
    if form == "make":
        names = {step.key: step.key.replace("/", ".") for step in steps}
        rules = [
            f"{names[step.key]}: {' '.join(names[key] for key in step.after)}\n\t{step.shell().replace('$', '$$')}"
            for step in steps
        ]
        return "\n".join([f".PHONY: all {' '.join(names.values())}", f"all: {' '.join(names.values())}", *rules])
    return json.dumps([as_data(step) for step in steps], indent=1, default=str)


def as_data(step: Step) -> dict[str, Any]:
    """A step as JSON takes it."""
    own: dict[str, Any] = {"key": step.key, "script": step.script, "entry_point": step.entry_point, "words": step.words}
    own |= {"variables": step.variables, "after": step.after, "one_lane": step.one_lane, "outputs": step.outputs}
    settings = step.settings
    made = (
        {name: asdict(one) for name, one in settings.items()}
        if isinstance(settings, dict)
        else settings and asdict(settings)
    )
    return {**own, "why": step.why(), "settings": made}


def times_file(request: Request) -> Path:
    """Where seconds are recorded; the machine is described beside it."""
    section = request.loaded.evaluate[0].partition("/")[0]
    folder = Path(study_folder("results", request.name), section)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MACHINE).is_file():
        write_text(folder / MACHINE, json.dumps({**machine(), "versions": versions()}))
    return folder / "times.tsv"
