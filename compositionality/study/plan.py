"""The plan of a study: which steps, in which order, for which replicates."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from compositionality.errors import UserError
from compositionality.study.finals import final_steps
from compositionality.study.model import Replicate, Stage, find_arm
from compositionality.study.request import Request
from compositionality.study.scripts import read_script
from compositionality.study.steps import Step, with_words
from compositionality.yaml_files import flow_list

FAILURE_MODELS = ("base", "stage1", "rft", "rl-level1", "rl-level2")
"""Whose completions are classified, of those that there are."""
BASE = "section41_42/stage0_base"


def plan(request: Request, only: Sequence[str] = ()) -> list[Step]:
    """The steps in an order in which one after the other would do; ``only`` those that names or patterns stand for.

    UserError for an arm, a step or a variant that there is not, a word that its step does not take, steps in a circle.
    """
    study = request.loaded
    if unknown := [name for name in request.variants if name not in study.variants]:
        raise UserError(f"variants: no {unknown[0]}; there are: {' '.join(study.variants) or 'none'}")
    steps: list[Step] = []
    for variant in request.variants or tuple(study.variants) or ("",):
        places = [one._replace(study=f"{one.study}/{variant}" if variant else one.study) for one in request.replicates]
        made = list(_replicates(request, places))
        steps += with_words(made, [*study.words, *(study.variants[variant] if variant else [])])
    steps += final_steps(request, steps)
    steps = with_words(steps, list(request.words))
    if only:
        names = [step.name for step in steps]
        if absent := [one for one in only if not fnmatch.filter(names, one)]:
            raise UserError(f"only={absent[0]}: no such step; there are: {' '.join(dict.fromkeys(names))}")
        steps = [step for step in steps if any(fnmatch.fnmatch(step.name, one) for one in only)]
    return in_order(steps)


def in_order(steps: Sequence[Step]) -> list[Step]:
    """The steps, each with the keys of all that it comes after and behind them. UserError for a circle."""
    makers = {output: step.key for step in steps for output in step.outputs if not step.flat.get("answers_only")}
    keys = {step.key for step in steps}
    graph: dict[str, dict[str, None]] = {}
    for step in steps:
        before = dict.fromkeys(key for key in step.after if key in keys)
        for text in step.inputs:
            path = Path(text)
            before |= {makers[str(place)]: None for place in (path, *path.parents) if str(place) in makers}
        before.pop(step.key, None)
        graph[step.key] = before
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise UserError(
            f"steps in a circle: {' → '.join(error.args[1])}; each needs what the one before makes"
        ) from error
    place = {step.key: number for number, step in enumerate(steps)}
    left, done, ordered = list(steps), set[str](), list[Step]()
    while left:
        step = next(one for one in left if done.issuperset(graph[one.key]))
        left.remove(step)
        done.add(step.key)
        ordered.append(step.after_all(tuple(sorted(graph[step.key], key=place.__getitem__))))
    return ordered


def _replicates(request: Request, places: Sequence[Replicate]) -> Iterator[Step]:
    """The steps of every replicate; what the splits of a seed share comes once."""
    shared: set[Replicate] = set()
    first = {place.seed: place for place in reversed(places)}.values()
    for place in places:
        arms = [*request.trained, *(request.controls if place in first else ())]
        for name, stage in request.loaded.stages.items():
            own = place if stage.per_split else place.shared
            if own in shared and not stage.per_split:
                continue
            yield from _stage(request, own, name, stage)
        shared.add(place.shared)
        yield from _of_replicate(request, place, arms)


def _stage(request: Request, place: Replicate, name: str, stage: Stage) -> Iterator[Step]:
    given = request.base_model or request.settings.base_model
    template = request.chat_template or request.settings.chat_template or "own"
    words = stage.words
    if name == "base":
        if template != "own" and not given:
            raise UserError(
                f"CHAT_TEMPLATE={template}: the model that this profile makes has a chat template of its own; "
                "leave it out, or give BASE_MODEL"
            )
        if given:
            stage = Stage(BASE)
            words = [f"model={given}", f"chat_template={template}"]
    yield _step(request, place, name, stage, words)


def _step(
    request: Request, place: Replicate, name: str, stage: Stage, words: Sequence[str] = (), **more: object
) -> Step:
    """A step of a script, with ``{data}`` … filled in."""
    script = read_script(stage.script)
    names: Mapping[str, str] = more.pop("names", {})  # type: ignore[assignment]
    lane = bool(more.pop("one_lane", False)) or request.one_lane
    return Step(
        name,
        place,
        request.profile,
        script.entry_point if script else "",
        stage.script,
        {key: place.filled(value, names) for key, value in stage.env.items()},
        tuple(place.filled(word, names) for word in [*stage.words, *words] if word),
        test_seed=request.test_seed,
        one_lane=lane,
        gpu=request.gpu,
        ray=request.gpu and request.settings.engine == "verl",
        **more,  # type: ignore[arg-type]
    )


def model_of(request: Request, place: Replicate, name: str) -> str:
    """The folder of an arm's model in a replicate."""
    arm = request.loaded.arms[name]
    folder = (place if arm.is_trained else place.shared).folder("checkpoints")
    return f"{folder}/{arm.model.format(last=_iterations(request, place, name) - 1) if arm.model else 'base'}"


