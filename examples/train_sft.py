"""Fine-tune a model on chat rows with verl's SFT trainer.

Reads  lab.model (a model folder) and lab.train_file (parquet, column ``messages``; lab.val_file likewise).
Writes lab.output/final (the trained model, a folder that every MODEL_PATH takes), steps/ (checkpoints to resume
from), metrics.jsonl, train.log and config.yaml beside it. Run again, it goes on from the last checkpoint.

    python examples/train_sft.py device=cpu lab.model=M lab.train_file=rows.parquet lab.output=OUT optim.lr=1e-3
"""

from compositionality.config.training import run_trainer
from compositionality.train.verl.sft import train

if __name__ == "__main__":
    run_trainer("sft", train, __doc__)
