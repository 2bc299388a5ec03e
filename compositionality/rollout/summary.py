"""Counts over rollouts, shard by shard: accuracy by data source, reasons, lengths."""

import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Table

from compositionality.console import new_table
from compositionality.stats.intervals import Interval, share
from compositionality.types import Reason


def by_number(name: str) -> list[tuple[int, str]]:
    """Sort key by which level10 comes after level9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


class RolloutSummary:
    """Running counts; holds two numbers per problem, whatever the number of samples."""

    def __init__(self, data_sources: pa.ChunkedArray) -> None:
        """``data_sources``: the column of the problem file."""
        self._data_sources = data_sources
        self._correct = np.zeros(len(data_sources), np.int64)  # per problem
        self._judged = np.zeros(len(data_sources), np.int64)
        self.rows: Counter[tuple[str, str]] = Counter()  # (data source, reason)
        self.tokens: Counter[str] = Counter()  # data source

    def add(self, shard: pa.Table) -> None:
        """Count the rows of one shard."""
        labelled = shard.append_column("data_source", self._data_sources.take(shard["problem"]))
        groups = labelled.group_by(["data_source", "reason"]).aggregate([("tokens", "sum"), ("tokens", "count")])
        for group in groups.to_pylist():
            self.rows[group["data_source"], group["reason"]] += group["tokens_count"]
            self.tokens[group["data_source"]] += group["tokens_sum"]
        self._count(shard, self._correct, pc.equal(shard["reason"], Reason.CORRECT))
        self._count(shard, self._judged, pc.not_equal(shard["reason"], Reason.ERROR))

    def _count(self, shard: pa.Table, into: np.ndarray, chosen: pa.ChunkedArray) -> None:
        problems = shard["problem"].filter(chosen).to_numpy()
        into += np.bincount(problems, minlength=len(into))

    def accuracy(self, data_source: str) -> Interval | None:
        """Share of correct among judged answers with its interval, problems as clusters; None if nothing was judged."""
        rows = pc.equal(self._data_sources, data_source).to_numpy()
        return share(self._correct[rows], self._judged[rows])

    def total(self, data_source: str) -> int:
        """Responses to problems of one data source."""
        return sum(count for (source, _), count in self.rows.items() if source == data_source)

    def facts(self) -> dict[str, object]:
        """The figures for the manifest: whole numbers only."""
        reasons: Counter[str] = Counter()
        for (_, reason), count in self.rows.items():
            reasons[reason] += count
        accuracy = {
            source: {"n": self.total(source), "correct": self.rows[source, Reason.CORRECT]}
            for source in sorted(self.tokens, key=by_number)
        }
        tokens = sum(self.tokens.values())
        return {"rows": reasons.total(), "tokens": tokens, "reasons": dict(sorted(reasons.items())), "levels": accuracy}

    def table(self) -> Table:
        """Accuracy with its 95 % interval, mean length and the share of each other reason, by data source."""
        seen = {reason for (_, reason), count in self.rows.items() if count}
        reasons = [reason for reason in Reason if reason in seen and reason is not Reason.CORRECT]
        table = new_table("data source", "n", "correct %", "95 % interval", "mean tokens", *(f"{r} %" for r in reasons))
        for source in sorted(self.tokens, key=by_number):
            n, found = self.total(source), self.accuracy(source)
            shares = (f"{100 * self.rows[source, reason] / n:.1f}" for reason in reasons)
            value, interval = _shown(found) if found else ("–", "–")
            table.add_row(source, str(n), value, interval, f"{self.tokens[source] / n:.1f}", *shares)
        return table


def _shown(found: Interval) -> tuple[str, str]:
    return f"{100 * found.value:.1f}", f"{100 * found.low:.1f} – {100 * found.high:.1f}"
