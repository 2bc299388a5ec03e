"""pass@k and pass^k of every problem for every k at once, from counts of correct samples.

Of n samples with c correct ones, k drawn without replacement hold a correct one with probability
1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv:2107.03374), and are all correct with probability C(c, k) / C(n, k).
Both are unbiased for k independent samples. Ratios of binomials are differences of log-gammas, looked up in one table.

Legend: P problems, K values of k (1 … K).
"""
# ruff: noqa: N803, N806

import numpy as np
from numpy.typing import NDArray

from compositionality.errors import UserError
from compositionality.stats.intervals import Counts

Floats = NDArray[np.float64]


def pass_at_k(correct_P: Counts, samples_P: Counts, largest_k: int) -> Floats:
    """(P, K): chance that k of the samples hold a correct one. UserError if a problem has fewer than K samples."""
    return _some_correct(correct_P, samples_P, np.arange(1, largest_k + 1))


def pass_at_one_k(correct_P: Counts, samples_P: Counts, k: int) -> Floats:
    """(P,): the same for this k alone."""
    return _some_correct(correct_P, samples_P, np.array([k]))[:, 0]


def pass_hat_k(correct_P: Counts, samples_P: Counts, largest_k: int) -> Floats:
    """(P, K): chance that k of the samples are all correct (pass^k). UserError as for ``pass_at_k``."""
    share_PK: Floats = np.exp(_log_share(correct_P, samples_P, np.arange(1, largest_k + 1)))
    return share_PK


def _some_correct(correct_P: Counts, samples_P: Counts, k_K: Counts) -> Floats:
    failed_PK = _log_share(samples_P - correct_P, samples_P, k_K)
    return -np.expm1(failed_PK) + 0.0  # never -0.0


def _log_share(some_P: Counts, samples_P: Counts, k_K: Counts) -> Floats:
    """Log of C(some, k) / C(samples, k); -inf where k > some."""
    from scipy.special import gammaln

    fewest, largest_k = int(samples_P.min()), int(k_K.max(initial=0))
    if not 1 <= largest_k <= fewest:
        raise UserError(f"k={largest_k}: must lie between 1 and the number of samples, {fewest}")
    log_factorial = gammaln(np.arange(int(samples_P.max()) + 1) + 1.0)

    def log_falling(n_P: Counts) -> Floats:
        """Log of n! / (n - k)!."""
        falling: Floats = log_factorial[n_P][:, None] - log_factorial[np.maximum(n_P[:, None] - k_K, 0)]
        return falling

    return np.where(k_K <= some_P[:, None], log_falling(some_P) - log_falling(samples_P), -np.inf)
