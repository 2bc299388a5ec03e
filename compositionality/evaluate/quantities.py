"""Quantities of a scaling.json (``examples/fit_scaling.py``) in the form in which claims read evaluations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compositionality.data.artefact import verify
from compositionality.data.json_files import check_shape, read_json_object
from compositionality.errors import UserError
from compositionality.evaluate.evaluations import Evaluation, Evaluations, ProblemSet
from compositionality.evaluate.naming import named_paths, with_run_names
from compositionality.types import ALL_LEVELS, Estimate, Interval

MAKER = "examples/fit_scaling.py"
MADE_BY = "fit_scaling"
GROUP = "scaling"
"""Group of problems under which claims find them."""


@dataclass(frozen=True)
class Fitted(Evaluation):
    """The runs of all seeds together."""

    @property
    def tables(self) -> dict[str, Path]:
        """The file itself."""
        return {self.folder.name: self.folder}

    def size(self, problems: ProblemSet) -> int:  # noqa: ARG002
        """It has no problems of its own."""
        return 0


@dataclass(frozen=True)
class Quantities(Evaluations):
    """``models``: names of quantities; ``runs``: of a size. Their intervals are over runs."""

    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    runs: int = 1

    @property
    def n_seeds(self) -> int:
        """How many runs a size has."""
        return self.runs

    def share(self, model: str, problems: ProblemSet, part: str = "") -> Estimate | None:  # noqa: ARG002
        """The quantity ``model``; None for one that is no result."""
        return self.estimates.get(model)

    def why_not(self, model: str) -> str:
        """Why a quantity is no result; empty: it is one."""
        return self.reasons.get(model, "")


def read_quantities(inputs: Sequence[str]) -> Quantities:
    """From one ``NAME:PATH`` of a scaling.json. UserError for several, and for a file that is damaged or altered."""
    named = named_paths("inputs", with_run_names(inputs))
    if len(named) != 1:
        raise UserError(f"{', '.join(inputs)}: one fit has the runs of all seeds; give one scaling.json")
    ((name, given),) = named.items()
    path = Path(given)
    again = f"run {MAKER} again"
    if not path.is_file():
        raise UserError(f"{path}: missing; run {MAKER}")
    manifest = verify(path)
    if manifest.step != MADE_BY:
        raise UserError(f"{path}: was not made by {MAKER}")
    content = read_json_object(path, again)
    check_shape(content, {"runs_of_a_size": int, "quantities": {"name": str, "reason": str}}, path, again)
    rows = content["quantities"]
    estimates = {
        row["name"]: Estimate(row["value"], 0, interval := Interval(row["low"], row["high"]), interval)
        for row in rows
        if not row["reason"]
    }
    reasons = {row["name"]: row["reason"] for row in rows if row["reason"]}
    fitted = Fitted(name, path, {}, {}, {})
    problems = ProblemSet(GROUP, GROUP, ALL_LEVELS)
    names = tuple(row["name"] for row in rows)
    return Quantities((fitted,), names, (problems,), None, estimates, reasons, content["runs_of_a_size"])
