"""What the preflight forecasts for a step of the check: the memory of its fullest GPU, on a CPU that of the machine."""

from pathlib import Path

from compositionality.config.cli import parse
from compositionality.config.profile import layers_of, schema_of
from compositionality.report.gpu_check.plan import CheckStep
from compositionality.rollout.forecast.check import sampling_needs
from compositionality.rollout.forecast.need import GB, GPU, HOST, Need
from compositionality.rollout.forecast.shape import shape_of_model
from compositionality.train.common.ranks import RunSettings
from compositionality.train.engines import settle_cluster
from compositionality.train.forecast import of_verl, single
from compositionality.train.forecast.single import Ranks
from compositionality.train.tiny.corpus import corpus_tokenizer
from compositionality.train.tiny.model import tiny_shape


def forecast_gb(step: CheckStep, *, gpu: bool) -> float | None:
    """GB in the step's place that needs most; None for a step that is not forecast."""
    place = GPU if gpu else HOST
    found = [need.total for need in needs_of(step, gpu=gpu) if need.place == place]
    return round(max(found) / GB, 2) if found else None


def needs_of(step: CheckStep, *, gpu: bool) -> list[Need]:
    """Of the settings that the step's command has."""
    entry_point, profile, *words = step.words
    if step.kind not in ("pretrain", "rollouts", "sft", "grpo"):
        return []
    settings = parse(schema_of(entry_point), words, layers_of(profile.removeprefix("profile="), entry_point))
    if step.kind == "pretrain":
        shape, packing = tiny_shape(settings.model, len(corpus_tokenizer(settings.mix))), settings.packing
        ranks = ranks_of(settings.run, gpu=gpu)
        return single.pretraining_needs(shape, settings.mesh, settings.dtype, packing.rows, packing.length, ranks)
    assert step.model is not None, step.name
    shape = shape_of_model(Path(step.model))
    if step.kind == "rollouts":
        return sampling_needs(settings, shape, settings.max_prompt_tokens, gpu=gpu)
    settle_cluster(settings, imagined=True)
    if settings.engine == "single":
        of_single = single.sft_needs if step.kind == "sft" else single.grpo_needs
        return of_single(settings, shape, ranks_of(settings.run, gpu=gpu))
    from compositionality.train.verl.configure import grpo_config, sft_config

    if step.kind == "sft":
        return of_verl.sft_needs(sft_config(settings), shape)
    return of_verl.grpo_needs(grpo_config(settings), shape)


def ranks_of(run: RunSettings, *, gpu: bool) -> Ranks:
    """The processes of a step."""
    return Ranks(run.processes or 1, gpu=gpu)
