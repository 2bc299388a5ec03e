"""The built-in sampler: many prompts at once with a key-value cache, on CPU or GPU; finished rows cost nothing.

Rows run in lots of similar length. Every few steps finished rows leave, small lots unite, and waiting prompts start
new lots. Names of tensors: N rows, V vocabulary, S steps.
"""

# ruff: noqa: N803, N806

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compositionality.errors import UserError
from compositionality.rollout.decoder import Decoder
from compositionality.rollout.engine import SamplingOptions, Tick, no_tick
from compositionality.rollout.lots import Lot, LotAttention, Numbers, start, united
from compositionality.rollout.transformers_engine import truncated

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer: its tokens, EOS included; float32 log-probs, tempered but not truncated; did it end by EOS?"""

    tokens: list[int]
    logps: list[float]
    finished: bool


class Sampler:
    """Llama, Qwen2 and Qwen3 models. At most ``max_rows`` answers grow at a time.

    Token t of an answer is drawn with a number that depends on the answer's seed and t alone.
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
        self._model = Decoder(config, torch.device(device), dtype)
        self._eos_ids = list(eos_ids)
        self._max_rows = max_rows

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Take Hugging Face weights by name, any subset; UserError for an unknown name or another shape."""
        self._model.load(weights)

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        options: SamplingOptions,
        tick: Tick = no_tick,
    ) -> list[Sample]:
        """One answer per prompt, in order. UserError where prompt and answer may not fit the model."""
        self._model.check_loaded()
        _check_prompts(self._model, prompts, options)
        if not prompts:
            return []
        with torch.inference_mode():
            return _Run(self._model, self._eos_ids, prompts, seeds, options).finish(self._max_rows, tick)


class _Run:
    """One call of ``sample``."""

    def __init__(
        self,
        model: Decoder,
        eos_ids: Sequence[int],
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        options: SamplingOptions,
    ) -> None:
        self._model, self._eos_ids, self._prompts, self._options = model, eos_ids, prompts, options
        self._seeds = np.array([seed % 2**64 for seed in seeds], np.uint64)
        on_cpu = model.device.type == "cpu"
        self._lots_at_once, self._steps = (4, 4) if on_cpu else (2, 16)
        shape = len(prompts), options.max_tokens + self._steps
        self._tokens, self._logps = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
        self._ages = np.zeros(len(prompts), np.int64)
        self._answers: dict[int, Sample] = {}
        self._lots: list[Lot] = []

    def finish(self, max_rows: int, tick: Tick) -> list[Sample]:
        """All answers, in order."""
        columns = max(map(len, self._prompts)) + self._options.max_tokens
        max_rows = min(max_rows, _rows_that_fit(self._model, columns))
        self._lot_size = -(-max_rows // self._lots_at_once)
        waiting = sorted(range(len(self._prompts)), key=lambda row: len(self._prompts[row]))
        told = 0
        while told < len(self._prompts):
            while waiting and self._live + min(self._lot_size, len(waiting)) <= max_rows:
                self._start([waiting.pop() for _ in range(min(self._lot_size, len(waiting)))])
            if self._lots:
                self._grow()
            tick(len(self._answers) - told)
            told = len(self._answers)
        return [self._answers[row] for row in range(len(self._prompts))]

    @property
    def _live(self) -> int:
        return sum(len(lot.rows) for lot in self._lots)

    def _start(self, rows: Sequence[int]) -> None:
        """A new lot, with the first token of its answers."""
        lot, logits_NV = start(self._model, rows, [self._prompts[row] for row in rows])
        uniforms_N = self._uniforms(lot.rows, 1)[0]
        tokens_N, logps_N = draw(logits_NV, uniforms_N, self._options)
        self._lots.append(lot)
        self._record([lot], tokens_N.unsqueeze(0), logps_N.unsqueeze(0))

    def _grow(self) -> None:
        """A few more tokens for every row; finished rows leave, small lots unite."""
        rows = np.concatenate([lot.rows for lot in self._lots])
        left = self._options.max_tokens - int(self._ages[rows].min())
        steps = min(self._steps, left)
        self._lots = [lot.with_room(steps) for lot in self._lots]
        tokens_SN, logps_SN = self._decode(rows, steps)
        self._record(self._lots, tokens_SN, logps_SN)
        self._unite()

    def _decode(self, rows: Numbers, steps: int) -> tuple[Tensor, Tensor]:
        """Tokens and log-probs (S, N) of the next steps, without waiting for any of them."""
        model, device = self._model, self._model.device
        attention = LotAttention(self._lots, model, steps)
        uniforms_SN = self._uniforms(rows, steps)
        tokens_N = torch.from_numpy(self._tokens[rows, self._ages[rows] - 1]).to(device)
        positions_N = torch.from_numpy(np.concatenate([lot.lengths for lot in self._lots])).to(device)
        tokens, logps = [], []
        for step in range(steps):
            x_NC = model.hidden(tokens_N, (positions_N + step).clamp_(max=model.max_positions - 1), attention)
            attention.advance()
            tokens_N, logps_N = draw(model.logits(x_NC), uniforms_SN[step], self._options)
            tokens.append(tokens_N)
            logps.append(logps_N)
        return torch.stack(tokens), torch.stack(logps)

    def _uniforms(self, rows: Numbers, steps: int) -> Tensor:
        counters_SN = self._ages[rows] + np.arange(steps)[:, None]
        return torch.from_numpy(uniforms(self._seeds[rows], counters_SN)).to(self._model.device)

    def _record(self, lots: Sequence[Lot], tokens_SN: Tensor, logps_SN: Tensor) -> None:
        """Write the new tokens down; rows that an EOS or the limit ended become answers and leave their lots."""
        rows, steps = np.concatenate([lot.rows for lot in lots]), len(tokens_SN)
        ages, tokens_NS = self._ages[rows], tokens_SN.cpu().numpy().T
        places = rows[:, None], ages[:, None] + np.arange(steps)
        self._tokens[places], self._logps[places] = tokens_NS, logps_SN.cpu().numpy().T
        if np.isnan(self._logps[places]).any():
            raise UserError("sampler: the model's logits are NaN; its weights are damaged, or its training diverged")
        ends_NS = np.isin(tokens_NS, self._eos_ids)
        finished = ends_NS.any(1)
        lengths = np.minimum(ages + np.where(finished, ends_NS.argmax(1) + 1, steps), self._options.max_tokens)
        finished &= ages + ends_NS.argmax(1) < self._options.max_tokens
        self._ages[rows] = ages + steps
        over = finished | (lengths == self._options.max_tokens)
        for row, length, ended in zip(*(values[over].tolist() for values in (rows, lengths, finished)), strict=True):
            self._answers[row] = Sample(self._tokens[row, :length].tolist(), self._logps[row, :length].tolist(), ended)
        for lot, over_lot in zip(lots, np.split(over, np.cumsum([len(lot.rows) for lot in lots])[:-1]), strict=True):
            if over_lot.any():
                lot.keep(~over_lot)
        self._lots = [lot for lot in self._lots if len(lot.rows)]

    def _unite(self) -> None:
        """While the two smallest lots are together no larger than a new one, make them one."""
        self._lots.sort(key=lambda lot: len(lot.rows))
        while len(self._lots) > 1 and len(self._lots[0].rows) + len(self._lots[1].rows) <= self._lot_size:
            self._lots = sorted([united(self._lots[:2]), *self._lots[2:]], key=lambda lot: len(lot.rows))


def draw(logits_NV: Tensor, uniforms_N: Tensor, options: SamplingOptions) -> tuple[Tensor, Tensor]:
    """Tokens (N) and their tempered log-probs (N): the inverse of the cumulative distribution at ``uniforms_N``."""
    scores_NV = logits_NV if options.temperature in (0, 1) else logits_NV / options.temperature
    shares_NV = scores_NV.softmax(-1)
    if options.temperature == 0:
        tokens_N1 = logits_NV.argmax(-1, keepdim=True)
    else:
        cut = options.top_p < 1 or 0 < options.top_k < logits_NV.shape[-1]
        kept_NV = truncated(scores_NV, options).softmax(-1) if cut else shares_NV
        sums_NV = kept_NV.cumsum(-1, dtype=torch.float64)
        tokens_N1 = torch.searchsorted(sums_NV, uniforms_N[:, None] * sums_NV[:, -1:], right=True)
        tokens_N1.clamp_(max=logits_NV.shape[-1] - 1)  # only NaN goes beyond, and is refused when it is written down
    return tokens_N1.squeeze(1), shares_NV.gather(1, tokens_N1).squeeze(1).log()


def uniforms(seeds: np.ndarray[Any, np.dtype[np.uint64]], counters: Numbers) -> Floats:
    """Numbers in (0, 1), each a hash of a seed and a counter alone (splitmix64), 32 bits fine."""
    steps = counters.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((_mixed(_mixed(seeds) + steps) >> np.uint64(32)) + 0.5) / 2**32


def _mixed(x: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _rows_that_fit(model: Decoder, columns: int) -> int:
    """How many rows of so many columns half of a GPU's free memory holds, while some lots are copied."""
    if model.device.type != "cuda":
        return sys.maxsize
    free = torch.cuda.mem_get_info(model.device)[0]
    free += torch.cuda.memory_reserved(model.device) - torch.cuda.memory_allocated(model.device)
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
