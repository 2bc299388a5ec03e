"""Does what is known of SFT models predict which gain from RL? Rank correlations over the arms, seed by seed.

Reads the results.parquet of every seed (examples/evaluate.py) and its folder of influences (MODEL/influence.parquet,
examples/influence.py). Arms are pairs of models called sft-NAME and rl-NAME. Writes OUTPUT (a .csv); prints, for the
influence, the share of mixed queries and the entropy, Spearman's correlation with the gain at the hardest level of each
group: mean over seeds, its interval, and p by permutation of the arms.

    python examples/rank_arms.py accuracy=[seed0:A/results.parquet,seed1:B/results.parquet] \
        influence=[seed0:A/influence,seed1:B/influence] output=results/ranks.csv
"""

from compositionality.config.cli import run
from compositionality.evaluate.ranks import RankSettings, check, rank_arms

if __name__ == "__main__":
    run(RankSettings, rank_arms, __doc__, check=check)
