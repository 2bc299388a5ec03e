"""Pretrain the tiny model from nothing: `python examples/pretrain_tiny.py output=checkpoints/tiny/base`.

Reads nothing. Writes OUTPUT/, a Hugging Face model folder (config, safetensors, tokenizer with chat template) with a
manifest; while it runs, its progress lies beside it, and the same command continues there.
"""

from compositionality.config.cli import run
from compositionality.train.tiny.pretrain import PretrainSettings, pretrain

if __name__ == "__main__":
    run(PretrainSettings, pretrain, __doc__)
