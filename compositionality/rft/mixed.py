"""Problems of which a model solves some samples and not others, by its judged rollouts: RL can learn from these."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from compositionality.data.artefact import Recipe, check_target, exclusive, is_done, is_to_be_checked, new_artefact
from compositionality.data.parquet import write_table
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, Fraction, check_ranges
from compositionality.rollout.store import check_answers, read_by_problem
from compositionality.types import Reason

STEP = "filter_problems"


@dataclass
class FilterProblemsSettings:
    """Settings of ``filter_problems``."""

    rollouts: Path = REQUIRED  # folder of collect_rollouts, several completions a problem
    problems: Path = REQUIRED  # the problem file that they answer
    output: Path = REQUIRED  # the problems that are kept, a parquet file
    min_correct_ratio: Fraction = 0.0  # keep problems of which a larger share of completions is right …
    max_correct_ratio: Fraction = 1.0  # … and a smaller one than this
    force: bool = False  # replace a result that was made from something else


def filter_problems(settings: FilterProblemsSettings) -> Path:
    """Write ``output``, rows of ``problems`` as they are; print how many. UserError if none is left."""
    check(settings)
    output, recipe = settings.output, _recipe(settings)
    with exclusive(output):
        if is_done(output, recipe, force=settings.force):
            print(f"{output} is already there")
            return output
        problems, facts = read_problems(settings.problems), dict[str, Any]()
        kept = _kept(settings, problems.num_rows, facts)
        if not kept:
            raise UserError(
                f"{settings.rollouts}: of no problem more than {settings.min_correct_ratio:g} and less than "
                f"{settings.max_correct_ratio:g} of the completions are right; sample more, or loosen the limits"
            )
        with new_artefact(output, recipe, facts) as partial:
            write_table(problems.take(pa.array(kept)), partial)
    rest = f"never solved {facts['never']:,}, always {facts['always']:,}"
    print(f"{output}: {len(kept):,} of {facts['asked']:,} problems; {rest}")
    return output


def check(settings: FilterProblemsSettings, *, dry: bool = False) -> None:
    """UserError for limits that leave nothing, or rollouts of another problem file; ``dry``: of what is there."""
    check_ranges(settings)
    if settings.output.suffix != ".parquet":
        raise UserError(f"output={settings.output}: must end in .parquet")
    if settings.min_correct_ratio >= settings.max_correct_ratio:
        raise UserError(
            f"min_correct_ratio={settings.min_correct_ratio:g} max_correct_ratio={settings.max_correct_ratio:g}: "
            "the first must be below the second"
        )
    if not all(is_to_be_checked(path, dry=dry) for path in (settings.problems, settings.rollouts)):
        return
    check_answers(settings.rollouts, settings.problems)
    check_target(settings.output, _recipe(settings), force=settings.force)


def _recipe(settings: FilterProblemsSettings) -> Recipe:
    limits = {key: value for key, value in asdict(settings).items() if key.endswith("_ratio")}
    return Recipe(STEP, limits, {"rollouts": settings.rollouts, "problems": settings.problems})


def _kept(settings: FilterProblemsSettings, n_problems: int, facts: dict[str, Any]) -> list[int]:
    """Row numbers; completions on which the judge failed count for nothing."""
    kept, facts["asked"], facts["never"], facts["always"] = list[int](), 0, 0, 0
    for number, table in read_by_problem(settings.rollouts):
        if number >= n_problems:
            raise UserError(f"{settings.problems}: has no row {number}, which the rollouts name; give their file")
        judged = table.filter(pc.not_equal(table["reason"], Reason.ERROR))
        correct = pc.sum(pc.equal(judged["reason"], Reason.CORRECT)).as_py() or 0
        facts["asked"] += 1
        facts["never"] += correct == 0
        facts["always"] += correct == judged.num_rows > 0
        share = correct / judged.num_rows if judged.num_rows else 0.0
        if settings.min_correct_ratio < share < settings.max_correct_ratio:
            kept.append(number)
    return kept
