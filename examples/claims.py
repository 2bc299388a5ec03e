"""Decide the paper's claims by our results: figures, intervals, decisions, and what would decide the undecided ones."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("claims")
