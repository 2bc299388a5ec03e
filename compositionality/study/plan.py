"""The plan of a study: which steps, in which order, for which replicates."""

import fnmatch
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from compositionality.errors import UserError
from compositionality.study.finals import final_steps
from compositionality.study.model import Request
from compositionality.study.replicate import ReplicatePlan
from compositionality.study.steps import Step, with_words


def plan(request: Request, only: Sequence[str] = ()) -> list[Step]:
    """Return the steps in an order in which one after the other would do; ``only``: names or patterns of some.

    UserError for an unknown arm, step or variant, a word that its step does not take, steps in a circle.
    """
    study = request.loaded
    if unknown := [name for name in request.variants if name not in study.variants]:
        raise UserError(f"variants: no {unknown[0]}; there are: {' '.join(study.variants) or 'none'}")
    steps: list[Step] = []
    for variant in request.variants or tuple(study.variants) or ("",):
        of_variant, seeds = list[Step](), set[int]()
        for replicate in request.replicates:
            place = replicate._replace(study=f"{replicate.study}/{variant}".rstrip("/"))
            first = place.seed not in seeds  # what the splits of a seed share comes once, as the controls do
            seeds.add(place.seed)
            own = ReplicatePlan(request, place, [*request.trained, *(request.controls if first else ())])
            of_variant += [*own.stages(shared=first), *own.steps()]
        steps += with_words(of_variant, [*study.words, *study.variants.get(variant, [])])
    steps += final_steps(request, steps)
    steps = with_words(steps, request.words)
    if only:
        names = [step.name for step in steps]
        if absent := [pattern for pattern in only if not fnmatch.filter(names, pattern)]:
            raise UserError(f"only={absent[0]}: no such step; there are: {' '.join(dict.fromkeys(names))}")
        steps = [step for step in steps if any(fnmatch.fnmatch(step.name, pattern) for pattern in only)]
    return in_order(steps)


def in_order(steps: Sequence[Step]) -> list[Step]:
    """Return the steps, each behind what it names and what makes its inputs. UserError for a circle.

    Where several could be next, the first of ``steps`` is.
    """
    makers = {output: step.key for step in steps for output in step.outputs if not step.flat.get("answers_only")}
    number = {step.key: index for index, step in enumerate(steps)}
    graph: dict[str, list[str]] = {}
    for step in steps:
        files = {str(place) for path in map(Path, step.inputs) for place in (path, *path.parents)}
        inside = tuple(f"{path}/" for path in step.inputs)
        made = (key for output, key in makers.items() if output in files or output.startswith(inside))
        before = {*step.after, *made} - {step.key}
        graph[step.key] = sorted(before & number.keys(), key=number.__getitem__)
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise UserError(
            f"steps in a circle: {' → '.join(error.args[1])}; each needs what the one before makes"
        ) from error
    waiting, ordered = {step.key: step for step in steps}, list[Step]()
    while waiting:
        key = next(key for key in waiting if waiting.keys().isdisjoint(graph[key]))
        step = waiting.pop(key)
        step.after = tuple(graph[key])
        ordered.append(step)
    return ordered
