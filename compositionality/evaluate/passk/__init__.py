"""pass@k that can be believed: the unbiased estimator, intervals, paired differences, and what they will cost."""
