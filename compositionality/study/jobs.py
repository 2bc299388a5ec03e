"""The jobs of a study: which script runs with which variables, after which others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compositionality.errors import UserError
from compositionality.study.arms import load_study
from compositionality.study.budgets import check_budgets, only_the_run_tells
from compositionality.study.environment import MARK, mark
from compositionality.study.types import Study
from compositionality.train.common.chat_template import OWN

OF_A_STEP = ("MODEL_PATH", "MODEL_NAME", "MODELS", "PROBLEMS", "TRAIN_FILES", "VAL_FILES", "DATA", "INPUTS", "OUTPUT")
"""Variables of single scripts, which a study does not hand on to all of its scripts."""
FOLDERS = ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR", "COUNTDOWN_RESULTS_DIR", "STUDY")
"""Of these each run of a study has its own."""


@dataclass(frozen=True)
class Job:
    """One script of ``bash/`` (no .sh) with its words; it takes one lane, or the whole machine to itself.

    ``after``: indices of the jobs that come first. ``depth``: of its line in times.tsv (2: a seed, 3: a stage);
    ``ends``: the name under which the seconds of its whole seed are recorded once it is done.
    """

    script: str
    words: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    after: tuple[int, ...] = ()
    one_lane: bool = False
    depth: int = 3
    timed: bool = True
    ends: str = ""

    @property
    def label(self) -> str:
        """The script with its words, but for options."""
        return " ".join([self.script, *(word for word in self.words if not word.startswith("-") and "=" not in word)])

    @property
    def lane(self) -> str:
        """What the lines of a job in a lane begin with."""
        return self.label.rpartition(" ")[2] or self.script


@dataclass(frozen=True)
class Request:
    """What to run: for each seed of a study its scripts, then on request its summary and its report."""

    study: str
    seeds: int
    words: tuple[str, ...] = ()
    summary: bool = False
    report: bool = False


def of_seed(variables: Mapping[str, str], number: int) -> dict[str, str]:
    """The variables of the ``number``-th seed from SEED on; seeds after the first have folders with -seedN."""
    seed = int(variables["SEED"]) + number
    source = variables.get("SOURCE_MODEL", "")  # with a chat template that is not its own, the base is made of it
    if variables.get("CHAT_TEMPLATE", OWN) != OWN:
        base, source = variables["BASE_MODEL"], variables.get("MODEL_PATH") or source
    else:
        base = variables.get("MODEL_PATH") or variables["BASE_MODEL"]
    own = {"SEED": str(seed), "WANDB_TAGS": f"seed{seed}", **({"SOURCE_MODEL": source} if source else {})}
    if not number:
        return of_one_run(variables, "", BASE_MODEL=base, **own)
    shared = f"{variables['CKPT_DIR']}-seed{seed}"
    return of_one_run(
        variables, f"-seed{seed}", SEED_CKPT_DIR=shared, BASE_MODEL=in_folder(base, variables, shared), **own
    )


def of_one_run(variables: Mapping[str, str], ending: str, **changes: str) -> dict[str, str]:
    """The variables of one run of a study, whose folders end in ``ending``: the study's but for ``changes``."""
    mine = {key: value for key, value in variables.items() if key not in OF_A_STEP}
    mine |= {key: f"{variables[key]}{ending}" for key in FOLDERS}
    mine |= {"SEEDS": "1", **changes}
    return {**mine, MARK: mark(mine)}


def in_folder(base: str, variables: Mapping[str, str], folder: str) -> str:
    """The base model of a run whose own is made in ``folder``; another one stays where it is."""
    return f"{folder}/base" if base == f"{variables['CKPT_DIR']}/base" else base


def study_jobs(request: Request, variables: Mapping[str, str]) -> list[Job]:
    """All jobs of a study in an order in which one after the other would do.

    UserError for an arm that there is not, or SEED and SEEDS both given.
    """
    if request.seeds > 1 and variables["SEED"] != "0":
        raise UserError(
            f"SEED={variables['SEED']} SEEDS={request.seeds}: give one of the two; SEEDS=N runs seeds 0 to N-1"
        )
    if request.seeds > 1 and variables["FUNCTION_SPLIT"] != "0":
        raise UserError(
            f"FUNCTION_SPLIT={variables['FUNCTION_SPLIT']} SEEDS={request.seeds}: give one of the two; "
            "bash/confirmatory.sh runs seeds with several splits"
        )
    study = load_study(request.study)
    jobs: list[Job] = []
    seeds = [of_seed(variables, number) for number in range(request.seeds)]
    for mine in seeds:
        jobs += seed_jobs(study, request, mine, len(jobs), variables.get("MODEL_PATH", ""))
    evaluations = [number for number, job in enumerate(jobs) if job.ends]
    whole = {key: value for key, value in variables.items() if key not in OF_A_STEP} | {"SEEDS": str(request.seeds)}
    whole |= {MARK: mark(whole)}
    if request.summary:
        jobs.append(Job(f"{request.study}/summarise", request.words, whole, tuple(evaluations), depth=1, timed=False))
    if request.report:
        for mine, end in zip(seeds, evaluations, strict=True):
            jobs += [Job(script, request.words, mine, (end,), depth=1) for script in study.reported]
        for script in study.compared:
            jobs.append(Job(script, request.words, whole, tuple(range(len(jobs))), depth=1))
        jobs.append(Job("claims", request.words, whole, tuple(range(len(jobs))), depth=1))
        # The page holds the times: a line of its own would make it out of date.
        jobs.append(Job("report", request.words, whole, (len(jobs) - 1,), depth=1, timed=False))
    return jobs


def script_jobs(scripts: Sequence[str], words: Sequence[str], variables: Mapping[str, str], seeds: int) -> list[Job]:
    """The same scripts for every seed, each in a lane. UserError for a script that there is not."""
    bash = Path(__file__).parents[2] / "bash"
    jobs = []
    for number in range(seeds):
        mine = of_seed(variables, number)
        for entry in scripts:
            script, *own = entry.split()
            if not (bash / f"{script}.sh").is_file():
                raise UserError(f"bash/{script}.sh: no such script")
            jobs.append(Job(script, (*own, *words), mine, one_lane=True, depth=2))
    return jobs


def seed_jobs(study: Study, request: Request, variables: Mapping[str, str], first: int, model: str) -> Iterator[Job]:
    """Stages one after the other, the arms side by side, the evaluation."""
    names = [*variables["ARMS"].split(), *study.evaluated]
    check_budgets(variables, study, names)
    before: tuple[int, ...] = ()
    place = first
    for stage in study.stages:
        own = {**variables, "MODEL_PATH": model} if place == first and model else variables
        yield Job(stage.script, request.words, own, before)
        before, place = (place,), place + 1
    for name in names:
        arm = study.arms[name]
        others = [*arm.after, *([arm.budget_of] if only_the_run_tells(variables, study, name, request.words) else [])]
        after = tuple(place + names.index(other) for other in others if other in names) or before
        yield Job(f"{request.study}/arm", (name, *request.words), variables, after, one_lane=not arm.alone)
    arms = tuple(range(place, place + len(names)))
    yield Job(f"{request.study}/evaluate", request.words, variables, arms, ends=f"{request.study}/run_seed")
