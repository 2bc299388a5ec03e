"""What the steps of a profile need on a machine, with the settings that its scripts run with."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from compositionality.config.cli import parse
from compositionality.config.problem_sets import read_set
from compositionality.config.profile import Profile, in_training, layers_of, load_profile
from compositionality.rollout.forecast.check import sampling_needs, vllm_of
from compositionality.rollout.forecast.machine import Machine
from compositionality.rollout.forecast.need import DISK, Need
from compositionality.rollout.forecast.shape import ModelShape, shape_of_model
from compositionality.rollout.settings import CollectSettings
from compositionality.study.arms import load_study
from compositionality.study.types import Study
from compositionality.train.engines import settle_attention
from compositionality.train.forecast import single
from compositionality.train.forecast.batch import Tail
from compositionality.train.forecast.disk import run_bytes
from compositionality.train.forecast.single import Ranks
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.sft_settings import SftSettings
from compositionality.train.tiny.corpus import corpus_tokenizer
from compositionality.train.tiny.model import tiny_shape
from compositionality.train.tiny.pretrain import PretrainSettings

BYTES_A_TOKEN = 4.0
"""Of a completion on disk: its text, compressed."""
QUERY_SAMPLES = 8
"""Completions of a query whose influence is measured."""


@dataclass(frozen=True)
class Planned:
    """A study of a profile on a machine: ``model`` is its base model, "" for one that it pretrains."""

    profile: str
    engine: str
    study: str
    seeds: int
    model: str
    machine: Machine
    tail: Tail

    @property
    def word(self) -> str:
        """profile=WORD of the entry points."""
        return f"{self.profile}/{self.engine}"

    def loaded(self) -> Profile:
        """The profile's own numbers."""
        return _profile(self.profile, self.engine).of_study(self.study)

    def settings(self, schema: type[Any], entry_point: str, step: str, *words: str) -> Any:
        """Those of a step, as its script gives them."""
        return parse(schema, list(words), layers_of(self.word, entry_point, step))

    def ranks(self, processes: int | None = None) -> Ranks:
        """The processes of a training: one on each GPU, two on a CPU."""
        if self.machine.gpus:
            return Ranks(self.machine.gpus, self.machine.nodes, gpu=True, side_by_side=self.lanes())
        return Ranks(processes or 1, gpu=False, side_by_side=self.lanes())

    def lanes(self) -> int:
        """Runs that share the memory: those of a profile's lanes where there is one GPU, of two cores on a CPU."""
        if self.engine == "verl":
            return 1
        return (max(self.loaded().lanes, 1) if self.machine.gpus == 1 else 1) if self.machine.gpus else 2


@cache
def _profile(name: str, engine: str) -> Profile:
    return load_profile(name, engine)


def shape_of_base(plan: Planned) -> ModelShape:
    """The shape of the model that the study starts from."""
    if plan.model:
        return shape_of_model(plan.model)
    pretrain = pretraining(plan)
    return tiny_shape(pretrain.model, len(corpus_tokenizer(pretrain.mix)))


def pretraining(plan: Planned) -> PretrainSettings:
    """How the base model is made, where no model is given."""
    found: PretrainSettings = plan.settings(
        PretrainSettings, "pretrain_tiny", f"{plan.study}/stage0_pretrain", "output=-"
    )
    return found


def needs_of(plan: Planned, shape: ModelShape) -> list[Need]:
    """Of every kind of step, and of the disk that the whole study takes."""
    return [
        *_pretraining(plan, shape),
        *sampling_needs(collecting(plan), shape, plan.loaded().sampling.max_prompt_tokens, gpu=bool(plan.machine.gpus)),
        *_sft(plan, shape),
        *_grpo(plan, shape),
        Need(
            "the study", DISK, study_parts(plan, shape), "give CKPT_DIR=… on another disk, or take fewer ARMS or SEEDS"
        ),
    ]


@cache
def collecting(plan: Planned) -> CollectSettings:
    """How rollouts are collected outside training."""
    words = ("problems=-", "output=-", "model=-")
    (step, *_) = (*load_study(plan.study).reported, "section41_42/stage1_create_train_data")
    found: CollectSettings = plan.settings(CollectSettings, "collect_rollouts", step, *words)
    return found


def completions_at_once(plan: Planned, shape: ModelShape) -> int | None:
    """Completions of full length that vLLM holds on a GPU at a time; None for another engine."""
    settings, gpu = collecting(plan), plan.machine.gpu_bytes
    if settings.engine not in ("vllm", "ray") or gpu is None:
        return None
    return vllm_of(settings, shape, plan.loaded().sampling.max_prompt_tokens, gpu=True).at_once(shape, gpu)


@cache
def grpo_settings(plan: Planned) -> GrpoSettings:
    """Of the first RL of the study."""
    profile = plan.loaded()
    rollout = "vllm" if plan.engine == "verl" else in_training(profile.sampling.engine)
    words = (
        "model.path=-",
        "data.train_files=[]",
        "data.val_files=[-]",
        "trainer.output=-",
        f"rollout.engine={rollout}",
    )
    step = next(filter(_is_rl, _scripts(plan)))
    found: GrpoSettings = plan.settings(GrpoSettings, "train_grpo", step, *words, *_run_words(plan))
    _settle(found, plan)
    return found


