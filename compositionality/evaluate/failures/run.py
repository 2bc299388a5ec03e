"""Section 4.5: from judged rollouts to labels, shares by class, and (as an option) the agreement with a judge model."""

import hashlib
import json
from pathlib import Path

from compositionality.data.artefact import Recipe, exclusive, file_hash, read_manifest, write_derived
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.evaluate.counts import BY_PROBLEM
from compositionality.evaluate.evaluations import LABELS
from compositionality.evaluate.failures.judge import JUDGED, judge_labels
from compositionality.evaluate.failures.labels import LABELS_SCHEMA, by_problem, count_labels, write_labels
from compositionality.evaluate.failures.sources import FailureSettings, Source, find_sources
from compositionality.evaluate.failures.summary import Row, agreement, summarise
from compositionality.evaluate.replicate import replicate_of
from compositionality.evaluate.tables import print_failures

STEP = "find_failures"
SUMMARY = "failure_modes.json"
RULES = 1
"""Of the classification; another number makes old labels be made again."""


def find_failures(settings: FailureSettings) -> Path:
    """Write ``output``/labels.parquet, by_problem.parquet and failure_modes.json; print the table of ``level``."""
    output, sources = settings.output, find_sources(settings)
    with exclusive(output):
        table = output / LABELS
        recipe = _recipe(settings, sources)
        if not write_derived(table, recipe, lambda path: _write_labels(sources, settings, path), force=settings.force):
            print(f"{table} is already there")
        if settings.judge:
            judge_labels(settings, sources, table, output)
        summary = _summarise(output, table, force=settings.force)
    print_failures(summary, settings.level)
    print(f"{output / SUMMARY}, {LABELS} and {BY_PROBLEM}")
    return output


def _recipe(settings: FailureSettings, sources: list[Source]) -> Recipe:
    inputs = {f"rollouts/{source.model}/{source.problems}": source.rollouts for source in sources}
    inputs |= {f"problems/{source.problems}": source.path for source in sources}
    names = [[source.model, source.problems] for source in sources]
    kept = {"rules": RULES, "columns": LABELS_SCHEMA.names, "sources": names, "levels": sorted(settings.levels)}
    replicate = replicate_of((source.rollouts for source in sources), {source.path: None for source in sources})
    return Recipe(STEP, {**kept, "replicate": replicate}, inputs)


def _write_labels(sources: list[Source], settings: FailureSettings, path: Path) -> None:
    if not write_labels(sources, settings.levels, path):
        raise UserError(f"levels={settings.levels}: no response to problems of these levels; leave levels out for all")


def _summarise(output: Path, table: Path, *, force: bool) -> Row:
    """The counts per problem and the shares, made from the labels alone."""
    judged = output / JUDGED
    old = read_manifest(judged) if judged.is_file() else None
    inputs = {"labels": table}
    if old is not None and old.inputs.get("labels") == file_hash(table):
        inputs["judge"] = judged
    counted = count_labels(table)
    summary = summarise(counted, agreement(judged) if "judge" in inputs else None)
    text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
    content = hashlib.sha256(text.encode()).hexdigest()  # other formulas make another summary of the same labels
    table_of_counts = by_problem(counted)
    recipe = Recipe(STEP, {"rules": RULES, "columns": table_of_counts.column_names}, {"labels": table})
    write_derived(output / BY_PROBLEM, recipe, lambda path: write_table(table_of_counts, path), force=force)
    write_derived(
        output / SUMMARY,
        Recipe(STEP, {"content": content}, inputs),
        lambda path: path.write_text(text, encoding="utf-8"),
        force=force,
    )
    return summary
