"""The claims of the paper, decided by the intervals of our results."""
