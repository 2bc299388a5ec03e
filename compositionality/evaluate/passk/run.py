"""pass@k from checkpoints or rollout folders to files: sample, count, compute."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from compositionality.console import new_console
from compositionality.data.artefact import MANIFEST, Recipe, exclusive, is_to_be_checked, write_derived
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.evaluate.completions import Folders, Jobs, all_collected, check_jobs, engine_for, jobs_of
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.passk.curves import Pairs
from compositionality.evaluate.passk.plan import detectable, print_detectable, probe
from compositionality.evaluate.passk.samples import (
    SampledProblems,
    check_sampling,
    choose_all,
    count_samples,
    rows_of,
    write_responses,
)
from compositionality.evaluate.passk.tables import print_curves, table_ks
from compositionality.evaluate.replicate import replicate_of
from compositionality.evaluate.results import read_results
from compositionality.evaluate.table import RESULTS, SCHEMA, problem_columns, read, write
from compositionality.ranges import REQUIRED, NonNegativeInt, PositiveInt, check_ranges
from compositionality.rollout.engines.factory import choose_engine
from compositionality.rollout.settings import CollectSettings, SamplingSettings
from compositionality.train.common.training_report import run_until
from compositionality.types import Metric

STEP = "passk"
ALL = "all.parquet"


@dataclass
class PasskSettings(SamplingSettings):
    """Settings of ``passk``: checkpoints, problems, samples, and what is compared."""

    models: list[str] = field(default_factory=list)  # NAME:PATH, sampled here
    rollouts: list[str] = field(default_factory=list)  # NAME:FOLDER, sampled before by collect_rollouts
    problems: list[str] = REQUIRED  # problem files, PATH or NAME:PATH
    output: Path = REQUIRED  # folder of the results
    n_samples: PositiveInt = 1000  # completions of a problem, at least 2
    levels: list[NonNegativeInt] = field(default_factory=list)  # these only; empty: all
    per_level: NonNegativeInt = 0  # the first so many problems of each level; 0: all
    pairs: list[str] = field(default_factory=list)  # MODEL:BASE; empty = every one with the first
    ks: list[PositiveInt] = field(default_factory=list)  # columns of the printed table; empty: 1, 2, 4, …, n_samples
    plan: bool = False  # say what differences can be seen and what it costs, then stop
    prior: str = ""  # folder of an earlier evaluation: how hard the problems are, for the plan
    probe: NonNegativeInt = 256  # answers sampled to predict time and disk; 0: none
    answers_only: bool = False  # collect the answers, compute nothing: several processes may do that at the same time
    force: bool = False  # replace a result that was made from something else


def check_settings(settings: PasskSettings) -> None:
    """UserError for values that mean nothing."""
    check_ranges(settings)
    if not settings.models and not settings.rollouts:
        raise UserError("models, rollouts: give at least one, as models=[NAME:PATH,...] or rollouts=[NAME:FOLDER,...]")
    if settings.rollouts and len(settings.problems) != 1:
        raise UserError("rollouts=[...] needs the one problem file that they answer, problems=[NAME:PATH]")
    if settings.n_samples < 2:
        raise UserError(f"n_samples={settings.n_samples}: pass@k needs at least 2 samples of each problem")
    if settings.models and settings.temperature <= 0:
        raise UserError("temperature=0: every sample of a problem would be the same; give one above 0")
    if settings.limit:
        raise UserError("limit: pass@k takes per_level, the first so many problems of each level")
    beyond = [k for k in settings.ks if not 1 <= k <= settings.n_samples]
    if beyond:
        raise UserError(f"ks: {beyond[0]} does not lie between 1 and n_samples={settings.n_samples}")


@dataclass(frozen=True)
class _Names:
    """Who is compared on what, as the settings say it."""

    models: dict[str, str]
    rollouts: dict[str, str]
    problems: dict[str, SampledProblems]
    pairs: Pairs


def passk(settings: PasskSettings) -> Path:
    """Write ``output``/results.parquet and the rollouts behind it; print the curves."""
    check_settings(settings)
    names = _names(settings)
    engine = choose_engine(settings.engine, settings.base_url, list(names.models.values()))
    settings = replace(settings, engine=engine)
    jobs = _jobs(settings, names)
    if settings.plan or (_missing_jobs(jobs) and not settings.answers_only):
        _print_plan(settings, names, jobs)
    if settings.plan:
        return settings.output
    folders = _collect(settings, jobs)
    if settings.answers_only:
        return settings.output
    file = next(iter(names.problems))  # with rollouts there is one
    folders |= {(model, file): Path(path) for model, path in names.rollouts.items()}
    with exclusive(settings.output):
        _count(settings, names, folders)
    runs = {model: run for model, path in names.models.items() if (run := run_until(Path(path)))}
    results = read_results([f"run:{settings.output}"], metric=Metric.PASS_AT_K)
    print_curves(results, names.pairs, settings.ks, runs, new_console())
    print(settings.output / RESULTS)
    return settings.output


def check(settings: PasskSettings) -> None:
    """A dry run's: names, settings, and of the models and problem files those that are there."""
    check_settings(settings)
    models, _, files, _ = _named(settings)
    for path in files.values():
        if is_to_be_checked(path, dry=True):
            rows_of(Path(path), settings.levels, settings.per_level)
    if settings.prior and is_to_be_checked(settings.prior, dry=True):
        read_prior(settings.prior)
    check_jobs(settings, models, files, settings.output, force=settings.force)


