"""Pretrain a small model from nothing: `python examples/pretrain_tiny.py output=checkpoints/tiny/base`.

Reads nothing. Writes OUTPUT/, a Hugging Face model folder (config, safetensors, tokenizer with chat template) with a
manifest; while it runs, its checkpoints and metrics lie beside it, and the same command continues there. On two cores,
two processes that share the rows of a batch are faster than two threads:

    torchrun --standalone --nproc_per_node=2 examples/pretrain_tiny.py output=checkpoints/tiny/base
"""

from compositionality.config.cli import run
from compositionality.train.tiny.pretrain import PretrainSettings, pretrain

if __name__ == "__main__":
    run(PretrainSettings, pretrain, __doc__)
