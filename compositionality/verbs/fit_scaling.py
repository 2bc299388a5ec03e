"""Scaling laws: fit the loss against model size and what training took, and predict what was left out of a fit.

Reads evaluations of runs, of at least three sizes for most laws, for intervals of several runs a size: CSV files with
columns run, size, step, loss or accuracy, and the resource (flops, prompts …); folders of train_grpo.py.
Writes OUTPUT/scaling.json (parameters with bootstrap intervals over runs, R² of each size, AIC, errors of predictions)
and scaling_points.csv; prints the table. Nothing is fitted to what is predicted: the largest size and the later steps.

    compositionality fit_scaling points=[runs.csv] resource=flops output=results/scaling
    compositionality fit_scaling points=[small-0:checkpoints/a/rl,large-0:checkpoints/b/rl] resource=prompts \
        metric=val-core/string-level2/acc/mean@1 output=results/scaling
"""

from compositionality.analysis.scaling import ScalingSettings, chosen_laws, fit_scaling
from compositionality.config.profile import EntryPoint

VERB = EntryPoint(ScalingSettings, fit_scaling, chosen_laws)