def _names(settings: PasskSettings) -> _Names:
    models, rollouts, files, pairs = _named(settings)
    sampled = choose_all(files, settings.levels, settings.per_level, settings.output / "problems")
    return _Names(models, rollouts, sampled, pairs)


def _named(settings: PasskSettings) -> tuple[dict[str, str], dict[str, str], dict[str, str], Pairs]:
    """Models, rollouts and problem files by name, and the pairs. UserError for a name that is there twice."""
    models = named_paths("models", settings.models) if settings.models else {}
    rollouts = named_paths("rollouts", settings.rollouts) if settings.rollouts else {}
    twice = sorted(models.keys() & rollouts.keys())
    if twice:
        raise UserError(f"models and rollouts both have {twice[0]!r}; write NAME:PATH for one")
    files = named_paths("problems", settings.problems)
    return models, rollouts, files, _pairs(settings.pairs, [*models, *rollouts])


def _pairs(entries: list[str], known: list[str]) -> Pairs:
    """From MODEL:BASE; by default every checkpoint with the first one."""
    if not entries:
        return [(model, known[0]) for model in known[1:]]
    pairs = [tuple(entry.split(":")) for entry in entries]
    for entry, pair in zip(entries, pairs, strict=True):
        if len(pair) != 2 or not set(pair) <= set(known):
            raise UserError(f"pairs: {entry} is no MODEL:BASE of {', '.join(known)}")
    return [(model, base) for model, base in pairs]


def _jobs(settings: PasskSettings, names: _Names) -> list[Jobs]:
    """What to collect, checkpoint by checkpoint."""
    files = {name: str(questions.path) for name, questions in names.problems.items()}
    return [jobs_of(settings, model, path, files, settings.output) for model, path in names.models.items()]


def _missing_jobs(jobs: Sequence[Jobs]) -> list[CollectSettings]:
    """Those of which no answers are there, or a part."""
    return [job for mine in jobs for job in mine.values() if not (job.output / MANIFEST).is_file()]


def _print_plan(settings: PasskSettings, names: _Names, jobs: Sequence[Jobs]) -> None:
    """The power note, and what sampling will cost, going by the first checkpoint that is not sampled yet."""
    console = new_console()
    prior = read_prior(settings.prior) if settings.prior else None
    problems = pd.concat(
        problem_columns(read_problems(sampled.path)).assign(file=name) for name, sampled in names.problems.items()
    )
    rows = list(detectable(problems, settings.n_samples, table_ks(settings.ks, settings.n_samples), prior))
    print_detectable(rows, settings.n_samples, console)
    missing = _missing_jobs(jobs)
    if not missing or not settings.probe:
        return
    planned = sum(names.problems[job.output.name].rows.size * job.n_samples for job in missing)
    first = next(mine for mine in jobs if missing[0] in mine.values())
    with engine_for(first) as engine:
        console.print(probe(engine, list(first.values()), settings.probe).words(planned))


def read_prior(given: str) -> pd.DataFrame:
    """The rows of an evaluation, by its folder or a file in it. UserError if there are none."""
    path = Path(given)
    table = (path if path.is_dir() else path.parent) / RESULTS
    if not path.exists() or not table.is_file():
        reason = f"no {RESULTS} there" if path.exists() else "no such folder"
        raise UserError(f"prior={given}: {reason}; give the output folder of examples/passk.py or examples/evaluate.py")
    return read(table)


def _collect(settings: PasskSettings, jobs: Sequence[Jobs]) -> dict[tuple[str, str], Path]:
    """Ask every checkpoint; answers that are there stay."""
    folders: dict[tuple[str, str], Path] = {}
    for mine in jobs:
        with engine_for(mine) as engine:
            collected = all_collected(mine, engine, force=settings.force)
        _write_responses(collected, mine, force=settings.force)
        folders |= collected
    return folders


def _write_responses(folders: Folders, jobs: Jobs, *, force: bool) -> None:
    """All answers of one checkpoint in one file beside their folders."""
    problems = {key: job.problems for key, job in jobs.items()}
    inputs = {"/".join(key): folder for key, folder in folders.items()}
    target = next(iter(folders.values())).parent / ALL
    write_derived(target, Recipe(STEP, {}, inputs), lambda path: write_responses(folders, problems, path), force=force)


def _count(settings: PasskSettings, names: _Names, folders: Folders) -> None:
    """Write results.parquet, from which everything else is computed."""
    sampling = check_sampling(folders, settings.n_samples)
    inputs = {f"rollouts/{model}/{name}": folder for (model, name), folder in folders.items()}
    inputs |= {f"problems/{name}": sampled.path for name, sampled in names.problems.items()}
    kept = {"models": [*names.models, *names.rollouts], "sampling": sampling, "columns": SCHEMA.names}
    kept["pairs"] = [list(pair) for pair in names.pairs]
    kept["replicate"] = replicate_of(folders.values(), [sampled.source for sampled in names.problems.values()])
    target = settings.output / RESULTS

    def body(path: Path) -> None:
        tables = []
        for name, sampled in names.problems.items():
            problems = problem_columns(read_problems(sampled.path))
            for model in dict.fromkeys(model for model, file in folders if file == name):
                counts = count_samples(folders[model, name], sampled, settings.n_samples)
                tables.append(pd.concat([problems, counts], axis=1).assign(arm=model, file=name))
        write(pd.concat(tables), path)

    if not write_derived(target, Recipe(STEP, kept, inputs), body, force=settings.force):
        print(f"{target} is already there")
