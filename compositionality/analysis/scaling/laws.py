"""Functional forms: the logarithm of a test loss from a model's size and a resource spent on training it.

L: loss, 1 − accuracy. N: size, parameters without embeddings. X: resource, FLOPs or prompts, in units of X_ref, the
geometric mean of those that a law is fitted to; all logarithms are natural. A parameter *of a size* has one value for
each size, so nothing can be said of a size that was not fitted. Facts: arXiv 2509.25300 and its released code.

Names of arrays: P points.
"""

# ruff: noqa: N803

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from compositionality.errors import UserError
from compositionality.stats.estimate import Floats

Values = Mapping[str, Floats]
"""Of every parameter its value at each point, (P,) or (); logarithms for parameters that are scales."""
DECADES = 3.0
"""A scale may lie so many powers of ten beyond the sizes, or the resources, that were measured."""


@dataclass(frozen=True)
class Parameter:
    """``scale``: "size" or "resource" for a positive number of that unit, fitted as its logarithm; else it is a plain
    number between ``low`` and ``high``."""

    name: str
    low: float = 0.0
    high: float = 2.0
    scale: str = ""
    of_size: bool = False


@dataclass(frozen=True)
class Law:
    """``log_loss(values, log N (P,), log X (P,))`` → (P,); with fewer than ``least_sizes`` it is not determined."""

    name: str
    formula: str
    parameters: tuple[Parameter, ...]
    log_loss: Callable[[Values, Floats, Floats], Floats]
    least_sizes: int = 3

    @property
    def predicts_new_sizes(self) -> bool:
        """No parameter is of a size."""
        return not any(one.of_size for one in self.parameters)


def saturating(values: Values, largest: str, half: str, log_N: Floats) -> Floats:
    """``largest / (1 + half / N)``: half of its largest value at N = half."""
    found: Floats = values[largest] / (1 + np.exp(values[half] - log_N))
    return found


def _log_linear(values: Values, _: Floats, log_X: Floats) -> Floats:
    return values["E"] - values["k"] * log_X


def _saturating_slope(values: Values, log_N: Floats, log_X: Floats) -> Floats:
    return values["E"] - saturating(values, "K_max", "N0", log_N) * log_X


def _saturating_both(values: Values, log_N: Floats, log_X: Floats) -> Floats:
    slope, start = saturating(values, "K_max", "N0", log_N), saturating(values, "E_max", "N1", log_N)
    return -start - slope * (log_X - values["S"])


def _common_pivot(values: Values, log_N: Floats, log_X: Floats) -> Floats:
    return saturating(values, "K_max", "N0", log_N) * (values["S"] - log_X)


def _power(values: Values, log_N: Floats, log_X: Floats) -> Floats:
    found: Floats = np.logaddexp(
        values["alpha"] * (values["A"] - log_N),
        values["beta"] * (values["B"] - log_X),
    )
    return found


def _power_with_floor(values: Values, log_N: Floats, log_X: Floats) -> Floats:
    found: Floats = np.logaddexp(_power(values, log_N, log_X), _log(values["L_inf"]))
    return found


def _sigmoid(values: Values, log_N: Floats, log_X: Floats) -> Floats:
    floor = np.logaddexp(_log(values["L_inf"]), values["alpha"] * (values["N0"] - log_N))
    falling = _log(values["lambda"]) - np.logaddexp(0.0, values["beta"] * (log_X - values["D0"]))
    found: Floats = np.logaddexp(floor, falling)
    return found


def _log(share: Floats) -> Floats:
    found: Floats = np.log(np.maximum(share, 1e-12))
    return found


_K_MAX, _N0 = Parameter("K_max"), Parameter("N0", scale="size")
_ALPHA, _BETA, _L_INF = Parameter("alpha"), Parameter("beta", high=10.0), Parameter("L_inf", high=1.0)
LAWS = {
    law.name: law
    for law in (
        Law("log_linear", "log L = E − k log X, of each size", (
            Parameter("E", -10.0, 10.0, of_size=True), Parameter("k", -1.0, 2.0, of_size=True),
        ), _log_linear, least_sizes=1),
        Law("saturating_slope", "log L = E − k(N) log X, k = K_max / (1 + N0/N), E of each size", (
            _K_MAX, _N0, Parameter("E", -10.0, 10.0, of_size=True),
        ), _saturating_slope),
        Law("saturating_both", "log L = −E_max / (1 + N1/N) − k(N) log (X/S), k = K_max / (1 + N0/N)", (
            _K_MAX, _N0, Parameter("E_max", high=10.0), Parameter("N1", scale="size"), Parameter("S", scale="resource"),
        ), _saturating_both, least_sizes=4),
        Law("common_pivot", "L = (S/X)^k(N), k = K_max / (1 + N0/N)", (
            _K_MAX, _N0, Parameter("S", scale="resource"),
        ), _common_pivot),
        Law("power", "L = (A/N)^alpha + (B/X)^beta", (
            Parameter("A", scale="size"), _ALPHA, Parameter("B", scale="resource"), _BETA,
        ), _power),
        Law("power_with_floor", "L = L_inf + (A/N)^alpha + (B/X)^beta", (
            _L_INF, Parameter("A", scale="size"), _ALPHA, Parameter("B", scale="resource"), _BETA,
        ), _power_with_floor),
        Law("sigmoid", "L = L_inf + (N0/N)^alpha + lambda / (1 + (X/D0)^beta), lambda and D0 of each size", (
            _L_INF, _N0, _ALPHA, _BETA,
            Parameter("lambda", high=1.5, of_size=True), Parameter("D0", scale="resource", of_size=True),
        ), _sigmoid),
    )
}  # fmt: skip
"""The forms by name. saturating_slope is the paper's law, sigmoid its appendix's, saturating_both and common_pivot are
in its code alone."""


def law_named(name: str) -> Law:
    """UserError for an unknown law."""
    if name not in LAWS:
        raise UserError(f"laws: {name} unknown; there are: {', '.join(LAWS)}")
    return LAWS[name]
