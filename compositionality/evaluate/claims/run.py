"""Claims compared with the results of a study: claims.json, a table."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, config_hash, exclusive, file_hash, verify, write_derived
from compositionality.data.json_files import check_shape, read_json_object
from compositionality.errors import UserError
from compositionality.evaluate.claims.decide import claim_rows
from compositionality.evaluate.claims.file import ClaimsFile, read_claims_file
from compositionality.evaluate.claims.gates import ByName
from compositionality.evaluate.claims.standing import standings_of
from compositionality.evaluate.claims.tables import claims_markdown, print_claims
from compositionality.evaluate.frames import INTERVALS, write_between_marks
from compositionality.evaluate.registration import Frozen, Registration
from compositionality.evaluate.results import Results, read_figures, read_results
from compositionality.ranges import REQUIRED
from compositionality.stats.estimate import CONFIDENCE
from compositionality.types import Metric

STEP = "hold_claims"
AGAIN = "run examples/claims.py again with --force"
ONE_SEED = (
    "One seed was run ({which}): its decisions are about these very models on other problems. How much another "
    "training run would differ is not measured, so a decision may change with another seed; SEEDS=3 measures it."
)


@dataclass
class ClaimsSettings:
    """Settings of ``decide_claims``.

    ``results``: RESULTS/SEED:PATH of every seed; RESULTS is a key of ``results:`` in the claims. ``claims``: a file
    in compositionality/config/claims without its ending, or a path.
    """

    results: list[str] = field(default_factory=list)  # RESULTS/SEED:PATH of every seed
    output: Path = REQUIRED  # claims.json
    claims: str = ""  # file in config/claims without .yaml, or a path; empty: as registered, or composition
    markdown: str = ""  # file with a place for the table
    place: str = "claims"  # name of that place
    registration: str = ""  # folder that bash/confirmatory.sh keeps the study's registration in; empty: none
    post_hoc: bool = False  # take claims that were changed since results exist, and mark what was changed
    force: bool = False  # replace a result that was made from something else


def decide_claims(settings: ClaimsSettings) -> Path:
    """Write ``output`` (claims.json) and the markdown; print the table. UserError: no results."""
    file = check(settings)
    results, notes = _read(settings, file)
    frozen = _frozen(settings)
    registered = file.with_primary(frozen.registration.primary) if frozen else file
    content = decisions_of(registered, results, notes)
    if frozen:
        standings, changes = standings_of(frozen, _claims_of(settings), file, post_hoc=settings.post_hoc)
        facts = {**frozen.facts, "claims_sha256": file_hash(frozen.claims)}
        content |= {"registration": facts, "notes": [*changes, *content["notes"]]}
        for row in (*content["claims"], *content["controls"]):
            row["standing"] = standings[row["claim"]]
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    replicates = [(name, one) for name, found in results.items() for one in found.replicates]
    inputs = {f"{name}/{one.name}/{table}": path for name, one in replicates for table, path in one.tables.items()}
    recipe, output = Recipe(STEP, {"content": config_hash(content)}, inputs), settings.output
    with exclusive(output):
        write_derived(output, recipe, lambda path: path.write_text(text, encoding="utf-8"), force=settings.force)
    if settings.markdown:
        write_between_marks(Path(settings.markdown), settings.place, claims_markdown(content))
    print_claims(content, new_console(markup=True))
    print(f"{output}" + (f"; {settings.markdown}" if settings.markdown else ""))
    return output


def check(settings: ClaimsSettings) -> ClaimsFile:
    """Return the claims of the settings. UserError for an output, claims or a registration that cannot be."""
    if settings.output.suffix != ".json":
        raise UserError(f"output={settings.output}: must end in .json")
    file, frozen = read_claims_file(_claims_of(settings)), _frozen(settings)
    if frozen:
        standings_of(frozen, _claims_of(settings), file, post_hoc=settings.post_hoc)
    elif settings.post_hoc:
        raise UserError("--post-hoc: marks what changed since a registration; this study has none, leave it out")
    return file


def decisions_of(file: ClaimsFile, results: ByName, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return the content of claims.json; the same results give the same bytes."""
    names = list(dict.fromkeys(one.name for found in results.values() for one in found.replicates))
    rows = list(claim_rows([*file.claims, *file.controls], results))
    n_claims = len(file.claims)
    return {
        "claims": rows[:n_claims],
        "controls": rows[n_claims:],
        "n_seeds": max((found.n_seeds for found in results.values()), default=0),
        "seeds": names,
        "confidence": CONFIDENCE,
        "intervals": INTERVALS,
        "notes": [*_notes(file, results), *notes],
    }


