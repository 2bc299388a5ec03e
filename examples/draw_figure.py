r"""Accuracy by level of every arm, with a dot for each seed: a panel for each group of problems, then the paper's.

Reads the results.parquet of every seed, made by examples/evaluate.py. Writes OUTPUT, a .png, .svg or .pdf (without an
ending .png), with a manifest that holds the hash of what it shows; a table that was altered is refused.

    python examples/draw_figure.py inputs=[seed0:results/composition/seed0/section41_42] \
        output=results/composition/section41_42/accuracy_by_level title="tiny profile"

models=[stage1,rl-level2] draws these arms only; arms={my-arm: {title: My arm, colour: "#0072B2"}} gives an arm its
title and colour. The paper's panel shows what its text states; other tasks have no such panel.
"""

from compositionality.config.cli import run
from compositionality.report.draw import FigureSettings, check, draw_accuracy

if __name__ == "__main__":
    run(FigureSettings, draw_accuracy, __doc__, check=check)
