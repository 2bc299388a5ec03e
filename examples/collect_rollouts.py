"""Sample n_samples completions of every problem and judge them.

Reads a problem file (parquet) and a model: a folder or a Hub id (owner/name), or what a server serves
(engine=openai base_url=…).
Writes OUTPUT/shard-*.parquet, one row per completion, and OUTPUT/manifest.json; prints accuracy by group and level.
Started again after a kill, it resumes with the first missing shard.

    python examples/collect_rollouts.py problems=data/p.parquet model=checkpoints/m output=data/rollouts n_samples=16
"""

from compositionality.config.cli import run
from compositionality.rollout.collect import collect
from compositionality.rollout.settings import CollectSettings

if __name__ == "__main__":
    run(CollectSettings, collect, __doc__)
