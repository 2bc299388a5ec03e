"""The steps of one replicate: its stages, each arm and its completions, the tables, the inputs of a report."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from compositionality.config.profile import TRAINERS
from compositionality.errors import UserError
from compositionality.study.model import Arm, Replicate, Request, Stage, find_arm
from compositionality.study.steps import Step, add_words, read_script
from compositionality.yaml_files import flow_list

FAILURE_MODELS = ("base", "stage1", "rft", "rl-level1", "rl-level2")
"""The models whose wrong completions are classified, if they exist."""
BASE = Stage("section41_42/stage0_base")
"""Replaces the stage of a study's base model if a base model is given."""


@dataclass(frozen=True)
class ReplicatePlan:
    """Makes the steps of a replicate in which these arms are trained."""

    request: Request
    place: Replicate
    arms: Sequence[str]

    @cached_property
    def models(self) -> dict[str, str]:
        """The evaluated models in the order of the tables: those of this plan, and other arms with existing models."""
        chosen = {*self.arms, *self.request.loaded.evaluated}
        paths = {name: self.model(name) for name in self.request.loaded.arms}
        return {name: path for name, path in paths.items() if name in chosen or Path(path).is_dir()}

    def model(self, name: str) -> str:
        """Return the folder of an arm's model; all splits of a seed share the model of an untrained arm."""
        arm = self.request.loaded.arms[name]
        folder = (self.place if arm.is_trained else self.place.shared).folder("checkpoints")
        last_iteration = self.iterations(name) - 1 if arm.rft else 0
        return f"{folder}/{arm.model.format(last=last_iteration) if arm.model else 'base'}"

    def stages(self, *, shared: bool) -> Iterator[Step]:
        """Yield the stages before the arms: those of this replicate and, if ``shared``, of all splits of its seed."""
        for name, stage in self.request.loaded.stages.items():
            if stage.per_split:
                yield self.step(name, stage)
            elif shared:
                seed_plan = replace(self, place=self.place.shared)
                yield seed_plan.base(stage) if name == "base" else seed_plan.step(name, stage)

    def base(self, stage: Stage) -> Step:
        """Return the step of the base model: the given model, else the one that ``stage`` makes."""
        request = self.request
        base_model = request.base_model or request.settings.base_model
        template = request.chat_template or request.settings.chat_template or "own"
        if base_model:
            changes = [word for words in request.loaded.variants.values() for word in words if word.startswith("base:")]
            if changes:
                raise UserError(
                    f"base model {base_model}: the variants of {request.loaded.name} differ in how the base is "
                    f"pretrained ({changes[0]}), so no model can be given; leave BASE_MODEL out, with a profile that "
                    "pretrains"
                )
            return self.step("base", BASE, [f"model={base_model}", f"chat_template={template}"])
        if template != "own":
            raise UserError(
                f"CHAT_TEMPLATE={template}: the model that this profile makes has its own chat template; "
                "leave it out, or give BASE_MODEL"
            )
        return self.step("base", stage)

    def steps(self) -> Iterator[Step]:
        """Yield the training of each arm, the completions, the inputs of a report, the tables, in order of need."""
        study, answers = self.request.loaded, list[str]()
        for name in self.arms:
            yield from self.training(name) if study.arms[name].is_trained else ()
        for name in [*self.arms, *study.evaluated]:
            collected = self.answers(f"answers-{name}", study.evaluate[0], name)
            answers.append(collected.key)
            yield collected
        reported = {"passk": self.passk, "failure_modes": self.failure_modes, "influence": self.influence}
        for kind in study.reported if self.request.report else ():
            yield from reported[kind]()
        for script in study.evaluate:
            title = script.rpartition("/")[2].replace("_", "-")
            table = self.step(title, Stage(script), [models_word(self.models)], after=answers)
            answers.append(table.key)
            yield table

    def training(self, name: str) -> Iterator[Step]:
        arm = find_arm(self.request.loaded, name)
        if arm.rft:
            yield from self.rft(name, arm)
            return
        start, parts = self.model(arm.start) if arm.start else "", arm.steps or {"": Stage(arm.script)}
        after = [f"{self.place.name}/{arm_name}" for arm_name in arm.after]

        def filled(text: str) -> str:
            return text.replace("{arm}", name).replace("{start}", start)

        for part, stage in parts.items():
            env = stage.env
            if part == [*parts][-1]:
                model = {"OUTPUT": self.model(name).removesuffix("/final"), **({"MODEL_PATH": start} if start else {})}
                env = {**model, **env, **arm.env}
            layer = [self.layer(name)] if read_script(stage.script) else []
            words = [filled(word) for word in [*stage.words, *layer, *arm.words_of(part)]]
            filled_stage = Stage(stage.script, {key: filled(text) for key, text in env.items()}, words)
            step = self.step(f"{name}-{part}" if part else name, filled_stage, one_lane=True, after=after)
            uses_verl = step.flat.get("engine") == "verl" and self.request.settings.engine != "verl"
            if uses_verl or not step.entry_point:
                step.one_lane = False  # verl in a study of the other engine, and a script of several steps
            yield step

    def rft(self, name: str, arm: Arm) -> Iterator[Step]:
        """Yield the steps of RFT: chunks of problems; for each, rollouts of the current model, a filter, SFT."""
        folder = f"{{data}}/string_task/{name.replace('-', '_')}"

        def step(title: str, script: str, more: Sequence[str] = (), **env: str) -> Step:
            words = [self.layer(name), *arm.words_of(title.rpartition("-")[2]), *more]
            return self.step(f"{name}-{title}", Stage(f"section41_42/stage2_rft_{script}", env), words, one_lane=True)

        yield step("chunks", "create_problems", OUTPUT=f"{folder}/problems")
        count, model = self.iterations(name), self.model(arm.start)
        follows = any("_of=" in word for word in arm.words_of("train"))
        for number in range(count):
            root, problems = f"{folder}/iteration{number}", f"{folder}/problems/{number}.parquet"
            rows, output = f"{root}/data/train.parquet", f"{{ckpt}}/{arm.model.format(last=number)}"
            yield step(f"{number}-rollouts", "rollouts", MODEL_PATH=model, DATA=problems, OUTPUT=f"{root}/rollouts")
            yield step(
                f"{number}-filter", "filter", DATA=problems, TRAIN_FILES=f"{root}/rollouts", OUTPUT=f"{root}/data"
            )
            part = [f"trainer.part={number + 1}/{count}"] if follows else []
            run = output.removesuffix("/final")
            yield step(f"{number}-train", "train", part, MODEL_PATH=model, TRAIN_FILES=rows, OUTPUT=run)
            model = output

    def iterations(self, name: str) -> int:
        """Return the number of iterations of an arm of RFT: the number of chunks of its problems."""
        chunks = next(self.rft(name, self.request.loaded.arms[name]))
        words = [word for word in self.request.words if fnmatch.fnmatch(chunks.name, word.partition(":")[0])]
        count: int = add_words([chunks], words)[0].settings.chunks
        return count

    def layer(self, name: str) -> str:
        """Return the word that selects an arm's part of a profile (``steps: STUDY/ARM``)."""
        study = self.request.loaded
        return f"step={study.base or self.request.study}/{study.arms[name].like or name}"

    def passk(self) -> Iterator[Step]:
        """Yield the steps of pass@k for the requested models, else for the profile's."""
        script, chosen = "section44/passk", self.request.passk or self.request.settings.passk
        for name in self.request.passk:
            find_arm(self.request.loaded, name, "passk: ")
        models = {name: self.models[name] for name in chosen if name in self.models}
        collected = [self.answers(f"passk-{name}", script, name) for name in models]
        yield from collected
        yield self.step("passk", Stage(script), [models_word(models)], after=[step.key for step in collected])

    def failure_modes(self) -> Iterator[Step]:
        """Yield the step that classifies wrong completions of ``FAILURE_MODELS``."""
        words = [f"models={flow_list(name for name in FAILURE_MODELS if name in self.models)}"]
        yield self.step("failure-modes", Stage("section45/failure_modes"), words)

    def influence(self) -> Iterator[Step]:
        """Yield the steps that measure the influence of problems on the models of the SFT arms."""
        for name in (name for name in self.arms if name.startswith("sft-")):
            output, before = f"{{results}}/influence/{name}", list[str]()
            for script, title, folder in (("influence_rollouts", "-rollouts", "/rollouts"), ("influence", "", "")):
                env = {"MODEL_PATH": self.models[name], "OUTPUT": f"{output}{folder}"}
                stage = Stage(f"behavior_injection/{script}", env)
                step = self.step(f"influence-{name}{title}", stage, one_lane=True, after=before)
                before = [step.key]
                yield step

    def answers(self, title: str, script: str, name: str) -> Step:
        """Return the step that collects completions of one model for a table.

        Even the base model's wait for all stages, which need the machine alone.
        """
        words = [models_word({name: self.models[name]}), "answers_only=true"]
        stages = [step.key for step in self.stages(shared=True)]
        return self.step(title, Stage(script), words, one_lane=True, after=stages)

    def step(
        self, name: str, stage: Stage, words: Sequence[str] = (), *, one_lane: bool = False, after: Sequence[str] = ()
    ) -> Step:
        """Return a step of a script, with its folders filled in for ``{data}`` …

        Without GPUs, only a training in several processes or a script of several steps needs the machine alone.
        """
        script, request, place = read_script(stage.script), self.request, self.place
        entry_point = script.entry_point if script else ""
        beside_others = not request.gpu and entry_point not in ("", *TRAINERS)
        return Step(
            name,
            place,
            request.profile,
            entry_point,
            stage.script,
            {key: place.fill(value) for key, value in stage.env.items()},
            tuple(place.fill(word) for word in [*stage.words, *words]),
            tuple(after),
            test_seed=request.test_seed,
            one_lane=one_lane or beside_others or bool(request.registration),
            gpu=request.gpu,
            ray=request.gpu and request.settings.engine == "verl",
        )


def models_word(models: Mapping[str, str]) -> str:
    """Return ``models=[NAME:PATH,…]``."""
    return f"models={flow_list(f'{name}:{path}' for name, path in models.items())}"
