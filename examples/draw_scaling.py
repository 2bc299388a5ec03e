"""The figure of a scaling study.

Loss against what was spent, with fits and bands; predictions beside what was left out of them; slopes by size;
residuals; what each size needs for a loss.

Reads the scaling.json of examples/fit_scaling.py. Writes OUTPUT, a .png, .svg or .pdf
(without an ending .png).

    python examples/draw_scaling.py fits=results/scaling/scaling.json output=results/scaling/scaling
"""

from compositionality.config.cli import run
from compositionality.report.draw import ScalingFigureSettings, check_scaling, draw_scaling

if __name__ == "__main__":
    run(ScalingFigureSettings, draw_scaling, __doc__, check=check_scaling)
