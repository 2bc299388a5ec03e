"""Memory and disk that the single-file trainers need by their settings, and the check before every start."""

import os
from dataclasses import dataclass
from pathlib import Path

from compositionality import memory
from compositionality.data.parquet import read_table
from compositionality.gpus import count_gpus
from compositionality.memory import DISK, GPU, HOST, ModelShape, Need
from compositionality.ranges import ALL
from compositionality.rollout.model_folder import shape_of_model
from compositionality.train.grpo_settings import GrpoSettings, GrpoTrainerSettings
from compositionality.train.launch import world_size
from compositionality.train.settings import MeshSettings, ModelSettings, RunSettings
from compositionality.train.sft_settings import SftSettings

FEWER_CHECKPOINTS = "free some, lower trainer.keep, or choose another trainer.output"
SMALLER_UPDATE = (
    "use more GPUs, lower trainer.micro_batch_tokens, or set model.activation_checkpointing=true model.dtype=bfloat16"
)
SMALLER_CACHE = "lower rollout.max_tokens, raise rollout.gpu_memory, or use more GPUs"


@dataclass(frozen=True)
class Ranks:
    """``processes`` on each of ``nodes``; ``gpu``: each on a GPU of its own, else all in this machine's memory.

    ``side_by_side``: runs that share a GPU.
    """

    processes: int
    nodes: int = 1
    gpu: bool = True
    side_by_side: int = 1

    @property
    def total(self) -> int:
        return self.processes * self.nodes


