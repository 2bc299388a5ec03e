"""Pretrain a small model from scratch: `compositionality pretrain_tiny output=checkpoints/tiny/base`."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("pretrain_tiny")
