"""Results over several seeds: accuracy and differences of arms, with intervals over problems and over seeds."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, config_hash, exclusive, write_all_derived
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.evaluate.counts import BY_PROBLEM
from compositionality.evaluate.evaluations import TABLE, Evaluation, Evaluations, ProblemSet, read_evaluations
from compositionality.evaluate.frames import INTERVALS, columns_by_seed, write_between_marks
from compositionality.evaluate.naming import named_paths, with_run_names
from compositionality.evaluate.replicate import SPLIT
from compositionality.evaluate.tables import print_summary, summary_markdown
from compositionality.ranges import REQUIRED
from compositionality.stats.estimate import CONFIDENCE
from compositionality.types import COMPOSED, CORRECT

STEP = "summarise_seeds"
Row = dict[str, Any]
COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("model", pa.string()),
    ("base", pa.string()),
    ("problems", pa.string()),
    ("group", pa.string()),
    ("level", pa.int64()),
    ("data_source", pa.string()),
    ("part", pa.string()),
    ("accuracy", pa.float64()),
    ("composed", pa.float64()),
    ("difference", pa.float64()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("interval", pa.string()),
    ("problems_low", pa.float64()),
    ("problems_high", pa.float64()),
    ("values", pa.list_(pa.float64())),
    ("splits", pa.list_(pa.list_(pa.float64()))),
    ("n_seeds", pa.int64()),
    ("n_problems", pa.int64()),
)


TABLES = ("accuracy", "composed", "differences", "composed_differences")
"""Lists of rows in seeds.json: shares of the models, then differences of pairs of them."""


@dataclass
class SummariseSettings:
    """Settings of ``summarise``: ``markdown`` is a file for the tables, or one with a (named) place marked for them."""

    inputs: list[str] = REQUIRED  # NAME:PATH of accuracy.json, one for each seed
    output: Path = REQUIRED  # seeds.json; the same rows as parquet lie beside it
    models: list[str] = field(default_factory=list)  # these only, in this order; empty: all
    markdown: str = ""  # file for the tables, or with a place for them
    place: str = ""  # name of that place
    force: bool = False  # replace a result that was made from something else


def summarise(settings: SummariseSettings) -> Path:
    """Write ``output`` (seeds.json), the same rows as parquet beside it, the markdown; print the tables."""
    check(settings)
    output = settings.output
    study = read_evaluations(settings.inputs, settings.models)
    summary = summary_of(study)
    rows = [row for key in TABLES for row in summary[key]]
    text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
    recipe = _recipe(study, summary)
    table = output.with_suffix(".parquet")
    with exclusive(output):
        bodies: dict[Path, Callable[[Path], object]] = {
            output: lambda path: path.write_text(text, encoding="utf-8"),
            table: lambda path: write_table(pa.Table.from_pylist(rows, schema=pa.schema(COLUMNS)), path),
        }
        write_all_derived(bodies, recipe, force=settings.force)
    if settings.markdown:
        write_between_marks(Path(settings.markdown), settings.place, summary_markdown(summary))
    print_summary(summary, new_console())
    print(f"{output} and {table.name}" + (f"; {settings.markdown}" if settings.markdown else ""))
    return output


def check(settings: SummariseSettings) -> None:
    """UserError for an output or names of inputs that cannot be."""
    if settings.output.suffix != ".json":
        raise UserError(f"output={settings.output}: must end in .json; the parquet file lies beside it")
    named_paths("inputs", with_run_names(settings.inputs))


def summary_of(study: Evaluations) -> Row:
    """The content of seeds.json; the same evaluations give the same bytes."""
    first = study.seeds[0]
    return {
        "seeds": [
            {"name": one.name, "sampling_seed": one.settings["sampling"].get("seed"), SPLIT: one.function_split}
            for one in study.seeds
        ],
        "models": list(study.models),
        "problems": study.files,
        "sampling": first.sampling,
        "confidence": CONFIDENCE,
        "intervals": INTERVALS,
        "accuracy": list(_shares(study, CORRECT, "accuracy")),
        "composed": list(_shares(study, COMPOSED, "composed")),
        "differences": list(_differences(study, CORRECT)),
        "composed_differences": list(_differences(study, COMPOSED)),
        "training": {seed.name: _training(seed, study.models) for seed in study.seeds},
    }


def _training(seed: Evaluation, models: Sequence[str]) -> Row:
    return {model: asdict(seed.training[model]) for model in models if model in seed.training}


def _shares(study: Evaluations, part: str, value: str) -> Iterator[Row]:
    """One row per problem set and model; of composed responses only where the task can tell."""
    for problems in study.sets:
        for model in study.models:
            share = study.share(model, problems, part)
            if share or part == CORRECT:
                yield {"model": model, **_labels(study, problems, part), **columns_by_seed(share, value)}


def _differences(study: Evaluations, part: str) -> Iterator[Row]:
    """One row per problem set and pair of models: the later one − the earlier one."""
    for problems in study.sets:
        for base, model in combinations(study.models, 2):
            found = study.contrast(model, base, problems, part=part)
            if found or part == CORRECT:
                labels = {"model": model, "base": base, **_labels(study, problems, part)}
                yield {**labels, **columns_by_seed(found, "difference")}


def _labels(study: Evaluations, problems: ProblemSet, part: str) -> Row:
    sizes = {"n_seeds": study.n_seeds, "n_problems": study.size(problems)}
    return {**asdict(problems), "part": part, **sizes}


def _recipe(study: Evaluations, content: Row) -> Recipe:
    files = (f"{TABLE}.json", BY_PROBLEM)
    inputs = {f"{seed.name}/{name}": seed.folder / name for seed in study.seeds for name in files}
    names = [seed.name for seed in study.seeds]
    return Recipe(STEP, {"models": list(study.models), "seeds": names, "content": config_hash(content)}, inputs)
