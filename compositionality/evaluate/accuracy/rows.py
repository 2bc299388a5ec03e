"""Accuracy of one evaluation's models: by level, by group, by skill, and of all problems, as rows of a table."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from compositionality.console import natural_key
from compositionality.evaluate.summary import by_problem
from compositionality.evaluate.table import REASON, REASONS
from compositionality.stats.estimate import difference, over_problems
from compositionality.types import COMPOSED, CORRECT, Estimate

ALL, LEVEL, GROUP, SKILL = "all", "level", "group", "skill"
"""What a row is about: a whole problem file, one group at one level of it, one of several groups at all its levels, or
the problems that ask for a skill."""
Row = dict[str, Any]


def accuracy_rows(rows: pd.DataFrame, skills: "pd.Series[Any] | None" = None) -> list[Row]:
    """Return rows by model; differences are to the first one, paired by problem. ``skills``: of each row's problem."""
    found = []
    for file, of_file in rows.groupby("file", sort=False):
        first = of_file["arm"].iloc[0]
        problems = of_file[of_file["arm"] == first]
        parts = list(_parts(problems, None if skills is None else skills.loc[problems.index]))
        base = problems.set_index("problem")
        for arm, of_arm in of_file.groupby("arm", sort=False):
            answers = of_arm.set_index("problem")
            for labels, numbers in parts:
                compared = None if arm == first else base.loc[numbers]
                found.append({"model": arm, "problems": file, **labels, **_figures(answers.loc[numbers], compared)})
    return found


def _parts(problems: pd.DataFrame, skills: "pd.Series[Any] | None") -> Iterator[tuple[Row, list[int]]]:
    """What rows are about, and the problems: all, each group and level, each of several groups, each skill."""
    names = dict.fromkeys(("group", "level", "data_source", "skill"))
    yield {"by": ALL, **names}, problems["problem"].tolist()
    for (group, level, source), part in problems.groupby(["group", "level", "data_source"]):
        yield {**names, "by": LEVEL, "group": group, "level": level, "data_source": source}, part["problem"].tolist()
    if problems["group"].nunique() > 1:
        for group, part in problems.groupby("group"):
            yield {**names, "by": GROUP, "group": group}, part["problem"].tolist()
    if skills is not None:
        each = problems.assign(skill=skills).explode("skill").dropna(subset=["skill"])
        for skill, part in sorted(each.groupby("skill"), key=lambda pair: natural_key(str(pair[0]))):
            yield {**names, "by": SKILL, "skill": skill}, part["problem"].tolist()


def _figures(answers: pd.DataFrame, base: pd.DataFrame | None) -> Row:
    values = {part: by_problem(answers, part) for part in (CORRECT, COMPOSED)}
    n = answers["n"].sum()
    found = {
        "accuracy": over_problems(*values[CORRECT]),
        "composed": over_problems(*values[COMPOSED]),
        "difference": None
        if base is None
        else over_problems(*difference((1, -1), [values[CORRECT], by_problem(base, CORRECT)]), low=-1),
    }
    return {
        **{key: value for name, estimate in found.items() for key, value in _columns(name, estimate).items()},
        "n_problems": len(answers),
        "n_responses": int(n),
        "mean_tokens": answers["tokens"].sum() / max(n, 1),
        **{f"share_{reason}": answers[REASON + reason].sum() / max(n, 1) for reason in REASONS},
    }


def _columns(name: str, estimate: Estimate | None) -> Row:
    prefix = "" if name == "accuracy" else f"{name}_"
    names = (name, f"{prefix}low", f"{prefix}high")
    return dict(zip(names, (estimate.value, *estimate.over_problems) if estimate else (None,) * 3, strict=True))
