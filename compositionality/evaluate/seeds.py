"""Summary of all replicates: accuracy and differences of arms, with intervals over problems and over seeds."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from rich.console import Console

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, check_maker, config_hash, make
from compositionality.errors import UserError
from compositionality.evaluate.naming import add_run_names, named_paths
from compositionality.evaluate.ranks import rank_table, ranks_of
from compositionality.evaluate.results import SPLIT, ProblemSet, Results, existing, read_results
from compositionality.evaluate.summary import Row, differences, shares
from compositionality.evaluate.tables import INTERVALS, csv_text, print_tables, rich_table
from compositionality.evaluate.types import CHAIN, CORRECT, Metric
from compositionality.ranges import REQUIRED
from compositionality.stats.estimate import CONFIDENCE

STEP = "summarise_seeds"


@dataclass
class SummariseSettings:
    inputs: list[str] = REQUIRED  # one NAME:FOLDER of examples/evaluate.py per seed; with variants VARIANT/NAME:FOLDER
    output: Path = REQUIRED  # file to write, summary.csv
    models: list[str] = field(default_factory=list)  # only these models, in this order; empty: all
    influence: list[str] = field(default_factory=list)  # NAME:FOLDER with MODEL/influence.parquet, to rank arms
    force: bool = False  # replace a result that was made from something else


def summarise(settings: SummariseSettings) -> Path:
    """Write ``output``, a row for each share and difference; print the tables (of each variant).

    With ``influence`` also write ranks.csv beside it, and print the rank correlations.
    """
    rows, files, console, output = list[Row](), dict[str, Path](), new_console(), settings.output
    variants, influence = check(settings, dry=False)
    for variant, results in variants.items():
        rows += [{"variant": variant, **row} if variant else row for row in summary_rows(results)]
        files |= {str(Path(variant, name)): path for name, path in table_files(results).items()}
        if variant:
            console.print(f"\n{variant}")
        print_summary(results, console)
    texts = {output: csv_text(rows)}
    if influence is not None:
        ranks = ranks_of(variants[""], influence)
        texts[output.with_name("ranks.csv")] = csv_text(ranks["correlations"])
        files |= {f"influence/{name}": path for name, path in table_files(influence).items()}
        console.print(rich_table(*rank_table(ranks)))
    for path, text in texts.items():
        recipe = Recipe(STEP, {"content": config_hash({"text": text})}, files)
        make(path, recipe, partial(Path.write_text, data=text, encoding="utf-8"), force=settings.force, follows=True)
    print(*texts, sep="\n")
    return output


def check(settings: SummariseSettings, *, dry: bool = True) -> tuple[dict[str, Results], Results | None]:
    """Return the results of each variant and the influence; if ``dry``, of the inputs that exist.

    UserError for an invalid output, invalid names of inputs, damaged inputs, an arm that not every seed has.
    """
    if settings.output.suffix != ".csv":
        raise UserError(f"output={settings.output}: must end in .csv")
    for path in (settings.output, *([settings.output.with_name("ranks.csv")] if settings.influence else [])):
        check_maker(path, STEP, force=settings.force)
    if not settings.inputs:
        raise UserError("inputs: give at least one, as inputs=[seed0:FOLDER,...]")
    variants: dict[str, list[str]] = {}
    for entry in settings.inputs:
        match = re.fullmatch(r"([\w.-]+)/([\w.-]+:.+)", entry)
        variants.setdefault(match[1] if match else "", []).append(match[2] if match else entry)
    for key, entries in [*(("inputs", inputs) for inputs in variants.values()), ("influence", settings.influence)]:
        if entries:
            named_paths(key, add_run_names(entries))
    if settings.influence and set(variants) != {""}:
        raise UserError("influence: ranks the arms of one study; leave it out for variants")
    results = dict[str, Results]()
    for variant, inputs in variants.items():
        if present := existing(inputs) if dry else inputs:
            results[variant] = read_results(present, settings.models)
            if lacking := results[variant].partial_arms:
                raise UserError(f"{', '.join(lacking)}: not evaluated in every seed; evaluate it or give models=[...]")
    influence = existing(settings.influence) if dry and settings.influence else settings.influence
    return results, read_results(influence, metric=Metric.INFLUENCE) if influence else None


def table_files(results: Results) -> dict[str, Path]:
    """Return the files of the results, by REPLICATE/FILE."""
    return {f"{place.name}/{file}": path for place in results.replicates for file, path in place.tables.items()}


def summary_of(results: Results, sets: Sequence[ProblemSet] = ()) -> Row:
    """Return the summary of a study for tables, figures and records; a function of the evaluations only."""
    measured = [*CHAIN]
    if any(row["chains_read"] < 1 for row in shares(results, "chains_read", "chains_read", sets)):
        measured.append("chains_read")
    if results.rows["gold_log_prob"].notna().any():
        measured.append("canonical")
    return {
        "seeds": [{"name": place.name, "seed": place.seed, SPLIT: place.split} for place in results.replicates],
        "models": list(results.arms),
        "problems": results.files,
        "sampling": results.replicates[0].sampling,
        "confidence": CONFIDENCE,
        "intervals": INTERVALS,
        "accuracy": shares(results, CORRECT, "accuracy", sets),
        **{name: shares(results, name, name, sets) for name in measured},
        "training": {
            place.name: {arm: asdict(place.training[arm]) for arm in results.arms if arm in place.training}
            for place in results.replicates
        },
    }


def print_summary(results: Results, console: Console) -> None:
    """Print accuracy, shares of chains and differences to the first model (by level, and pooled), and training."""
    sets = [*results.sets, *(pool for pool, parts in results.pools.items() if len(parts) > 1)]
    changes = differences(results, CORRECT, sets, results.arms[0])
    print_tables({**summary_of(results, sets), "difference": changes}, console)


def summary_rows(results: Results) -> Iterator[Row]:
    """Yield a row for each share, and for each difference to another model (``base``): right answers, then chains
    (``measure``)."""
    for measure in (CORRECT, *CHAIN):
        yield from ({"base": "", **row} for row in shares(results, measure, "value"))
        for row in differences(results, measure):
            yield {"value": row.pop("difference"), **row}
