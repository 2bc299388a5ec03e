"""Results over several seeds: accuracy and differences of arms, with intervals over problems and over seeds."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, config_hash, exclusive, write_derived
from compositionality.errors import UserError
from compositionality.evaluate.frames import INTERVALS, csv_text, write_between_marks
from compositionality.evaluate.naming import named_paths, with_run_names
from compositionality.evaluate.results import SPLIT, Results, read_results
from compositionality.evaluate.summary import Row, differences, shares
from compositionality.evaluate.tables import print_summary, summary_markdown
from compositionality.ranges import REQUIRED
from compositionality.stats.estimate import CONFIDENCE
from compositionality.types import COMPOSED, CORRECT


@dataclass
class SummariseSettings:
    """Settings of ``summarise``: ``markdown`` is a file for the tables, or one with a (named) place marked for them."""

    inputs: list[str] = REQUIRED  # NAME:FOLDER of examples/evaluate.py, one for each seed
    output: Path = REQUIRED  # summary.csv
    models: list[str] = field(default_factory=list)  # these only, in this order; empty: all
    markdown: str = ""  # file for the tables, or with a place for them
    place: str = ""  # name of that place
    force: bool = False  # replace a result that was made from something else


def summarise(settings: SummariseSettings) -> Path:
    """Write ``output``, a row for each share and difference, and the markdown; print the tables."""
    check(settings)
    output, results = settings.output, read_results(settings.inputs, settings.models)
    if lacking := results.in_some:
        raise UserError(f"{', '.join(lacking)}: not evaluated in every seed; evaluate the rest or choose models=[...]")
    summary, text = summary_of(results), csv_text(summary_rows(results))
    recipe = Recipe("summarise_seeds", {"content": config_hash({"text": text})}, table_files(results))
    with exclusive(output):
        write_derived(output, recipe, lambda path: path.write_text(text, encoding="utf-8"), force=settings.force)
    if settings.markdown:
        write_between_marks(Path(settings.markdown), settings.place, summary_markdown(summary))
    print_summary(summary, new_console())
    print(f"{output}" + (f"; {settings.markdown}" if settings.markdown else ""))
    return output


def check(settings: SummariseSettings) -> None:
    """UserError for an output or names of inputs that cannot be."""
    if settings.output.suffix != ".csv":
        raise UserError(f"output={settings.output}: must end in .csv")
    named_paths("inputs", with_run_names(settings.inputs))


def table_files(results: Results) -> dict[str, Path]:
    """Return the files that the results were read from, as REPLICATE/FILE."""
    return {f"{one.name}/{file}": path for one in results.replicates for file, path in one.tables.items()}


def summary_of(results: Results) -> Row:
    """Return what tables, figures and records show of a study; the same evaluations give the same."""
    return {
        "seeds": [{"name": one.name, "seed": one.seed, SPLIT: one.split} for one in results.replicates],
        "models": list(results.arms),
        "problems": results.files,
        "sampling": results.replicates[0].sampling,
        "confidence": CONFIDENCE,
        "intervals": INTERVALS,
        "accuracy": shares(results, CORRECT, "accuracy"),
        "composed": shares(results, COMPOSED, "composed"),
        "training": {
            one.name: {arm: asdict(one.training[arm]) for arm in results.arms if arm in one.training}
            for one in results.replicates
        },
    }


def summary_rows(results: Results) -> Iterator[Row]:
    """Yield a row for each share, and for each difference to another model (``base``), of right answers, then of
    composed ones (``part``)."""
    for part in (CORRECT, COMPOSED):
        yield from ({"base": "", **row} for row in shares(results, part, "value"))
        for row in differences(results, part):
            yield {"value": row.pop("difference"), **row}
