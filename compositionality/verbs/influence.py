"""Per-step influence: which queries teach a model most, to first order (Cen et al., arXiv 2505.18917).

Reads a model, a problem file and a folder of the model's completions of it, several a problem. Writes
OUTPUT/influence.parquet (for each query: correct completions, length of its update, what a step of rate 1 on it changes
in the mean objective of all queries, of the others) and OUTPUT/influence.json (means, also by accuracy).

    compositionality collect_rollouts model=CKPT problems=data/train.parquet output=results/rollouts n_samples=8
    compositionality influence model=CKPT problems=data/train.parquet rollouts=results/rollouts output=results/teach

Gradients are exact by default, which takes memory for one for each query; for models above some million parameters
projection.kind=sketch (all weights) or lora (attention, as the paper does) keeps projection.size numbers of each.
"""

from compositionality.analysis.influence import InfluenceSettings, check, measure_influence
from compositionality.config.profile import EntryPoint

VERB = EntryPoint(InfluenceSettings, measure_influence, check)
