"""The vocabulary of evaluation: what is measured of a model, which part of it, what intervals say of a claim."""

from enum import StrEnum

from compositionality.tasks.diagnosis import ReadChain


class Decision(StrEnum):
    """Decisions on a claim, from the interval of its estimate."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    NOT_TESTABLE = "not testable"
    NOT_RUN = "not run"


class Metric(StrEnum):
    """Measures of a model."""

    ACCURACY = "accuracy"
    PASS_AT_K = "pass@k"
    FAILURES = "failure share"
    INFLUENCE = "influence"  # of queries on a model that is to be trained
    SCALING = "scaling"  # quantities of fitted laws, by name


CORRECT, CHAIN = "correct", ReadChain._fields
"""Parts of accuracy: right answers; what holds of the steps, whatever the answer."""
ALL_SAMPLES, GROWTH = "pass@N", "pass@N − pass@1"
"""Parts of pass@k: with all N samples of a problem; what samples after the first add."""
MIXED = "mixed"
"""The share of queries with right and wrong completions, in results on influence."""
QUERY_VALUES = ("influence", "entropy")
"""Means over queries that are no shares, in results on influence."""
ALL_LEVELS = 0  # a comparison's level: problems of all levels together
DEEPEST = -1  # a comparison's level: the highest of its group that was run
