"""Rollouts boiled down to counts per problem: all that accuracy needs, whatever the number of samples."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compositionality.errors import UserError
from compositionality.stats.intervals import Counts
from compositionality.tasks import Reason

REASONS = tuple(reason.value for reason in Reason)
_CORRECT, _ERROR = REASONS.index(Reason.CORRECT), REASONS.index(Reason.ERROR)


@dataclass(frozen=True)
class Tally:
    """Counts for P problems: responses by reason (P, R) and tokens (P,)."""

    reasons: Counts
    tokens: Counts

    @property
    def correct(self) -> Counts:
        """Correct responses."""
        return self.reasons[:, _CORRECT]

    @property
    def judged(self) -> Counts:
        """Responses with a verdict; a verifier's failure is none."""
        judged: Counts = self.reasons.sum(axis=1) - self.reasons[:, _ERROR]
        return judged

    def only(self, problems: Counts) -> "Tally":
        """The tally of some of the problems, by row number."""
        return Tally(self.reasons[problems], self.tokens[problems])

    @property
    def responses(self) -> int:
        """All responses."""
        return int(self.reasons.sum())

    def shares(self) -> dict[str, float]:
        """Share of every reason among all responses."""
        return {
            reason: float(count) / max(self.responses, 1)
            for reason, count in zip(REASONS, self.reasons.sum(axis=0), strict=True)
        }

    def mean_tokens(self) -> float:
        """Mean length of a response in tokens."""
        return float(self.tokens.sum()) / max(self.responses, 1)


def tally(shards: Iterable[pa.Table], n_problems: int) -> Tally:
    """Count the rows of a rollout folder, shard by shard."""
    reasons = np.zeros((n_problems, len(REASONS)), np.int64)
    tokens = np.zeros(n_problems, np.int64)
    for shard in shards:
        problem = shard["problem"].to_numpy()
        reason = pc.index_in(shard["reason"], pa.array(REASONS))
        if reason.null_count or (len(problem) and not 0 <= problem.min() <= problem.max() < n_problems):
            raise UserError("the rollouts name a problem or a verdict that is unknown; collect them again")
        np.add.at(reasons, (problem, reason.to_numpy()), 1)
        np.add.at(tokens, problem, shard["tokens"].to_numpy())
    return Tally(reasons, tokens)
