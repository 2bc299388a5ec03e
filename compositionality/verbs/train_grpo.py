"""Train a model on problems with GRPO: engine=single (one readable file) or engine=verl (verl, Ray and vLLM).

Reads  model.path (a model folder or a Hub id), data.train_files and data.val_files (problem files).
Writes trainer.output/final (the trained model, a folder that every MODEL_PATH takes), best/ (the same of the best
checkpoint by validation), steps/ (checkpoints to resume from) and metrics.jsonl; with verl also train.log and
config.yaml. Run again, it goes on from the last checkpoint.

    compositionality train_grpo engine=single model.path=M data.train_files=[a.parquet] \\
        data.val_files=[b.parquet] trainer.output=OUT
"""

from compositionality.config.profile import EntryPoint
from compositionality.train.engines import show_verl, train_grpo
from compositionality.train.grpo_settings import GrpoSettings

VERB = EntryPoint(GrpoSettings, train_grpo, show=show_verl)
