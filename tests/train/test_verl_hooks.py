"""The hooks of verl and the names of verl that our code needs: the table in verl/hooks.py is whole, and true of the
verl that is installed. Another verl fails here with the name that it lacks.
"""

import ast
import importlib
import inspect
import re
import sys
import tomllib
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from compositionality.train.policy import learning_rate_at
from compositionality.train.settings import OptimSettings
from compositionality.train.verl import hooks
from compositionality.train.verl.metrics import rising

pytestmark = pytest.mark.full
ROOT = Path(__file__).parents[2]
ROOM = ROOT / "compositionality" / "train" / "verl"
BY_CONTRACT = ("verl.plugin.platform.platform_base.PlatformBase",)
"""verl's published interface: all abstract, so that Python names what is missing."""
SUBCLASSES = {
    "extensions.SeededSingleTurn": "rollout_config run",
    "group_loop.GroupWorker": "_run_prompt config llm_client rollout_config tokenizer",
    "group_loop.GroupManager": "agent_loop_workers_class",
    "grpo_trainer.TaskRunner": "run",
    "replay.GenerationBatches": (
        "_clear_groups _evict_terminal_groups _materialize_batch _sampleable_terminal_keys "
        "_sync_metadata_from_transfer_queue _terminal_eviction_reasons failure_keys finished_keys partitions "
        "pending_keys poll_interval refill_fn running_keys sample"
    ),
    "reward_manager.VerdictRewardManager": "run_single tokenizer",
    "sft_trainer.Checkpoints": (
        "_load_dataloader_state default_local_dir load_checkpoint rank resume_from_path resume_global_step "
        "save_checkpoint"
    ),
    "sft_trainer.VerlSftTrainer": (
        "_build_ckpt_handler _build_dataloader _get_lora_train_meta _init_engine ckpt_handler config device_name "
        "engine optimizer_config resume_global_step steps_per_epoch total_training_steps train_dataloader "
        "train_sampler training_client val_dataloader"
    ),
    "trainer.VerlGrpoTrainer": (
        "_compute_metrics _compute_values _init_dataloader _next_train_batch _save_checkpoint _update_actor "
        "_val_metrics_update _validate config global_steps logger on_train_begin step tokenizer "
        "total_training_steps train_dataloader train_dataset val_dataset"
    ),
    "trainer.Seal": "config on_save",
}
"""Classes of ours with a base in verl → the names of that base which they override or use.

All but CpuPlatform: its base is an interface of abstract methods, of which Python itself names a missing one.
"""
REPLACED = (
    "verl.utils.tracking.FileLogger",
    "verl.utils.tracking.Tracking.__init__",
    "verl.utils.tracking.ValidationGenerationsLogger.log_generations_to_wandb",
    "verl.utils.tracking.ValidationGenerationsLogger.log_generations_to_tensorboard",
    "verl.utils.model.load_valuehead_model",
    "verl.utils.torch_functional.get_constant_schedule_with_warmup",
    "verl.utils.torch_functional.FLAH_ATTN_CROSS_ENTROPY_LOSS_AVAILABLE",
    "verl.trainer.main_ppo.TaskRunnerV1.__ray_metadata__",
    "verl.trainer.ppo.v1.agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__",
    "verl.workers.rollout.llm_server.LLMServerClient._acquire_server",
    "verl.workers.rollout.llm_server.LLMServerClient._release_server",
)
"""Names of verl that we replace, or use from outside, although no interface promises them."""


def resolve(path: str) -> Any:
    """The module, class or attribute with a dotted name."""
    parts = path.split(".")
    for number in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:number]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[number:], module)
    raise ImportError(path)


def plain(found: Any) -> Any:
    """The class behind an actor class of Ray."""
    return found.__ray_metadata__.modified_class if hasattr(found, "__ray_metadata__") else found


def has(base: type, name: str) -> bool:
    """Whether ``base`` or a class of verl below it defines the name, or its module sets it on instances."""
    modules = {parent.__module__ for parent in base.__mro__ if parent.__module__.startswith("verl.")}
    on_instances = re.compile(rf"\bself\.{name}\b")
    return hasattr(base, name) or any(on_instances.search(inspect.getsource(sys.modules[each])) for each in modules)


