"""Make one file of string problems.

Reads nothing, or the files named in ``avoid`` (to refuse a leak). Writes OUTPUT (parquet, verl's RL schema) and
OUTPUT.manifest.json. ``mode=paper`` gives the original's very problems, ``mode=clean`` sound ones.

    python examples/create_string_problems.py output=data/train.parquet levels=[1,2] count=2000 seed=1
    python examples/create_string_problems.py output=data/level2.parquet mode=paper stage=2 min_level=2 max_level=2
"""

from compositionality.config.cli import run
from compositionality.data.create_string_problems import CreateStringProblems, create_string_problems

if __name__ == "__main__":
    run(CreateStringProblems, create_string_problems, __doc__)
