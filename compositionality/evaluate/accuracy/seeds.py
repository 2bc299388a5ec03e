"""Results over several seeds: accuracy and differences of arms, with intervals that own up to both chances."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
from omegaconf import MISSING

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, config_hash, exclusive, write_derived
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.evaluate.claims.decide import figures_of
from compositionality.evaluate.counts import BY_PROBLEM
from compositionality.evaluate.evaluations import TABLE, Study, read_study
from compositionality.evaluate.tables import print_summary, write_markdown
from compositionality.stats.intervals import CONFIDENCE
from compositionality.stats.random_effects import INTERVALS

STEP = "summarise_seeds"
Row = dict[str, Any]
COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("model", pa.string()),
    ("base", pa.string()),
    ("problems", pa.string()),
    ("functions", pa.string()),
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

    inputs: list[str] = MISSING
    output: Path = MISSING
    models: list[str] = field(default_factory=list)
    markdown: str = ""
    place: str = ""
    force: bool = False


def summarise(settings: SummariseSettings) -> Path:
    """Write ``output`` (seeds.json), the same rows as parquet beside it, the markdown; print the tables."""
    output = settings.output
    if output.suffix != ".json":
        raise UserError(f"output={output}: must end in .json; the parquet file lies beside it")
    study = read_study(settings.inputs, settings.models)
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
        write_markdown(Path(settings.markdown), summary, settings.place)
    print_summary(summary, new_console())
    print(f"{output} and {table.name}" + (f"; {settings.markdown}" if settings.markdown else ""))
    return output


def summary_of(study: Study) -> Row:
    """Everything that is known of a study, as JSON takes it; the same study gives the same bytes."""
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


def _accuracy(study: Study) -> Iterator[Row]:
    """One row per problem file, level and model."""
    for labels in _groups(study):
        for model in study.models:
            found = study.share(model, labels["group"])
            yield {"model": model, **labels["row"], **figures_of(found, "accuracy")}


def _differences(study: Study) -> Iterator[Row]:
    """One row per problem file, level and pair of models: the later one − the earlier one."""
    for labels in _groups(study):
        for base, model in combinations(study.models, 2):
            found = study.contrast(model, base, labels["group"])
            yield {"model": model, "base": base, **labels["row"], **figures_of(found, "difference")}


def _groups(study: Study) -> Iterator[Row]:
    for group in study.groups:
        row = {
            "problems": group.problems,
            "functions": group.functions,
            "level": group.level,
            "data_source": group.data_source,
            "n_seeds": len(study.seeds),
            "n_problems": study.size(group),
        }
        yield {"group": group, "row": row}


def _recipe(study: Study, content: Row) -> Recipe:
    files = (f"{TABLE}.json", BY_PROBLEM)
    inputs = {f"{seed.name}/{name}": seed.folder / name for seed in study.seeds for name in files}
    names = [seed.name for seed in study.seeds]
    return Recipe(STEP, {"models": list(study.models), "seeds": names, "content": config_hash(content)}, inputs)
