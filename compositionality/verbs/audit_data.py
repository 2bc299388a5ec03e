"""Say what problem files really hold, level by level: one table for each file, by its task.

Reads the problem files FILES (and AGAINST). Prints a table for each; writes OUTPUT (JSON with a manifest) if given.
For every task: dup = the same problem as an earlier row; overlap = problems + compositions shared with AGAINST; wrong =
level, gold answer or stream is not what the row says. The columns between are the task's.
String: unused inputs, no-ops, constants, real depth, lengths, balance of functions. Countdown: every row is solved
again; whole = solvable in whole steps; fewer do = some of the numbers suffice; equal = with equal numbers.

    compositionality audit_data files=[data/test.parquet] against=[data/train.parquet] output=results/audit.json
"""

from compositionality.config.profile import EntryPoint
from compositionality.data.audit import AuditData, audit_data, check

VERB = EntryPoint(AuditData, audit_data, check)
