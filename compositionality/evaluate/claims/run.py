"""Decide claims by the results of a study: writes claims.json, prints a table."""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from compositionality.console import new_console
from compositionality.data import artefact
from compositionality.data.git import code_version
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError
from compositionality.evaluate.claims.decide import ByName, claim_rows
from compositionality.evaluate.claims.model import Claim, ClaimsFile, Origin, Rule, read_claims_file
from compositionality.evaluate.registration import Frozen, Registration, claims_path
from compositionality.evaluate.results import Results, existing, read_figures, read_results
from compositionality.evaluate.seeds import table_files
from compositionality.evaluate.tables import INTERVALS, WIDTH, Row, by_seed, decimals, plural, rich_table
from compositionality.evaluate.types import Decision, Metric
from compositionality.ranges import REQUIRED
from compositionality.stats.estimate import CONFIDENCE, PROBLEMS

STEP = "decide_claims"
AGAIN = "run examples/claims.py again with --force"
ONE_SEED = (
    "One seed was run ({which}): its decisions are about these very models on other problems. How much another "
    "training run would differ is not measured, so a decision may change with another seed; SEEDS=3 measures it."
)
UNITS = {
    Metric.INFLUENCE: "Influence (of a step of rate 1, on the mean reward) and entropy (nats a token) are in "
    "hundredths.",
    Metric.SCALING: "Scaling: slopes, shares and differences of log loss are in hundredths; intervals over runs.",
}


