r"""Accuracy by level, with 95 % intervals, of any checkpoints on any problem files.

Reads model folders (models=[NAME:PATH,...]) or rollouts that are there (rollouts=[NAME:FOLDER,...]), and problem files.
Writes OUTPUT/results.parquet (a row per model and problem; columns: compositionality/evaluate/table.py), training.json
(what the training of each model did) and the judged answers behind them, OUTPUT/rollouts/MODEL/PROBLEMS/; prints the
tables by level, models side by side. A model that has not changed is not sampled again;
adding models to a table that is there is allowed, dropping some needs --force. levels=[1,2] per_level=64 take a part.
gold_log_probs=true adds the exact log-probability of the gold solution, whole and by step and role of the token, of the
first 200 problems of each level and group: one forward pass, no sampling; kept in OUTPUT/gold/MODEL/PROBLEMS.parquet.

    compositionality evaluate models=[base:checkpoints/base,rl:checkpoints/rl/final] \
        problems=[data/level1to8/test.parquet] output=results/accuracy n_samples=1 temperature=1.0

models and problems are lists of NAME:PATH or plain paths ("models=['base=PATH']" with both quotes works too).
Intervals: Wilson's; with n_samples > 1 on the number of independent samples that the spread between problems shows.
Differences to the first checkpoint are paired by problem. A verifier's failure counts neither as right nor as wrong.
"""

from compositionality.config.profile import EntryPoint
from compositionality.evaluate.accuracy import evaluate
from compositionality.evaluate.collect import EvaluationSettings, check

VERB = EntryPoint(EvaluationSettings, evaluate, check)
