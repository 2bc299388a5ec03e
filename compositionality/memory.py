"""Memory and disk that a run needs: formulas over plain numbers, and the check against a machine. Time is not forecast.

No settings are read here: other packages convert their settings to ``Sharding``, ``BatchSpec`` and ``Vllm``.
"""

import math
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from compositionality.errors import UserError
from compositionality.gpus import count_gpus

GB = 1e9
GPU, HOST, DISK = "memory of each GPU", "memory of each node", "disk"
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
WEIGHT, GRADIENT, MOMENTS = 4, 4, 8  # bytes per weight in training: float32
CONTEXT = 1.5e9  # CUDA context and communication buffers of a process: an estimate, not measured here
GRAPHS = 1.0e9  # CUDA graphs of vLLM: an estimate, not measured here
VLLM_HOST = 4.0e9  # host memory of a vLLM engine's processes without weights: an estimate
GPU_PROCESS = 4.0e9  # host memory of a process that computes on a GPU (torch, CUDA, NCCL): an estimate
PYTHON = 0.8e9  # host memory of a process that has loaded torch and transformers
VLLM_TOKENS, VLLM_SEQUENCES = 16384, 512  # vLLM's limits per step on an H100 (on an A100 half as many tokens)
HEAD_TOKENS = 2048  # tokens per step of the log-probabilities with activation checkpointing
TOKEN_TEXT = 4.0  # bytes on disk of a token's text, in a table of completions or a file of lines
SPARE_COLUMNS = 64  # spare columns of the built-in sampler's cache
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


# ---- needs and machines


@dataclass(frozen=True)
class Machine:
    """Number of ``nodes``; per node ``gpus``, ``gpu_bytes`` of each (None: no GPU), ``host_bytes``; total disk."""

    nodes: int
    gpus: int
    gpu_bytes: float | None
    host_bytes: float
    disk_bytes: float


def this_machine(out: Path | None = None, nodes: int = 1) -> Machine:
    """Measure this machine. The disk is that of ``out``; its present content counts as free: a new run replaces it."""
    import torch

    gpus = count_gpus()
    sizes = [torch.cuda.get_device_properties(number).total_memory for number in range(gpus)]
    return Machine(nodes, gpus, min(sizes, default=None), host_bytes(), math.inf if out is None else disk_bytes(out))