def _iterations(request: Request, place: Replicate, name: str) -> int:
    """Iterations of an arm of RFT: the chunks of its problems; 1 of another."""
    if not request.loaded.arms[name].rft:
        return 1
    chunks = next(_rft(request, place, name))
    own = [word for word in request.words if fnmatch.fnmatch(chunks.name, word.partition(":")[0])]
    count: int = with_words([chunks], own)[0].settings.chunks
    return count


def arm_steps(request: Request, place: Replicate, name: str) -> list[Step]:
    """How an arm is trained."""
    arm = find_arm(request.loaded, name)
    if arm.rft:
        return list(_rft(request, place, name))
    start = model_of(request, place, arm.start) if arm.start else ""
    layer = f"step={request.loaded.base or request.study}/{arm.like or name}"
    names = {"arm": name, "start": start}
    parts = arm.steps or {"": Stage(arm.script)}
    *_, last = parts
    found = []
    for part, stage in parts.items():
        env = dict(stage.env)
        if part == last:
            model = model_of(request, place, name)
            env = {"OUTPUT": model.removesuffix("/final"), **({"MODEL_PATH": start} if start else {}), **env, **arm.env}
        words = [
            layer,
            *(word.removeprefix(f"{part}:") for word in arm.words if not part or word.startswith(f"{part}:")),
        ]
        title = f"{name}-{part}" if part else name
        after = tuple(f"{place.name}/{other}" for other in arm.after)
        script = replace(stage, env=env)
        if read_script(stage.script) is None:
            words = words[1:]
        step = _step(request, place, title, script, words, names=names, one_lane=True, after=after)
        found.append(replace(step, one_lane=step.one_lane and not _takes_the_machine(request, step)))
    return found


def _takes_the_machine(request: Request, step: Step) -> bool:
    """Whether an arm cannot run beside others: a script of several steps, and verl in a study of the other engine."""
    return not step.entry_point or (step.flat.get("engine") == "verl" and request.settings.engine != "verl")


