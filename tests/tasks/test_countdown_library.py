"""Our judge beside reasoning-gym's; ``-s`` prints what its own scorer pays for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from countdown_attacks import CHEATS, FAIR, Attack

from compositionality.tasks.countdown.judge import judge_countdown

pytest.importorskip("reasoning_gym", reason="reasoning-gym comes with the full set-up only")


@pytest.mark.slow
def test_p04_judges_fooled(capsys: pytest.CaptureFixture[str]) -> None:
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "library_scorer.py"], cwd=here, capture_output=True, text=True, check=True, timeout=900
    )
    library = json.loads(done.stdout)

    def pays(attack: Attack) -> bool:
        return judge_countdown(f"<answer>{attack.answer}</answer>", attack.truth).score > 0

    ours = [attack.name for attack in CHEATS if pays(attack)]
    theirs = [attack.name for attack in CHEATS if library[attack.name] == 1]
    lost = [attack.name for attack in CHEATS if library[attack.name] is None]
    with capsys.disabled():
        print(f"\npaid in full of {len(CHEATS)} answers that solve nothing: ours {len(ours)}, library {len(theirs)}")
        print(f"the library's scorer pays for: {'; '.join(theirs)}\nand hangs or dies of: {'; '.join(lost)}")
        fair = sum(map(pays, FAIR)), sum(library[attack.name] == 1 for attack in FAIR)
        print(f"of {len(FAIR)} right answers in all kinds of forms: ours takes {fair[0]}, the library {fair[1]}")
    assert not ours
    assert len(theirs) > 20
