"""What the scripts of ``bash/`` ask of a study: ``python -m compositionality.study QUESTION``.

``environment`` prints the variables of bash/env.sh; ``arm NAME`` what an arm of $SECTION is started with;
``models [NAME…]`` NAME:PATH,… of its arms (or those named) whose models are there; ``seeds [--made] PATH``
seedN:FOLDER/PATH,… of every seed (that has it). Reads the environment; writes nothing.
"""

import os
import sys

from compositionality.config.cli import with_errors_in_one_line
from compositionality.errors import UserError
from compositionality.study.arms import arm_start, find_arms, load_study, models_made, of_seeds
from compositionality.study.environment import as_shell, environment


def main(words: list[str]) -> None:
    """Print the answer to one question of the module's docstring. UserError for any other."""
    match words:
        case ["environment"]:
            print(as_shell(environment(os.environ)))
        case ["arm", name]:
            print(arm_start(load_study(os.environ["SECTION"]), name, os.environ))
        case ["models", *names]:
            print(",".join(models_made(find_arms(os.environ["SECTION"], names), os.environ)))
        case ["seeds", "--made", path]:
            print(",".join(of_seeds(path, os.environ, made=True)))
        case ["seeds", path]:
            print(",".join(of_seeds(path, os.environ, made=False)))
        case _:
            raise UserError("give environment, arm NAME, models [NAME ...] or seeds [--made] PATH")


if __name__ == "__main__":
    with_errors_in_one_line(lambda: main(sys.argv[1:]))
