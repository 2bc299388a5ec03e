"""Section 4.5: from judged rollouts to a label for each, counts by class, and (as an option) a judge model's labels."""

from pathlib import Path

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, exclusive, file_hash, read_manifest, write_derived
from compositionality.errors import UserError
from compositionality.evaluate.failures.judge import JUDGED, judge_labels
from compositionality.evaluate.failures.labels import LABELS_SCHEMA, write_labels
from compositionality.evaluate.failures.sources import FailureSettings, Source, find_sources
from compositionality.evaluate.failures.summary import agreement, count_classes, faults, read_labels
from compositionality.evaluate.failures.tables import print_agreement, print_failures
from compositionality.evaluate.replicate import replicate_of
from compositionality.evaluate.results import LABELS, read_results
from compositionality.evaluate.table import RESULTS, SCHEMA, write
from compositionality.types import Metric

STEP = "find_failures"
RULES = 1
"""Of the classification; another number makes old labels be made again."""


def find_failures(settings: FailureSettings) -> Path:
    """Write ``output``/labels.parquet and results.parquet; print the table of ``level``."""
    output, sources = settings.output, find_sources(settings)
    with exclusive(output):
        table = output / LABELS
        recipe = _recipe(settings, sources)
        if not write_derived(table, recipe, lambda path: _write_labels(sources, settings, path), force=settings.force):
            print(f"{table} is already there")
        labels = read_labels(table)
        counts = Recipe(STEP, {"rules": RULES, "columns": SCHEMA.names}, {"labels": table})
        write_derived(output / RESULTS, counts, lambda path: write(count_classes(labels), path), force=settings.force)
        if settings.judge:
            judge_labels(settings, sources, table, output)
    console = new_console()
    results = read_results([f"run:{output}"], metric=Metric.FAILURES)
    print_failures(results, faults(labels[labels["level"] == settings.level]), settings.level, console)
    judged = output / JUDGED
    made = read_manifest(judged) if judged.is_file() else None
    if made is not None and made.inputs.get("labels") == file_hash(table):
        print_agreement(agreement(judged), console)
    print(f"{output / RESULTS} and {LABELS}")
    return output


def _recipe(settings: FailureSettings, sources: list[Source]) -> Recipe:
    inputs = {f"rollouts/{source.model}/{source.file}": source.rollouts for source in sources}
    inputs |= {f"problems/{source.file}": source.path for source in sources}
    names = [[source.model, source.file] for source in sources]
    kept = {"rules": RULES, "columns": LABELS_SCHEMA.names, "sources": names, "levels": sorted(settings.levels)}
    replicate = replicate_of((source.rollouts for source in sources), {source.path: None for source in sources})
    return Recipe(STEP, {**kept, "replicate": replicate}, inputs)


def _write_labels(sources: list[Source], settings: FailureSettings, path: Path) -> None:
    if not write_labels(sources, settings.levels, path):
        raise UserError(f"levels={settings.levels}: no response to problems of these levels; leave levels out for all")
