"""Updates on one scripted batch by each engine: the metrics of verl's trainer and worker, and of grpo.py.

``python verl_update.py OUT MODEL`` with VERL_PLATFORM=cpu; OUT: JSON, by case and engine the metrics of each step. The
batch is drawn at random: prompts, completions, log-probs of a sampler, advantages. Of verl everything is real but Ray
and its store: the trainer's passes for old and reference log-probs, its update, the worker's FSDP engine and optimizer.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from compositionality.config.cli import parse
from compositionality.train.engines import settle_cluster
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.types import TrainSample

ROWS, STEPS, SEED = 12, 2, 3
COMMON = (
    *("data.prompts_per_step=4", "rollout.n=3", "rollout.max_tokens=20", "rollout.temperature=0.7"),
    *("data.max_prompt_tokens=12", "optim.lr=1e-3", "optim.warmup_steps=3", "run.processes=1", "run.device=cpu"),
)
TWICE = ("algorithm.updates_per_step=2", "algorithm.clip_high=0.01")
CASES = {
    "one update": ("algorithm.kl=k3", "algorithm.kl_coef=0.1", "algorithm.entropy_coef=0.01"),
    "two updates": (*TWICE, "algorithm.kl=k2", "algorithm.kl_coef=0.1", "algorithm.loss_aggregation=sequence"),
    "micro-batches": (*TWICE, "algorithm.loss_aggregation=dr_grpo", "trainer.micro_batch_tokens=64"),
}
Metrics = list[dict[str, float]]
"""Of each step."""


def settings_of(model: Path, engine: str, *words: str) -> GrpoSettings:
    given = [f"engine={engine}", f"model.path={model}", "data.train_files=[a]", "trainer.output=o", *COMMON, *words]
    return parse(GrpoSettings, given)


def scripted(model: Path) -> list[TrainSample]:
    """Rows of different lengths, of plain tokens: verl's embedding of the padding token has no gradient."""
    from transformers import AutoTokenizer

    tokenizer, draws = AutoTokenizer.from_pretrained(model), np.random.default_rng(SEED)
    plain = np.setdiff1d(np.arange(len(tokenizer)), tokenizer.all_special_ids)
    samples = []
    for _ in range(ROWS):
        prompt, response = (draws.choice(plain, size=draws.integers(2, n)).tolist() for n in (12, 20))
        log_probs = (-draws.random(len(response)) * 8).tolist()
        samples.append(TrainSample(prompt, response, log_probs, float(draws.normal())))
    return samples


def by_grpo_py(settings: GrpoSettings, samples: list[TrainSample]) -> Metrics:
    from compositionality.train.grpo import GrpoTrainer
    from compositionality.train.grpo_report import Clock
    from compositionality.train.policy import new_optimizer

    trainer = object.__new__(GrpoTrainer)
    trainer.settings, trainer.mesh, trainer.clock = settings, None, Clock()
    trainer.policy = trainer.new_policy(entropy_gradient=settings.algorithm.entropy_coef != 0)
    trainer.reference = None if settings.algorithm.kl == "none" else trainer.new_policy().requires_grad_(False)
    trainer.optimizer = new_optimizer(trainer.policy, settings.optim)
    return [trainer.update(samples, 1 + step, settings.algorithm.entropy_coef) for step in range(STEPS)]


