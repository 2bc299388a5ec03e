"""pass@k from checkpoints or rollout folders to files: sample, count, compute."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pyarrow as pa

from compositionality.console import new_console
from compositionality.data.artefact import MANIFEST, Recipe, exclusive, is_to_be_checked, tree_hash, write_derived
from compositionality.data.json_files import read_json_object
from compositionality.data.parquet import write_table
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.evaluate.completions import Folders, Jobs, all_collected, check_jobs, engine_for, jobs_of
from compositionality.evaluate.counts import (
    BY_PROBLEM,
    BY_PROBLEM_SCHEMA,
    Counted,
    ProblemCounts,
    by_problem_table,
    read_counts,
)
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.passk.curves import Pairs, curves_of, largest_k
from compositionality.evaluate.passk.plan import detectable, print_detectable, probe
from compositionality.evaluate.passk.reranking import Row
from compositionality.evaluate.passk.samples import (
    SampledProblems,
    check_sampling,
    choose_all,
    count_all,
    rows_of,
    write_responses,
)
from compositionality.evaluate.replicate import replicate_of
from compositionality.evaluate.tables import print_curves
from compositionality.ranges import REQUIRED, NonNegativeInt, PositiveInt, check_ranges
from compositionality.rollout.engines.factory import choose_engine
from compositionality.rollout.settings import CollectSettings, SamplingSettings
from compositionality.train.common.training_report import run_until

STEP = "passk"
NAME = "passk"
ALL = "all.parquet"
SCHEMA = pa.schema(
    [
        ("metric", pa.string()),  # pass@k, pass^k, difference
        ("model", pa.string()),
        ("base", pa.string()),
        ("problems", pa.string()),
        ("group", pa.string()),
        ("level", pa.int64()),
        ("n_problems", pa.int64()),
        ("k", pa.int64()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    ]
)
METRICS = {"pass@k": "pass_at_k", "pass^k": "pass_hat_k", "difference": "difference"}


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


def table_ks(settings: PasskSettings, largest: int) -> list[int]:
    """The k to print: those in the settings, else powers of two and the largest."""
    powers = [1 << power for power in range(largest.bit_length()) if 1 << power < largest]
    return [k for k in settings.ks if k <= largest] if settings.ks else [*powers, largest]


@dataclass(frozen=True)
class _Names:
    """Who is compared on what, as the settings say it."""

    models: dict[str, str]
    rollouts: dict[str, str]
    problems: dict[str, SampledProblems]
    pairs: Pairs


def passk(settings: PasskSettings) -> Path:
    """Write ``output``/passk.{json,parquet}, by_problem.parquet and the rollouts behind them; print the curves."""
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
        answers = _count(settings, names, folders)
        content = _write_curves(settings, names, folders, answers)
    print_curves(content, table_ks(settings, min(row["k"][-1] for row in content["curves"])))
    print(f"{settings.output / NAME}.json, .parquet and {BY_PROBLEM}")
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
    prior = read_prior(settings.prior) if settings.prior else []
    strata = {name: one.strata() for name, one in names.problems.items()}
    ks = table_ks(settings, settings.n_samples)
    print_detectable(list(detectable(strata, settings.n_samples, ks, prior)), settings.n_samples, console)
    missing = _missing_jobs(jobs)
    if not missing or not settings.probe:
        return
    planned = sum(names.problems[job.output.name].rows.size * job.n_samples for job in missing)
    first = next(mine for mine in jobs if missing[0] in mine.values())
    with engine_for(first) as engine:
        console.print(probe(engine, list(first.values()), settings.probe).words(planned))


def read_prior(given: str) -> list[ProblemCounts]:
    """The counts of an evaluation, by its folder or a file in it. UserError if there are none."""
    path = Path(given)
    counts = (path if path.is_dir() else path.parent) / BY_PROBLEM
    if not path.exists() or not counts.is_file():
        reason = f"no {BY_PROBLEM} there" if path.exists() else "no such folder"
        raise UserError(f"prior={given}: {reason}; give the output folder of examples/passk.py or examples/evaluate.py")
    return list(read_counts(counts).values())


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


def _count(settings: PasskSettings, names: _Names, folders: Folders) -> dict[tuple[str, str], ProblemCounts]:
    """Write by_problem.parquet, from which everything else is computed, and read it."""
    sampling = check_sampling(folders, settings.n_samples)
    inputs = {f"rollouts/{model}/{name}": folder for (model, name), folder in folders.items()}
    inputs |= {f"problems/{name}": questions.path for name, questions in names.problems.items()}
    kept = {"models": [*names.models, *names.rollouts], "sampling": sampling, "columns": BY_PROBLEM_SCHEMA.names}
    kept["replicate"] = replicate_of(folders.values(), [one.source for one in names.problems.values()])
    recipe = Recipe(STEP, kept, inputs)
    target = settings.output / BY_PROBLEM
    problems = {name: read_problems(one.path) for name, one in names.problems.items()}

    def body(path: Path) -> None:
        tallies = count_all(folders, names.problems, settings.n_samples)
        write_table(by_problem_table(tallies, problems), path)

    if not write_derived(target, recipe, body, force=settings.force):
        print(f"{target} is already there")
    return read_counts(target)


def _write_curves(settings: PasskSettings, names: _Names, folders: Folders, answers: Counted) -> Row:
    """passk.json and passk.parquet, which follow by_problem.parquet; the content of the first."""
    output = settings.output / NAME
    runs = {model: found for model, path in names.models.items() if (found := run_until(Path(path)))}
    kept = {"pairs": [list(pair) for pair in names.pairs], **({"runs": runs} if runs else {})}
    recipe = Recipe(STEP, kept, {"by_problem": settings.output / BY_PROBLEM})
    curves = cache(lambda: curves_of(answers, names.pairs))

    def write_json(path: Path) -> None:
        content = {
            "models": list(dict.fromkeys(model for model, _ in answers)),
            **check_sampling(folders, settings.n_samples),
            "problems": {name: tree_hash(questions.path) for name, questions in names.problems.items()},
            "missing": list(_missing(answers, settings.n_samples)),
            **({"runs": runs} if runs else {}),
            **dict(zip(("curves", "differences", "reranking"), curves(), strict=True)),
        }
        path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")

    def write_long(path: Path) -> None:
        rows = [row for part in curves()[:2] for row in _long(part)]
        write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)

    json_file = output.with_suffix(".json")
    write_derived(json_file, recipe, write_json, force=settings.force)
    write_derived(output.with_suffix(".parquet"), recipe, write_long, force=settings.force)
    return read_json_object(json_file, "run examples/passk.py again with --force")


def _missing(answers: Counted, n_samples: int) -> Iterator[Row]:
    """Samples on which judge or server failed: they count neither as right nor as wrong."""
    for (model, name), counts in answers.items():
        samples = int((n_samples - counts.judged).sum())
        if samples:
            yield {"model": model, "problems": name, "samples": samples, "largest_k": largest_k({model: counts}, name)}


def _long(rows: list[Row]) -> Iterator[Row]:
    """One row for every k of every curve."""
    shared = [field.name for field in SCHEMA if field.name in ("model", "base", "problems", "group", "level")]
    for row in rows:
        labels = {name: row.get(name) for name in [*shared, "n_problems"]}
        for metric, column in METRICS.items():
            for place, value in enumerate(row.get(column, ())):
                bounds = {} if metric == "pass^k" else {"low": row["low"][place], "high": row["high"][place]}
                yield {"metric": metric, **labels, "k": row["k"][place], "value": value, **bounds}
