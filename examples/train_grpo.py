"""Train a model on problems with GRPO: engine=single (one readable file) or engine=verl (verl, Ray and vLLM)."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("train_grpo")
