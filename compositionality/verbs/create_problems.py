"""Make one file of problems of any task, or all files of a problem set; the task's options are keys of this command.

Reads nothing, or the files named in ``avoid`` (to refuse a leak). Writes OUTPUT (parquet, verl's RL schema) and its
manifest, .NAME.manifest.json beside it. ``--help`` with ``task=NAME mode=MODE`` lists the keys of that task.
``mode=clean`` gives sound problems by random access, ``mode=paper`` the paper's own (Countdown's need the full set-up).
``set=NAME`` makes those files of compositionality/config/problems/NAME.yaml that the folder OUTPUT does not have yet.

    compositionality create_problems task=string output=data/train.parquet levels=[1,2] count=2000 seed=1
    compositionality create_problems task=string mode=paper output=data/level2.parquet stage=2 min_level=2 max_level=2
    compositionality create_problems task=countdown output=data/train.parquet levels=[3,4] count=2000 target=[1,99]
    compositionality create_problems task=countdown --help
    compositionality create_problems set=string profile=tiny output=data/string_task files=[stage2_level2/train,test*]
"""

import sys

from compositionality.config.cli import run
from compositionality.config.problem_sets import ProblemSetSettings, check_problem_set, create_problem_set, set_settings
from compositionality.data.create_problems import check, create_problems


def main() -> None:
    """Read the settings of the task or the set that the command names, and make its files."""
    words = sys.argv[1:]
    settings = set_settings(words)
    doc = f"{__doc__}\n{settings.__doc__}"
    if issubclass(settings, ProblemSetSettings):
        run(settings, lambda _: create_problem_set(words), doc, check=lambda _: check_problem_set(words))
    run(settings, create_problems, doc, check=check)