class RegistrationStatus(StrEnum):
    """The status of a claim when the study began."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    POST_HOC = "post hoc"  # added or changed since results exist
    EXPLORATORY = "exploratory"  # not registered


Statuses = dict[str, RegistrationStatus]  # by name of the claim; empty without a registration


@dataclass
class ClaimsSettings:
    results: list[str] = field(default_factory=list)  # RESULTS/SEED:PATH of every seed; RESULTS: a key of the claims
    output: Path = REQUIRED  # file to write, claims.json
    claims: str = ""  # file in config/claims without .yaml, or a path; empty: the registered claims, or composition
    registration: str = ""  # folder with the study's registration (bash/confirmatory.sh makes it); empty: none
    recorded: str = ""  # study in results/records whose decisions must be the same; empty: none
    post_hoc: bool = False  # accept claims that changed since the registration, and mark the changes
    force: bool = False  # replace a result that was made from something else


def decide_claims(settings: ClaimsSettings) -> Path:
    """Write ``output`` (claims.json) and print the table. The same results give the same bytes."""
    file, statuses, changes, frozen = _claims_of(settings, dry=False)
    results, left_out = _read(settings.results, file, frozen)
    decided = claim_rows([*file.claims, *file.controls], results)
    replicates = [(name, replicate) for name, rows in results.items() for replicate in rows.replicates]
    notes = [*changes, *_notes(file, results), *left_out]
    if frozen:
        tables = [path for _, replicate in replicates for path in replicate.tables.values()]
        codes = sorted({artefact.verify(path).code for path in tables})
        notes.append(f"Trained and sampled at {', '.join(codes)}.")  # counted at: in the manifest, as of any result
        if settings.recorded and not settings.post_hoc:
            _check_agrees(decided, Path("results/records", settings.recorded, "study/record.json"))
        decided = [{**claim, "registration_status": statuses[claim["claim"]]} for claim in decided]
    content = {
        "claims": decided[: len(file.claims)],
        "controls": decided[len(file.claims) :],
        "n_seeds": max((rows.n_seeds for rows in results.values()), default=0),
        "seeds": list(dict.fromkeys(replicate.name for _, replicate in replicates)),
        "confidence": CONFIDENCE,
        "intervals": INTERVALS,
        "notes": notes,
        **({"registration": {**frozen.facts, "claims_sha256": artefact.file_hash(frozen.claims)}} if frozen else {}),
    }
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    inputs = {f"{name}/{file}": path for name, rows in results.items() for file, path in table_files(rows).items()}
    recipe, output = artefact.Recipe(STEP, {"content": artefact.config_hash(content)}, inputs), settings.output
    write = partial(Path.write_text, data=text, encoding="utf-8")
    artefact.make(output, recipe, write, force=settings.force, follows=True)
    print_claims(content, new_console())
    print(output)
    return output


def _check_agrees(decided: Sequence[dict[str, Any]], record: Path) -> None:
    """Raise UserError for a claim that the committed record decides differently from the same tables."""
    past = read_json_object(record, "restore it") if record.is_file() else {"claims": [], "controls": []}
    decisions = {claim["claim"]: claim["decision"] for claim in (*past["claims"], *past["controls"])}
    for claim in decided:
        if (now := claim["decision"]) != (then := decisions.get(claim["claim"], claim["decision"])):
            change = f"claim {claim['claim']}: {then}, counted at {past['code']}; {now}, counted at {code_version()}"
            raise UserError(f"{record}: {change}; find the change in the code, then pass --post-hoc")


def check(settings: ClaimsSettings) -> None:
    """Check the settings for a dry run, and read the results that exist."""
    file, *_, frozen = _claims_of(settings, dry=True)
    if frozen or not settings.registration:  # else it is not known yet which results there are
        _read(settings.results, file, frozen, dry=True)


def _claims_of(settings: ClaimsSettings, *, dry: bool) -> tuple[ClaimsFile, Statuses, list[str], Frozen | None]:
    """Return the claims of the settings, their registration status, notes on changes since, and the registration."""
    if settings.output.suffix != ".json":
        raise UserError(f"output={settings.output}: must end in .json")
    artefact.check_maker(settings.output, STEP, force=settings.force)
    if settings.registration and artefact.is_to_be_checked(settings.registration, dry=dry):
        frozen = Frozen(Path(settings.registration))
        name = settings.claims or frozen.registration.claims
        return *_registered(frozen, name, post_hoc=settings.post_hoc), frozen
    if settings.post_hoc and not settings.registration:
        raise UserError("--post-hoc: marks changes since a registration; this study has none, leave it out")
    return read_claims_file(settings.claims or "composition"), {}, [], None


def _registered(frozen: Frozen, name: str, *, post_hoc: bool) -> tuple[ClaimsFile, Statuses, list[str]]:
    """Return registered claims, their status and notes on changes. UserError if they changed, unless ``post_hoc``."""
    changed, registered = frozen.changed(), frozen.registration
    if changed and not post_hoc:
        raise UserError(f"{changed[0]}; restore it, or pass --post-hoc, which marks the changes")
    file, before = read_claims_file(name), read_claims_file(str(frozen.claims)).by_name
    same_file = claims_path(name).resolve() == claims_path(registered.claims).resolve()

    def status(claim: Claim) -> RegistrationStatus:
        old = before.get(claim.name)
        if old is None or (old.comparisons, old.primary) != (claim.comparisons, claim.primary):
            return RegistrationStatus.POST_HOC if same_file else RegistrationStatus.EXPLORATORY
        if claim.name in registered.primary:
            return RegistrationStatus.PRIMARY
        return RegistrationStatus.SECONDARY if claim.name in registered.secondary else RegistrationStatus.EXPLORATORY

    lines = (line.partition(": ") for line in changed)
    notes = [f"Post hoc: {Path(path).name}: {why}; its differences: git diff." for path, _, why in lines]
    removed = [claim for claim in before if claim not in file.by_name] if same_file else []
    notes += [f"Post hoc: claim {claim} was registered and is not decided any more." for claim in removed]
    statuses = {claim: status(now) for claim, now in file.by_name.items()}
    return file.with_primary(registered.primary), statuses, notes


def read_claims(path: Path) -> dict[str, Any]:
    """Return a claims.json, checked against its manifest."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with examples/claims.py")
    if artefact.verify(path).step != STEP:
        raise UserError(f"{path}: was not made by examples/claims.py; give its claims.json")
    return read_json_object(path, AGAIN, {"claims": list, "controls": list, "notes": list})


def _read(
    entries: Sequence[str], file: ClaimsFile, frozen: Frozen | None, *, dry: bool = False
) -> tuple[ByName, list[str]]:
    """Return the results with the arms that all their seeds have, and notes on the other arms.

    If ``dry``, of the results that exist.
    """
    names = ", ".join(file.results)
    if not entries and not (dry and frozen):  # at a start kept replicates are put back
        raise UserError(f"no results: give results=[RESULTS/SEED:PATH,...] with {names} as RESULTS")
    paths: dict[str, list[str]] = {}
    for entry in entries:
        name, _, path = entry.partition("/")
        if name not in file.results or not path:
            raise UserError(f"results: {entry}: is not RESULTS/SEED:PATH with one of {names} as RESULTS")
        paths.setdefault(name, []).append(path)
    results, notes, registered = dict[str, Results](), list[str](), frozen.registration if frozen else None
    for name in (name for name in file.results if name in paths):
        metric, present = file.results[name].metric, existing(paths[name]) if dry else paths[name]
        if not present:
            continue
        if metric is Metric.SCALING:
            results[name] = read_figures(present)
            continue
        rows = read_results(present, metric=metric)
        if registered and not dry:
            _check_replicates(name, rows, registered)
        partial_arms = [arm for arm in rows.partial_arms if not registered or arm not in registered.controls]
        notes += [f"Left out of {name}: {', '.join(partial_arms)}; not every seed has it."] if partial_arms else []
        results[name] = rows = replace(rows, rows=rows.rows[~rows.rows["arm"].isin(partial_arms)])
        if controls := rows.partial_arms:
            n = len(rows.with_arms(set(controls)).replicates)
            notes += [f"{', '.join(controls)}: in {n} of {len(rows.replicates)} replicates."]
    return results, notes


