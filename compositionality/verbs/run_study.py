"""Run a study: the scripts of bash/ for every seed and arm, side by side where there are cores, GPUs or a cluster.

Reads and writes what the scripts do, in {data,checkpoints,results}/STUDY/seedN (bash/env.sh has the variables), and
results/STUDY. What is there is not made again: stopped at any moment, the same command goes on. The first step that
fails ends those beside it, and its exit code is the result.

    compositionality run_study study=section41_42 profile=tiny seeds=3 report=true
    compositionality run_study study=section41_42 profile=single arms=[rl-level2,rft] backend=slurm
    compositionality run_study study=section41_42 profile=tiny rl-level2:optim.lr=1e-4 "rl-*:trainer.steps=50"
    compositionality run_study study=section41_42 profile=tiny print=list
    compositionality run_study registration=NAME

STEP:key=value sets a key of a step (a name or a pattern); it is checked before anything starts. print=list says why
each step would run (missing, older than what it reads, other settings); bash, make and json write the whole plan.
backend=ray runs each step as a task of a Ray cluster, backend=slurm each with sbatch; both need a file system that all
nodes see. --dry-run checks every step as its start would, in one process, and runs nothing.

registration=NAME runs what compositionality/config/registrations/NAME.yaml says, all of it and nothing else, once it is
committed; register=true before that writes into it the hashes of its claims, its recipe and its code; replicates=1 runs
the next that is not kept in results/records (bash/confirmatory.sh).
"""

import sys

from compositionality.config.cli import run
from compositionality.config.profile import EntryPoint
from compositionality.study.run import RunStudySettings, run_study
from compositionality.study.steps import IS_STEP_WORD

VERB = EntryPoint(RunStudySettings, run_study)


def main() -> None:
    """Run a study with the words of its steps, which are no keys."""
    words = [word for word in sys.argv[1:] if IS_STEP_WORD.match(word) or word == "--post-hoc"]
    sys.argv[1:] = [word for word in sys.argv[1:] if word not in (*words, "--")]
    run(RunStudySettings, lambda settings: run_study(settings, words), __doc__)
