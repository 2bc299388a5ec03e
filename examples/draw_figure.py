r"""The figure: accuracy by level of every arm, trained and held-out functions, beside the paper's own figures.

Reads the seeds.json of examples/summarise_seeds.py. Writes OUTPUT.png (1200 pixels wide) and OUTPUT.svg, each with a
manifest that holds the hash of what it shows; a seeds.json that was altered is refused.

    python examples/draw_figure.py seeds=results/tiny/section41_42/seeds.json \
        output=results/tiny/section41_42/accuracy_by_level title="tiny profile"

models=[stage1,rl-level2] draws these arms only. The paper's panel holds what its text states, no more.
"""

from compositionality.config.cli import run
from compositionality.report.draw import FigureSettings, draw_accuracy

if __name__ == "__main__":
    run(FigureSettings, draw_accuracy, __doc__)
