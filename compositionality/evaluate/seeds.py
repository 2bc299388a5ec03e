"""Results over several seeds: accuracy and differences of arms, with intervals over problems and over seeds."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, config_hash, exclusive, write_derived
from compositionality.errors import UserError
from compositionality.evaluate.frames import INTERVALS, write_between_marks
from compositionality.evaluate.naming import named_paths, with_run_names
from compositionality.evaluate.results import SPLIT, ReplicateTables, Results, read_results
from compositionality.evaluate.summary import Row, differences, shares
from compositionality.evaluate.tables import print_summary, summary_markdown
from compositionality.ranges import REQUIRED
from compositionality.stats.estimate import CONFIDENCE
from compositionality.types import COMPOSED, CORRECT

STEP = "summarise_seeds"


@dataclass
class SummariseSettings:
    """Settings of ``summarise``: ``markdown`` is a file for the tables, or one with a (named) place marked for them."""

    inputs: list[str] = REQUIRED  # NAME:FOLDER of examples/evaluate.py, one for each seed
    output: Path = REQUIRED  # seeds.json
    models: list[str] = field(default_factory=list)  # these only, in this order; empty: all
    markdown: str = ""  # file for the tables, or with a place for them
    place: str = ""  # name of that place
    force: bool = False  # replace a result that was made from something else


def summarise(settings: SummariseSettings) -> Path:
    """Write ``output`` (seeds.json) and the markdown; print the tables."""
    check(settings)
    output = settings.output
    results = read_results(settings.inputs, settings.models)
    if lacking := results.in_some:
        raise UserError(f"{', '.join(lacking)}: not evaluated in every seed; evaluate the rest or choose models=[...]")
    summary = summary_of(results)
    text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
    inputs = {f"{one.name}/{file}": path for one in results.replicates for file, path in one.tables.items()}
    kept = {"models": summary["models"], "seeds": [one.name for one in results.replicates]}
    recipe = Recipe(STEP, {**kept, "content": config_hash(summary)}, inputs)
    with exclusive(output):
        write_derived(output, recipe, lambda path: path.write_text(text, encoding="utf-8"), force=settings.force)
    if settings.markdown:
        write_between_marks(Path(settings.markdown), settings.place, summary_markdown(summary))
    print_summary(summary, new_console())
    print(f"{output}" + (f"; {settings.markdown}" if settings.markdown else ""))
    return output


def check(settings: SummariseSettings) -> None:
    """UserError for an output or names of inputs that cannot be."""
    if settings.output.suffix != ".json":
        raise UserError(f"output={settings.output}: must end in .json")
    named_paths("inputs", with_run_names(settings.inputs))


def summary_of(results: Results) -> Row:
    """The content of seeds.json; the same evaluations give the same bytes."""
    return {
        "seeds": [{"name": one.name, "seed": one.seed, SPLIT: one.split} for one in results.replicates],
        "models": list(results.arms),
        "problems": results.files,
        "sampling": results.replicates[0].sampling,
        "confidence": CONFIDENCE,
        "intervals": INTERVALS,
        "accuracy": shares(results, CORRECT, "accuracy"),
        "composed": shares(results, COMPOSED, "composed"),
        "differences": differences(results, CORRECT),
        "composed_differences": differences(results, COMPOSED),
        "training": {one.name: _training(one, results.arms) for one in results.replicates},
    }


def _training(replicate: ReplicateTables, arms: Sequence[str]) -> Row:
    return {arm: asdict(replicate.training[arm]) for arm in arms if arm in replicate.training}
