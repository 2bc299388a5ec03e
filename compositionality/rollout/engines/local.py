"""Engines in this process without vLLM: the built-in sampler, and Hugging Face ``generate``; on CPU or GPU.

Names of tensors: B prompts, T tokens, V vocabulary.
"""

# ruff: noqa: N803, N806

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.rollout.engines.base import Chat, Tick, no_tick
from compositionality.rollout.model_folder import check_model, load_causal_lm
from compositionality.rollout.prompts import prompts_as_tokens
from compositionality.types import LENGTH, STOP, Completion, SamplingOptions

ROWS, GPU_ROWS = 512, 4096  # completions per batch of the built-in sampler
BATCH = 256  # of transformers
TABLE_OF_ROTATIONS = ".rotary_emb.inv_freq"  # in old Llama checkpoints; it follows from the config


class _LocalEngine:
    parallel_calls = 1

    def __init__(self, model: Path) -> None:
        import torch

        folder = check_model(model)
        self._tokenizer, self._eos_ids = folder.tokenizer, folder.eos_ids
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model: Any = None

    def close(self) -> None:
        import torch

        self._model = None
        if self._device == "cuda":
            torch.cuda.empty_cache()


class BuiltinEngine(_LocalEngine):
    """The built-in sampler: for small Llama, Qwen2 and Qwen3 models, faster than ``generate``.

    ``dtype`` "auto": float32 on a CPU, the checkpoint's dtype on a GPU.
    """

    def __init__(self, model: Path, *, dtype: str = "auto") -> None:
        import torch
        from transformers import AutoConfig

        from compositionality.rollout.sampler.sampler import Sampler

        super().__init__(model)
        config = AutoConfig.from_pretrained(str(model), local_files_only=True)
        auto_dtype = torch.float32 if self._device == "cpu" else config.dtype or torch.float32
        self._model = Sampler(
            config,
            self._eos_ids,
            device=self._device,
            dtype=auto_dtype if dtype == "auto" else getattr(torch, dtype),
            max_rows=ROWS if self._device == "cpu" else GPU_ROWS,
        )
        stored = (named for named in read_weights(model) if not named[0].endswith(TABLE_OF_ROTATIONS))
        self._model.load(stored)

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Tick = no_tick
    ) -> list[Completion]:
        token_ids = prompts_as_tokens(self._tokenizer, prompts)
        sampled: list[Completion] = self._model.sample(token_ids, seeds, options, tick)
        texts = self._tokenizer.batch_decode([answer.token_ids for answer in sampled], skip_special_tokens=True)
        answers = zip(texts, sampled, strict=True)
        return [Completion(text, answer.n_tokens, answer.finish_reason) for text, answer in answers]


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


class TransformersEngine(_LocalEngine):
    """Generates in batches of BATCH prompts of similar length; every completion has its own random generator."""

    def __init__(self, model: Path, *, dtype: str = "auto") -> None:
        from transformers import GenerationConfig

        super().__init__(model)
        dtype = "float32" if self._device == "cpu" and dtype == "auto" else dtype
        self._model = load_causal_lm(model, dtype=dtype).to(self._device).eval()
        self._model.generation_config = GenerationConfig()  # generate adds the folder's: penalties, suppressed tokens

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Tick = no_tick
    ) -> list[Completion]:
        token_ids = prompts_as_tokens(self._tokenizer, prompts)
        by_length = sorted(range(len(prompts)), key=lambda row: len(token_ids[row]))
        completions: dict[int, Completion] = {}
        for start in range(0, len(by_length), BATCH):
            rows = by_length[start : start + BATCH]
            batch = self._generate_batch([token_ids[row] for row in rows], [seeds[row] for row in rows], options)
            completions.update(zip(rows, batch, strict=True))
            tick(len(rows))
        return [completions[row] for row in range(len(prompts))]

    def _generate_batch(self, prompts: list[list[int]], seeds: list[int], options: SamplingOptions) -> list[Completion]:
        import torch
        from transformers import GenerationConfig

        width = max(map(len, prompts))
        pad = self._eos_ids[0]
        tokens_BT = torch.tensor([[pad] * (width - len(prompt)) + prompt for prompt in prompts], device=self._device)
        mask_BT = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        config = GenerationConfig(  # greedy search over the scores that SeededSampler randomises
            max_new_tokens=options.max_tokens,
            do_sample=False,
            eos_token_id=list(self._eos_ids),
            pad_token_id=pad,
            use_cache=True,
        )
        with torch.inference_mode():
            output_BT = self._model.generate(
                tokens_BT,
                attention_mask=mask_BT.to(self._device),
                generation_config=config,
                logits_processor=[SeededSampler(seeds, options, self._device)],
            )
        return [self._completion(row) for row in output_BT[:, width:].tolist()]

    def _completion(self, tokens: list[int]) -> Completion:
        """Return the completion up to and including the first EOS, which counts as a token."""
        end = next((place for place, token in enumerate(tokens) if token in self._eos_ids), None)
        token_ids = tokens if end is None else tokens[: end + 1]
        text = self._tokenizer.decode(token_ids, skip_special_tokens=True)
        return Completion(text, len(token_ids), LENGTH if end is None else STOP)


class SeededSampler:
    """A logits processor that turns the argmax into a sample: the Gumbel-max trick, one generator per row.

    ``generate`` itself uses one random stream for a whole batch, so a completion would depend on its neighbours.
    """

    def __init__(self, seeds: Sequence[int], options: SamplingOptions, device: str) -> None:
        import torch

        self._generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]
        self._options = options

    def __call__(self, _: Any, logits_BV: Any) -> Any:
        """Return scores (batch, vocabulary) whose argmax is a sample of the softmax after temperature and top-k/p."""
        import torch

        from compositionality.rollout.sampler.sampler import truncated

        if logits_BV.isnan().any():
            raise UserError("the model's logits are NaN; its weights are damaged, or its training diverged")
        if self._options.temperature == 0:
            return logits_BV
        scores_BV = truncated(logits_BV.float() / self._options.temperature, self._options)
        noise_BV = torch.empty_like(scores_BV)
        for row, generator in enumerate(self._generators):
            noise_BV[row].exponential_(generator=generator)
        return scores_BV - noise_BV.log()
