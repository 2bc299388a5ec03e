"""What the scripts of ``bash/`` ask of a study: ``python -m compositionality.study QUESTION``.

``environment`` prints the variables of bash/env.sh; ``arm NAME`` what an arm of $SECTION is started with; ``budget
NAME`` how many completions that arm may sample in all, ``problems NAME`` how many problems RL asks in it, ``length
NAME`` how long an iteration of it trains, ``length_like RUN updates|tokens`` the same as that run's; ``rates
ACCURACY.JSON…`` which learning rate is chosen; ``models [NAME…]`` NAME:PATH,… of its arms (or those named) whose
models are there; ``seeds PATH`` seedN:FOLDER/PATH,… of every seed; ``results [NAME FOLDER PATH]…``
NAME/seedN:FOLDER/PATH,… of every seed that has it; ``left_out SCRIPT [WORD…]`` which of the words the steps of a
script do not know; ``runs`` NAME:PATH,… of every training, ``sizes`` NAME:FOLDER,… of those of scaling laws.
``recipes`` refuses seeds that differ in more than their seeds. Reads the environment; writes nothing.
"""

import os
import sys
from pathlib import Path

from compositionality.config.cli import with_errors_in_one_line
from compositionality.errors import UserError
from compositionality.study.arms import (
    arm_start,
    as_list,
    find_arms,
    load_study,
    models_made,
    of_seeds,
    runs_of_seeds,
    runs_of_sizes,
)
from compositionality.study.budgets import budget, length_like, length_words, problems_asked
from compositionality.study.environment import as_shell, environment
from compositionality.study.overrides import left_out, steps_of
from compositionality.study.rates import choice
from compositionality.study.recipes import check_recipes


def main(words: list[str]) -> None:
    """Print the answer to one question of the module's docstring. UserError for any other."""
    match words:
        case ["environment"]:
            print(as_shell(environment(os.environ)))
        case ["arm", name]:
            print(arm_start(load_study(os.environ["SECTION"]), name, os.environ))
        case ["budget", name]:
            print(budget(os.environ, load_study(os.environ["SECTION"]), name))
        case ["problems", name]:
            print(problems_asked(os.environ, load_study(os.environ["SECTION"]), name))
        case ["length", name]:
            print(length_words(os.environ, load_study(os.environ["SECTION"]), name))
        case ["length_like", run, unit]:
            print(length_like(Path(run), unit, os.environ))
        case ["rates", *paths]:
            print(choice(paths))
        case ["models", *names]:
            print(as_list(models_made(find_arms(os.environ["SECTION"], names), os.environ)))
        case ["seeds", path]:
            print(as_list(of_seeds(os.environ["RESULTS_DIR"], path, os.environ, made=False)))
        case ["results", *words] if len(words) % 3 == 0:
            found = zip(*[iter(words)] * 3, strict=True)
            made = ((name, of_seeds(folder, path, os.environ, made=True)) for name, folder, path in found)
            print(as_list(f"{name}/{seed}" for name, seeds in made for seed in seeds))
        case ["runs"]:
            print(as_list(runs_of_seeds(os.environ)))
        case ["sizes"]:
            print(as_list(runs_of_sizes(os.environ)))
        case ["recipes"]:
            check_recipes(os.environ)
        case ["left_out", script, *words]:
            print(left_out(words, steps_of(("bash", script, *words), os.environ), os.path.relpath(script)))
        case _:
            raise UserError(f"{' '.join(words)}: no such question; compositionality/study/__main__.py names them all")


if __name__ == "__main__":
    with_errors_in_one_line(lambda: main(sys.argv[1:]))