def host_bytes() -> float:
    """Return the memory of this machine, or of the container if it has less."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    total = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal:"))
    limits = [Path(name).read_text().strip() for name in CGROUP_LIMITS if Path(name).is_file()]
    return min([total, *(int(limit) for limit in limits if limit.isdigit())])


def disk_bytes(out: Path) -> float:
    """Return the free bytes on the disk of ``out``, plus the bytes in ``out`` itself."""
    size = 0
    for path in out.rglob("*"):
        with suppress(FileNotFoundError):  # deleted meanwhile
            size += path.stat().st_size if path.is_file() else 0
    parent = next(path for path in [out, *out.absolute().parents] if path.exists())
    return shutil.disk_usage(parent).free + size


@dataclass(frozen=True)
class Need:
    """The need of a step at one time in one place: bytes by ``parts``; ``hint``: what to change if it does not fit."""

    step: str
    place: str
    parts: Mapping[str, float]
    hint: str

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    def available(self, machine: Machine) -> float | None:
        """Return the bytes that the machine has; None without such a place."""
        return {GPU: machine.gpu_bytes, HOST: machine.host_bytes, DISK: machine.disk_bytes}[self.place]

    def fits(self, machine: Machine) -> bool:
        return self.total <= (self.available(machine) or 0) or not self.total

    def largest(self) -> str:
        """Return the three largest parts as a text."""
        parts = sorted(self.parts.items(), key=lambda part: -part[1])[:3]
        return ", ".join(f"{name} {in_gb(size)}" for name, size in parts if size > 0)


def in_gb(size: float) -> str:
    """Format bytes in GB with two or three digits; in MB below 10 MB."""
    if size < GB / 100:
        return f"{size / 1e6:.2g} MB"
    return f"{size / GB:.{0 if size >= 99.5 * GB else 1 if size >= 0.95 * GB else 2}f} GB"


def check_needs(needs: Iterable[Need], machine: Machine) -> None:
    """Raise UserError for the first need that does not fit the machine."""
    for need in needs:
        if not need.fits(machine):
            raise UserError(
                f"{need.step}: needs {in_gb(need.total)} of {need.place} ({need.largest()}), "
                f"{in_gb(need.available(machine) or 0)} are available; {need.hint}"
            )


# ---- the model and its training


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a causal language model. ``tensors``: the sizes of its parameters, a tied head counted once."""

    layers: int
    width: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    tied: bool
    stored_bytes: int  # per weight in the model's folder
    tensors: tuple[int, ...]

    @cached_property
    def parameters(self) -> int:
        return sum(self.tensors)

    @property
    def ends(self) -> int:
        """Number of weights outside the blocks: embedding, head if it is not tied, the last norm."""
        return self.vocabulary * self.width * (1 if self.tied else 2) + self.width

    @property
    def block(self) -> int:
        """Number of weights of a block."""
        return (self.parameters - self.ends) // self.layers

    def cache_bytes(self, bytes_each: int) -> int:
        """Return the bytes of keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head_width * bytes_each


@dataclass(frozen=True)
class Sharding:
    """A model's division among ranks. Parked states lie in host memory between updates, which saves nothing in one.

    verl moves parked states back for each update (param_offload, optimizer_offload; workers/engine/base.py).
    """

    data: int  # ranks that share weights and Adam, if sharded
    tensor: int = 1  # ranks that share each layer
    sharded: bool = True  # FSDP2
    resident: bool = True  # False: in host memory during an update too (CPUOffloadPolicy, verl's offload_policy)
    parked_weights: bool = False
    parked_moments: bool = False
    deferred: bool = False  # verl: gradients stay whole until the last micro-batch
    trained: float = 1.0  # share of the weights with gradients and moments: small with LoRA

    @property
    def ways(self) -> int:
        """Number of parts that the weights are split into."""
        return self.tensor * (self.data if self.sharded else 1)


@dataclass(frozen=True)
class BatchSize:
    """``rows`` with ``tokens`` in all, ``longest`` in one row. ``packed``: concatenated, without padding."""

    rows: int
    tokens: int
    longest: int
    packed: bool

    @property
    def computed(self) -> int:
        """Number of tokens that go through the model, including padding."""
        return self.tokens if self.packed else self.rows * self.longest

    @property
    def mask(self) -> int:
        """Number of entries of the attention mask: all tokens by all tokens for packed rows."""
        return self.tokens**2 if self.packed else self.rows * self.longest**2


@dataclass(frozen=True)
class BatchSpec:
    """Sizes of a micro-batch, and how it goes through the model."""

    batch: BatchSize
    bytes_each: int
    checkpointing: bool
    attention: str
    engine: str  # single or verl
    entropy: bool = False  # verl: entropy of all tokens, with a gradient
    tempered: bool = False  # verl: logits are divided by a temperature, into a copy
    tensor: int = 1  # ranks that share a layer
    head: bool = True  # False: of a critic, one value a token

    @property
    def masked(self) -> bool:
        """True if attention reads a mask: sdpa and eager do for rows packed or padded by verl."""
        return self.engine == "verl" and self.attention != "flash_attention_2"


def training(shape: ModelShape, sharding: Sharding, spec: BatchSpec, *, reference: bool = False) -> dict[str, float]:
    """Return the bytes of a process at the peak of an update: during a pass, or at the end of the backward pass."""
    during, end = gathered(shape, sharding, spec.bytes_each)
    if spec.engine == "verl":  # AdamW's foreach kernels copy the weights once
        end = max(end, shape.parameters / sharding.ways * WEIGHT)
    passes = activations(shape, spec)
    if sum(passes.values()) + during > end:
        peak = {**passes, "gathered weights": during}
    else:
        peak = {"gathered weights and gradients": end}
    return {**states(shape, sharding, reference=reference), **peak}


def states(shape: ModelShape, sharding: Sharding, *, reference: bool = False) -> dict[str, float]:
    """Return the bytes of weights, gradients and Adam's moments of a process during an update."""
    part = shape.parameters / sharding.ways
    bytes_each = WEIGHT + (GRADIENT + MOMENTS) * sharding.trained
    parts = {"weights, gradients and Adam": part * bytes_each if sharding.resident else 0.0}
    if reference:
        parts["reference model"] = part * WEIGHT
    if sharding.deferred:
        parts["whole gradients"] = shape.parameters / sharding.tensor * GRADIENT * sharding.trained
    return parts


