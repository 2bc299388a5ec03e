"""The key-value cache of rows that are decoded together, aligned so that all rows end at the same column.

Names of tensors: N rows, U different prompts, P padded prompt length, T columns of the cache, L layers, G key-value
heads, Q query heads per key-value head, H = G·Q, D head width, V vocabulary.
"""

# ruff: noqa: N803, N806, N815

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositionality.rollout.sampler.decoder import Decoder

PREFILL_TOKENS = 16384
SPARE_COLUMNS, SPARE_COLUMNS_CPU = 64, 8  # few on a CPU: unused columns after each head's halve the read speed
MIN_PRODUCTS = 400  # with fewer multiplications per matrix torch uses a slow loop on a CPU
Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(eq=False)
class CachedBatch:
    """Rows with their cached keys and values. ``rows``: the number of each row's prompt; ``starts``: where it begins.

    Keys are laid out as (L, N, G, D, T), values as (L, N, G, T, D), so that both products of attention read contiguous
    memory. The first ``len(rows)`` rows are live; columns up to ``end`` are used and at least ``min_columns`` read.
    """

    keys_LNGDT: Tensor
    values_LNGTD: Tensor
    rows: Numbers
    starts: Numbers
    end: int
    min_columns: int

    @property
    def begin(self) -> int:
        return min(int(self.starts.min()), self.end - self.min_columns)

    @property
    def lengths(self) -> Numbers:
        return self.end - self.starts

    def bias(self, columns: int) -> Tensor | None:
        """Return the bias (N·G, 1, T) on the scores of columns begin to ``columns``: −inf before a row's start.

        None if there is no padding.
        """
        if (self.starts == self.begin).all():
            return None
        heads = self.keys_LNGDT.shape[2]
        starts_N = torch.from_numpy(self.starts).to(self.keys_LNGDT.device).repeat_interleave(heads)
        before_NT = torch.arange(self.begin, columns, device=starts_N.device) < starts_N[:, None]
        zeros_NT = torch.zeros(before_NT.shape, device=starts_N.device, dtype=self.keys_LNGDT.dtype)
        return zeros_NT.masked_fill_(before_NT, -torch.inf).unsqueeze(1)

    def keep(self, alive: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Keep only these rows: copy the last live ones into the freed places."""
        count = int(alive.sum())
        free, moved = np.flatnonzero(~alive[:count]), count + np.flatnonzero(alive[count:])
        if len(free):
            used = slice(self.begin, self.end)
            target, source = torch.from_numpy(free), torch.from_numpy(moved)
            self.keys_LNGDT[:, target, ..., used] = self.keys_LNGDT[:, source, ..., used]
            self.values_LNGTD[:, target, :, used] = self.values_LNGTD[:, source, :, used]
            self.rows[free], self.starts[free] = self.rows[moved], self.starts[moved]
        self.rows, self.starts = self.rows[:count], self.starts[:count]

    def with_capacity(self, steps: int) -> "CachedBatch":
        """Return this batch if it has columns for ``steps`` more tokens, else a larger copy."""
        return self if self.end + steps <= self.keys_LNGDT.shape[-1] else concatenate([self])


def concatenate(batches: Sequence[CachedBatch]) -> CachedBatch:
    """Return one batch with the rows of all ``batches``, realigned so that all end at the same column."""
    width, count = max(batch.end - batch.begin for batch in batches), sum(len(batch.rows) for batch in batches)
    keys_LNGDT, values_LNGTD = _new_cache(batches[0].keys_LNGDT, count, width)
    first = 0
    for batch in batches:
        live, used, place = len(batch.rows), slice(batch.begin, batch.end), slice(first, first + len(batch.rows))
        pad = width - (batch.end - batch.begin)
        keys_LNGDT[:, place, ..., :pad] = 0  # masked, but never NaN
        values_LNGTD[:, place, :, :pad] = 0
        keys_LNGDT[:, place, ..., pad:width] = batch.keys_LNGDT[:, :live, ..., used]
        values_LNGTD[:, place, :, pad:width] = batch.values_LNGTD[:, :live, :, used]
        first += live
    rows = np.concatenate([batch.rows for batch in batches])
    starts = np.concatenate([batch.starts - batch.end for batch in batches]) + width
    return CachedBatch(keys_LNGDT, values_LNGTD, rows, starts, width, batches[0].min_columns)


def _new_cache(like_LNGDT: Tensor, rows: int, width: int) -> tuple[Tensor, Tensor]:
    """Return empty keys and values for ``rows`` rows, with columns for ``width`` tokens and some spare columns."""
    layers, _, heads, head_width, _ = like_LNGDT.shape
    columns = width + (SPARE_COLUMNS_CPU if like_LNGDT.device.type == "cpu" else SPARE_COLUMNS)
    keys_LNGDT = like_LNGDT.new_empty(layers, rows, heads, head_width, columns)
    return keys_LNGDT, like_LNGDT.new_empty(layers, rows, heads, columns, head_width)


def prefill(model: Decoder, rows: Sequence[int], prompts: Sequence[Sequence[int]]) -> tuple[CachedBatch, Tensor]:
    """Return the cache of these prompts and the logits (N, V) after each; equal neighbours are computed once."""
    longest, min_columns = max(map(len, prompts)), 0
    if model.device.type == "cpu":  # smaller matrix products are slow
        min_columns = -(-MIN_PRODUCTS // (model.head_width * model.heads // model.kv_heads))
    shape, width = (model.layers, 0, model.kv_heads, model.head_width, 0), max(longest, min_columns)
    keys, values = _new_cache(torch.empty(shape, device=model.device, dtype=model.dtype), len(prompts), width)
    starts = np.array([width - len(prompt) for prompt in prompts])
    batch = CachedBatch(keys, values, np.array(rows), starts, width, min_columns)
    firsts = [row for row, prompt in enumerate(prompts) if row == 0 or prompt != prompts[row - 1]]
    per_pass = max(1, PREFILL_TOKENS // longest)
    passes = []
    for number in range(0, len(firsts), per_pass):
        chosen = firsts[number : number + per_pass]
        after = firsts[number + per_pass] if number + per_pass < len(firsts) else len(prompts)
        copies = np.diff([*chosen, after])
        passes.append(_prefill_distinct(batch, model, [prompts[row] for row in chosen], copies, chosen[0]))
    return batch, torch.cat(passes)


def _prefill_distinct(
    batch: CachedBatch, model: Decoder, prompts: Sequence[Sequence[int]], copies: Numbers, first_row: int
) -> Tensor:
    """Run one pass over distinct prompts, each for ``copies`` rows from ``first_row`` on; return logits (N, V)."""
    device, width, count = model.device, max(map(len, prompts)), len(prompts)
    columns = slice(batch.end - width, batch.end)
    tokens_UP = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in prompts], device=device)
    starts_U = torch.tensor([width - len(prompt) for prompt in prompts], device=device)
    columns_P = torch.arange(width, device=device)
    positions_UP = (columns_P - starts_U[:, None]).clamp_(min=0)
    seen_U1PP = _visible(starts_U, columns_P)
    copies_U = torch.from_numpy(copies).to(device)
    place = slice(first_row, first_row + int(copies.sum()))
    batch.keys_LNGDT[:, place, ..., : columns.start] = 0  # masked, but never NaN
    batch.values_LNGTD[:, place, :, : columns.start] = 0

    def attend(layer: int, q_NHD: Tensor, k_NGD: Tensor, v_NGD: Tensor) -> Tensor:
        q_UHPD, k_UGPD, v_UGPD = (x.unflatten(0, (count, width)).transpose(1, 2) for x in (q_NHD, k_NGD, v_NGD))
        batch.keys_LNGDT[layer, place, ..., columns] = k_UGPD.mT.repeat_interleave(copies_U, 0)
        batch.values_LNGTD[layer, place, :, columns] = v_UGPD.repeat_interleave(copies_U, 0)
        read_UHPD = functional.scaled_dot_product_attention(
            q_UHPD, k_UGPD, v_UGPD, attn_mask=seen_U1PP, enable_gqa=model.heads != model.kv_heads
        )
        return read_UHPD.transpose(1, 2).flatten(0, 1)

    x_NC = model.hidden(tokens_UP.flatten(), positions_UP.flatten(), attend)
    logits_UV = model.logits(x_NC.unflatten(0, (count, width))[:, -1])
    return logits_UV.repeat_interleave(copies_U, 0)


def _visible(starts_U: Tensor, columns_P: Tensor) -> Tensor:
    """Return a causal mask (U, 1, P, P): a column sees itself and earlier columns from the prompt's start on."""
    causal_PP = columns_P[:, None] >= columns_P
    inside_U1P = columns_P >= starts_U[:, None, None]
    itself_PP = columns_P[:, None] == columns_P  # so that padding, which nothing reads, never becomes NaN
    return (causal_PP & inside_U1P | itself_PP).unsqueeze(1)


class CachedAttention:
    """Attention of one new token per row, batch by batch; each step appends one column to every batch."""

    def __init__(self, batches: Sequence[CachedBatch], model: Decoder, steps: int) -> None:
        self._scale = model.head_width**-0.5
        self._parts: list[tuple[CachedBatch, slice, int, Tensor | None]] = []
        first = 0
        for batch in batches:
            here = slice(first, first + len(batch.rows))
            self._parts.append((batch, here, batch.begin, batch.bias(batch.end + steps)))
            first = here.stop

    def __call__(self, layer: int, q_NHD: Tensor, k_NGD: Tensor, v_NGD: Tensor) -> Tensor:
        """Store keys and values in each batch's next column and attend up to it."""
        q_NGQD = (q_NHD * self._scale).unflatten(1, (k_NGD.shape[1], -1))
        read_NGQD = torch.empty_like(q_NGQD)
        for batch, here, begin, bias_NT in self._parts:
            live, column = here.stop - here.start, batch.end
            keys_NGDT, values_NGTD = batch.keys_LNGDT[layer, :live], batch.values_LNGTD[layer, :live]
            keys_NGDT.select(3, column).copy_(k_NGD[here])
            values_NGTD.select(2, column).copy_(v_NGD[here])
            bias = None if bias_NT is None else bias_NT[..., : column + 1 - begin]
            keys_NDT = keys_NGDT.flatten(0, 1)[..., begin : column + 1]
            values_NTD = values_NGTD.flatten(0, 1)[:, begin : column + 1]
            _attend(q_NGQD[here].flatten(0, 1), keys_NDT, values_NTD, bias, out=read_NGQD[here].flatten(0, 1))
        return read_NGQD

    def advance(self) -> None:
        """Move on to the next column, when all layers have filled this one."""
        for batch, *_ in self._parts:
            batch.end += 1


def _attend(q_NQD: Tensor, keys_NDT: Tensor, values_NTD: Tensor, bias_N1T: Tensor | None, *, out: Tensor) -> None:
    """Write softmax attention into ``out`` (N, Q, D); the queries are already scaled, N = rows x key-value heads."""
    scores_NQT = torch.bmm(q_NQD, keys_NDT) if bias_N1T is None else torch.baddbmm(bias_N1T, q_NQD, keys_NDT)
    weights_NQT = scores_NQT.softmax(-1, dtype=torch.float32).to(values_NTD.dtype)
    torch.bmm(weights_NQT, values_NTD, out=out)
