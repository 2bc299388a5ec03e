"""Train a model on problems with GRPO, by verl (Ray, FSDP, vLLM).

Reads  lab.model (a model folder), lab.train_files and lab.val_file (problem files).
Writes lab.output/final (the trained model, a folder that every MODEL_PATH takes), best/ (the same of the best
checkpoint by validation), steps/ (checkpoints to resume from), metrics.jsonl, train.log and config.yaml beside them.
Run again, it goes on from the last checkpoint.

    python examples/train_grpo.py device=cpu lab.model=M lab.train_files=[a.parquet] \\
        lab.val_file=b.parquet lab.output=OUT
"""

from compositionality.config.training import run_trainer
from compositionality.train.verl.grpo import train

if __name__ == "__main__":
    run_trainer("grpo", train, __doc__)
