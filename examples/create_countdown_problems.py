"""Make one file of Countdown problems: reach a target from given numbers; the level is how many numbers there are.

Reads nothing, or the files named in ``avoid`` (to refuse a leak). Writes OUTPUT (parquet, verl's RL schema) and
OUTPUT.manifest.json. ``mode=clean`` gives problems that an exact solver proved solvable, ``mode=paper`` the paper's own
(50,000 with ``levels=[2]``, 512 for each of ``levels=[3,4,5]``; needs the full set-up).

    python examples/create_countdown_problems.py output=data/train.parquet levels=[3,4] count=2000 seed=1
    python examples/create_countdown_problems.py output=data/tiny.parquet levels=[2] style=compact target=[1,99]
    python examples/create_countdown_problems.py output=data/train.parquet mode=paper levels=[2] count=50000
"""

from compositionality.config.cli import run
from compositionality.data.create_countdown_problems import CreateCountdownProblems, create_countdown_problems

if __name__ == "__main__":
    run(CreateCountdownProblems, create_countdown_problems, __doc__)