def _rft(request: Request, place: Replicate, name: str) -> Iterator[Step]:
    """Chunks of problems; for each, rollouts of the current model, a filter, SFT."""
    arm = request.loaded.arms[name]
    layer = f"step={request.loaded.base or request.study}/{arm.like or name}"
    folder, run = f"{{data}}/string_task/{name.replace('-', '_')}", f"{{ckpt}}/{arm.model.removesuffix('/final')}"

    def step(title: str, script: str, more: Sequence[str] = (), **env: str) -> Step:
        part = title.rpartition("-")[2]
        own = [word.removeprefix(f"{part}:") for word in arm.words if word.startswith(f"{part}:")]
        stage = Stage(f"section41_42/stage2_rft_{script}", env)
        return _step(request, place, f"{name}-{title}", stage, [layer, *own, *more], one_lane=True)

    yield step("chunks", "create_problems", OUTPUT=f"{folder}/problems")
    count, model = _iterations(request, place, name), model_of(request, place, arm.start)
    follows = any(word.startswith("train:") and "_of=" in word for word in arm.words)
    for number in range(count):
        here, problems = f"{folder}/iteration{number}", f"{folder}/problems/{number}.parquet"
        rows, output = f"{here}/data/train.parquet", run.format(ckpt="{ckpt}", last=number)
        yield step(f"{number}-rollouts", "rollouts", MODEL_PATH=model, DATA=problems, OUTPUT=f"{here}/rollouts")
        yield step(f"{number}-filter", "filter", DATA=problems, TRAIN_FILES=f"{here}/rollouts", OUTPUT=f"{here}/data")
        part = [f"trainer.part={number + 1}/{count}"] if follows else []
        yield step(f"{number}-train", "train", part, MODEL_PATH=model, TRAIN_FILES=rows, OUTPUT=output)
        model = f"{output}/final"


def models_of(request: Request, place: Replicate, arms: Sequence[str]) -> dict[str, str]:
    """Models that are evaluated, in the order of the tables: of this plan, and arms whose models are there."""
    wanted = {*arms, *request.loaded.evaluated}
    paths = {name: model_of(request, place, name) for name in request.loaded.arms}
    return {name: path for name, path in paths.items() if name in wanted or Path(path).is_dir()}


def _of_replicate(request: Request, place: Replicate, arms: Sequence[str]) -> Iterator[Step]:
    """Each arm and its completions, the tables of all, and what a report reads of the replicate."""
    study = request.loaded
    models = models_of(request, place, arms)
    answers = []
    for name in [*arms, *study.evaluated]:
        if study.arms[name].is_trained:
            yield from arm_steps(request, place, name)
        words = [f"models={flow_list([f'{name}:{models[name]}'])}", "answers_only=true"]
        ready = _step(request, place, f"answers-{name}", Stage(study.evaluate[0]), words, one_lane=True)
        answers.append(ready.key)
        yield ready
    everything = f"models={flow_list(f'{name}:{path}' for name, path in models.items())}"
    for script in study.evaluate:
        title = script.rpartition("/")[2].replace("_", "-")
        made = _step(request, place, title, Stage(script), [everything], after=tuple(answers))
        answers.append(made.key)
        yield made
    if request.report:
        for kind in study.reported:
            yield from _reported(request, place, kind, models, arms)


def _reported(
    request: Request, place: Replicate, kind: str, models: Mapping[str, str], arms: Sequence[str]
) -> Iterator[Step]:
    """pass@k, failure modes or influence of one replicate."""
    evaluated = (f"{place.name}/evaluate",)
    if kind == "passk":
        chosen = {name: models[name] for name in request.passk or request.settings.passk if name in models}
        for name, path in chosen.items():
            words = [f"models={flow_list([f'{name}:{path}'])}", "answers_only=true"]
            yield _step(
                request, place, f"passk-{name}", Stage("section44/passk"), words, one_lane=True, after=evaluated
            )
        words = [f"models={flow_list(f'{name}:{path}' for name, path in chosen.items())}"]
        after = tuple(f"{place.name}/passk-{name}" for name in chosen)
        yield _step(request, place, "passk", Stage("section44/passk"), words, after=after)
    if kind == "failure_modes":
        words = [f"models={flow_list(name for name in FAILURE_MODELS if name in models)}"]
        yield _step(request, place, "failure-modes", Stage("section45/failure_modes"), words, after=evaluated)
    if kind == "influence":
        for name in (one for one in arms if one.startswith("sft-")):
            env = {"MODEL_PATH": models[name], "OUTPUT": f"{{results}}/influence/{name}"}
            rollouts = Stage(
                "behavior_injection/influence_rollouts", {**env, "OUTPUT": f"{{results}}/influence/{name}/rollouts"}
            )
            made = _step(request, place, f"influence-{name}-rollouts", rollouts, one_lane=True, after=evaluated)
            yield made
            stage = Stage("behavior_injection/influence", env)
            yield _step(request, place, f"influence-{name}", stage, one_lane=True, after=(made.key,))
