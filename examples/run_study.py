"""Run a study: the scripts of bash/ for every seed and arm, side by side where there are cores, GPUs or a cluster.

Reads and writes what the scripts do ($DATA_DIR, $CKPT_DIR, $RESULTS_DIR; bash/env.sh has the variables), and
RESULTS_DIR/STUDY/times.tsv. What is there is not made again: stopped at any moment, the same command goes on. The first
script that fails ends those beside it, and its exit code is the result.

    python examples/run_study.py study=section41_42 profile=tiny seeds=3 summary=true
    python examples/run_study.py study=section41_42 profile=single arms=[rl-level2,rft] backend=slurm -- --force
    python examples/run_study.py scripts=["section44/collect stage1","section44/collect rl-level2"] profile=tiny

Words behind ``--`` go to every script and reach the steps that have their key; one that no step has is refused.
backend=ray runs each script as a task of a Ray cluster, backend=slurm each with sbatch; both need a file system that
all nodes see. --dry-run prints every command and runs nothing.
"""

import sys

from compositionality.config.cli import run
from compositionality.study.run import RunStudySettings, run_study

if __name__ == "__main__":
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    words = sys.argv[end + 1 :]
    del sys.argv[end:]
    run(RunStudySettings, lambda settings: run_study(settings, words), __doc__)
