"""The jobs of a study of replicates. Base and Stage 1 know all functions: the splits of a seed share them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from compositionality.data.artefact import verify
from compositionality.study.arms import load_study
from compositionality.study.jobs import OF_A_STEP, Job, Request, in_folder, of_one_run, seed_jobs
from compositionality.study.replicates import VARIABLE, Replicate
from compositionality.study.types import Study

RESULTS = (
    *("section41_42/results.parquet", "section41_42/training.json"),
    "section44/results.parquet",
    *("section45/results.parquet", "section45/labels.parquet"),
)
"""What a whole study reads of each replicate."""


def of_replicate(variables: Mapping[str, str], one: Replicate) -> dict[str, str]:
    """The variables of a replicate, from those of the whole study."""
    shared = f"{variables['CKPT_DIR']}-{Replicate(one.seed).name}"
    study = {key: value for key, value in variables.items() if key != VARIABLE}
    return of_one_run(
        study,
        f"-{one.name}",
        SEED=str(one.seed),
        FUNCTION_SPLIT=str(one.split),
        SEED_CKPT_DIR=shared,
        BASE_MODEL=in_folder(variables["BASE_MODEL"], variables, shared),
        REPLICATE=one.name.removeprefix("seed"),
        WANDB_TAGS=one.name,
    )


def replicate_jobs(
    request: Request, variables: Mapping[str, str], replicates: Sequence[Replicate], controls: Sequence[str]
) -> list[Job]:
    """All jobs, each in one lane: seeds side by side, then their splits; ``controls`` in the first split of each seed.

    An order in which one after the other would do. None for a replicate that ``is_complete``.
    """
    study, jobs = load_study(request.study), list[Job]()
    firsts = {one.seed: one for one in reversed(replicates)}.values()
    shared: dict[int, int] = {}
    ends: list[int] = []
    for one in replicates:
        mine = of_replicate(variables, one)
        mine["ARMS"] = " ".join([*variables["ARMS"].split(), *(controls if one in firsts else [])])
        if is_complete(Path(mine["RESULTS_DIR"]), [*study.evaluated, *mine["ARMS"].split()]):
            continue
        if one.seed not in shared:
            jobs += _of_seed(study, request, of_replicate(variables, Replicate(one.seed)), len(jobs))
            shared[one.seed] = len(jobs) - 1
        jobs += _of_split(study, request, mine, len(jobs), shared[one.seed])
        ends += [len(jobs) - 2, len(jobs) - 1]
    whole = {key: value for key, value in variables.items() if key not in OF_A_STEP}
    whole[VARIABLE] = " ".join(f"{one.seed}:{one.split}" for one in replicates)
    everywhere = {*study.evaluated, *variables["ARMS"].split()}
    whole["MODELS"] = " ".join(name for name in study.arms if name in everywhere)
    for script in (f"{request.study}/summarise", "claims", "report", "record"):
        jobs.append(Job(script, request.words, whole, tuple(ends), one_lane=True, depth=1, timed=False))
        ends = [len(jobs) - 1]
    return jobs


def is_complete(results: Path, arms: Sequence[str]) -> bool:
    """True if a replicate's results are there, of all ``arms``: then its models and completions may lie elsewhere.

    UserError for a result that has been altered.
    """
    files = [results / name for name in RESULTS]
    if not all(file.is_file() for file in files):
        return False
    evaluated = [verify(file) for file in files][1].settings["models"]
    return set(arms) <= set(evaluated)


def _of_seed(study: Study, request: Request, variables: Mapping[str, str], first: int) -> Iterator[Job]:
    """The stages up to Stage 1, one after the other."""
    scripts = [stage.script for stage in study.stages if not stage.per_split]
    for place, script in enumerate(scripts, first):
        yield Job(script, request.words, variables, () if place == first else (place - 1,), one_lane=True)


def _of_split(study: Study, request: Request, variables: Mapping[str, str], first: int, after: int) -> Iterator[Job]:
    """Problems, arms, accuracy, then pass@k and failure modes."""
    own = replace(study, stages=[stage for stage in study.stages if stage.per_split])
    mine = list(seed_jobs(own, request, variables, first, ""))
    yield from (replace(job, after=job.after or (after,), one_lane=True, ends="") for job in mine)
    evaluated = (first + len(mine) - 1,)
    for script in ("section44/passk", "section45/failure_modes"):
        yield Job(script, request.words, variables, evaluated, one_lane=True)