def _frozen(settings: ClaimsSettings) -> Frozen | None:
    """The registration that the study ran under, if it did."""
    return Frozen(Path(settings.registration)) if settings.registration else None


def _claims_of(settings: ClaimsSettings) -> str:
    frozen = _frozen(settings)
    return settings.claims or (frozen.registration.claims if frozen else "composition")


def read_claims(path: Path) -> dict[str, Any]:
    """A claims.json, checked against its manifest."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with examples/claims.py")
    if verify(path).step != STEP:
        raise UserError(f"{path}: was not made by examples/claims.py")
    content = read_json_object(path, AGAIN)
    check_shape(content, {"claims": list, "controls": list, "notes": list}, path, AGAIN)
    return content


def _read(settings: ClaimsSettings, file: ClaimsFile) -> tuple[ByName, list[str]]:
    """The results that are given, with the arms that all their seeds have; a note on those that only some have."""
    given: dict[str, list[str]] = {name: [] for name in file.results}
    for entry in settings.results:
        name, _, path = entry.partition("/")
        if name not in given or not path:
            raise UserError(f"results: {entry}: is not RESULTS/SEED:PATH with one of {', '.join(given)} as RESULTS")
        given[name].append(path)
    if not settings.results:
        raise UserError(f"no results: give results=[RESULTS/SEED:PATH,...] with {', '.join(given)} as RESULTS")
    results, notes = dict[str, Results](), list[str]()
    frozen = _frozen(settings)
    registered = frozen.registration if frozen else None
    controls = registered.controls if registered else []
    for name, kind in file.results.items():
        if given[name] and kind.metric is Metric.SCALING:
            results[name] = read_figures(given[name])
        elif given[name]:
            found = read_results(given[name], metric=kind.metric)
            if registered:
                _check_replicates(name, found, registered)
            rest = [arm for arm in found.in_some if arm not in controls]
            notes += [f"Left out of {name}: {', '.join(rest)}; not every seed has it."] if rest else []
            results[name] = found = found.without(rest)
            if of_some := found.in_some:
                n = len(found.with_arms(set(of_some)).replicates)
                notes += [f"{', '.join(of_some)}: in {n} of {len(found.replicates)} replicates."]
    return results, notes


def _check_replicates(name: str, results: Results, registered: Registration) -> None:
    """UserError unless these are all the replicates that were registered, and no others."""
    wanted = {(seed, split) for seed, splits in registered.replicates.items() for split in splits}
    given = {(one.seed, one.split) for one in results.replicates}
    for what, which in (("without", wanted - given), ("with", given - wanted)):
        if which:
            words = ", ".join(f"seed {seed} split {split}" for seed, split in sorted(which))
            raise UserError(f"results: {name}: {what} {words}; give those of the registration, all and no others")


def _notes(file: ClaimsFile, results: ByName) -> Iterator[str]:
    """What a reader must know: single seeds, how many samples, what was not run."""
    single = [name for name, found in results.items() if found.n_seeds == 1]
    if single:
        yield ONE_SEED.format(which=", ".join(single))
    seeds = {name: found.n_seeds for name, found in results.items()}
    if len(set(seeds.values())) > 1:
        yield f"Seeds: {', '.join(f'{name} {n}' for name, n in seeds.items())}."
    for name, found in results.items():
        if file.results[name].metric is Metric.PASS_AT_K:
            samples = [found.samples(problems) for problems in found.sets]
            ends = dict.fromkeys((min(samples), max(samples)))
            yield f"pass@k: N = {' to '.join(f'{n:,}' for n in ends)} samples of a problem."
    if any(of.metric is Metric.INFLUENCE and name in results for name, of in file.results.items()):
        yield "Influence (of a step of rate 1, on the mean reward) and entropy (nats a token) are in hundredths."
    if any(of.metric is Metric.SCALING and name in results for name, of in file.results.items()):
        yield "Scaling: slopes, shares and differences of log loss are in hundredths; intervals over runs."
    for name, of in file.results.items():
        if name not in results:
            yield f"Not run: {name}, by {of.script}."
