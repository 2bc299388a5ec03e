r"""pass@k of checkpoints for every k: unbiased, with 95 % intervals, paired differences, and where curves cross.

Reads problem files and model folders (sampled here: models=[NAME:PATH,...]) or rollout folders of collect_rollouts
(rollouts=[NAME:FOLDER,...], all on the one problem file given). Writes OUTPUT/results.parquet (counts of every
problem, from which any pass@k follows: stats/pass_at_k.py), the problems sampled where they are a part of a file
(OUTPUT/problems/) and the judged answers, OUTPUT/rollouts/MODEL/PROBLEMS/. Killed and started again it goes on.

    compositionality passk models=[base:checkpoints/base,rl:checkpoints/rl/final] problems=[data/test.parquet] \
        output=results/passk n_samples=1000 levels=[1,2,3] per_level=64

Before sampling it prints which differences so many problems and samples can show, and how many answers are missing
(plan=true: then it stops). Differences are to the first checkpoint (or pairs=[MODEL:BASE,...]). A verifier's failure is
a missing sample: curves end at the fewest samples that a problem has. Checkpoints sampled in different ways, samples
that are missing or there twice: refused.
"""

from compositionality.config.profile import EntryPoint
from compositionality.evaluate.passk import PasskSettings, check, passk

VERB = EntryPoint(PasskSettings, passk, check)
