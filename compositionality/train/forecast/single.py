"""What the single-file trainers need: pretraining, SFT, GRPO with the sampler in the same process."""

from dataclasses import dataclass

from compositionality.rollout.forecast.check import SEQUENCES, TOKENS
from compositionality.rollout.forecast.need import DISK, GPU, HOST, Need
from compositionality.rollout.forecast.sampling import CONTEXT, PYTHON, Vllm, builtin_need
from compositionality.rollout.forecast.shape import BYTES, ModelShape
from compositionality.train.forecast import host
from compositionality.train.forecast.activations import Pass, parts
from compositionality.train.forecast.batch import BatchSize, largest_of_single
from compositionality.train.forecast.disk import run_parts
from compositionality.train.forecast.states import Sharing, gathered, states, trained_share
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.settings import MeshSettings, ModelSettings
from compositionality.train.sft_settings import SftSettings


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
        """All processes of a run."""
        return self.processes * self.nodes


def sft_needs(settings: SftSettings, shape: ModelShape, ranks: Ranks) -> list[Need]:
    """Of supervised fine-tuning."""
    trainer = settings.trainer
    rows = -(-trainer.batch_rows * settings.mesh.tensor // ranks.total)
    batch = largest_of_single(rows, settings.data.max_length, trainer.micro_batch_tokens)
    update = update_parts(shape, settings.model, settings.mesh, ranks, batch)
    disk = run_parts(shape, keep=trainer.keep, best=False, dtype="float32", whole_model=True)
    return [*training_needs("SFT", update, shape, ranks), Need("SFT", DISK, disk, keep_less())]


def grpo_needs(settings: GrpoSettings, shape: ModelShape, ranks: Ranks) -> list[Need]:
    """Of GRPO: sampling, the states of the update beside it; the update, the sampler's weights beside it."""
    trainer, data, rollout = settings.trainer, settings.data, settings.rollout
    length = data.max_prompt_tokens + rollout.max_tokens
    rows = -(-data.prompts_per_step * rollout.n * settings.mesh.tensor // ranks.total)
    batch = largest_of_single(rows, length, trainer.micro_batch_tokens)
    update = update_parts(shape, settings.model, settings.mesh, ranks, batch, reference=settings.algorithm.kl != "none")
    held = sum(size for name, size in update.items() if name in STAYS)
    bytes_each = BYTES[settings.model.dtype]
    needs = []
    if rollout.engine == "vllm" and ranks.gpu:
        vllm = Vllm(rollout.gpu_memory, length, 1, bytes_each, max(TOKENS, length), SEQUENCES, LOWER_VLLM)
        needs.append(vllm.need(shape, "GRPO, sampling", beside=held))
        update["vLLM"] = vllm.weights(shape) + vllm.completion(shape) + vllm.work(shape)
    elif rollout.engine == "builtin":
        asked = -(-data.prompts_per_step * rollout.n // ranks.total)
        place = GPU if ranks.gpu else HOST
        rows = 1 if ranks.gpu else min(asked, rollout.max_rows)  # on a GPU it takes as many as fit
        need = builtin_need(shape, "GRPO, sampling", rows, length, bytes_each, place)
        beside = {**need.parts, "states of the update": held}
        needs.append(Need(need.step, place, times(beside, copies(ranks)), need.lower))
        update["the sampler's weights"] = float(shape.parameters * bytes_each)
    best = trainer.keep_best and trainer.eval_every > 0 and bool(data.val_files)
    disk = run_parts(shape, keep=trainer.keep, best=best, dtype="float32", whole_model=True)
    return [
        *needs,
        *training_needs("GRPO, update", update, shape, ranks),
        Need("GRPO", DISK, disk, keep_less()),
    ]


def pretraining_needs(
    shape: ModelShape, mesh: MeshSettings, dtype: str, rows: int, length: int, ranks: Ranks
) -> list[Need]:
    """Of pretraining on ``rows`` packed rows of ``length`` tokens a step, one micro-batch a process."""
    mine = -(-rows * mesh.tensor // ranks.total)
    batch = BatchSize(mine, mine * length, length, packed=False)
    update = update_parts(shape, ModelSettings(path="", dtype=dtype), mesh, ranks, batch)
    lower = "lower packing.rows or packing.length"
    disk = run_parts(shape, keep=1, best=False, dtype="float32", whole_model=True)
    return [
        *training_needs("pretraining", update, shape, ranks, lower),
        Need("pretraining", DISK, disk, "choose another output"),
    ]


STAYS = ("weights, gradients and Adam", "reference model")
LOWER_UPDATE = (
    "use more GPUs, lower trainer.micro_batch_tokens, or set model.activation_checkpointing=true model.dtype=bfloat16"
)
LOWER_VLLM = "lower rollout.max_tokens, raise rollout.gpu_memory, or use more GPUs"


def update_parts(
    shape: ModelShape,
    model: ModelSettings,
    mesh: MeshSettings,
    ranks: Ranks,
    batch: BatchSize,
    *,
    reference: bool = False,
) -> dict[str, float]:
    """Bytes of a process at the peak of an update."""
    sharded = mesh.shard and (ranks.gpu or ranks.total > 1)
    share = trained_share(shape, model.lora.rank)
    how = Sharing(ranks.total // mesh.tensor, mesh.tensor, sharded, trained=share)
    c = BYTES[model.dtype]
    passes = Pass(batch, c, model.activation_checkpointing, model.attention, "single", tensor=mesh.tensor)
    during, end = gathered(shape, how, c)
    return {
        **states(shape, how, reference=reference),
        **at_the_peak(parts(shape, passes), during, end),
    }


def at_the_peak(passes: dict[str, float], during: float, end: float) -> dict[str, float]:
    """Activations and logits beside what FSDP2 holds whole, or the end of the backward pass where that is more."""
    if sum(passes.values()) + during > end:
        return {**passes, "gathered weights": during}
    return {"gathered weights and gradients": end}


def training_needs(
    step: str, update: dict[str, float], shape: ModelShape, ranks: Ranks, lower: str = LOWER_UPDATE
) -> list[Need]:
    """Memory of a GPU and of the node, or of this machine alone."""
    if ranks.gpu:
        on_gpu = times({**update, "CUDA": CONTEXT}, ranks.side_by_side)
        on_host = {**host.processes_on_gpus(ranks.processes), **host.loading_of_single(shape, ranks.processes)}
        return [
            Need(step, GPU, on_gpu, lower),
            Need(step, HOST, times(on_host, ranks.side_by_side), "use fewer processes on a node (run.processes)"),
        ]
    return [Need(step, HOST, times({**update, "Python and torch": PYTHON}, copies(ranks)), lower)]


def copies(ranks: Ranks) -> int:
    """Processes that share the memory."""
    return ranks.side_by_side * (1 if ranks.gpu else ranks.processes)


def times(parts: dict[str, float], count: int) -> dict[str, float]:
    """Each part so many times."""
    return {name: count * size for name, size in parts.items()}


def keep_less() -> str:
    """What to do where a run folder does not fit on the disk."""
    return "free some, lower trainer.keep, or choose another trainer.output"
