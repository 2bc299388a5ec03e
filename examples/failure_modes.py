"""Classify failures by program: every judged response gets one class, and the shares by class get intervals."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("failure_modes")
