r"""A problem file as an environment of verifiers: this module's name is the environment's id.

Needs `pip install 'verifiers>=0.4'` and uv. Put it on PYTHONPATH, or copy it into your own package:

    export PYTHONPATH=examples/adapters
    vf-eval verifiers_problems -n 20 --env.taskset.problems data/composition/seed0/string_task/test_heldout.parquet \
        --env.agent.runtime.type subprocess --model MODEL --client.base-url URL \
        --client.api-key-var OPENAI_API_KEY --no-push

NullHarness, a plain chat without tools, is exported so that it replaces verifiers' default, a coding agent.
"""

from compositionality.adapters.verifiers_env import ProblemTaskset  # first, as it says how to install verifiers

# isort: split
from verifiers.v1.harnesses.null import NullHarness

__all__ = ["NullHarness", "ProblemTaskset"]
