"""Fine-tune a model on chat rows: engine=single (one readable file) or engine=verl (verl's SFT trainer).

Reads  model.path (a model folder or a Hub id), data.train_files and data.val_files: parquet or JSON lines with a column
``messages``, or ``prompt`` and ``response``, each text or turns (other names: data.messages_key, data.prompt_key …).
Writes trainer.output/final (the trained model, a folder that every MODEL_PATH takes), steps/ (checkpoints to resume
from) and metrics.jsonl; with verl also train.log and config.yaml. Run again, it goes on from the last checkpoint.

    compositionality train_sft engine=single model.path=M data.train_files=[rows.parquet] trainer.output=OUT
"""

from compositionality.config.profile import EntryPoint
from compositionality.train.engines import show_verl, train_sft
from compositionality.train.sft_settings import SftSettings

VERB = EntryPoint(SftSettings, train_sft, show=show_verl)
