"""Check a machine: set-up, both engines in small runs, tokens per second, MFU, memory. bash/gpu_check.sh runs it."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("gpu_check")
