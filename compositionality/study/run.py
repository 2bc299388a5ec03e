"""``examples/run_study.py``: a study, or a few scripts, for one seed or several."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from compositionality.data.artefact import write_text
from compositionality.data.test_seeds import check_not_registered
from compositionality.errors import UserError
from compositionality.gpus import VISIBLE, visible_gpus
from compositionality.ranges import PositiveInt, Seed
from compositionality.study.backends import Backend, Ray, choose_backend, command_of
from compositionality.study.confirmatory import registered_study
from compositionality.study.dry_run import DryRun
from compositionality.study.environment import environment
from compositionality.study.jobs import Job, Request, script_jobs, study_jobs
from compositionality.study.machine import MACHINE, machine, versions
from compositionality.study.overrides import left_out, steps_of
from compositionality.study.runner import Runner


@dataclass
class RunStudySettings:
    """What runs, for which seeds, and where. What is not given is a variable of bash/env.sh, or the profile's."""

    study: str = ""  # one of compositionality/config/study/: its stages, arms and evaluation for every seed
    scripts: list[str] = field(default_factory=list)  # instead of a study: scripts of bash/ with a word each, in lanes
    registration: str = ""  # instead of a study: one of compositionality/config/registrations/, or a path
    profile: str = ""  # PROFILE
    engine: str = ""  # ENGINE
    seed: Seed | None = None  # SEED: the first seed
    seeds: PositiveInt = 1  # how many
    arms: list[str] = field(default_factory=list)  # ARMS
    lanes: PositiveInt | None = None  # LANES: jobs side by side on this machine
    summary: bool = False  # then the table and the figure over all seeds
    report: bool = False  # then what the study reports of every seed (pass@k, failure modes), the claims, the page
    backend: str = ""  # BACKEND: local, ray or slurm
    ray_address: str = ""  # RAY_ADDRESS: of a running Ray cluster; empty: one is started here
    slurm_options: list[str] = field(default_factory=list)  # added to every sbatch
    dry_run: bool = False  # DRY_RUN: print every command, run nothing


def run_study(settings: RunStudySettings, words: Sequence[str] = ()) -> None:
    """Run every job; ``words`` go to every script. SystemExit with the first failure's exit code.

    UserError for a study, a script, an arm, a profile or a backend that there is not, and for an override that no step
    of the scripts knows or takes.
    """
    if [bool(settings.study), bool(settings.scripts), bool(settings.registration)].count(True) != 1:
        raise UserError("give study=NAME, scripts=[...] or registration=NAME")
    variables = {} if settings.registration else variables_of(settings, os.environ)
    if settings.registration:
        jobs, variables = registered_study(settings.registration, words, given_beside(settings, os.environ))
    elif settings.study:
        check_not_registered(int(variables["TEST_SEED"]))
        request = Request(settings.study, settings.seeds, tuple(words), settings.summary, settings.report)
        jobs = study_jobs(request, variables)
    else:
        jobs = script_jobs(settings.scripts, words, variables, settings.seeds)
    dry = bool(variables.get("DRY_RUN"))
    backend: Backend = (
        DryRun()
        if dry
        else choose_backend(
            settings.backend or os.environ.get("BACKEND") or "local",
            int(variables["LANES"]),
            gpus_of_lanes(variables),
            settings.ray_address or variables.get("RAY_ADDRESS", ""),
            settings.slurm_options,
        )
    )
    if isinstance(backend, Ray) and variables["ENGINE"] == "verl":
        backend.lanes = 1  # each of its trainings takes the GPUs of all nodes
    if words and not settings.registration and "LEFT_OUT" not in os.environ:
        jobs = with_overrides(jobs, words, settings.study or " ".join(settings.scripts))
    runner = Runner(jobs, backend)
    if os.environ.get("BEGAN", "").isdecimal():
        runner.began = int(os.environ["BEGAN"])
    if not dry:
        study = variables["SECTION"] if settings.registration else settings.study
        runner.times = times_file(study, variables, os.environ)
    runner.jobs = [with_times(job, runner) for job in jobs]
    if code := asyncio.run(runner.run()):
        raise SystemExit(code)


def variables_of(settings: RunStudySettings, given: Mapping[str, str]) -> dict[str, str]:
    """The variables of bash/env.sh with what the settings say on top."""
    base = given_beside(settings, given)
    kept = (
        "MODEL_PATH",
        "RAY_ADDRESS",
        "DRY_RUN",
        "N_GPUS",
        "NNODES",
        "RFT",
        "RFT_BUDGET",
        "RFT_FILTER",
        "EVALUATE_ON",
        "STUDY_ENGINE",
        "LEFT_OUT",
    )
    return {**{key: base[key] for key in kept if base.get(key)}, **environment(base)}


def given_beside(settings: RunStudySettings, given: Mapping[str, str]) -> dict[str, str]:
    """What a person gave, as variables of bash/env.sh: the environment with the settings on top."""
    chosen = {
        "PROFILE": settings.profile,
        "ENGINE": settings.engine,
        "SECTION": settings.study,
        "SEED": "" if settings.seed is None else str(settings.seed),
        "ARMS": " ".join(settings.arms),
        "LANES": "" if settings.lanes is None else str(settings.lanes),
        "DRY_RUN": "1" if settings.dry_run else "",
    }
    base = {key: value for key, value in given.items() if not key.startswith("BASH_FUNC_")}
    base |= {key: value for key, value in chosen.items() if value}
    return base | {"SEEDS": str(settings.seeds)}


def gpus_of_lanes(variables: Mapping[str, str]) -> list[str]:
    """Ids of the GPUs that lanes of this machine share: the visible ones, the first N_GPUS of them if that is given.

    UserError if there are fewer.
    """
    visible = visible_gpus(os.environ) if variables["DEVICE"] == "gpu" else []
    wanted = int(variables.get("N_GPUS") or len(visible))
    if visible and wanted > len(visible):
        raise UserError(
            f"N_GPUS={wanted}, but the visible GPUs are {','.join(visible)} "
            f"({VISIBLE}={os.environ.get(VISIBLE, 'not set')}); lower N_GPUS, or make more visible"
        )
    return visible[:wanted]


def with_overrides(jobs: Sequence[Job], words: Sequence[str], shown: str) -> list[Job]:
    """The jobs with what their steps leave out of the ``words``; UserError for a word that fits no step."""
    of_one_seed = {(job.script, job.words): job for job in reversed(jobs)}.values()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = pool.map(lambda job: steps_of(command_of(job), {**os.environ, **job.variables}), of_one_seed)
        steps = [step for of_job in found for step in of_job]
    unknown = left_out(words, steps, shown)
    return [replace(job, variables={**job.variables, "LEFT_OUT": unknown}) for job in jobs]


def times_file(study: str, variables: Mapping[str, str], given: Mapping[str, str]) -> Path | None:
    """Where seconds are recorded: $TIMES, or the study's times.tsv, beside which the machine is described."""
    if not study:
        return Path(given["TIMES"]) if given.get("TIMES") else None
    folder = Path(variables["RESULTS_DIR"], study)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MACHINE).is_file():
        write_text(folder / MACHINE, json.dumps({**machine(), "versions": versions()}))
    return folder / "times.tsv"


def with_times(job: Job, runner: Runner) -> Job:
    """The job with what its script needs to record the seconds of the scripts that it starts."""
    times = str(runner.times) if runner.times and job.timed else ""
    return replace(
        job, variables={**job.variables, "TIMES": times, "BEGAN": str(runner.began), "DEPTH": str(job.depth)}
    )
