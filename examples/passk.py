"""Estimate pass@k of checkpoints for every k: unbiased, with 95 % intervals and paired differences."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("passk")
