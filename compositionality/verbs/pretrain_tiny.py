"""Pretrain a small model from nothing: `compositionality pretrain_tiny output=checkpoints/tiny/base`.

Reads nothing. Writes OUTPUT/, a Hugging Face model folder (config, safetensors, tokenizer with chat template) with a
manifest; while it runs, its checkpoints and metrics lie beside it, and the same command continues there. On two cores,
two processes that share the rows of a batch (run.processes=2, or torchrun) are faster than two threads.
"""

from compositionality.config.profile import EntryPoint
from compositionality.train.engines import pretrain_tiny
from compositionality.train.tiny.settings import PretrainSettings, check

VERB = EntryPoint(PretrainSettings, pretrain_tiny, check)
