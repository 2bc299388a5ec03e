r"""Accuracy by level over several seeds, and the differences between the arms.

Reads the results.parquet of every seed, made by evaluate. Writes OUTPUT (a .csv: a row for each share, and
for each difference to another arm, base); prints the tables, with the differences to the first arm.

    compositionality summarise_seeds output=results/composition/section41_42/summary.csv \
        inputs=[seed0:results/composition/seed0/section41_42,seed1:results/composition/seed1/section41_42]

Seeds that answered other problems, or were sampled with other settings than the seed, are refused. Two intervals, both
95 %: over problems (these seeds), and over seeds and problems; compositionality/stats/estimate.py says how.
models=[stage1,rl-level2] takes these arms only, in that order. Inputs called VARIANT/NAME:FOLDER are summarised variant
by variant, with a column variant in OUTPUT. A summary that is there follows its inputs. influence=[seed0:FOLDER,…],
folders with MODEL/influence.parquet of influence, ranks models called sft-NAME and rl-NAME: by influence,
share of mixed queries and entropy before RL, and by their gain at the hardest level. ranks.csv has Spearman's
correlations, and p by permutation of the arms. claims says what all this means for the paper's claims.
"""

from compositionality.config.profile import EntryPoint
from compositionality.evaluate.seeds import SummariseSettings, check, summarise

VERB = EntryPoint(SummariseSettings, summarise, check)
