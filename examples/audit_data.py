"""Say what problem files really hold, level by level: depth, unused inputs, no-ops, balance, lengths, overlaps.

Reads the problem files FILES (and AGAINST). Prints a table for each; writes OUT (JSON with a manifest) if given.
Columns: dup = same expression and input; overlap = problems + compositions shared with AGAINST;
wrong = gold answers that do not come out, and inputs that belong to another split or seed.

    python examples/audit_data.py files=[data/test.parquet] against=[data/train.parquet] output=results/audit.json
"""

from compositionality.config.cli import run
from compositionality.data.audit import AuditData, audit_data

if __name__ == "__main__":
    run(AuditData, audit_data, __doc__)
