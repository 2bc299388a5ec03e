"""Memory of a node: processes, the model while it is loaded, states that are moved off the GPUs, Ray."""

from compositionality.rollout.forecast.sampling import PYTHON
from compositionality.rollout.forecast.shape import ModelShape
from compositionality.train.forecast.states import WEIGHT, Sharing, parked_between

GPU_PROCESS = 4.0e9
"""Host memory of a process that computes on a GPU (torch, CUDA, NCCL): an estimate, not measured here."""
RAY = 1.5e9
"""Ray's own processes on a node."""
FIELDS = 8
"""Numbers of 8 bytes that verl keeps of a token between its workers: ids, masks, positions, log-probs, advantages."""


def loading_of_single(shape: ModelShape, processes: int) -> dict[str, float]:
    """Every rank of the single-file trainers loads the whole model in float32 (policy.py, load_model)."""
    return {"the model in float32 in every process": float(processes * shape.parameters * WEIGHT)}


def loading_of_verl(shape: ModelShape, processes: int) -> dict[str, float]:
    """Rank 0 loads the model in float32 and sends it to the others; with a tied head every rank loads it.

    (``get_init_weight_context_manager`` in verl/utils/fsdp_utils.py.)
    """
    copies = processes if shape.tied else 1
    return {"the model in float32 while it is loaded": float(copies * shape.parameters * WEIGHT)}


def parked(shape: ModelShape, how: Sharing, processes: int) -> dict[str, float]:
    """Weights and Adam that lie in host memory."""
    return {"weights and Adam moved off the GPUs": processes * parked_between(shape, how)}


def processes_on_gpus(processes: int, engines: int = 0) -> dict[str, float]:
    """Training processes and vLLM's engines."""
    return {"processes": (processes + engines) * GPU_PROCESS}


def ray_parts(workers: int, rows: int, length: int) -> dict[str, float]:
    """Ray, the ``workers`` of verl that compute nothing, and the ``rows`` of a batch in its object store."""
    return {"Ray and verl's workers": RAY + workers * PYTHON, "a batch in Ray's store": 8.0 * FIELDS * rows * length}
