"""Puts the attacks to reasoning-gym's own Countdown scorer, each in a process of its own, for some of them run as code.

Prints a JSON object: name of the attack → its score, or null where the process hung or died.
"""

import json
import multiprocessing
import resource
import sys
from multiprocessing.connection import Connection

from countdown_attacks import ATTACKS, Attack
from reasoning_gym.games.countdown import CountdownConfig, CountdownDataset

SECONDS, MEMORY = 2, 4 << 30


def main() -> None:
    scorer = CountdownDataset(CountdownConfig(seed=0, size=1))
    json.dump({attack.name: isolated(scorer, attack) for attack in ATTACKS}, sys.stdout)


def isolated(scorer: CountdownDataset, attack: Attack) -> float | None:
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=score, args=(scorer, attack, there))
    child.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        return None
    finally:
        child.join()


def score(scorer: CountdownDataset, attack: Attack, out: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    entry = {"metadata": {"numbers": list(attack.numbers), "target": attack.target}}
    out.send(float(scorer.score_answer(attack.answer, entry)))


if __name__ == "__main__":
    main()