def trained_share(shape: ModelShape, lora_rank: int) -> float:
    """Return an upper bound of the trained share: two factors of this rank per square matrix; 1 without LoRA."""
    return min(1.0, 2 * lora_rank / shape.width) if lora_rank else 1.0


def gathered(shape: ModelShape, sharding: Sharding, c: int) -> tuple[float, float]:
    """Return the bytes of unsharded tensors in FSDP2: during the passes, and at their end.

    During: the root's group (embedding and head, which stay whole from the forward pass to the end of the backward
    pass, with their gradient), a block, the next one, and a block's gradient with its float32 copy for the reduction.
    At the end: the root's weights, its gradient, and the float32 copy.
    """
    if not sharding.sharded:
        return 0.0, 0.0
    root, block = shape.ends / sharding.tensor, shape.block / sharding.tensor
    return root * 2 * c + block * (3 * c + 4), root * (2 * c + 4)


def parked(shape: ModelShape, sharding: Sharding) -> float:
    """Return the bytes of a rank's states in host memory between updates (all states if none is on the GPU)."""
    return (sharding.parked_weights + 2 * sharding.parked_moments if sharding.resident else 4) * pinned(shape, sharding)


def pinned(shape: ModelShape, sharding: Sharding) -> float:
    """Return the bytes of a rank's weights in pinned host memory: each tensor's shard, up to the next power of two
    (``CachingHostAllocatorImpl::allocate`` in c10; verl copies ``non_blocking``, FSDP2's ``CPUOffloadPolicy`` pins).
    """
    sizes = (math.ceil(size / sharding.ways) * WEIGHT for size in shape.tensors)
    return float(sum(1 << (size - 1).bit_length() for size in sizes))


