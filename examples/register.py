"""A registration: what a confirmatory study will decide, committed before its first test problem is made.

Write compositionality/config/registrations/NAME.yaml by hand (composition-2.yaml is one). This adds the hashes of the
claims' file and of the recipe; commit the file then, and bash/confirmatory.sh runs the study. With --check nothing is
written: refused is what the study's start would refuse, and else printed is the commit.

    python examples/register.py registration=composition-2
    python examples/register.py registration=composition-2 --check
"""

from compositionality.config.cli import run
from compositionality.study.registered import RegisterSettings, register_study

if __name__ == "__main__":
    run(RegisterSettings, register_study, __doc__)
