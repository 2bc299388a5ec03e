"""The vocabulary of evaluation: what is measured of a model, which part of it, what intervals say of a claim."""

from enum import StrEnum

from compositionality.tasks.diagnosis import ReadChain


class Decision(StrEnum):
    """What the interval of an estimate says of a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    NOT_TESTABLE = "not testable"
    NOT_RUN = "not run"


class Metric(StrEnum):
    """What is measured of a model."""

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
"""Of influence: queries with right and wrong completions, a share."""
QUERY_VALUES = ("influence", "entropy")
"""Of influence: means over queries that are no shares."""
ALL_LEVELS = 0  # a comparison's level: problems of all levels together
DEEPEST = -1  # a comparison's level: the highest of its group that was run
