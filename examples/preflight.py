"""Check that a profile's study fits a machine: `compositionality preflight profile=paper gpus=8 gpu_memory_gb=80`."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("preflight")
