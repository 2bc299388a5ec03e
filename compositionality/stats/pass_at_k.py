"""pass@k and pass^k of every problem for many k at once, from counts of correct samples.

Among n samples with c correct ones, k drawn without replacement include a correct one with probability
1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv:2107.03374), and are all correct with probability C(c, k) / C(n, k).
Both are unbiased for k independent samples. Ratios of binomials are differences of log-gammas, looked up in one table.

Legend: P problems, K values of k.
"""
# ruff: noqa: N803, N806

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from compositionality.errors import UserError
from compositionality.stats.estimate import Counts, Floats


def pass_at_k(correct_P: Counts, samples_P: Counts, ks: Sequence[int] | range) -> Floats:
    """Return (P, K), the chance that k samples include a correct one. UserError if a problem has fewer than k."""
    return -np.expm1(_log_share(samples_P - correct_P, samples_P, ks)) + 0.0  # never -0.0


def pass_hat_k(correct_P: Counts, samples_P: Counts, ks: Sequence[int] | range) -> Floats:
    """Return (P, K), the chance that k of the samples are all correct (pass^k). UserError as for ``pass_at_k``."""
    return np.exp(_log_share(correct_P, samples_P, ks))


def _log_share(some_P: Counts, samples_P: Counts, ks: Sequence[int] | range) -> Floats:
    """Return log of C(some, k) / C(samples, k); -inf where k > some."""
    k_K, fewest = np.array(ks), int(samples_P.min())
    for k in (min(ks), max(ks)):
        if not 1 <= k <= fewest:
            raise UserError(f"k={k}: must lie between 1 and the number of samples, {fewest}")
    log_factorial = gammaln(np.arange(int(samples_P.max()) + 1) + 1.0)

    def log_falling(n_P: Counts) -> Floats:
        """Return log of n! / (n - k)!."""
        falling_PK: Floats = log_factorial[n_P][:, None] - log_factorial[np.maximum(n_P[:, None] - k_K, 0)]
        return falling_PK

    return np.where(k_K <= some_P[:, None], log_falling(some_P) - log_falling(samples_P), -np.inf)
