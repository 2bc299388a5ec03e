"""The ladder of a study: arms that differ in one ingredient each, and how much of the last one's gain each has."""

from collections.abc import Mapping, Sequence
from typing import Any

from scipy.optimize import brentq

from compositionality.evaluate.results import ProblemSet, Results
from compositionality.evaluate.summary import Row, contrast, estimate_sum
from compositionality.types import CORRECT, Interval, TrainingReport

HELDOUT, LEVEL = "heldout", 3
"""The problems that the gain is of."""
TITLES = [
    *("arm", "whose answers", "sampled", "wrong ones", "normalised"),
    *("updates", "loss tokens an update", "share of RL’s gain"),
]


def rungs(results: Results, ladder: Mapping[str, Sequence[str]], start: str) -> tuple[list[Row], dict[str, Any]]:
    """Return a row for each rung that was evaluated, and a table: its ``ladder`` words, what it took, its share.

    The gain is that of the last rung over ``start``. No rows where that is not above 0, or nothing is beside it.
    """
    *_, last = ladder
    problems, arms = results.problem_set(HELDOUT, LEVEL), [arm for arm in ladder if arm in results.arms]
    rows, cells = list[Row](), list[list[str]]()
    if problems is None or len(arms) < 2 or not {last, start} <= {*results.arms}:
        return [], {}
    for arm in arms:
        if (found := share_of_gain(results, arm, last, start, problems)) is None:
            return [], {}
        share, (low, high) = found
        rows.append({"model": arm, "share": share, "low": low, "high": high, "of": last, "over": start})
        reports = [place.training[arm] for place in results.replicates if arm in place.training]
        shown = f"{100 * share:.0f} % [{100 * low:.0f}, {100 * high:.0f}]".replace("-", "−")
        cells.append([arm, *ladder[arm], *updates_and_tokens(reports), shown])
    return rows, {"summary": "What each rung changes, and what it took", "titles": TITLES, "rows": cells}


LARGEST_SHARE = 1e3
"""Of a gain; where an end lies beyond, the gain is not known to be one."""


def share_of_gain(
    results: Results, arm: str, model: str, base: str, problems: ProblemSet
) -> tuple[float, Interval] | None:
    """Return (arm − base) / (model − base), and the shares s for which arm − base − s (model − base) may be 0.

    That is Fieller's interval, by the intervals of all other estimates. None unless model's own gain lies above 0, by
    the problems that all three have answered too.
    """
    gain, own = (contrast(results, name, base, problems) for name in (model, arm))
    if gain is None or own is None or gain.low <= 0:
        return None

    def rest(share: float) -> Interval:
        terms = [(1.0, arm, CORRECT), (-share, model, CORRECT), (share - 1.0, base, CORRECT)]
        bound = sum(abs(factor) for factor, *_ in terms) / 2
        estimate = estimate_sum(results, problems, terms, -bound, bound)
        assert estimate is not None
        return estimate.interval

    far = 2.0
    while rest(-far).low < 0 or rest(far).high > 0:
        far *= 2
        if far > LARGEST_SHARE:
            return None
    ends = (brentq(lambda share, end=end: rest(share)[end], -far, far, xtol=1e-3) for end in (0, 1))
    return own.value / gain.value, Interval(*map(float, ends))


def updates_and_tokens(reports: Sequence[TrainingReport]) -> list[str]:
    """Return updates with signal, and tokens of the loss in one of them: of several replicates least–most."""
    known = [(report.updates_with_signal or 0, report.tokens) for report in reports if report.updates and report.tokens]
    counts = [(updates, round(tokens / max(1, updates))) for updates, tokens in known]
    ends = ({f"{end(column):,}": "" for end in (min, max)} for column in zip(*counts, strict=True))
    return ["–".join(texts) for texts in ends] or ["–", "–"]
