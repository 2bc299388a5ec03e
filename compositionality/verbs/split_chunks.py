"""Cut a problem file into shuffled chunks, one for each iteration of rejection fine-tuning.

Reads a problem file. Writes a folder with 0.parquet, 1.parquet … that share no row, and a manifest.

    compositionality split_chunks problems=PROBLEMS.parquet output=FOLDER chunks=6 rows_per_chunk=8000

With rollout_budget=N instead of rows_per_chunk, all chunks together sample at most N responses at n_samples per
problem: the way to give RFT as many rollouts as RL had (steps x prompts per step x group size). With prompts_of=RUN the
problems are those that a finished run of RL was asked, in its order.
"""

from compositionality.config.profile import EntryPoint
from compositionality.rft.tables import ChunkSettings, check_chunks, split_chunks

VERB = EntryPoint(ChunkSettings, split_chunks, lambda settings: check_chunks(settings, dry=True))
