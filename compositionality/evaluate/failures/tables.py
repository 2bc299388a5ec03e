"""The tables of failure classes on the screen."""

from typing import Any

import pandas as pd
from rich.console import Console

from compositionality.evaluate.frames import rich_table
from compositionality.evaluate.results import Results
from compositionality.evaluate.summary import share
from compositionality.evaluate.tables import COMPOSES
from compositionality.types import COMPOSED, FAILURES, Estimate, Failure


def print_failures(results: Results, faults: pd.DataFrame, level: int, console: Console) -> None:
    """Classes by model for every set of problems of this level; what else is known of wrong responses."""
    for problems in (one for one in results.sets if one.level == level):
        about = f"{problems.file}, level {level}: % of responses [95 % interval], {results.size(problems)} problems"
        console.print(f"\n{about}")
        cells = {arm: [share_text(share(results, arm, problems, name)) for name in FAILURES] for arm in results.arms}
        console.print(rich_table(pd.DataFrame(cells, [name.replace("_", " ") for name in FAILURES]), "class"))
        handed_on = {arm: share(results, arm, problems, COMPOSED) for arm in results.arms}
        _print_line(console, COMPOSES, {arm: one.value for arm, one in handed_on.items() if one})
        slips = faults[
            (faults["file"] == problems.file) & (faults["group"] == problems.group)
            & (faults["class"] == Failure.ATOMIC) & (faults["fault"] == "miscopied")
        ]  # fmt: skip
        told = "atomic error by miscopying the string of the step before"
        _print_line(console, told, dict(zip(slips["arm"], slips["value"], strict=True)))


def _print_line(console: Console, what: str, shares: dict[str, float]) -> None:
    console.print(f"% {what}: {', '.join(f'{arm} {100 * value:.1f}' for arm, value in shares.items()) or 'none'}")


def share_text(estimate: Estimate | None) -> str:
    """A share in percent with its interval."""
    if estimate is None:
        return "–"
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.0f}–{100 * estimate.high:.0f}]"


def print_agreement(judge: dict[str, Any], console: Console) -> None:
    """How far a judge model agrees with the program."""
    kappa = "undefined" if judge["kappa"] is None else "{kappa:.2f} [{low:.2f}, {high:.2f}]".format(**judge)
    agreed = "–" if judge["agreement"] is None else f"{100 * judge['agreement']:.1f} %"
    console.print(
        f"\njudge {judge['model']}: {judge['n']} responses, agreement {agreed}, Cohen's kappa {kappa}, "
        f"{judge['malformed']} malformed answers left out"
    )
