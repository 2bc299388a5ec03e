"""Send trainings to wandb afterwards, from their metrics.jsonl: those of machines that had no key or no network.

Reads run folders (recipe.json, metrics.jsonl), or all below a folder. Sends each as the run that it would have been.

    WANDB_API_KEY=KEY python examples/send_to_wandb.py runs=[checkpoints/composition]
"""

from compositionality.config.cli import run
from compositionality.train.log import SendSettings, check_runs, send_runs

if __name__ == "__main__":
    run(SendSettings, send_runs, __doc__, check=check_runs)
