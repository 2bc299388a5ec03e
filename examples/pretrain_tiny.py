"""Pretrain a small model from nothing: `python examples/pretrain_tiny.py output=checkpoints/tiny/base`.

Reads nothing. Writes OUTPUT/, a Hugging Face model folder (config, safetensors, tokenizer with chat template) with a
manifest; while it runs, its checkpoints and metrics lie beside it, and the same command continues there. On two cores,
two processes that share the rows of a batch (run.processes=2, or torchrun) are faster than two threads.
"""

from compositionality.config.cli import run
from compositionality.train.engines import pretrain_tiny
from compositionality.train.tiny.settings import PretrainSettings, check

if __name__ == "__main__":
    run(PretrainSettings, pretrain_tiny, __doc__, check=check)
