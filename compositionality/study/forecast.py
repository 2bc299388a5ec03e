"""What the steps of a profile need on a machine, with the settings that their plan gives them."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from compositionality.config.cli import parse
from compositionality.config.problem_sets import read_set
from compositionality.config.profile import Profile, layers_of
from compositionality.rollout.forecast.check import sampling_needs, vllm_of
from compositionality.rollout.forecast.machine import Machine
from compositionality.rollout.forecast.need import DISK, Need
from compositionality.rollout.forecast.shape import ModelShape, shape_of_model
from compositionality.rollout.settings import CollectSettings
from compositionality.study.model import Replicate
from compositionality.study.plan import plan
from compositionality.study.request import Request
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
    """A study of a profile (NAME/ENGINE) on a machine: ``model`` is its base model, "" for one that it pretrains."""

    profile: str
    study: str
    seeds: int
    model: str
    machine: Machine
    tail: Tail

    @cached_property
    def request(self) -> Request:
        """One replicate of it, with all that a report reads."""
        return Request(
            self.study, self.profile, (Replicate("study", 0),), report=True, base_model=self.model,
            chat_template="own" if not self.model else "",
        )  # fmt: skip

    @cached_property
    def loaded(self) -> Profile:
        """The profile's own numbers."""
        return self.request.settings

    @cached_property
    def steps(self) -> dict[str, list[Any]]:
        """The settings of its steps by entry point, in the plan's order."""
        found: dict[str, list[Any]] = {}
        for step in plan(self.request):
            found.setdefault(step.entry_point, []).append(step.settings)
        return found

    @property
    def engine(self) -> str:
        """Of its trainings."""
        return self.loaded.engine

    def ranks(self, processes: int | None = None) -> Ranks:
        """The processes of a training: one on each GPU, two on a CPU."""
        if self.machine.gpus:
            return Ranks(self.machine.gpus, self.machine.nodes, gpu=True, side_by_side=self.lanes())
        return Ranks(processes or 1, gpu=False, side_by_side=self.lanes())

    def lanes(self) -> int:
        """Runs that share the memory: those of a profile's lanes where there is one GPU, of two cores on a CPU."""
        if self.engine == "verl":
            return 1
        return (max(self.loaded.lanes, 1) if self.machine.gpus == 1 else 1) if self.machine.gpus else 2


def shape_of_base(plan: Planned) -> ModelShape:
    """The shape of the model that the study starts from."""
    if plan.model:
        return shape_of_model(plan.model)
    pretrain = pretraining(plan)
    return tiny_shape(pretrain.model, len(corpus_tokenizer(pretrain.mix)))


def pretraining(plan: Planned) -> PretrainSettings:
    """How the base model is made, where no model is given."""
    found: PretrainSettings = plan.steps["pretrain_tiny"][0]
    return found


def needs_of(plan: Planned, shape: ModelShape) -> list[Need]:
    """Of every kind of step, and of the disk that the whole study takes."""
    return [
        *_pretraining(plan, shape),
        *sampling_needs(collecting(plan), shape, plan.loaded.sampling.max_prompt_tokens, gpu=bool(plan.machine.gpus)),
        *_sft(plan, shape),
        *_grpo(plan, shape),
        Need(
            "the study", DISK, study_parts(plan, shape), "give CKPT_DIR=… on another disk, or take fewer ARMS or SEEDS"
        ),
    ]


def collecting(plan: Planned) -> CollectSettings:
    """How rollouts are collected outside training; of a study without, as the profile says."""
    found = plan.steps.get("collect_rollouts")
    words = ["problems=-", "output=-", "model=-"]
    settings: CollectSettings = (
        found[0] if found else parse(CollectSettings, words, layers_of(plan.profile, "collect_rollouts"))
    )
    return settings


def completions_at_once(plan: Planned, shape: ModelShape) -> int | None:
    """Completions of full length that vLLM holds on a GPU at a time; None for another engine."""
    settings, gpu = collecting(plan), plan.machine.gpu_bytes
    if settings.engine not in ("vllm", "ray") or gpu is None:
        return None
    return vllm_of(settings, shape, plan.loaded.sampling.max_prompt_tokens, gpu=True).at_once(shape, gpu)


def training(plan: Planned, entry_point: str) -> Any:
    """The first SFT or RL of the study, on this machine."""
    settings = deepcopy(plan.steps[entry_point][0])
    gpus, run = plan.machine.gpus, settings.run
    run.device, run.processes = ("gpu" if gpus else "cpu"), None
    if plan.engine == "verl":
        run.nodes, run.processes = plan.machine.nodes, gpus or 1
    run.processes = run.processes or plan.ranks().processes
    settle_attention(settings)
    return settings


@cache
def grpo_settings(plan: Planned) -> GrpoSettings:
    """Of the first RL of the study."""
    found: GrpoSettings = training(plan, "train_grpo")
    return found


@cache
def sft_settings(plan: Planned) -> SftSettings:
    """Of the first SFT of the study."""
    found: SftSettings = training(plan, "train_sft")
    return found


def study_parts(plan: Planned, shape: ModelShape) -> dict[str, float]:
    """Bytes that a finished study leaves, by kind of run, over all seeds."""
    rl, sft = (len(plan.steps.get(name, [])) for name in ("train_grpo", "train_sft"))
    if not sft:
        return {f"{plan.seeds * rl} runs of RL": plan.seeds * rl * _after_rl(plan, shape)}
    if "igsm" in plan.request.loaded.owns:
        completions = sft * read_set("igsm", plan.loaded).count("queries") * QUERY_SAMPLES
    else:
        (first, *_) = plan.steps["collect_rollouts"]
        chunks = [one for one in plan.steps.get("split_chunks", []) if one.rows_per_chunk]
        folders = {str(one.output): one.chunks * one.rows_per_chunk for one in chunks}
        answers = [one for one in plan.steps["collect_rollouts"] if str(one.problems.parent) in folders]
        rft = sum(folders[str(one.problems.parent)] * one.n_samples for one in answers if one.problems.stem == "0")
        completions = read_set("string", plan.loaded).count("stage1_level1/train") * first.n_samples + rft
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
    if "train_sft" not in plan.steps:
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
