"""Send trainings to wandb afterwards, from their metrics.jsonl: those of machines that had no key or no network."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("send_to_wandb")
