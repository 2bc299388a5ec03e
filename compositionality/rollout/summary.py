"""Counts over rollouts, shard by shard: accuracy by data source, reasons, lengths."""

import re
from collections import Counter

import pyarrow as pa
from rich.table import Table

from compositionality.tasks.base import Reason


def wilson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for a share."""
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(confidence_level=confidence, method="wilson")
    return float(interval.low), float(interval.high)


def by_number(name: str) -> list[tuple[int, str]]:
    """Sort key by which level10 comes after level9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


class RolloutSummary:
    """Running counts; holds a few numbers per data source, whatever the number of rows."""

    def __init__(self, data_sources: pa.ChunkedArray) -> None:
        """``data_sources``: the column of the problem file."""
        self._data_sources = data_sources
        self.rows: Counter[tuple[str, str]] = Counter()  # (data source, reason)
        self.tokens: Counter[str] = Counter()  # data source

    def add(self, shard: pa.Table) -> None:
        """Count the rows of one shard."""
        labelled = shard.append_column("data_source", self._data_sources.take(shard["problem"]))
        groups = labelled.group_by(["data_source", "reason"]).aggregate([("tokens", "sum"), ("tokens", "count")])
        for group in groups.to_pylist():
            self.rows[group["data_source"], group["reason"]] += group["tokens_count"]
            self.tokens[group["data_source"]] += group["tokens_sum"]

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
        """Accuracy with its 95 % Wilson interval, mean length and the share of each other reason, by data source."""
        seen = {reason for (_, reason), count in self.rows.items() if count}
        reasons = [reason for reason in Reason if reason in seen and reason is not Reason.CORRECT]
        table = Table("data source", "n", "correct %", "95 % interval", "mean tokens", *(f"{r} %" for r in reasons))
        for source in sorted(self.tokens, key=by_number):
            n, correct = self.total(source), self.rows[source, Reason.CORRECT]
            low, high = wilson(correct, n)
            shares = (f"{100 * self.rows[source, reason] / n:.1f}" for reason in reasons)
            interval = f"{100 * low:.1f} – {100 * high:.1f}"
            table.add_row(
                source, str(n), f"{100 * correct / n:.1f}", interval, f"{self.tokens[source] / n:.1f}", *shares
            )
        return table
