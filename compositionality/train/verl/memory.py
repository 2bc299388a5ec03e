"""Memory and disk that verl's SFT and GRPO need, and the check before every start.

By the configuration that verl gets: what decides (offloading, packing, sizes of vLLM) may be given as verl.KEY=value.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compositionality import memory
from compositionality.memory import DISK, GPU, HOST, ModelShape, Need
from compositionality.rollout.model_folder import shape_of_model
from compositionality.train.memory import FEWER_CHECKPOINTS, check_here

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
CPU_CACHE = 1 << 30  # VLLM_CPU_KVCACHE_SPACE that launch.py sets
RAY = 1.5e9  # host memory of Ray's own processes on a node
TOKEN_FIELDS = 8  # numbers of 8 bytes of a token between verl's workers: ids, masks, positions, log-probs, advantages
UPDATES = 10  # that are drawn to find the largest micro-batch
SHORTEST = 16  # tokens of a row that is drawn
LINE = 400.0  # bytes of what stands beside prompt and response in verl's files: gold answer, score, verdict, keys


@dataclass(frozen=True)
class Tail:
    """Lengths of rows in tokens: exponential of mean ``mean``, a share ``at_limit`` as long as is allowed."""

    mean: float = 300.0
    at_limit: float = 0.01

    def lengths(self, rows: int, limit: int, seed: int) -> list[int]:
        draw = random.Random(seed)
        usual = [min(limit, max(SHORTEST, round(draw.expovariate(1 / self.mean)))) for _ in range(rows)]
        return [limit if draw.random() < self.at_limit else length for length in usual]


USUAL = Tail()


def check_training(config: Any, sizes: Mapping[str, int] | None = None) -> None:
    """Raise UserError unless SFT or GRPO fits this machine; of a Ray cluster elsewhere only the disk is known here."""
    needs = training_needs(config, shape_of_model(config.run.model), sizes=sizes)
    check_here(needs, Path(config.run.output), config.run.device)


def training_needs(
    config: Any, shape: ModelShape, tail: Tail = USUAL, sizes: Mapping[str, int] | None = None
) -> list[Need]:
    """Return the needs of SFT, or of GRPO; ``sizes``: rows of its problem files by path, of those that are known."""
    if "actor_rollout_ref" in config:
        return _grpo_needs(config, shape, tail, sizes or {})
    run, data = config.run, config.data
    sharding = sharding_of(config.engine, config.model, shape, run)
    batch = largest_batch(
        max(1, data.train_batch_size // sharding.data),
        data.max_length,
        data.max_token_len_per_gpu,
        tail,
        packed=config.model.use_remove_padding,
    )
    update = memory.training(shape, sharding, batch_spec(config.engine, config.model, batch))
    disk = memory.run_folder(shape, keep=run.kept, best=False, dtype=run.export_dtype, whole_model=False)
    return [
        *update_needs("SFT", "verl.engine", shape, run, sharding, update, {}),
        Need("SFT", DISK, disk, FEWER_CHECKPOINTS),
    ]


def _grpo_needs(config: Any, shape: ModelShape, tail: Tail, sizes: Mapping[str, int]) -> list[Need]:
    """Return the needs of sampling with vLLM, of the update while vLLM sleeps, of host memory and the run folder."""
    run, model = config.run, config.actor_rollout_ref.model
    actor, rollout = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout
    sharding = sharding_of(actor.fsdp_config, model, shape, run)
    length = config.data.max_prompt_length + config.data.max_response_length
    rows = max(1, config.data.train_batch_size * rollout.n // sharding.data)
    batch = largest_batch(rows, length, actor.ppo_max_token_len_per_gpu, tail, packed=model.use_remove_padding)
    entropy = bool(actor.entropy_coeff or actor.get("calculate_entropy"))
    spec = batch_spec(actor.fsdp_config, model, batch, entropy=entropy, tempered=rollout.temperature != 1.0)
    update = memory.training(shape, sharding, spec)
    vllm = memory.Vllm(
        share=rollout.gpu_memory_utilization,
        length=rollout.max_model_len,
        tensor=rollout.tensor_model_parallel_size,
        bytes_each={"float32": 4}.get(rollout.dtype, 2),
        batched_tokens=rollout.max_num_batched_tokens,
        sequences=rollout.max_num_seqs,
        hint="lower rollout.max_tokens, raise rollout.gpu_memory, or share the model: mesh.tensor=2",
    )
    stores = int(config.transfer_queue.backend.SimpleStorage.num_data_storage_units)
    workers = 4 + rollout.agent.num_workers + config.reward.num_workers + stores  # that compute nothing
    host = {
        "Ray and verl's workers": RAY + workers * memory.PYTHON,
        "a batch in Ray's store": 8.0 * TOKEN_FIELDS * (run.generation_batch_size * rollout.n) * length,
    }
    if has_reference(config):  # at rest on no GPU, which it visits a block at a time (FSDPEngine._build_fsdp_module)
        plain = shape.parameters / sharding.ways * memory.WEIGHT
        host["reference model"] = run.processes * (memory.pinned(shape, sharding) if run.device == "gpu" else plain)
    critic = config.algorithm.adv_estimator == "gae"
    resting, updates = at_rest(shape, sharding), {"GRPO, update": update}
    if critic:  # in the processes of the policy, and updated after it
        own = sharding_of(config.critic.fsdp, config.critic.model, shape, run)
        parts = memory.training(shape, own, replace(spec, entropy=False, tempered=False, head=False))
        updates["PPO, update of the critic"] = {**parts, "policy at rest": resting}
        update["critic at rest"] = at_rest(shape, own)
        resting += update["critic at rest"]
        host["critic moved off the GPUs"] = run.processes * memory.parked(shape, own)
    needs = []
    if run.device == "gpu":
        needs.append(vllm.need(shape, "GRPO, sampling", beside=resting + memory.CONTEXT))
        awake = 0.0 if rollout.free_cache_engine else sum(vllm.need(shape, "").parts.values())
        for parts in updates.values():
            parts["vLLM asleep" if rollout.free_cache_engine else "vLLM"] = max(memory.GRAPHS + memory.CONTEXT, awake)
        host["vLLM"] = run.processes * memory.VLLM_HOST
    else:
        host["vLLM"] = run.processes * (vllm.weights(shape) + CPU_CACHE + 2 * memory.PYTHON)
    disk = memory.run_folder(shape, keep=run.kept, best=True, dtype=run.export_dtype, whole_model=False)
    if critic:  # of which each checkpoint holds the states, too
        disk |= {name: 2 * size for name, size in disk.items() if "checkpoint" in name}
    if not run.keep_best:
        disk["final/ and best/"] /= 2
    disk["completions"] = completion_files(config, tail, sizes)
    name = "verl.actor_rollout_ref.actor.fsdp_config"
    for step, parts in updates.items():
        needs += update_needs(step, name, shape, run, sharding, parts, host)
    return [*needs, Need("GRPO", DISK, disk, FEWER_CHECKPOINTS)]


def at_rest(shape: ModelShape, sharding: memory.Sharding) -> float:
    """Return the bytes of a process between updates where these are made: what is not parked, without gradients."""
    moments = memory.MOMENTS * sharding.trained * (not sharding.parked_moments)
    bytes_each = memory.WEIGHT * (not sharding.parked_weights) + moments
    return shape.parameters / sharding.ways * bytes_each if sharding.resident else 0.0


def has_reference(config: Any) -> bool:
    """Return whether verl makes a reference (``_init_resource_pool_mgr``); with LoRA that is the actor."""
    actor, model = config.actor_rollout_ref.actor, config.actor_rollout_ref.model
    adapters = model.lora.rank > 0 or model.lora_rank > 0 or model.lora_adapter_path is not None
    return bool(actor.use_kl_loss or config.algorithm.use_kl_in_reward) and not adapters


def completion_files(config: Any, tail: Tail, sizes: Mapping[str, int]) -> float:
    """Return the bytes of the completions that a run of RL writes down: of its updates, and of its validations."""
    run, trainer, batch = config.run, config.trainer, config.data.train_batch_size
    rollout = config.actor_rollout_ref.rollout
    problems, validated = (sum(sizes.get(path, 0) for path in files) for files in (run.train_files, run.val_files))
    steps = min(filter(None, (trainer.total_training_steps, trainer.total_epochs * problems // batch)), default=0)
    validations = 1 + -(-steps // trainer.test_freq) if trainer.test_freq > 0 else 0
    lines = steps * batch * rollout.n if trainer.rollout_data_dir else 0
    lines += validated * validations * rollout.val_kwargs.n if trainer.validation_data_dir else 0
    return lines * (tail.mean * memory.TOKEN_TEXT + LINE)


def sharding_of(engine: Any, model: Any, shape: ModelShape, run: Any) -> memory.Sharding:
    """Return how verl's FSDP2 engine shares the states."""
    return memory.Sharding(
        data=run.processes * run.nodes,
        resident=not engine.offload_policy,
        parked_weights=engine.param_offload and not engine.offload_policy,
        parked_moments=engine.optimizer_offload and not engine.offload_policy,
        deferred=engine.use_no_sync_for_gradient_accumulation,
        trained=memory.trained_share(shape, model.lora_rank),
    )