class Store:
    """In the place of verl's store and its Ray workers: rows by key, and the worker of the actor or the reference."""

    def __init__(self, rows: dict[str, dict[str, torch.Tensor]]) -> None:
        self.rows = rows

    def get(self, keys: list[str], partition_id: str, select_fields: list[str] | None = None) -> Any:
        from verl.utils.tensordict_utils import list_of_dict_to_tensordict

        chosen = [self.rows[key] for key in keys]
        return list_of_dict_to_tensordict([{n: row[n] for n in select_fields or row} for row in chosen])

    def put(self, keys: list[str], partition_id: str, fields: Any) -> Any:
        for name, values in fields.items():
            for key, value in zip(keys, values.unbind(), strict=True):
                self.rows[key][name] = value
        return None

    def call(self, function: Any, *, keep: bool) -> Any:
        """A call of a worker with all rows of a batch; what it computes is put into the store."""

        def called(batch: Any) -> Any:
            from verl.utils.tensordict_utils import assign_non_tensor_data

            data = self.get(batch.keys, "train")
            for name, value in batch.extra_info.items():
                assign_non_tensor_data(data, name, value)
            output = function(data)
            if not keep:
                return output
            self.put(batch.keys, "train", output.select(*({"log_probs", "entropy"} & set(output.keys()))))
            return batch

        return called


def by_verl(settings: GrpoSettings, samples: list[TrainSample], order: list[list[int]]) -> Metrics:
    """``order``: of the rows in each step, as grpo.py shuffles them into its updates."""
    import transfer_queue
    from transfer_queue import KVBatchMeta
    from verl.utils import torch_functional
    from verl.workers.engine_workers import ActorRolloutRefWorker

    from compositionality.train.verl import configure, trainer
    from compositionality.train.verl.metrics import rising

    torch_functional.get_constant_schedule_with_warmup = rising
    settle_cluster(settings, imagined=True)
    config = configure.grpo_config(settings)
    rows = {}
    for number, sample in enumerate(samples):
        n, ids = len(sample.response_ids), torch.tensor(sample.prompt_ids + sample.response_ids)
        mask = torch.ones(n, dtype=torch.long)
        rows[str(number)] = {
            "prompts": torch.tensor(sample.prompt_ids),
            "responses": torch.tensor(sample.response_ids),
            "input_ids": ids,
            "position_ids": torch.arange(len(ids)),
            "response_mask": mask,
            "loss_mask": mask,
            "rollout_log_probs": torch.tensor(sample.rollout_log_probs),
            "advantages": torch.full((n,), sample.advantage),
        }
    store = Store(rows)
    transfer_queue.kv_batch_get, transfer_queue.kv_batch_put = store.get, store.put
    made = object.__new__(trainer.VerlGrpoTrainer)
    made.config, made.ref_in_actor, made.global_steps = config, False, 1
    made.distillation_config = config.get("distillation")
    workers = {role: ActorRolloutRefWorker(config.actor_rollout_ref, role) for role in ("actor", "ref")}
    for worker in workers.values():
        worker.init_model()
    made.actor_rollout_wg = SimpleNamespace(
        compute_log_prob=store.call(workers["actor"].compute_log_prob, keep=True),
        update_actor=store.call(workers["actor"].update_actor, keep=False),
    )
    made.ref_policy_wg = SimpleNamespace(
        compute_ref_log_prob=store.call(workers["ref"].compute_ref_log_prob, keep=True)
    )
    found = []
    for places in order:
        metrics: dict[str, float] = {}
        batch = KVBatchMeta([str(place) for place in places], [{} for _ in places], "train")
        made._compute_old_log_prob(batch, metrics)
        if settings.algorithm.kl != "none":
            made._compute_ref_log_prob(batch, metrics)
        made._update_actor(batch, metrics)
        found.append({name: float(value) for name, value in metrics.items()})
    return found


def by_both(model: Path, words: tuple[str, ...]) -> dict[str, Metrics]:
    """The metrics of each step by each engine."""
    ours, samples = settings_of(model, "single", *words), scripted(model)
    order = [np.random.default_rng([ours.data.seed, 1 + step, 1]).permutation(ROWS).tolist() for step in range(STEPS)]
    return {"grpo.py": by_grpo_py(ours, samples), "verl": by_verl(settings_of(model, "verl", *words), samples, order)}


def main() -> None:
    out, model = map(Path, sys.argv[1:])
    import verl  # noqa: F401  (its CPU platform)

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    out.write_text(json.dumps({name: by_both(model, words) for name, words in CASES.items()}))


if __name__ == "__main__":
    main()
