r"""Write a task's own solutions as training data for SFT, plain or with behaviours injected (Behavior Injection).

Reads a problem file. Writes OUTPUT/train.parquet (chat messages) and a manifest. All files from the same problems hold
the same problems in the same order: arms that differ in what is injected are paired.

    compositionality write_solutions problems=data/igsm/sft.parquet output=data/igsm/vanilla
    compositionality write_solutions problems=data/igsm/sft.parquet output=data/igsm/bridge \
        subgoals=true analysis=2 reflection=0.1
    compositionality write_solutions problems=data/igsm/sft.parquet output=data/igsm/pp-aug prompt_orders=4

Behaviours: subgoals (a step one operation at a time), analysis (the problem's words are repeated: levels 0 to 4, or
analysis_chance), reflection (something is tried that cannot be known yet, and left for later). padded=true: neutral
text instead, as much. prompt_orders, solution_orders: so many rows of each problem, in other orders. tags=true: as a
thought and an answer, for a model whose chat template asks for <think> and <answer> (behavior_injection/think.jinja).
"""

from compositionality.config.profile import EntryPoint
from compositionality.rft.solutions import SolutionSettings, check, write_solutions

VERB = EntryPoint(SolutionSettings, write_solutions, lambda settings: check(settings, dry=True))