def _check_replicates(name: str, results: Results, registered: Registration) -> None:
    """Raise UserError unless these are exactly the registered replicates."""
    planned = {(seed, split) for seed, splits in registered.replicates.items() for split in splits}
    evaluated = {(replicate.seed, replicate.split) for replicate in results.replicates}
    for word, pairs in (("without", planned - evaluated), ("with", evaluated - planned)):
        if pairs:
            text = ", ".join(f"seed {seed} split {split}" for seed, split in sorted(pairs))
            raise UserError(f"results: {name}: {word} {text}; give exactly the replicates of the registration")


def _notes(file: ClaimsFile, results: ByName) -> Iterator[str]:
    """Yield notes for readers: single seeds, number of samples, units, missing results."""
    seeds = {name: rows.n_seeds for name, rows in results.items()}
    if single := [name for name, n in seeds.items() if n == 1]:
        yield ONE_SEED.format(which=", ".join(single))
    if len(set(seeds.values())) > 1:
        yield f"Seeds: {', '.join(f'{name} {n}' for name, n in seeds.items())}."
    for name, rows in results.items():
        if file.results[name].metric is Metric.PASS_AT_K:
            samples = [rows.samples(problems) for problems in rows.sets]
            ends = dict.fromkeys((min(samples), max(samples)))
            yield f"pass@k: N = {' to '.join(f'{n:,}' for n in ends)} samples of a problem."
    metrics = {file.results[name].metric for name in results}
    yield from (words for metric, words in UNITS.items() if metric in metrics)
    for name, section in file.results.items():
        if name not in results:
            yield f"Not run: {name}, by {section.script}."


TITLES = {
    Origin.PAPER: ("claim", "of the paper"),
    Origin.VARIANT: ("variant", "of them"),
    Origin.OWN: ("claim", "of this study's own"),
}
SEEDS = "over seeds\nand problems"
KINDS = {
    SEEDS: ("low", "high", "decision"),
    "over problems": ("problems_low", "problems_high", "decision_these_seeds"),
}
"""Kinds of interval: the keys of a comparison for low end, high end and decision."""


def print_claims(content: Row, console: Console) -> None:
    """Print the claims by decision, the claims that were run with their comparisons, and the notes."""
    claims, n = [*content["claims"], *content["controls"]], content["n_seeds"]
    kinds = {title: keys for title, keys in KINDS.items() if n > 1 or title != SEEDS}
    (*_, key), *_ = kinds.values()
    counts = [
        f"{title}: {', '.join(f'{len(rows)} {words}' for words, rows in by_decision(of_origin, key).items())}"
        for title, of_origin in by_origin(content["claims"]).items()
    ]
    lines = ["", f"{'; '.join(counts) or 'No claims'}."]
    for words, rows in by_decision(claims, key).items():
        lines.append(f"{words.capitalize()}: {', '.join(claim['claim'] + status_words(claim) for claim in rows)}.")
    rest_on = f"95 % intervals of {plural(n, 'seed')}" if n > 1 else "95 % interval of one seed, over problems only"
    lines += [f"\nDifferences in points; decisions by the {rest_on}:"]
    for line in (*lines, rich_table(_frame(claims, kinds)), *content["notes"]):
        console.print(line)


def claims_text(content: Row) -> str:
    """Return the output of ``print_claims`` as a text."""
    text = io.StringIO()
    print_claims(content, Console(file=text, width=WIDTH, markup=False, highlight=False))
    return "\n".join(line.rstrip() for line in text.getvalue().strip("\n").splitlines())


