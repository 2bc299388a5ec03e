"""Make one file of problems of any task; the task's options are keys of this command.

Reads nothing, or the files named in ``avoid`` (to refuse a leak). Writes OUTPUT (parquet, verl's RL schema) and its
manifest, .NAME.manifest.json beside it. ``--help`` with ``task=NAME mode=MODE`` lists the keys of that task.
``mode=clean`` gives sound problems by random access, ``mode=paper`` the paper's own (Countdown's need the full set-up).

    python examples/create_problems.py task=string output=data/train.parquet levels=[1,2] count=2000 seed=1
    python examples/create_problems.py task=string mode=paper output=data/level2.parquet stage=2 min_level=2 max_level=2
    python examples/create_problems.py task=countdown output=data/train.parquet levels=[3,4] count=2000 target=[1,99]
    python examples/create_problems.py task=countdown --help
"""

import sys

from compositionality.config.cli import run, with_errors_in_one_line
from compositionality.data.create_problems import check, create_problems, problem_settings


def main() -> None:
    """Read the settings of the task that the command names, and make the file."""
    settings = problem_settings(sys.argv[1:])
    run(settings, create_problems, f"{__doc__}\n{settings.__doc__}", check=check)


if __name__ == "__main__":
    with_errors_in_one_line(main)