@cache
def sft_settings(plan: Planned) -> SftSettings:
    """Of Stage 1, or of the arms' own SFT."""
    words = ("model.path=-", "data.train_file=-", "trainer.output=-", *_run_words(plan))
    (step, *_) = (*filter(_is_sft, _scripts(plan)), f"{plan.study}/stage1_rft")
    found: SftSettings = plan.settings(SftSettings, "train_sft", step, *words)
    _settle(found, plan)
    return found


def study_parts(plan: Planned, shape: ModelShape) -> dict[str, float]:
    """Bytes that a finished study leaves, by kind of run, over all seeds."""
    profile, arms = plan.loaded(), _scripts(plan)
    rl, own_sft = sum(map(_is_rl, arms)), sum(map(_is_sft, arms))
    if not _fine_tunes(plan):
        return {f"{plan.seeds * rl} runs of RL": plan.seeds * rl * _after_rl(plan, shape)}
    sft = own_sft or 1 + profile.rft.iterations * sum("rft_loop" in script for script in arms)
    rft = profile.rft.iterations * profile.rft.prompts * profile.rft.samples
    completions = read_set("string", profile).count("stage1_level1/train") * profile.rft.stage1_samples + rft
    if own_sft:
        completions = own_sft * read_set("igsm", profile).count("queries") * QUERY_SAMPLES
    base = 0 if plan.model else 4 * shape.parameters
    of_sft, single_file = sft_settings(plan).trainer, plan.engine == "single"
    after_sft = run_bytes(shape, keep=of_sft.keep, best=False, dtype=of_sft.export_dtype, whole_model=single_file)
    return {
        f"{plan.seeds * rl} runs of RL": plan.seeds * rl * _after_rl(plan, shape),
        f"{plan.seeds * sft} of SFT": plan.seeds * sft * after_sft,
        "completions": plan.seeds * completions * plan.tail.mean * BYTES_A_TOKEN,
        "base model": float(plan.seeds * base),
    }


def _after_rl(plan: Planned, shape: ModelShape) -> float:
    """Bytes of a finished run of RL."""
    trainer, whole = grpo_settings(plan).trainer, plan.engine == "single"
    return run_bytes(shape, keep=trainer.keep, best=trainer.keep_best, dtype=trainer.export_dtype, whole_model=whole)


def _pretraining(plan: Planned, shape: ModelShape) -> Iterator[Need]:
    if not plan.model:
        pretrain = pretraining(plan)
        packing = pretrain.packing
        alone = plan.ranks(2)
        ranks = Ranks(alone.processes, alone.nodes, gpu=alone.gpu)
        yield from single.pretraining_needs(shape, pretrain.mesh, pretrain.dtype, packing.rows, packing.length, ranks)


def _sft(plan: Planned, shape: ModelShape) -> list[Need]:
    if not _fine_tunes(plan):
        return []
    settings = sft_settings(plan)
    if plan.engine == "single":
        return single.sft_needs(settings, shape, plan.ranks())
    from compositionality.train.forecast import of_verl
    from compositionality.train.verl.configure import sft_config

    return of_verl.sft_needs(sft_config(settings), shape, plan.tail)


def _grpo(plan: Planned, shape: ModelShape) -> list[Need]:
    settings = grpo_settings(plan)
    if plan.engine == "single":
        return single.grpo_needs(settings, shape, plan.ranks())
    from compositionality.train.forecast import of_verl
    from compositionality.train.verl.configure import grpo_config

    return of_verl.grpo_needs(grpo_config(settings), shape, plan.tail)


def _scripts(plan: Planned) -> list[str]:
    """Of the arms that are trained."""
    study: Study = load_study(plan.study)
    return [study.arms[name].script for name in study.trained or plan.loaded().arms]


def _is_rl(script: str) -> bool:
    return script.rpartition("/")[2].removeprefix("stage2_").startswith(("rl", "train"))


def _is_sft(script: str) -> bool:
    return script.endswith("/sft")


def _fine_tunes(plan: Planned) -> bool:
    """Whether the study has SFT: of an arm, or a stage."""
    scripts = [*_scripts(plan), *(stage.script for stage in load_study(plan.study).stages)]
    return any(_is_sft(script) or "stage1" in script for script in scripts)


def _run_words(plan: Planned) -> list[str]:
    machine = plan.machine
    device = "gpu" if machine.gpus else "cpu"
    words = [f"engine={plan.engine}", f"run.device={device}"]
    return (
        words
        if plan.engine == "single"
        else [*words, f"run.nodes={machine.nodes}", f"run.processes={machine.gpus or 1}"]
    )


def _settle(settings: GrpoSettings | SftSettings, plan: Planned) -> None:
    settings.run.processes = settings.run.processes or plan.ranks().processes
    settle_attention(settings)
