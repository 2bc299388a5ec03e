"""Scaling laws: fit the loss against model size and what training took, and predict what was left out of a fit."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("fit_scaling")
