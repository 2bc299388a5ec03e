"""The built-in sampler as an engine: small Llama, Qwen2 and Qwen3 models on CPU or GPU, faster than ``generate``."""

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.rollout.engines.base import Chat, Tick, no_tick
from compositionality.rollout.model_folder import check_model
from compositionality.rollout.prompts import prompts_as_tokens
from compositionality.types import Completion, SamplingOptions

ROWS, GPU_ROWS = 512, 4096  # completions per sampling batch


class BuiltinEngine:
    """The built-in sampler. ``dtype`` "auto": float32 on a CPU, the checkpoint's dtype on a GPU."""

    parallel_calls = 1

    def __init__(self, model: Path, *, dtype: str = "auto") -> None:
        import torch
        from transformers import AutoConfig

        from compositionality.rollout.sampler.sampler import Sampler

        folder = check_model(model)
        self._tokenizer = folder.tokenizer
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        config = AutoConfig.from_pretrained(str(model), local_files_only=True)
        auto_dtype = torch.float32 if self._device == "cpu" else config.dtype or torch.float32
        self._sampler: Any = Sampler(
            config,
            folder.eos_ids,
            device=self._device,
            dtype=auto_dtype if dtype == "auto" else getattr(torch, dtype),
            max_rows=ROWS if self._device == "cpu" else GPU_ROWS,
        )
        self._sampler.load(read_weights(model))

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Tick = no_tick
    ) -> list[Completion]:
        token_ids = prompts_as_tokens(self._tokenizer, prompts)
        sampled: list[Completion] = self._sampler.sample(token_ids, seeds, options, tick)
        texts = self._tokenizer.batch_decode([answer.token_ids for answer in sampled], skip_special_tokens=True)
        answers = zip(texts, sampled, strict=True)
        return [Completion(text, answer.n_tokens, answer.finish_reason) for text, answer in answers]

    def close(self) -> None:
        import torch

        self._sampler = None
        if self._device == "cuda":
            torch.cuda.empty_cache()


def read_weights(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield names and tensors of a Hugging Face folder, one file at a time; safetensors if there are any."""
    import torch
    from safetensors import safe_open

    files = sorted(folder.glob("model*.safetensors")) or sorted(folder.glob("*.safetensors"))
    for file in files:
        with safe_open(str(file), framework="pt") as stream:
            for name in stream.keys():  # noqa: SIM118
                yield name, stream.get_tensor(name)
    if not files:
        for file in sorted(folder.glob("pytorch_model*.bin")):
            try:
                yield from torch.load(file, map_location="cpu", weights_only=True).items()
            except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
                raise UserError(f"{file}: damaged, or contains more than tensors; use safetensors") from error
