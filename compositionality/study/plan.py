"""The plan of a study: its steps in order, for every replicate, then the steps over all replicates."""

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from compositionality.config.problem_sets import read_set
from compositionality.errors import UserError
from compositionality.evaluate.claims.model import read_claims_file
from compositionality.evaluate.registration import read_registration, registration_path
from compositionality.study.model import Replicate, Request, study_folder
from compositionality.study.replicate import ReplicatePlan
from compositionality.study.steps import Step, add_words
from compositionality.validation import choices
from compositionality.yaml_files import flow_list

Command = tuple[str, str, dict[str, Any]]
"""Name of a step, its entry point, and its keys (None: leave out)."""
RESOURCES = ("flops", "flops_paper", "completions")


def plan(request: Request, only: Sequence[str] = ()) -> list[Step]:
    """Return the steps in a valid sequential order; ``only``: names or patterns of the steps to keep.

    UserError for an unknown arm, step or variant, a word that its step does not take, a cycle of steps.
    """
    study = request.loaded
    if unknown := [name for name in request.variants if name not in study.variants]:
        raise UserError(f"variants: no {unknown[0]}; {choices(unknown[0], study.variants)}")
    steps: list[Step] = []
    for variant in request.variants or tuple(study.variants) or ("",):
        variant_steps, seeds = list[Step](), set[int]()
        for replicate in request.replicates:
            place = replicate._replace(study=f"{replicate.study}/{variant}".rstrip("/"))
            is_first = place.seed not in seeds  # controls, and steps shared by the splits of a seed, run once
            seeds.add(place.seed)
            replicate_plan = ReplicatePlan(request, place, [*request.trained, *(request.controls if is_first else ())])
            variant_steps += [*replicate_plan.stages(shared=is_first), *replicate_plan.steps()]
        steps += add_words(variant_steps, [*study.words, *study.variants.get(variant, [])])
    steps += final_steps(request, steps)
    steps = add_words(steps, request.words)
    if only:
        names = [step.name for step in steps]
        if absent := [pattern for pattern in only if not fnmatch.filter(names, pattern)]:
            raise UserError(f"only={absent[0]}: unknown step; {choices(absent[0], names)}")
        steps = [step for step in steps if any(fnmatch.fnmatch(step.name, pattern) for pattern in only)]
    return sort_steps(steps)


def sort_steps(steps: Sequence[Step]) -> list[Step]:
    """Sort the steps: each comes after its ``after`` and after the steps that make its inputs. UserError for a cycle.

    If several could be next, the order of ``steps`` decides.
    """
    makers = {output: step.key for step in steps for output in step.outputs if not step.flat.get("answers_only")}
    number = {step.key: index for index, step in enumerate(steps)}
    graph: dict[str, list[str]] = {}
    for step in steps:
        files = {str(place) for path in map(Path, step.inputs) for place in (path, *path.parents)}
        prefixes = tuple(f"{path}/" for path in map(Path, step.inputs))
        sources = (key for output, key in makers.items() if output in files or output.startswith(prefixes))
        earlier = {*step.after, *sources} - {step.key}
        graph[step.key] = sorted(earlier & number.keys(), key=number.__getitem__)
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise UserError(
            f"steps in a circle: {' → '.join(error.args[1])}; each needs the output of the one before"
        ) from error
    waiting, ordered = {step.key: step for step in steps}, list[Step]()
    while waiting:
        key = next(key for key in waiting if waiting.keys().isdisjoint(graph[key]))
        step = waiting.pop(key)
        step.after = tuple(graph[key])
        ordered.append(step)
    return ordered


# ---- the last steps, over all replicates: table, figure, fits, ranks, claims, audit, page, record


def final_steps(request: Request, steps: Sequence[Step]) -> Iterator[Step]:
    """Yield the last steps; the page and the record, which read whole folders, come after all others.

    The audit, needed only by the page, comes after the steps that need the whole machine.
    """
    earlier, finals = [step.key for step in steps], list[str]()
    alone = [step.key for step in steps if not step.one_lane]
    for name, entry_point, keys in _commands(request, steps):
        after = {"audit": alone, "page": [*earlier, *finals], "record": [*earlier, *finals]}.get(name, [])
        texts = {key: flow_list(value) if isinstance(value, list) else value for key, value in keys.items()}
        words = tuple(f"{key}={value}" for key, value in texts.items() if value is not None)
        yield Step(
            name, request.replicates[0], request.profile, entry_point, whole=True, one_lane=True, after=tuple(after),
            words=words, test_seed=request.test_seed,
        )  # fmt: skip
        finals.append(name)


def _commands(request: Request, steps: Sequence[Step]) -> Iterator[Command]:
    study, section, results = request.loaded, request.section, request.root("results")
    if study.variants:
        inputs = []
        for name in request.variants or study.variants:
            places = [place._replace(study=f"{place.study}/{name}") for place in request.replicates]
            inputs += [f"{name}/{table}" for table in _of_each(places, "section41_42/results.parquet")]
        yield "summary", "summarise_seeds", {"inputs": inputs, "output": f"{results}/summary.csv"}
        return
    tables = _of_each(request.replicates, f"{section}/results.parquet")
    summary, figure = f"{results}/{section}/summary.csv", f"{results}/{section}/accuracy_by_level"
    several = sum(name.startswith("sft-") for name in request.trained) >= 3
    ranked = request.report and "ranks" in study.compared and several
    influence = _of_each(request.replicates, "influence") if ranked else None
    models = chosen_models(request)
    keys = {"inputs": tables, "output": summary, "models": models, "influence": influence}
    yield "summary", "summarise_seeds", keys
    yield "figure", "draw_figure", {"inputs": tables, "output": figure, "title": request.name, "models": models}
    if request.report and "fits" in study.compared:
        yield from _fits(request)
    if request.report and study.claims:
        yield _claims(request, steps)
        yield from _page(request)
    if request.record:
        yield _record(request, steps)


