"""Measure per-step influence: which queries improve a model most, to first order (Cen et al., arXiv 2505.18917)."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("influence")