def used(tree: ast.ClassDef) -> set[str]:
    """What a class defines, and what it reads or calls of ``self`` and ``super()``."""
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return defined | {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "super()")
    }


@pytest.mark.parametrize("ours", SUBCLASSES)
def test_verl_has_what_a_subclass_needs_of_it_and_the_table_says_so(ours: str) -> None:
    module, name = ours.split(".")
    base, listed = plain(resolve(f"{hooks.HERE}.{ours}")).__bases__[0], SUBCLASSES[ours].split()
    for needed in listed:
        assert has(base, needed), (
            f"{base.__module__}.{base.__name__} has no {needed} any more: verl/{module}.py, {name}"
        )
    [tree] = [node for node in ast.parse((ROOM / f"{module}.py").read_text()).body if getattr(node, "name", "") == name]
    found = {needed for needed in used(tree) if has(base, needed) and not hasattr(object, needed)}
    assert found == set(listed), f"SUBCLASSES, row {ours}"


def test_every_subclass_is_in_the_table() -> None:
    found = set()
    for path in ROOM.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.bases:
                ours = resolve(f"{hooks.HERE}.{path.stem}.{node.name}")
                bases = {f"{base.__module__}.{base.__qualname__}" for base in ours.__mro__}
                if not bases.isdisjoint(BY_CONTRACT):
                    continue
                if any(name.startswith("verl.") for name in bases):
                    found.add(f"{path.stem}.{node.name}")
    assert found == {*SUBCLASSES}


@pytest.mark.parametrize("name", REPLACED)
def test_verl_has_what_we_replace(name: str) -> None:
    owner, _, last = name.rpartition(".")
    assert hasattr(resolve(owner), last), f"verl has no {name} any more"


def test_every_place_of_ours_that_verl_is_told_exists() -> None:
    keys = {**hooks.GRPO_KEYS, **hooks.GRPO_CPU_KEYS, **hooks.SFT_KEYS}
    places = [value.removeprefix("pkg://") for value in keys.values() if hooks.HERE in value]
    for key, value in keys.items():
        if key.endswith(".name"):
            places.append(f"{keys.get(f'{key[:-5]}.path', keys.get(f'{key[:-5]}.module.path'))[6:]}.{value}")
    for place in (*places, *(target.replace(":", ".") for target in hooks.ENTRY_POINTS.values())):
        assert resolve(place), place


def test_the_entry_points_are_those_of_the_package() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert {group: [target] for group, target in hooks.ENTRY_POINTS.items()} == {
        group: list(groups[group].values()) for group in hooks.ENTRY_POINTS
    }


@pytest.mark.parametrize("warmup", [0, 1, 4])
def test_the_learning_rate_rises_as_in_the_single_file_trainer(warmup: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what verl's engine builds of its own configuration."""
    from verl.utils import torch_functional
    from verl.workers.config import FSDPOptimizerConfig
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngine

    replaced = "get_constant_schedule_with_warmup"
    monkeypatch.setattr(torch_functional, replaced, rising)
    config = FSDPOptimizerConfig(lr=0.1, lr_warmup_steps=warmup, total_training_steps=8)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=config.lr)
    verl = FSDPEngine._build_lr_scheduler(SimpleNamespace(optimizer_config=config, rank=1), optimizer)
    rates = []
    for _ in range(8):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        verl.step()
    assert rates == [learning_rate_at(step, 8, OptimSettings(lr=0.1, warmup_steps=warmup)) for step in range(8)]


def test_the_registered_names_are_verls() -> None:
    from verl.experimental.agent_loop.agent_loop import _agent_loop_registry
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn, get_policy_loss_fn
    from verl.trainer.ppo.v1.trainer_base import get_trainer_cls

    from compositionality.train.verl import extensions, trainer

    assert get_adv_estimator_fn(hooks.RAFT) is extensions.raft_advantage
    assert get_policy_loss_fn(hooks.ON_POLICY) is extensions.on_policy_loss
    assert _agent_loop_registry[hooks.SEEDED_LOOP]["_target_"].endswith("extensions.SeededSingleTurn")
    assert get_trainer_cls(hooks.TRAINER) is trainer.VerlGrpoTrainer
