"""Fine-tune a model on chat rows: engine=single (one readable file) or engine=verl (verl's SFT trainer)."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("train_sft")
