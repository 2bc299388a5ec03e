"""Run a study: the scripts of bash/ for every seed and arm, in parallel on cores, GPUs or a cluster."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("run_study")
