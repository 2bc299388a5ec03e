r"""What went wrong, by program: every judged response gets one class, and the shares by class get intervals.

Reads rollouts that are there already and the problem files that they answer; nothing is sampled. Writes
OUTPUT/labels.parquet (a row per response) and results.parquet (counts by problem); prints classes × models at one
level. The page of report draws them over all seeds, draw_figure figure=failure_modes in a file.

    compositionality failure_modes evaluation=results/composition/seed0/section41_42 output=results/section45 \
        problems=[data/composition/seed0/string_task/test_trained.parquet]

models=[base,rl-level2] levels=[2,3] narrow it down; rollouts=[NAME:FOLDER,…] takes folders of
collect_rollouts. judge=true: a language model judges too, at JUDGE_BASE_URL (any OpenAI-compatible server;
JUDGE_MODEL, JUDGE_API_KEY), about judge_responses answers of every model and problem file, and reports Cohen's kappa
between it and the program.
"""

from compositionality.config.profile import EntryPoint
from compositionality.evaluate.failures import FailureSettings, check, find_failures

VERB = EntryPoint(FailureSettings, find_failures, check)
