"""What verl's SFT and GRPO need, from verl's own composed configuration."""

from dataclasses import replace
from typing import Any

from compositionality.rollout.forecast.need import DISK, GPU, HOST, Need
from compositionality.rollout.forecast.sampling import CONTEXT, GRAPHS, PYTHON, VLLM_HOST, Vllm
from compositionality.rollout.forecast.shape import ModelShape
from compositionality.train.forecast import host
from compositionality.train.forecast.activations import Pass, parts
from compositionality.train.forecast.batch import Tail, largest_of_verl
from compositionality.train.forecast.disk import run_parts
from compositionality.train.forecast.single import at_the_peak, keep_less
from compositionality.train.forecast.states import WEIGHT, Sharing, gathered, states, trained_share

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
CPU_CACHE = 1 << 30
"""VLLM_CPU_KVCACHE_SPACE that grpo.py sets."""


def sft_needs(config: Any, shape: ModelShape, tail: Tail | None = None) -> list[Need]:
    """Of supervised fine-tuning."""
    run, data = config.run, config.data
    rows = max(1, data.train_batch_size // (run.processes * run.nodes))
    update = update_parts(
        config.engine, config.model, shape, run, tail or Tail(),
        rows=rows, limit=data.max_length, budget=data.max_token_len_per_gpu,
    )  # fmt: skip
    disk = run_parts(shape, keep=run.keep, best=False, dtype=run.export_dtype, whole_model=False)
    return [
        *memory_needs("SFT", config.engine, "verl.engine", shape, run, update, {}),
        Need("SFT", DISK, disk, keep_less()),
    ]


def grpo_needs(config: Any, shape: ModelShape, tail: Tail | None = None) -> list[Need]:
    """Of GRPO: sampling with vLLM, the update while vLLM sleeps, host memory, the run folder."""
    run, actor, rollout = config.run, config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout
    engine, ranks = actor.fsdp_config, run.processes * run.nodes
    responses = config.data.train_batch_size * rollout.n
    length = config.data.max_prompt_length + config.data.max_response_length
    update = update_parts(
        engine, config.actor_rollout_ref.model, shape, run, tail or Tail(),
        rows=max(1, responses // ranks), limit=length, budget=actor.ppo_max_token_len_per_gpu,
        entropy=bool(actor.entropy_coeff or actor.get("calculate_entropy")), temperature=rollout.temperature,
        reference=actor.use_kl_loss or config.algorithm.use_kl_in_reward,
    )  # fmt: skip
    workers = 4 + rollout.agent.num_workers + config.reward.num_workers
    asked = run.generation_batch_size * rollout.n
    more = host.ray_parts(workers + data_units(config), asked, length)
    needs = []
    vllm = vllm_of(rollout, length)
    if run.device == "gpu":
        held = between_updates(shape, engine, run)
        needs.append(vllm.need(shape, "GRPO, sampling", beside=held + CONTEXT))
        awake = 0.0 if rollout.free_cache_engine else sum(vllm.need(shape, "").parts.values())
        update["vLLM asleep" if rollout.free_cache_engine else "vLLM"] = max(GRAPHS + CONTEXT, awake)
        more |= {"vLLM": run.processes * VLLM_HOST}
    else:
        more |= {"vLLM": run.processes * (vllm.weights(shape) + CPU_CACHE + 2 * PYTHON)}
    disk = run_parts(shape, keep=run.keep, best=True, dtype=run.export_dtype, whole_model=False)
    if not run.keep_best:
        disk["final/ and best/"] /= 2
    return [
        *needs,
        *memory_needs("GRPO, update", engine, "verl.actor_rollout_ref.actor.fsdp_config", shape, run, update, more),
        Need("GRPO", DISK, disk, keep_less()),
    ]


def vllm_of(rollout: Any, length: int) -> Vllm:
    """verl's rollout server on each GPU."""
    return Vllm(
        share=rollout.gpu_memory_utilization,
        length=rollout.max_model_len or length,
        tensor=rollout.tensor_model_parallel_size,
        bytes_each={"float32": 4}.get(rollout.dtype, 2),
        batched_tokens=rollout.max_num_batched_tokens,
        sequences=rollout.max_num_seqs,
        lower="lower rollout.max_tokens, raise rollout.gpu_memory, or share the model: mesh.tensor=2",
    )


def sharing(engine: Any, run: Any) -> Sharing:
    """How verl's FSDP2 engine shares the states."""
    return Sharing(
        data=run.processes * run.nodes,
        resident=not engine.offload_policy,
        parked_weights=engine.param_offload and not engine.offload_policy,
        parked_moments=engine.optimizer_offload and not engine.offload_policy,
        deferred=engine.use_no_sync_for_gradient_accumulation,
    )


def between_updates(shape: ModelShape, engine: Any, run: Any) -> float:
    """Bytes of a GPU that the states of the update hold while vLLM samples."""
    if engine.offload_policy:
        return 0.0
    part = shape.parameters / (run.processes * run.nodes)
    return float(part) * (4 * (not engine.param_offload) + 8 * (not engine.optimizer_offload))


def update_parts(
    engine: Any,
    model: Any,
    shape: ModelShape,
    run: Any,
    tail: Tail,
    *,
    rows: int,
    limit: int,
    budget: int,
    entropy: bool = False,
    temperature: float = 1.0,
    reference: bool = False,
) -> dict[str, float]:
    """Bytes of a process at the peak of an update."""
    c = BYTES[engine.mixed_precision.param_dtype]
    how = replace(sharing(engine, run), trained=trained_share(shape, model.lora_rank))
    batch = largest_of_verl(rows, limit, budget, tail, packed=model.use_remove_padding)
    attention = model.override_config.attn_implementation
    checkpointing = model.enable_gradient_checkpointing
    passes = Pass(batch, c, checkpointing, attention, "verl", entropy=entropy, tempered=temperature != 1.0)
    during, end = gathered(shape, how, c)
    end = max(end, shape.parameters / how.ways * WEIGHT)  # of AdamW's foreach kernels, which copy the weights once
    return {**states(shape, how, reference=reference), **at_the_peak(parts(shape, passes), during, end)}


def memory_needs(
    step: str, engine: Any, name: str, shape: ModelShape, run: Any, update: dict[str, float], more: dict[str, float]
) -> list[Need]:
    """Memory of a GPU and of a node, or of this machine alone."""
    lower = f"use more GPUs, lower trainer.micro_batch_tokens, or set {name}.offload_policy=true"
    if run.device != "gpu":
        parts = {name: run.processes * size for name, size in update.items()}
        parts |= {**more, "processes": (run.processes + 1) * PYTHON}
        return [Need(step, HOST, parts, "lower trainer.micro_batch_tokens or run.processes")]
    how = sharing(engine, run)
    held, loading = host.parked(shape, how, run.processes), host.loading_of_verl(shape, run.processes)
    largest = max(held, loading, key=lambda one: sum(one.values()))
    on_node = {**host.processes_on_gpus(run.processes), **largest, **more}
    lower_host = f"use more nodes, or set {name}.param_offload=false {name}.optimizer_offload=false"
    return [Need(step, GPU, {**update, "CUDA": CONTEXT}, lower), Need(step, HOST, on_node, lower_host)]


def data_units(config: Any) -> int:
    """Processes of verl's store of data."""
    return int(config.transfer_queue.backend.SimpleStorage.num_data_storage_units)
