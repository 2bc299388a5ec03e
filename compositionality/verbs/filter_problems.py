"""Keep the problems that a model solves in some samples and not in others.

Reads a problem file and a folder of a model's rollouts of it, several a problem. Writes the problems of which more than
min_correct_ratio (0) and less than max_correct_ratio (1) of the completions are right, rows as they were.

    compositionality collect_rollouts model=CKPT problems=data/rl.parquet output=results/rollouts n_samples=8
    compositionality filter_problems rollouts=results/rollouts problems=data/rl.parquet output=data/rl_mixed.parquet
"""

from compositionality.config.profile import EntryPoint
from compositionality.rft.filter import FilterProblemsSettings, check_problems, filter_problems

VERB = EntryPoint(FilterProblemsSettings, filter_problems, lambda settings: check_problems(settings, dry=True))
