"""Fit scaling laws: loss against model size and training resource; predict evaluations outside the fit."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("fit_scaling")
