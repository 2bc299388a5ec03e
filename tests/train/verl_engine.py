"""What verl's FSDP engine computes for a batch of rows of different lengths, in this process: ``python verl_engine.py
OUT MODEL DTYPE [MODEL DTYPE …]``, with VERL_PLATFORM=cpu. OUT: a list of ``{way: {"log_probs": …, "entropy": …,
parameter: gradient}}``.
"""

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from compositionality.config.cli import parse
from compositionality.train.engines import settle_cluster
from compositionality.train.sft_settings import SftSettings
from compositionality.train.verl import configure

LENGTHS = (7, 1, 19, 30, 2, 12)
TEMPERATURE = 0.7
WAYS = {  # verl's own comes first: what ``external_lib`` replaces stays replaced
    "verl's": {"use_remove_padding": False, "external_lib": None},
    "ours": {},
}


def configuration(model: Path, dtype: str, changes: dict[str, Any]) -> Any:
    """Our configuration for a GPU."""
    words = ["engine=verl", f"model.path={model}", "data.train_files=[a]", "trainer.output=o", "run.device=gpu"]
    settings = parse(
        SftSettings, [*words, "run.processes=1", f"model.dtype={dtype}", "model.activation_checkpointing=true"]
    )
    settle_cluster(settings, imagined=True)
    config = configure.sft_config(settings)
    config.model.update(changes)
    return config


def build(config: Any) -> Any:
    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.engine.base import EngineRegistry

    engine, model = (omega_conf_to_dataclass(config[name]) for name in ("engine", "model"))
    engine.use_fused_kernels = model.use_fused_kernels
    engine.use_remove_padding = model.use_remove_padding
    optim = omega_conf_to_dataclass(config.optim)
    optim.total_training_steps = 1
    made = EngineRegistry.new(
        model_type="language_model",
        backend=engine.strategy,
        model_config=model,
        engine_config=engine,
        optimizer_config=optim,
        checkpoint_config=omega_conf_to_dataclass(config.checkpoint),
    )
    made.initialize()
    return made


def batch(vocabulary: int, model: Any) -> Any:
    """Rows of LENGTHS tokens, drawn at random."""
    from verl.utils import tensordict_utils

    generator = torch.Generator().manual_seed(1)
    rows = [torch.randint(vocabulary, (length,), generator=generator) for length in LENGTHS]
    nested = {
        "input_ids": rows,
        "position_ids": [torch.arange(len(row)) for row in rows],
        "loss_mask": [torch.ones_like(row) for row in rows],
    }
    return tensordict_utils.get_tensordict(
        {name: torch.nested.as_nested_tensor(values, layout=torch.jagged) for name, values in nested.items()},
        {
            "use_remove_padding": model.use_remove_padding,
            "use_fused_kernels": model.use_fused_kernels,
            "use_dynamic_bsz": True,
            "max_token_len_per_gpu": 64,
            "temperature": TEMPERATURE,
            "calculate_entropy": True,
            "return_model_output": True,
            "pad_token_id": 0,
        },
    )


def weighted(log_probs: torch.Tensor) -> torch.Tensor:
    """A loss that tells the tokens of a row apart, its last one left out: nothing follows it."""
    rows = log_probs.unbind()
    return sum((row[:-1] * torch.linspace(-1, 2, max(len(row) - 1, 0))).sum() for row in rows)


def results(config: Any) -> dict[str, Any]:
    """Log-probabilities and entropies of the rows one after another, and the gradient of ``weighted``."""
    engine = build(config)
    data = batch(engine.model_config.hf_config.vocab_size, engine.model_config)

    def loss(model_output: Any, **_: Any) -> tuple[torch.Tensor, dict[str, Any]]:
        return weighted(model_output["log_probs"]), {}

    with engine.train_mode():
        output = engine.forward_backward_batch(data, loss)["model_output"]
        gradients = {
            name: weight.grad.full_tensor().detach().clone() for name, weight in engine.module.named_parameters()
        }
    numbers = {name: torch.cat([row[:-1] for row in output[name].unbind()]) for name in ("log_probs", "entropy")}
    return {**numbers, **gradients}


def main() -> None:
    out, words = Path(sys.argv[1]), sys.argv[2:]
    cases = list(zip(map(Path, words[::2]), words[1::2], strict=True))
    import verl  # noqa: F401  (its CPU platform)

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    found: list[dict[str, Any]] = [{} for _ in cases]
    for way, changes in WAYS.items():
        for (model, dtype), results_of in zip(cases, found, strict=True):
            results_of[way] = results(configuration(model, dtype, changes))
    torch.save(found, out)


if __name__ == "__main__":
    main()
