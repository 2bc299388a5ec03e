r"""Ablations: accuracy at one level for base models that differ in one thing each, with 95 % intervals.

Reads base models made by examples/pretrain_tiny.py (what they were made of) and, under the same names, the
results.parquet of the studies that started from each, one for every seed. Writes OUTPUT (a .json) and prints the table.

    python examples/summarise_ablation.py bases=[whole:checkpoints/a/base,half:checkpoints/b/base] \
        inputs=[whole/seed0:results/a/results.parquet,half/seed0:results/b/results.parquet] \
        output=results/ablation.json level=3
"""

from compositionality.config.cli import run
from compositionality.evaluate.ablation import AblationSettings, check, summarise_ablation

if __name__ == "__main__":
    run(AblationSettings, summarise_ablation, __doc__, check=check)
