"""The paper's claims held against the results of a study, section by section: claims.json, claims.csv, a table."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, config_hash, exclusive, verify, write_derived
from compositionality.errors import UserError
from compositionality.evaluate.claims.claim import Source
from compositionality.evaluate.claims.decide import Studies, claim_rows
from compositionality.evaluate.claims.paper import CLAIMS, CONTROLS
from compositionality.evaluate.counts import BY_PROBLEM
from compositionality.evaluate.evaluations import read_study, shared_arms
from compositionality.evaluate.tables import claims_markdown, print_claims, write_between_marks
from compositionality.stats.intervals import CONFIDENCE
from compositionality.stats.random_effects import INTERVALS

STEP = "hold_claims"
SCRIPTS = {
    Source.ACCURACY: "bash/section41_42/run_all.sh",
    Source.COUNTDOWN: "bash/section43/run_all.sh",
    Source.PASS_AT_K: "bash/section44/passk.sh",
    Source.FAILURES: "bash/section45/failure_modes.sh",
}
ONE_SEED = (
    "One seed was run ({which}): its verdicts are about these very models on other problems. How much another training "
    "run would differ is not measured, so a verdict may turn with another seed; SEEDS=3 measures it."
)


@dataclass
class ClaimsSettings:
    """Settings of ``hold_claims``: NAME:PATH of every seed, for each section that was run."""

    accuracy: list[str] = field(default_factory=list)
    countdown: list[str] = field(default_factory=list)
    passk: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    output: Path = MISSING
    markdown: str = ""
    place: str = "claims"
    force: bool = False


def hold_claims(settings: ClaimsSettings) -> Path:
    """Write ``output`` (claims.json), claims.csv beside it and the markdown; print the table. UserError: no results."""
    import pandas as pd

    output = settings.output
    if output.suffix != ".json":
        raise UserError(f"output={output}: must end in .json; the csv file lies beside it")
    studies, notes = _read(settings)
    content = claims_of(studies, notes)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    recipe = _recipe(studies, content)
    table = output.with_suffix(".csv")
    with exclusive(output):
        write_derived(output, recipe, lambda path: path.write_text(text), force=settings.force)
        rows = pd.DataFrame(_flat(content))
        write_derived(table, recipe, lambda path: rows.to_csv(path, index=False), force=settings.force)
    if settings.markdown:
        write_between_marks(Path(settings.markdown), settings.place, claims_markdown(content))
    print_claims(content, new_console(markup=True))
    print(f"{output} and {table.name}" + (f"; {settings.markdown}" if settings.markdown else ""))
    return output


def claims_of(studies: Studies, notes: list[str] | None = None) -> dict[str, Any]:
    """Every claim and control with its verdict, as JSON takes them; the same studies give the same bytes."""
    names = list(dict.fromkeys(seed.name for study in studies.values() for seed in study.seeds))
    return {
        "claims": list(claim_rows(CLAIMS, studies)),
        "controls": list(claim_rows(CONTROLS, studies)),
        "n_seeds": max((len(study.seeds) for study in studies.values()), default=0),
        "seeds": names,
        "confidence": CONFIDENCE,
        "intervals": INTERVALS,
        "notes": [*_notes(studies), *(notes or [])],
    }


def read_claims(path: Path) -> dict[str, Any]:
    """A claims.json, checked against its manifest."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with examples/claims.py")
    if verify(path).step != STEP:
        raise UserError(f"{path}: was not made by examples/claims.py")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def _read(settings: ClaimsSettings) -> tuple[Studies, list[str]]:
    """The studies that are named, with the arms that all their seeds have; a note on those that only some have."""
    studies, notes = {}, []
    for source in Source:
        inputs: list[str] = getattr(settings, source.value)
        if inputs:
            arms, rest = shared_arms(inputs, source)
            studies[source] = read_study(inputs, arms, source)
            notes += [f"Left out of {source}: {', '.join(rest)}; not every seed has it."] if rest else []
    if not studies:
        raise UserError(f"no results: give at least one of {', '.join(Source)}, as accuracy=[NAME:PATH,...]")
    return studies, notes


def _notes(studies: Studies) -> Iterator[str]:
    """What a reader must know: single seeds, how many samples, what was not run."""
    single = [str(source) for source, study in studies.items() if len(study.seeds) == 1]
    if single:
        yield ONE_SEED.format(which=", ".join(single))
    seeds = {str(source): len(study.seeds) for source, study in studies.items()}
    if len(set(seeds.values())) > 1:
        yield f"Seeds: {', '.join(f'{source} {n}' for source, n in seeds.items())}."
    if Source.PASS_AT_K in studies:
        study = studies[Source.PASS_AT_K]
        samples = [study.samples(group) for group in study.groups]
        ends = dict.fromkeys((min(samples), max(samples)))
        yield f"pass@k: N = {' to '.join(f'{n:,}' for n in ends)} samples of a problem."
    for source, script in SCRIPTS.items():
        if source not in studies:
            yield f"Not run: {source}, by {script}."


def _recipe(studies: Studies, content: Mapping[str, Any]) -> Recipe:
    seeds = [(source, seed) for source, study in studies.items() for seed in study.seeds]
    inputs = {f"{source}/{seed.name}/{BY_PROBLEM}": seed.folder / BY_PROBLEM for source, seed in seeds}
    return Recipe(STEP, {"content": config_hash(content)}, inputs)


def _flat(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One row a comparison, its claim's words before it."""
    for row in (*content["claims"], *content["controls"]):
        claim = {key: value for key, value in row.items() if key not in ("claim", "comparisons")}
        of_claim = {"claim": row["claim"], **{f"claim_{key}": value for key, value in claim.items()}}
        yield from ({**of_claim, **comparison} for comparison in row["comparisons"])
