"""Results over several seeds: accuracy and differences of arms, with intervals over problems and over seeds."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
from omegaconf import MISSING

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, config_hash, exclusive, write_derived
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.evaluate.counts import BY_PROBLEM
from compositionality.evaluate.evaluations import TABLE, Evaluations, ProblemSet, read_evaluations
from compositionality.evaluate.frames import write_between_marks
from compositionality.evaluate.naming import named_paths, with_run_names
from compositionality.evaluate.tables import print_summary, summary_markdown
from compositionality.stats.intervals import CONFIDENCE, columns_by_seed
from compositionality.stats.random_effects import INTERVALS

STEP = "summarise_seeds"
Row = dict[str, Any]
COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("model", pa.string()),
    ("base", pa.string()),
    ("problems", pa.string()),
    ("group", pa.string()),
    ("level", pa.int64()),
    ("data_source", pa.string()),
    ("accuracy", pa.float64()),
    ("difference", pa.float64()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("interval", pa.string()),
    ("problems_low", pa.float64()),
    ("problems_high", pa.float64()),
    ("values", pa.list_(pa.float64())),
    ("n_seeds", pa.int64()),
    ("n_problems", pa.int64()),
)


@dataclass
class SummariseSettings:
    """Settings of ``summarise``: ``markdown`` is a file for the tables, or one with a (named) place marked for them."""

    inputs: list[str] = MISSING  # NAME:PATH of accuracy.json, one for each seed
    output: Path = MISSING  # seeds.json; the same rows as parquet lie beside it
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
    rows = [*summary["accuracy"], *summary["differences"]]
    text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
    recipe = _recipe(study, summary)
    table = output.with_suffix(".parquet")
    with exclusive(output):
        write_derived(output, recipe, lambda path: path.write_text(text), force=settings.force)
        write_derived(
            table,
            recipe,
            lambda path: write_table(pa.Table.from_pylist(rows, schema=pa.schema(COLUMNS)), path),
            force=settings.force,
        )
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
        "seeds": [{"name": seed.name, "sampling_seed": seed.settings["sampling"].get("seed")} for seed in study.seeds],
        "models": list(study.models),
        "problems": first.files,
        "sampling": first.sampling,
        "confidence": CONFIDENCE,
        "intervals": INTERVALS,
        "accuracy": list(_accuracy(study)),
        "differences": list(_differences(study)),
    }


def _accuracy(study: Evaluations) -> Iterator[Row]:
    """One row per problem set and model."""
    for problems in study.sets:
        for model in study.models:
            found = columns_by_seed(study.share(model, problems), "accuracy")
            yield {"model": model, **_labels(study, problems), **found}


def _differences(study: Evaluations) -> Iterator[Row]:
    """One row per problem set and pair of models: the later one − the earlier one."""
    for problems in study.sets:
        for base, model in combinations(study.models, 2):
            found = columns_by_seed(study.contrast(model, base, problems), "difference")
            yield {"model": model, "base": base, **_labels(study, problems), **found}


def _labels(study: Evaluations, problems: ProblemSet) -> Row:
    return {**asdict(problems), "n_seeds": len(study.seeds), "n_problems": study.size(problems)}


def _recipe(study: Evaluations, content: Row) -> Recipe:
    files = (f"{TABLE}.json", BY_PROBLEM)
    inputs = {f"{seed.name}/{name}": seed.folder / name for seed in study.seeds for name in files}
    names = [seed.name for seed in study.seeds]
    return Recipe(STEP, {"models": list(study.models), "seeds": names, "content": config_hash(content)}, inputs)
