"""Bytes on disk of a run folder at its fullest, and of what remains."""

from compositionality.rollout.forecast.shape import ModelShape
from compositionality.train.forecast.states import MOMENTS, WEIGHT

EXPORT = {"float32": 4, "bfloat16": 2}


def run_parts(
    shape: ModelShape, *, keep: int, best: bool, dtype: str, whole_model: bool, saving: bool = True
) -> dict[str, float]:
    """Checkpoints that are kept, the best one by validation, one more while ``saving``, final/ and best/.

    A checkpoint holds weights and Adam in float32; with ``whole_model`` (the single-file trainers) a model folder too.
    """
    checkpoint = shape.parameters * (WEIGHT + MOMENTS + (WEIGHT if whole_model else 0))
    found = {f"{keep} checkpoints": float(keep * checkpoint)}
    if best:
        found["the best checkpoint"] = float(checkpoint)
    if saving:
        found["a checkpoint while it is written"] = float(checkpoint)
    found["final/ and best/" if best else "final/"] = float(shape.parameters * EXPORT[dtype] * (2 if best else 1))
    return found


def run_bytes(shape: ModelShape, *, keep: int, best: bool, dtype: str, whole_model: bool) -> float:
    """What a finished run leaves."""
    parts = run_parts(shape, keep=keep, best=best, dtype=dtype, whole_model=whole_model, saving=False)
    return sum(parts.values())
