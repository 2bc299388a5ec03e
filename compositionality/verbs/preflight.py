"""Does a profile's study fit a machine? `compositionality preflight profile=paper gpus=8 gpu_memory_gb=80`.

Reads the profile and the base model's config (weights are not needed). Prints for every kind of step what it needs of a
GPU's memory, a node's memory and the disk, what is there (of this machine where it is not given), which settings to
lower, and one prompt as the model will see it. Exit code 2 if something does not fit. Calculated, nothing runs.
"""

from compositionality.config.profile import EntryPoint
from compositionality.study.preflight import PreflightSettings, forecast_of, preflight

VERB = EntryPoint(PreflightSettings, preflight, forecast_of)