def ranks_of(run: RunSettings) -> Ranks:
    """Return the processes of a run: those that torchrun has started, else those that it will start."""
    world = world_size(run)
    local = int(os.environ.get("LOCAL_WORLD_SIZE", world)) if "RANK" in os.environ else world
    return Ranks(local, max(1, world // local), gpu=run.device != "cpu" and count_gpus() > 0)


def check_training(settings: SftSettings | GrpoSettings) -> None:
    """Raise UserError unless SFT or GRPO fits this machine."""
    needs = training_needs(settings, shape_of_model(settings.model.path), ranks_of(settings.run))
    check_here(needs, Path(settings.trainer.output), settings.run.device)


def check_here(needs: list[Need], out: Path, device: str) -> None:
    """Raise UserError unless this machine fills the needs of a run in ``out``.

    Without a GPU here, device=gpu means a cluster, or in a dry run another machine: only the disk is known.
    """
    machine = memory.this_machine(out)
    elsewhere = device == "gpu" and machine.gpu_bytes is None
    memory.check_needs([need for need in needs if need.place == DISK or not elsewhere], machine)


def training_needs(settings: SftSettings | GrpoSettings, shape: ModelShape, ranks: Ranks) -> list[Need]:
    if isinstance(settings, GrpoSettings):
        return _grpo_needs(settings, shape, ranks)
    trainer = settings.trainer
    rows = -(-trainer.batch_rows * settings.mesh.tensor // ranks.total)
    batch = largest_batch(rows, settings.data.max_length, trainer.micro_batch_tokens)
    update = update_parts(shape, settings.model, settings.mesh, ranks, batch)
    disk = memory.run_folder(shape, keep=kept_checkpoints(settings), best=False, dtype="float32", whole_model=True)
    return [*update_needs("SFT", update, shape, ranks), Need("SFT", DISK, disk, FEWER_CHECKPOINTS)]


def _grpo_needs(settings: GrpoSettings, shape: ModelShape, ranks: Ranks) -> list[Need]:
    """Return the needs of sampling, with the states of the update beside it, and of the update beside the sampler."""
    trainer, data, rollout = settings.trainer, settings.data, settings.rollout
    length = data.max_prompt_tokens + rollout.max_tokens
    responses = data.prompts_per_step * rollout.n
    batch = largest_batch(-(-responses * settings.mesh.tensor // ranks.total), length, trainer.micro_batch_tokens)
    reference = settings.algorithm.kl != "none" and not settings.model.lora.rank  # then it is the policy itself
    update = update_parts(shape, settings.model, settings.mesh, ranks, batch, reference=reference)
    states = update["weights, gradients and Adam"] + update.get("reference model", 0)
    bytes_each = memory.BYTES[settings.model.dtype]
    needs = []
    if rollout.engine == "vllm" and ranks.gpu:
        batched = max(memory.VLLM_TOKENS, length)
        vllm = memory.Vllm(rollout.gpu_memory, length, 1, bytes_each, batched, memory.VLLM_SEQUENCES, SMALLER_CACHE)
        needs.append(vllm.need(shape, "GRPO, sampling", beside=states))
        update["vLLM"] = vllm.weights(shape) + vllm.completion(shape) + vllm.work(shape)
    elif rollout.engine == "builtin":
        place = GPU if ranks.gpu else HOST
        rows = 1 if ranks.gpu else min(-(-responses // ranks.total), rollout.max_rows)  # on a GPU as many as fit
        parts = memory.builtin_parts(shape, rows, length, bytes_each, place) | {"states of the update": states}
        hint = "lower rollout.max_rows or max_tokens"
        needs.append(Need("GRPO, sampling", place, times(parts, copies(ranks)), hint))
        update["the sampler's weights"] = float(shape.parameters * bytes_each)
    best = trainer.keep_best and trainer.eval_every > 0 and bool(data.val_files)
    disk = memory.run_folder(shape, keep=kept_checkpoints(settings), best=best, dtype="float32", whole_model=True)
    return [*needs, *update_needs("GRPO, update", update, shape, ranks), Need("GRPO", DISK, disk, FEWER_CHECKPOINTS)]


def kept_checkpoints(settings: SftSettings | GrpoSettings) -> int:
    """Return how many checkpoints a run keeps: with ``all`` one of each save, the last step's too.

    Of SFT by the existing rows, in updates of ``trainer.batch_rows``.
    """
    trainer = settings.trainer
    if trainer.keep != ALL:
        return trainer.keep
    if isinstance(trainer, GrpoTrainerSettings):
        steps, every = trainer.last_step(), trainer.save_every or trainer.last_step()
    else:
        files = [path for path in map(Path, settings.data.train_files) if path.is_file()]
        epoch = max(1, -(-sum(read_table(path).num_rows for path in files) // trainer.batch_rows))
        steps, every = trainer.steps or trainer.epochs * epoch, trainer.save_every or epoch
    return -(-steps // every)


def pretraining_needs(
    shape: ModelShape, mesh: MeshSettings, dtype: str, rows: int, length: int, ranks: Ranks
) -> list[Need]:
    """Return the needs of pretraining on ``rows`` packed rows of ``length`` tokens a step, a micro-batch a process."""
    own = -(-rows * mesh.tensor // ranks.total)
    batch = memory.BatchSize(own, own * length, length, packed=False)
    update = update_parts(shape, ModelSettings(path="", dtype=dtype), mesh, ranks, batch)
    disk = memory.run_folder(shape, keep=1, best=False, dtype="float32", whole_model=True)
    return [
        *update_needs("pretraining", update, shape, ranks, "lower packing.rows or packing.length"),
        Need("pretraining", DISK, disk, "choose another output"),
    ]


def largest_batch(rows: int, limit: int, budget: int) -> memory.BatchSize:
    """Return the largest micro-batch: padded rows of up to ``limit`` tokens within the budget, or one row.

    (``pack_rows`` in train/grpo.py, ``micro_batches`` in train/sft.py.)
    """
    widths = {count: limit if count == 1 else min(limit, budget // count) for count in range(1, rows + 1)}
    batches = [memory.BatchSize(count, count * width, width, packed=False) for count, width in widths.items()]
    return max(batches, key=lambda batch: batch.computed)


def update_parts(
    shape: ModelShape,
    model: ModelSettings,
    mesh: MeshSettings,
    ranks: Ranks,
    batch: memory.BatchSize,
    *,
    reference: bool = False,
) -> dict[str, float]:
    """Return the bytes of a process at the peak of an update."""
    sharded = mesh.shard and (ranks.gpu or ranks.total > 1)
    share = memory.trained_share(shape, model.lora.rank)
    sharding = memory.Sharding(ranks.total // mesh.tensor, mesh.tensor, sharded, trained=share)
    checkpointing = model.activation_checkpointing
    spec = memory.BatchSpec(
        batch, memory.BYTES[model.dtype], checkpointing, model.attention, "single", tensor=mesh.tensor
    )
    return memory.training(shape, sharding, spec, reference=reference)


def update_needs(
    step: str, update: dict[str, float], shape: ModelShape, ranks: Ranks, hint: str = SMALLER_UPDATE
) -> list[Need]:
    """Return the needs of an update: of a GPU and of the node, or of this machine alone.

    Every process loads the whole model in float32 (policy.py, load_model).
    """
    if not ranks.gpu:
        return [Need(step, HOST, times({**update, "Python and torch": memory.PYTHON}, copies(ranks)), hint)]
    host = {
        "processes": ranks.processes * memory.GPU_PROCESS,
        "the model in float32 in every process": float(ranks.processes * shape.parameters * memory.WEIGHT),
    }
    return [
        Need(step, GPU, times({**update, "CUDA": memory.CONTEXT}, ranks.side_by_side), hint),
        Need(step, HOST, times(host, ranks.side_by_side), "use fewer processes on a node (run.processes)"),
    ]


def copies(ranks: Ranks) -> int:
    """Return the number of processes that share the memory."""
    return ranks.side_by_side * (1 if ranks.gpu else ranks.processes)


def times(parts: dict[str, float], count: int) -> dict[str, float]:
    return {name: count * size for name, size in parts.items()}
