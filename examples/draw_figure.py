"""Draw one figure: accuracy by level of every arm, a run along its checkpoints, failure modes, scaling laws …"""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("draw_figure")
