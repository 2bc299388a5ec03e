"""Turn a checkpoint of verl into a model folder.

Reads  checkpoint: OUT/steps/global_step_N of an SFT or RL run.
Writes output: a Hugging Face folder with the same weights (dtype=bfloat16 halves it), checked, with a manifest.
"""

from compositionality.config.cli import run
from compositionality.train.verl.export import ExportSettings, check, export_step

if __name__ == "__main__":
    run(ExportSettings, export_step, __doc__, check=check)
