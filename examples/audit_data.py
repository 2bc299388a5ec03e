"""Say what problem files really hold, level by level: one table for each file, by its task.

Reads the problem files FILES (and AGAINST). Prints a table for each; writes OUT (JSON with a manifest) if given.
String: depth, unused inputs, no-ops, balance, lengths; dup = same expression and input; overlap = problems +
compositions shared with AGAINST; wrong = gold answers that do not come out, and inputs of another split or seed.
Countdown: every row is solved again; dup = same numbers and target; whole = solvable in whole steps; fewer do = some of
the numbers suffice; equal = with equal numbers; wrong = level, gold answer or stream is not what the row says.

    python examples/audit_data.py files=[data/test.parquet] against=[data/train.parquet] output=results/audit.json
"""

from compositionality.config.cli import run
from compositionality.data.audit import AuditData, audit_data

if __name__ == "__main__":
    run(AuditData, audit_data, __doc__)