def batch_spec(
    engine: Any, model: Any, batch: memory.BatchSize, *, entropy: bool = False, tempered: bool = False
) -> memory.BatchSpec:
    """Return how verl computes a micro-batch."""
    attention, checkpointing = model.override_config.attn_implementation, model.enable_gradient_checkpointing
    c = BYTES[engine.mixed_precision.param_dtype]
    return memory.BatchSpec(batch, c, checkpointing, attention, "verl", entropy=entropy, tempered=tempered)


def update_needs(
    step: str,
    engine: str,
    shape: ModelShape,
    run: Any,
    sharding: memory.Sharding,
    update: dict[str, float],
    host: dict[str, float],
) -> list[Need]:
    """Return the needs of an update: of a GPU and of a node, or of this machine alone; ``engine``: its key in verl.

    Rank 0 loads the model in float32 and sends it to the others; with a tied head every rank loads it
    (``get_init_weight_context_manager`` in verl/utils/fsdp_utils.py).
    """
    if run.device != "gpu":
        parts = {name: run.processes * size for name, size in update.items()}
        parts |= {**host, "processes": (run.processes + 1) * memory.PYTHON}
        return [Need(step, HOST, parts, "lower trainer.micro_batch_tokens or run.processes")]
    held = {"weights and Adam moved off the GPUs": run.processes * memory.parked(shape, sharding)}
    loaded = float((run.processes if shape.tied else 1) * shape.parameters * memory.WEIGHT)
    loading = {"the model in float32 while it is loaded": loaded}
    largest = max(held, loading, key=lambda parts: sum(parts.values()))
    on_node = {"processes": run.processes * memory.GPU_PROCESS, **largest, **host}
    hint = f"use more GPUs, lower trainer.micro_batch_tokens, or set {engine}.offload_policy=true"
    host_hint = f"use more nodes, or set {engine}.param_offload=false {engine}.optimizer_offload=false"
    return [Need(step, GPU, {**update, "CUDA": memory.CONTEXT}, hint), Need(step, HOST, on_node, host_hint)]


