r"""A figure of its own: accuracy by level of every arm, a run along its checkpoints, failure modes, scaling laws …

figure=accuracy (default): a panel for each group of problems, a dot for each seed, then what the paper's text states.
Reads the results.parquet of every seed, made by evaluate.
figure=checkpoints: the probability of each part of the gold solution along a run, from evaluate with
gold_log_probs=true models=[NAME:RUN/steps] (a run with trainer.save_every=5 trainer.keep=99).
figure=failure_modes or functions: reads the folders of failure_modes.
figure=scaling: loss against what was spent, with fits and bands; predictions beside what was left out of them; slopes,
residuals, what each size needs for a loss. Reads the scaling.json of fit_scaling.

Writes OUTPUT, a .png, .svg or .pdf (without an ending .png), with a manifest that holds the hash of what it shows; a
table that was altered is refused.

    compositionality draw_figure inputs=[seed0:results/composition/seed0/section41_42] \
        output=results/composition/section41_42/accuracy_by_level title="tiny profile"
    compositionality draw_figure figure=scaling inputs=[results/scaling/scaling.json] output=results/scaling/scaling

models=[stage1,rl-level2] draws these arms only; arms={my-arm: {title: My arm, colour: "#0072B2"}} gives an arm its
title and colour.
"""

from compositionality.config.profile import EntryPoint
from compositionality.report.draw import FigureSettings, check, draw_figure

VERB = EntryPoint(FigureSettings, draw_figure, check)
