"""Ask a model every problem n_samples times and judge the answers.

Reads a problem file (parquet) and a model folder (or a server: engine=openai base_url=…).
Writes OUTPUT/shard-*.parquet, one row per answer, and OUTPUT/manifest.json; prints accuracy by level.
Killed and started again it goes on where it was.

    python examples/collect_rollouts.py problems=data/p.parquet model=checkpoints/m output=data/rollouts n_samples=16
"""

from compositionality.config.cli import run
from compositionality.rollout.collect import collect
from compositionality.rollout.settings import CollectSettings

if __name__ == "__main__":
    run(CollectSettings, collect, __doc__)