def chosen_models(request: Request) -> list[str] | None:
    """Return the models of tables and figures; None for all evaluated ones."""
    everywhere = {*request.trained, *request.loaded.evaluated}
    return [name for name in request.loaded.arms if name in everywhere] if request.registration else None


def _of_each(replicates: Iterable[Replicate], file: str) -> list[str]:
    return [f"{place.name}:{place.folder('results')}/{file}" for place in replicates]


def _fits(request: Request) -> Iterator[Command]:
    """Yield the commands of laws and figures for each resource, with the runs that differ only in their model."""
    arms = [request.loaded.arms[name] for name in request.trained]
    sizes = [Path(arm.model).parent for arm in arms if arm.script == "scaling_law/train" and not arm.words]
    places = request.replicates
    runs = [f"{place.name}-{size}:{place.folder('checkpoints')}/{size}" for place in places for size in sizes]
    for resource in RESOURCES if sizes else ():
        output = f"{request.root('results')}/scaling_law/{resource}"
        points = {"points": runs, "resource": resource, "metric": "val-core/*/acc/mean@*"}
        yield f"fit-{resource}", "fit_scaling", {**points, "output": output}
        keys = {"figure": "scaling", "inputs": [f"{output}/scaling.json"], "output": f"{output}/figures"}
        yield f"figure-{resource}", "draw_figure", keys


def _results(request: Request, steps: Sequence[Step]) -> list[str]:
    """Return RESULTS/SEED:PATH of the results for the claims that exist or that this plan makes."""
    registered = request.registration and read_registration(registration_path(request.registration)).claims
    claims = registered or request.loaded.claims
    read = read_claims_file(claims).results if claims else request.loaded.claimed
    outputs = [Path(output) for step in steps for output in step.outputs]
    studies = {"": request.name, "countdown": request.countdown, "other": f"{request.name}-other"}
    studies["composition"] = request.name.replace("injection", "composition")
    results = []
    for kind, claimed in request.loaded.claimed.items():
        *study_key, file = claimed.split(":")
        for place in request.replicates if kind in read else ():
            path = Path(place._replace(study=studies["".join(study_key)]).folder("results"), file)
            if path.exists() or path.parent in outputs or any(path in output.parents for output in outputs):
                results.append(f"{kind}/{place.name}:{path}")
    if "fits" in request.loaded.compared:
        first_name, folder = request.replicates[0].name, f"{request.root('results')}/scaling_law"
        for kind, resource in (("scaling", "flops"), ("completions", "completions")):
            results.append(f"{kind}/{first_name}:{folder}/{resource}/scaling.json")
    return results


def _claims(request: Request, steps: Sequence[Step]) -> Command:
    """Return the command of the claims; claims about missing results are "not run"."""
    results, claims = request.root("results"), request.loaded.claims
    return "claims", "claims", {
        "results": _results(request, steps), "output": f"{results}/claims.json",
        "claims": None if claims == "composition" else claims,
        "registration": f"{results}/registration" if request.registration else None,
        "recorded": request.name if request.registration else None,
    }  # fmt: skip


def _page(request: Request) -> Iterator[Command]:
    """Yield the commands of the audit of the test files, and of the page."""
    study, results, data = request.loaded, request.root("results"), request.replicates[0].folder("data")
    set_files = {file for name in (*study.owns, "string") for file in read_set(name, request.settings).files}
    files, against = (
        [f"{data}/{name}.parquet" for name in names if name.partition("/")[2] in set_files]
        for names in (request.settings.files[study.tested], study.learned)
    )
    counted = not Path(data).is_dir() and all(request.record_folder(place).is_dir() for place in request.replicates)
    if not counted:  # otherwise there are only committed tables
        yield "audit", "audit_data", {"files": files, "against": against, "output": f"{results}/data_audit.json"}
    countdown = study_folder("results", request.countdown)
    reads_countdown = "countdown" in study.claimed and request.countdown and Path(countdown).is_dir()
    yield "page", "report", {
        "study": results, "section": request.section, "output": f"{results}/report",
        **({} if counted else {"checkpoints": request.root("checkpoints"), "data": request.root("data")}),
        "models": chosen_models(request), "seeds": [place.name for place in request.replicates],
        "countdown": countdown if reads_countdown else None,
    }  # fmt: skip


def _record(request: Request, steps: Sequence[Step]) -> Command:
    section, results = request.section, request.root("results")
    profile = f"compositionality/config/profile/{request.profile.partition('/')[0]}.yaml"
    folders = dict.fromkeys(
        location.folder("checkpoints") for place in request.replicates for location in (place.shared, place)
    )
    runs = [path.parent for folder in folders for path in sorted(Path(folder).glob("*/metrics.jsonl"))]
    fits = {name: Path(results, section, name, "scaling.json") for name in RESOURCES}
    registration = request.registration
    return "record", "write_record", {
        "claims": f"{results}/claims.json", "machine": f"{results}/{section}/machine.json",
        "models": chosen_models(request),
        "output": f"results/records/{request.name}{'/study' if registration else ''}", "config": [f"profile:{profile}"],
        "results": _results(request, steps), "figure": f"{results}/{section}/accuracy_by_level.png",
        "times": f"{results}/{section}/times.tsv",
        "runs": [f"{run.parent.name}-{run.name}:{run}" for run in runs],
        "fits": [f"{name}:{path}" for name, path in fits.items() if path.is_file()] or None,
        "registration": f"{results}/registration" if registration else None,
        "command": f"REGISTRATION={registration} bash bash/confirmatory.sh" if registration else None,
    }  # fmt: skip
