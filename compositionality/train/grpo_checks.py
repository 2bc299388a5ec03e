"""What no run of GRPO can have, with either engine, and its length by the problems that there are."""

import importlib.util
import os
from pathlib import Path

from compositionality.data.artefact import is_to_be_checked
from compositionality.data.problems import read_problems
from compositionality.errors import UserError, check_installed
from compositionality.http_json import address_of
from compositionality.train.checks import NEEDS_VERL, check_loggers, check_lora, check_mesh, refuse_foreign_keys
from compositionality.train.grpo_settings import GAE, CriticSettings, GrpoRolloutSettings, GrpoSettings
from compositionality.validation import check_ranges

SAMPLERS = {"single": ("builtin", "vllm", "server"), "verl": ("vllm", "sglang")}
SINGLE_LACKS = {
    **NEEDS_VERL,
    **{f"critic.{name}": "it has no critic; take engine=verl" for name in CriticSettings.__dataclass_fields__},
}


def check_settings(settings: GrpoSettings) -> None:
    """Raise UserError for settings that no run can have, with either engine."""
    check_ranges(settings)
    check_loggers(settings.trainer.logger, settings.engine)
    settings.reward.check()
    if settings.engine == "single":
        refuse_foreign_keys(settings, SINGLE_LACKS)
        check_mesh(settings.mesh, settings.model.dtype, settings.run)
        check_lora(settings.model, settings.mesh)
        if settings.algorithm.advantage == GAE:
            raise UserError("algorithm.advantage=gae: engine=single has no critic; take engine=verl")
    if settings.rollout.engine not in SAMPLERS[settings.engine]:
        raise UserError(f"rollout.engine={settings.rollout.engine}: not one of {', '.join(SAMPLERS[settings.engine])}")
    _check_sampler(settings.rollout, settings.engine)
    data, algorithm, rollout = settings.data, settings.algorithm, settings.rollout
    if settings.trainer.epochs and data.train_limit:
        raise UserError("trainer.epochs: passes over whole files; with data.train_limit give trainer.steps")
    if not data.train_files:
        raise UserError("data.train_files: give at least one problem file")
    data.row_format()
    if data.prompts_per_step % algorithm.updates_per_step:
        raise UserError(
            f"algorithm.updates_per_step={algorithm.updates_per_step} does not divide "
            f"data.prompts_per_step={data.prompts_per_step}"
        )
    alone = algorithm.advantage in ("raft", "reinforce_plus_plus", GAE) and not algorithm.drops_equal_groups()
    if rollout.n < 2 and not alone:
        raise UserError(
            f"rollout.n={rollout.n}: a group of one completion has nothing to compare it with; take at least 2"
        )
    if algorithm.dynamic_sampling and not algorithm.drops_equal_groups():
        raise UserError("algorithm.dynamic_sampling=true replaces equal groups: drop_equal_groups=false contradicts it")
    if algorithm.kl != "none" and algorithm.kl_coef == 0:
        raise UserError(f"algorithm.kl={algorithm.kl}: give algorithm.kl_coef, the weight of that loss, or kl=none")
    if algorithm.entropy_like is not None and algorithm.entropy_coef <= 0:
        raise UserError(f"algorithm.entropy_coef={algorithm.entropy_coef}: entropy_like needs a positive one")
    if settings.reward.is_control() and settings.trainer.keep_best:
        raise UserError(
            f"reward.control={settings.reward.control}: the best checkpoint is chosen by right answers, on which "
            "nothing in a control may depend; set trainer.keep_best=false"
        )
    if algorithm.overlong_buffer > rollout.max_tokens:
        raise UserError(f"algorithm.overlong_buffer={algorithm.overlong_buffer} is more than rollout.max_tokens")


def _check_sampler(rollout: GrpoRolloutSettings, engine: str) -> None:
    """Raise UserError for a sampler that is not there, or that cannot sample so."""
    name = rollout.engine
    if name == "server":
        if not rollout.server_url:
            raise UserError("rollout.engine=server: give rollout.server_url, for example http://127.0.0.1:30000")
        address_of(rollout.server_url)
    if name == "sglang" and importlib.util.find_spec(name) is None:
        raise UserError("rollout.engine=sglang: the package sglang is not installed; install it, or take vllm")
    if name == "vllm" and engine == "single":
        if os.environ.get("COMPOSITIONALITY_DEVICE") != "gpu":  # else it is for another machine
            check_installed(name, "rollout.engine=vllm")
        if not rollout.top_k and rollout.top_p == 1:
            return
        raise UserError(
            f"rollout.top_p={rollout.top_p:g} rollout.top_k={rollout.top_k}: vLLM only tells log-probs after "
            "truncation; use rollout.top_p=1 and rollout.top_k=0, or rollout.engine=builtin"
        )


def settle_length(settings: GrpoSettings) -> None:
    """Set ``trainer.steps`` to at most the whole steps of ``trainer.epochs`` passes, as verl counts them.

    A dry run without the problems leaves it. UserError for problems that make no step.
    """
    data, trainer = settings.data, settings.trainer
    if trainer.epochs is None or not is_to_be_checked(*data.train_files, dry=settings.dry_run):
        return
    problems = sum(read_problems(Path(path), settings.row_format()).num_rows for path in data.train_files)
    if problems < data.prompts_per_step:
        raise UserError(
            f"{', '.join(data.train_files)}: {problems} problems are less than a step; "
            f"lower data.prompts_per_step={data.prompts_per_step}"
        )
    steps = problems // data.prompts_per_step * trainer.epochs
    trainer.steps = min(trainer.steps or steps, steps)
