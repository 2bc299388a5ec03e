"""Check a machine: set-up, both engines in small runs, tokens per second, MFU, memory. bash/gpu_check.sh runs it.

Reads  model: a real model to check beside the one made here (optional).
Writes output: a record (JSON, without host name or paths); logs: what every step printed. Prints a table.

The exit code is 1 if a step failed; the others are run all the same.
"""

from compositionality.config.cli import run
from compositionality.report.gpu_check import GpuCheckSettings, check, gpu_check

if __name__ == "__main__":
    run(GpuCheckSettings, gpu_check, __doc__, check=check)
