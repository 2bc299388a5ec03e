"""Does a profile's study fit a machine? `compositionality preflight profile=paper gpus=8 gpu_memory_gb=80`."""

from compositionality.verbs import main

if __name__ == "__main__":
    main("preflight")