def by_origin(claims: Sequence[Row]) -> dict[str, list[Row]]:
    """Group the claims into the paper's, variants of them and the study's own, by a title with their number."""
    rows = {origin: [row for row in claims if row["origin"] == origin] for origin in TITLES}
    return {f"{plural(len(rows[key]), noun)} {tail}": rows[key] for key, (noun, tail) in TITLES.items() if rows[key]}


def by_decision(claims: Sequence[Row], key: str) -> dict[str, list[Row]]:
    """Group the claims by the words for their decision under ``key``, in the order of ``Decision``."""
    rows: dict[str, list[Row]] = {}
    (ends,) = ((low, high) for low, high, of in KINDS.values() if of == key)
    for claim in sorted(claims, key=lambda claim: [*Decision].index(claim[key])):
        rows.setdefault(decision_words(claim, claim[key], ends), []).append(claim)
    return rows


def status_words(claim: Row) -> str:
    """Return `` (primary)``, `` (post hoc)`` …; an empty text without a registration."""
    return f" ({claim['registration_status']})" if claim.get("registration_status") else ""


def decision_words(row: Row, decision: str, ends: tuple[str, str] = ("low", "high")) -> str:
    """Return a decision on a claim or a comparison in words; *as good* if it is not ahead but as good.

    ``ends``: the keys of the interval that it rests on.
    """
    rows = row.get("comparisons", [row])
    if decision != Decision.CONTRADICTED or any(one["rule"] != Rule.AHEAD or one[ends[0]] is None for one in rows):
        return decision
    within = all(-one["threshold"] <= one[ends[0]] and one[ends[1]] <= one["threshold"] for one in rows)
    return "as good" if within else decision


def holm_words(claim: Row) -> str:
    """Return ``supported (one-sided p 0.02)``, with p after Holm's procedure; empty for claims that are not primary."""
    sides = "one" if {row["rule"] for row in claim["comparisons"]} <= {Rule.ABOVE, Rule.AT_MOST} else "two"
    p = "" if claim["p_holm"] is None else f" ({sides}-sided p {claim['p_holm']:.2g})"
    return f"{decision_words(claim, claim['decision_holm'])}{p}" if claim["decision_holm"] else ""


def seeds_words(comparison: Row) -> str:
    """Return the values by seed in points, ``+23 +14 −2`` (with splits ``+20/+26 …``); empty for one seed."""
    return by_seed(comparison, "+" if comparison["base"] else "").replace("-", "−")


def _frame(claims: Sequence[Row], kinds: dict[str, tuple[str, str, str]]) -> pd.DataFrame:
    """Return a row for each claim that was run, each followed by rows of its comparisons."""
    lines: list[list[str]] = []
    for claim in (claim for claim in claims if claim["decision"] != Decision.NOT_RUN):
        remarks = {
            "paper": claim["paper"] + (f" ({claim['source']})" if claim["source"] else ""),
            "not testable": claim["reason"],
            "needs": claim["needs"],
            "after Holm": holm_words(claim),
        }
        text = [f"{claim['claim']}{status_words(claim)} {claim['text']}"]
        text += [f"  {key}: {words}" for key, words in remarks.items() if words]
        lines += [[""] * (2 + len(kinds))] if lines else []
        lines.append(
            [
                "\n".join(text),
                "",
                *(decision_words(claim, claim[key], (low, high)) for low, high, key in kinds.values()),
            ]
        )
        for comparison in claim["comparisons"]:
            values = seeds_words(comparison)
            name = f"  {comparison['comparison']}" + (f": {values}" if values else "")
            form = f"{'+' if comparison['base'] else ''}.{decimals(comparison) or 1}f"
            points = "–" if comparison["difference"] is None else format(100 * comparison["difference"], form)
            lines.append([name, points, *(_interval(comparison, *keys) for keys in kinds.values())])
    return pd.DataFrame([cells for _, *cells in lines], [name_cell for name_cell, *_ in lines], ["measured", *kinds])


def _interval(comparison: Row, low: str, high: str, decision: str) -> str:
    """Return a cell: ``[+38, +45]`` and below it the decision."""
    words, digits = decision_words(comparison, comparison[decision], (low, high)), decimals(comparison)
    if comparison["difference"] is None:
        return words
    form = f"{'+' if comparison['base'] else ''}.{digits}f"
    ends = [format(round(100 * comparison[key], digits) + 0.0, form) for key in (low, high)]  # + 0.0: no -0
    alone = "\none seed" if low == "low" and comparison["interval"] == PROBLEMS else ""
    return f"[{', '.join(ends)}]\n{words}{alone}"
