r"""Keep the correct responses of a rollout as training data for SFT.

Reads one or more rollout folders and their problem file. Writes a folder with train.parquet and
test.parquet (chat messages; no prompt is in both) and a manifest that says what was dropped and why.

    compositionality filter_rollouts rollouts=[ROLLOUTS,...] problems=PROBLEMS.parquet output=FOLDER \
        hide_definitions=true max_correct_ratio=1.0 max_per_prompt=4 val_prompts=128

max_correct_ratio: a prompt with at least this share of correct responses is dropped (1.0: only those that are
always solved; null: none). hide_definitions takes the functions' definitions out of the prompts (Stage 1).
max_tokens limits the response; max_length, with tokenizer=MODEL_PATH, the whole chat. val_prompts (or, without it,
val_fraction) prompts make up test.parquet, of n kept ones at most n - 1; 0, or one kept prompt, writes none. The rules
are applied in this order: unfinished, not correct, too easy, too long, end-of-turn text inside, characters that the
tokenizer does not write back (always of half-written ones, U+FFFD), duplicate, over the cap.
"""

from compositionality.config.profile import EntryPoint
from compositionality.rft.filter import FilterSettings, check_rollouts, filter_rollouts

VERB = EntryPoint(FilterSettings, filter_rollouts, lambda settings: check_rollouts(settings, dry=True))
