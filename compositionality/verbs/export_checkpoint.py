"""Turn a checkpoint of verl into a model folder.

Reads  checkpoint: OUT/steps/global_step_N of an SFT or RL run.
Writes output: a Hugging Face folder with the same weights (dtype=bfloat16 halves it), checked, with a manifest.
"""

from compositionality.config.profile import EntryPoint
from compositionality.train.verl.export import ExportSettings, check, export_step

VERB = EntryPoint(ExportSettings, export_step, check)
