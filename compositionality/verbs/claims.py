r"""The paper's claims compared with our results: our figures, intervals, a decision, and what would decide it.

Reads, for every seed, results.parquet of evaluate (strings; Countdown), of passk and of
failure_modes; the claims of what is not given are "not run". Writes OUTPUT (claims.json) and prints the
table. RESULTS/SEED:PATH names an input; RESULTS are the keys of results: in the claims' YAML.

    compositionality claims output=results/composition/claims.json results=[\
        accuracy/seed0:results/composition/seed0/section41_42/results.parquet,accuracy/seed1:results/composition/seed1/section41_42/results.parquet,\
        countdown/seed0:results/countdown/seed0/section43/results.parquet,passk/seed0:results/composition/seed0/section44/results.parquet]

Decisions: supported, contradicted, undecided (with about how many seeds or problems would decide it), not testable
(with the gate that fails), not run. A claim holds if all its comparisons do. Primary claims are decided after Holm's
procedure too. The claims are compositionality/config/claims/composition.yaml (claims=NAME or a path takes others);
stats/estimate.py says how the intervals are made. A table that is there follows its inputs.

registration=FOLDER, which bash/claims.sh gives where a study ran under one, marks each claim as primary, secondary or
exploratory (not registered). Registered files that changed since the study began are refused; with --post-hoc they are
taken, and what was changed is marked, claim by claim.
"""

from compositionality.config.profile import EntryPoint
from compositionality.evaluate.claims.run import ClaimsSettings, check, decide_claims

VERB = EntryPoint(ClaimsSettings, decide_claims, check)
