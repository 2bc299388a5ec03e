"""Settings of short runs, and what they leave behind."""

from pathlib import Path
from typing import Any

import torch

from compositionality.config.cli import parse
from compositionality.train.grpo_settings import GrpoSettings

ROOT = Path(__file__).resolve().parents[3]


def words(small: Path, out: Path, *more: str) -> list[str]:
    """Overrides for a run of some seconds."""
    return [
        f"model.path={small / 'model'}", f"data.train_files=[{small / 'train.parquet'}]",
        f"data.val_files=[{small / 'validation.parquet'}]", f"trainer.output={out}", "data.max_prompt_tokens=32",
        "data.prompts_per_step=8", "rollout.n=4", "rollout.max_tokens=24", "optim.lr=1e-3", "optim.beta2=0.95",
        "trainer.steps=4", "trainer.save_every=1", "trainer.eval_every=2", "trainer.samples_every=2",
        "algorithm.drop_equal_groups=true", *more,
    ]  # fmt: skip


def settings(small: Path, out: Path, *more: str) -> GrpoSettings:
    """The same as an object."""
    return parse(GrpoSettings, words(small, out, *more))


def weights(folder: Path) -> dict[str, Any]:
    """The tensors of a model folder."""
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest difference between two sets of weights."""
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def assert_same_update(one: dict[str, Any], other: dict[str, Any], start: dict[str, Any], lr: float = 2e-4) -> None:
    """Both moved ``start`` alike; Adam moves a weight whose gradient is a rounding error by up to ``lr`` either way."""
    here, there, before = (
        torch.cat([each[name].float().flatten() for name in sorted(each)]) for each in (one, other, start)
    )
    gap = (here - there).abs()
    assert float((gap > 1e-5).float().mean()) < 1e-3
    assert float(gap.max()) < lr
    assert float(gap.norm()) < 1e-2 * float((there - before).norm())
