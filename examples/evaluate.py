"""Measure accuracy by level, with 95 % intervals, of any checkpoints on any problem files."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("evaluate")
