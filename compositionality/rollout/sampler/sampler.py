"""The built-in sampler: continuous batching with a key-value cache, on CPU or GPU.

Rows run in batches of similar length. Every few steps finished rows are removed, small batches are concatenated, and
waiting prompts are prefilled as new batches. Names of tensors: N rows, V vocabulary, S steps.
"""

# ruff: noqa: N803, N806

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compositionality.errors import UserError
from compositionality.gpus import gpu_share
from compositionality.rollout.engines.base import Tick, no_tick
from compositionality.rollout.sampler.decoder import Decoder
from compositionality.rollout.sampler.kv_cache import CachedAttention, CachedBatch, Numbers, concatenate, prefill
from compositionality.tasks.draws import STRIDE, scramble
from compositionality.types import LENGTH, STOP, Completion, SamplingOptions

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Sampler:
    """Samples from Llama, Qwen2 and Qwen3 models, at most ``max_rows`` completions at a time.

    Token t of a completion is drawn with a uniform number that depends on the completion's seed and t alone.
    """

    def __init__(
        self,
        config: Any,
        eos_ids: Sequence[int],
        *,
        device: str | torch.device = "cpu",
        dtype: torch.dtype = torch.float32,
        max_rows: int = 256,
    ) -> None:
        self.model = Decoder(config, torch.device(device), dtype)
        self.eos_ids, self.max_rows = list(eos_ids), max_rows

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Load Hugging Face weights by name, any subset. UserError for an unknown name or a wrong shape."""
        self.model.load(weights)

    def sample(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[int], options: SamplingOptions, tick: Tick = no_tick
    ) -> list[Completion]:
        """Sample one completion per prompt and seed, in order, with token ids, log-probs and no text."""
        self.model.check_loaded()
        _check_prompts(self.model, prompts, options)
        if not prompts:
            return []
        with torch.inference_mode():
            return _Run(self, prompts, seeds, options).finish(tick)

    def close(self) -> None:
        """Do nothing: the weights are freed with the sampler."""


class _Run:
    def __init__(
        self, sampler: Sampler, prompts: Sequence[Sequence[int]], seeds: Sequence[int], options: SamplingOptions
    ) -> None:
        self._model, self._eos_ids, self._max_rows = sampler.model, sampler.eos_ids, sampler.max_rows
        self._prompts, self._options = prompts, options
        self._seeds = np.array([seed % 2**64 for seed in seeds], np.uint64)
        self._max_batches, self._steps = (4, 4) if self._model.device.type == "cpu" else (2, 16)
        shape = len(prompts), options.max_tokens + self._steps
        self._tokens, self._log_probs = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
        self._n_sampled = np.zeros(len(prompts), np.int64)
        self._completions: dict[int, Completion] = {}
        self._batches: list[CachedBatch] = []

    def finish(self, tick: Tick) -> list[Completion]:
        columns = max(map(len, self._prompts)) + self._options.max_tokens
        max_rows = min(self._max_rows, _rows_that_fit(self._model, columns))
        self._batch_size = -(-max_rows // self._max_batches)
        waiting = sorted(range(len(self._prompts)), key=lambda row: len(self._prompts[row]))
        reported = 0
        while reported < len(self._prompts):
            while waiting and self._live + min(self._batch_size, len(waiting)) <= max_rows:
                self._prefill([waiting.pop() for _ in range(min(self._batch_size, len(waiting)))])
            if self._batches:
                self._step()
            tick(len(self._completions) - reported)
            reported = len(self._completions)
        return [self._completions[row] for row in range(len(self._prompts))]

    @property
    def _live(self) -> int:
        return sum(len(batch.rows) for batch in self._batches)

    def _prefill(self, rows: Sequence[int]) -> None:
        """Start a new batch: prefill its prompts and draw the first tokens."""
        batch, logits_NV = prefill(self._model, rows, [self._prompts[row] for row in rows])
        uniforms_N = self._uniforms(batch.rows, 1)[0]
        tokens_N, logps_N = draw(logits_NV, uniforms_N, self._options)
        self._batches.append(batch)
        self._record([batch], tokens_N.unsqueeze(0), logps_N.unsqueeze(0))

    def _step(self) -> None:
        """Sample a few more tokens for every row, remove finished rows, merge small batches."""
        rows = np.concatenate([batch.rows for batch in self._batches])
        remaining = self._options.max_tokens - int(self._n_sampled[rows].min())
        steps = min(self._steps, remaining)
        self._batches = [batch.with_capacity(steps) for batch in self._batches]
        tokens_SN, logps_SN = self._decode(rows, steps)
        self._record(self._batches, tokens_SN, logps_SN)
        self._merge_small()

    def _decode(self, rows: Numbers, steps: int) -> tuple[Tensor, Tensor]:
        """Return tokens and log-probs (S, N) of the next steps, without waiting for any of them."""
        model, device = self._model, self._model.device
        attention = CachedAttention(self._batches, model, steps)
        uniforms_SN = self._uniforms(rows, steps)
        tokens_N = torch.from_numpy(self._tokens[rows, self._n_sampled[rows] - 1]).to(device)
        positions_N = torch.from_numpy(np.concatenate([batch.lengths for batch in self._batches])).to(device)
        tokens, logps = [], []
        for step in range(steps):
            x_NC = model.hidden(tokens_N, (positions_N + step).clamp_(max=model.max_positions - 1), attention)
            attention.advance()
            tokens_N, logps_N = draw(model.logits(x_NC), uniforms_SN[step], self._options)
            tokens.append(tokens_N)
            logps.append(logps_N)
        return torch.stack(tokens), torch.stack(logps)

    def _uniforms(self, rows: Numbers, steps: int) -> Tensor:
        counters_SN = self._n_sampled[rows] + np.arange(steps)[:, None]
        return torch.from_numpy(uniforms(self._seeds[rows], counters_SN)).to(self._model.device)

    def _record(self, batches: Sequence[CachedBatch], tokens_SN: Tensor, logps_SN: Tensor) -> None:
        """Store the new tokens; rows that ended by an EOS or the limit become completions and are removed."""
        rows, steps = np.concatenate([batch.rows for batch in batches]), len(tokens_SN)
        n_before, tokens_NS = self._n_sampled[rows], tokens_SN.cpu().numpy().T
        places = rows[:, None], n_before[:, None] + np.arange(steps)
        self._tokens[places], self._log_probs[places] = tokens_NS, logps_SN.cpu().numpy().T
        if np.isnan(self._log_probs[places]).any():
            raise UserError("sampler: the model's logits are NaN; its weights are damaged, or its training diverged")
        ends_NS = np.isin(tokens_NS, self._eos_ids)
        finished = ends_NS.any(1)
        lengths = np.minimum(n_before + np.where(finished, ends_NS.argmax(1) + 1, steps), self._options.max_tokens)
        finished &= n_before + ends_NS.argmax(1) < self._options.max_tokens
        self._n_sampled[rows] = n_before + steps
        over = finished | (lengths == self._options.max_tokens)
        for row, length, ended in zip(*(values[over].tolist() for values in (rows, lengths, finished)), strict=True):
            token_ids, log_probs = self._tokens[row, :length].tolist(), self._log_probs[row, :length].tolist()
            self._completions[row] = Completion("", length, STOP if ended else LENGTH, token_ids, log_probs)
        bounds = np.cumsum([len(batch.rows) for batch in batches])[:-1]
        for batch, over_here in zip(batches, np.split(over, bounds), strict=True):
            if over_here.any():
                batch.keep(~over_here)
        self._batches = [batch for batch in self._batches if len(batch.rows)]

    def _merge_small(self) -> None:
        """Concatenate the two smallest batches while both together are no larger than a new one."""
        self._batches.sort(key=lambda batch: len(batch.rows))
        while len(self._batches) > 1 and len(self._batches[0].rows) + len(self._batches[1].rows) <= self._batch_size:
            self._batches = [concatenate(self._batches[:2]), *self._batches[2:]]
            self._batches.sort(key=lambda batch: len(batch.rows))


def draw(logits_NV: Tensor, uniforms_N: Tensor, options: SamplingOptions) -> tuple[Tensor, Tensor]:
    """Return tokens (N) by inverse sampling with ``uniforms_N``, and their log-probs (N) at this temperature."""
    scores_NV = logits_NV if options.temperature in (0, 1) else logits_NV / options.temperature
    probs_NV = scores_NV.softmax(-1)
    if options.temperature == 0:
        tokens_N1 = logits_NV.argmax(-1, keepdim=True)
    else:
        cut = options.top_p < 1 or 0 < options.top_k < logits_NV.shape[-1]
        kept_NV = truncated(scores_NV, options).softmax(-1) if cut else probs_NV
        sums_NV = kept_NV.cumsum(-1, dtype=torch.float64)
        tokens_N1 = torch.searchsorted(sums_NV, uniforms_N[:, None] * sums_NV[:, -1:], right=True)
        tokens_N1.clamp_(max=logits_NV.shape[-1] - 1)  # only NaN exceeds it, and is refused when it is stored
    return tokens_N1.squeeze(1), probs_NV.gather(1, tokens_N1).squeeze(1).log()


def truncated(scores_BV: Any, options: SamplingOptions) -> Any:
    """Return scores with −inf for tokens outside top-k or outside the top-p nucleus."""
    if 0 < options.top_k < scores_BV.shape[-1]:
        least_B1 = scores_BV.topk(options.top_k, dim=-1).values[:, -1:]
        scores_BV = scores_BV.masked_fill(scores_BV < least_B1, -torch.inf)
    if options.top_p < 1:
        sorted_BV, order_BV = scores_BV.sort(dim=-1, descending=True)
        probability_BV = sorted_BV.softmax(dim=-1)
        before_BV = probability_BV.cumsum(dim=-1) - probability_BV
        outside_BV = (before_BV >= options.top_p).scatter(-1, order_BV, before_BV >= options.top_p)
        scores_BV = scores_BV.masked_fill(outside_BV, -torch.inf)
    return scores_BV


def uniforms(seeds: np.ndarray[Any, np.dtype[np.uint64]], counters: Numbers) -> Floats:
    """Return numbers in (0, 1) with 32 bits, each a hash (splitmix64) of a seed and a counter."""
    steps = counters.astype(np.uint64) * STRIDE
    return ((scramble(scramble(seeds) + steps) >> np.uint64(32)) + 0.5) / 2**32


def _rows_that_fit(model: Decoder, columns: int) -> int:
    """Return how many rows fit in half of the free memory of this process's GPU share; the rest is for copies."""
    if model.device.type != "cuda":
        return sys.maxsize
    free, total = torch.cuda.mem_get_info(model.device)
    reserved, allocated = torch.cuda.memory_reserved(model.device), torch.cuda.memory_allocated(model.device)
    free = min(free + reserved, int(total * gpu_share())) - allocated
    column_bytes = 2 * model.layers * model.kv_heads * model.head_width * model.dtype.itemsize
    return max(1, int(free / 4 / (column_bytes * columns)))


def _check_prompts(model: Decoder, prompts: Sequence[Sequence[int]], options: SamplingOptions) -> None:
    if options.max_tokens < 1:
        raise UserError(f"max_tokens={options.max_tokens}: must be at least 1")
    for row, prompt in enumerate(prompts):
        if not prompt:
            raise UserError(f"prompt {row} is empty; give at least one token")
        if len(prompt) + options.max_tokens > model.max_positions:
            raise UserError(
                f"prompt {row} has {len(prompt)} tokens and max_tokens is {options.max_tokens}, but the model takes "
                f"{model.max_positions}; lower max_tokens"
            )
        if not 0 <= min(prompt) <= max(prompt) < model.vocabulary:
            raise UserError(f"prompt {row} holds token {max(prompt)}; the model knows 0 to {model.vocabulary - 1}")