# ---- the largest micro-batch


def largest_batch(rows: int, limit: int, budget: int, tail: Tail, *, packed: bool) -> memory.BatchSize:
    """Return the largest micro-batch among those of 10 updates of ``rows`` rows on a rank, cut by verl's own function.

    ``rearrange_micro_batches`` (verl/utils/seqlen_balancing.py) cuts by real tokens; where padding is not removed
    (workers/engine/fsdp/transformer_impl.py, prepare_model_inputs) each is padded to its longest row.
    """
    if packed:  # the budget is a limit that verl holds, and long rows reach it
        return memory.BatchSize(rows, min(max(budget, limit), rows * limit), limit, packed=True)
    parts = [part for seed in range(UPDATES) for part in cut_by_verl(tail.lengths(rows, limit, seed), budget)]
    batches = [memory.BatchSize(len(part), sum(part), max(part), packed=False) for part in parts]
    return max(batches, key=lambda batch: (batch.computed, batch.mask))


def cut_by_verl(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Return the lengths of each micro-batch that verl makes of rows of these ``lengths``."""
    import torch
    from tensordict import TensorDict
    from verl.utils.seqlen_balancing import rearrange_micro_batches

    rows = [torch.zeros(length, dtype=torch.int8) for length in lengths]
    ids = torch.nested.nested_tensor(rows, layout=torch.jagged)
    _, parts = rearrange_micro_batches(TensorDict({"input_ids": ids}, [len(rows)]), max(budget, *lengths))
    return [[lengths[number] for number in part] for part in parts]
