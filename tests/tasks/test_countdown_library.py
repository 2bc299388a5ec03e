"""Our judge beside reasoning-gym's own scorer; ``-s`` prints what that pays for.

Run as a program, it prints name → score, or null where the scorer hung or died: each answer in a process of its own,
for some of them run as code.
"""

import json
import multiprocessing
import resource
import subprocess
import sys
from multiprocessing.connection import Connection

import pytest
from countdown_attacks import ATTACKS, CHEATS, FAIR, Attack

from compositionality.tasks.countdown.wording import judge_countdown

pytest.importorskip("reasoning_gym", reason="reasoning-gym comes with the full set-up only")
SECONDS, MEMORY = 2, 4 << 30


def library_score(attack: Attack) -> float | None:
    ours, its_own = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=send_score, args=(attack, its_own))
    child.start()
    its_own.close()
    try:
        return ours.recv()
    except EOFError:
        return None
    finally:
        child.join()


def send_score(attack: Attack, out: Connection) -> None:
    from reasoning_gym.games.countdown import CountdownConfig, CountdownDataset

    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    entry = {"metadata": {"numbers": list(attack.numbers), "target": attack.target}}
    out.send(float(CountdownDataset(CountdownConfig(seed=0, size=1)).score_answer(attack.answer, entry)))


@pytest.mark.slow
def test_p04_judges_fooled(capsys: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True, timeout=900)
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


if __name__ == "__main__":
    import reasoning_gym.games.countdown  # noqa: F401  (once, before the processes are forked)

    json.dump({attack.name: library_score(attack) for attack in ATTACKS}, sys.stdout)
