"""Send trainings to wandb afterwards, from their metrics.jsonl: those of machines that had no key or no network.

Reads run folders (recipe.json, metrics.jsonl), or all below a folder. Sends each as the run that it would have been.

    WANDB_API_KEY=KEY compositionality send_to_wandb runs=[checkpoints/composition]
"""

from compositionality.config.profile import EntryPoint
from compositionality.train.log import SendSettings, check_runs, send_runs

VERB = EntryPoint(SendSettings, send_runs, check_runs)
