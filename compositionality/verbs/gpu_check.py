"""Check a machine: set-up, both engines in small runs, tokens per second, MFU, memory. bash/gpu_check.sh runs it.

Reads  model: a real model to check beside the one made here (optional).
Writes output: a record (JSON, without host name or paths); logs: what every step printed. Prints a table.

The exit code is 1 if a step failed; the others are run all the same.
"""

from compositionality.config.profile import EntryPoint
from compositionality.report.gpu_check import GpuCheckSettings, check, gpu_check

VERB = EntryPoint(GpuCheckSettings, gpu_check, check)