def activations(shape: ModelShape, spec: BatchSpec) -> dict[str, float]:
    """Return the bytes of activations, masks and logits at the peak of a micro-batch; c: bytes per number.

    With activation checkpointing only the input of each block is kept, and one block at a time is recomputed, after the
    logits were freed. A mask has a byte per entry, and sdpa copies it into the data type of the computation.
    """
    c, tokens = spec.bytes_each, spec.batch.computed
    norm = shape.width * (4 + 2 * c)  # its input in float32 (LlamaRMSNorm), its output before and after the weight
    block = (2 * norm + block_bytes(shape, spec)) * tokens
    end = norm * tokens
    backward = c * (2 * shape.feed_forward // spec.tensor + 2 * shape.width) * tokens
    head = head_bytes(shape, spec) if spec.head else 0
    mask = spec.batch.mask * (1 + c) if spec.masked else 0
    if not spec.checkpointing:
        stored = shape.layers * block + max(end, backward - head)
        return {"activations": stored, "logits": head, "attention mask": mask}
    parts = {"checkpointed activations": shape.layers * shape.width * c * tokens, "attention mask": mask}
    if end + head > block + backward:
        return {**parts, "logits": end + head}
    return {**parts, "activations of a block": block + backward}


def block_bytes(shape: ModelShape, spec: BatchSpec) -> int:
    """Return the bytes per token that a block keeps for its backward pass besides its norms, without dropout.

    Queries, keys, values and the output of attention with its log-sum; four tensors of the MLP (modelling_llama.py). A
    mask keeps sdpa from sharing keys and values among heads: they are repeated (integrations/sdpa_attention.py).
    """
    c = spec.bytes_each
    scores = 0
    queries = shape.heads * shape.head_width
    keys = queries if spec.masked else shape.kv_heads * shape.head_width
    if spec.attention == "eager":
        scores = spec.batch.mask * shape.heads * (4 + (c if c < 4 else 0)) // max(spec.batch.computed, 1)
    inner = c * (2 * queries + 2 * keys + 4 * shape.feed_forward) + 4 * shape.heads + scores
    return inner // spec.tensor


def head_bytes(shape: ModelShape, spec: BatchSpec) -> int:
    """Return the bytes of a micro-batch's logits and of values computed from them, at the peak.

    verl (transformer_impl.py, prepare_model_outputs): the logits in the data type of the computation, which their
    gradient replaces; padded rows are copied without padding, a temperature and entropy need copies too. The
    single-file trainers: five float32 numbers per logit, with activation checkpointing for 2,048 tokens at a time.
    """
    vocabulary, c, batch = shape.vocabulary // spec.tensor, spec.bytes_each, spec.batch
    if spec.engine == "single":
        tokens = min(batch.computed, HEAD_TOKENS) if spec.checkpointing else batch.computed
        return 5 * 4 * tokens * vocabulary
    copies = batch.computed + (0 if batch.packed else batch.tokens) + (batch.computed if spec.tempered else 0)
    return c * vocabulary * copies + (batch.computed * vocabulary * (c + 12) if spec.entropy else 0)


def run_folder(
    shape: ModelShape, *, keep: int, best: bool, dtype: str, whole_model: bool, saving: bool = True
) -> dict[str, float]:
    """Return the bytes on disk of a run folder at its largest; without ``saving``, of a finished run.

    These are ``keep`` checkpoints, the best one by validation, one more while it is written, final/ and best/. A
    checkpoint has weights and Adam in float32; with ``whole_model`` (the single-file trainers) a model folder too.
    """
    checkpoint = shape.parameters * (WEIGHT + MOMENTS + (WEIGHT if whole_model else 0))
    parts = {f"{keep} checkpoints": float(keep * checkpoint)}
    if best:
        parts["the best checkpoint"] = float(checkpoint)
    if saving:
        parts["a checkpoint while it is written"] = float(checkpoint)
    parts["final/ and best/" if best else "final/"] = float(shape.parameters * BYTES[dtype] * (2 if best else 1))
    return parts


# ---- sampling


@dataclass(frozen=True)
class Vllm:
    """Settings of a vLLM engine."""

    share: float  # fraction of the GPU's memory
    length: int  # prompt and completion in tokens
    tensor: int
    bytes_each: int  # of a weight
    batched_tokens: int
    sequences: int
    hint: str

    def weights(self, shape: ModelShape) -> float:
        """Return the bytes of weights on each GPU."""
        return shape.parameters * self.bytes_each / self.tensor

    def work(self, shape: ModelShape) -> float:
        """Return the bytes of one forward pass over the largest batch, and of sampling from its logits.

        vLLM reserves the peak of a run with ``max_num_batched_tokens`` tokens and ``max_num_seqs`` rows
        (v1/worker/gpu_worker.py, determine_available_memory): a block's MLP, the logits in float32 and their softmax.
        """
        hidden = 2 * shape.feed_forward / self.tensor + 4 * shape.width
        return self.batched_tokens * hidden * self.bytes_each + 3 * 4 * self.sequences * shape.vocabulary + GRAPHS

    def completion(self, shape: ModelShape) -> float:
        """Return the bytes of cache for a completion of full length."""
        return self.length * shape.cache_bytes(self.bytes_each) / min(self.tensor, shape.kv_heads)

    def at_once(self, shape: ModelShape, gpu_bytes: float) -> int:
        """Return how many completions of full length fit into the cache."""
        free_bytes = self.share * gpu_bytes - self.weights(shape) - self.work(shape) - CONTEXT
        return max(0, int(free_bytes / self.completion(shape)))

    def need(self, shape: ModelShape, step: str, beside: float = 0.0) -> Need:
        """Return the need of a GPU for one completion of full length in vLLM's share, with ``beside`` other bytes."""
        parts = {
            "weights": self.weights(shape),
            "one completion": self.completion(shape),
            "forward pass": self.work(shape),
            "CUDA": CONTEXT,
        }
        used = sum(parts.values())
        return Need(step, GPU, {**parts, "outside vLLM's share": max(used / self.share - used, beside)}, self.hint)


def builtin_parts(shape: ModelShape, rows: int, length: int, bytes_each: int, place: str) -> dict[str, float]:
    """Return the bytes of the built-in sampler (rollout/sampler/) with a cache of ``rows`` of ``length`` tokens."""
    parts = {  # while the cache grows, old and new one exist together
        "weights": float(shape.parameters * bytes_each),
        "cache": 2.0 * rows * (length + SPARE_COLUMNS) * shape.cache_bytes(bytes_each),
        "logits": 3.0 * 4 * rows * shape.vocabulary,
    }
    return parts | ({"Python and torch": PYTHON} if place == HOST else {"CUDA": CONTEXT})
