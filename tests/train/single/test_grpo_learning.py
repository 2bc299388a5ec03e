"""P11: the reward rises from signal, and from nothing else."""

import random
from pathlib import Path

import pytest
from runs import settings

from compositionality.train.grpo import Answer, Asker, train
from compositionality.train.metrics import read_metrics

STEPS, AT_BOTH_ENDS = 50, 8


def rise(small: Path, out: Path, seed: int) -> float:
    """By how much the share of right answers grew from the first steps to the last."""
    more = ["optim.lr=1e-3", "data.prompts_per_step=24", "rollout.n=8", f"data.seed={seed}", f"rollout.seed={seed}"]
    train(settings(small, out, *more, f"trainer.steps={STEPS}", "trainer.eval_every=0", "trainer.save_every=0"))
    shares = [row["critic/acc/mean"] for row in read_metrics(out / "metrics.jsonl")[1:]]
    return (sum(shares[-AT_BOTH_ENDS:]) - sum(shares[:AT_BOTH_ENDS])) / AT_BOTH_ENDS


def shuffle(groups: list[list[Answer]], rng: random.Random) -> None:
    """Deal the verdicts out anew: as many right ones as before, at random."""
    answers = [answer for group in groups for answer in group]
    verdicts = [(answer.reward, answer.correct) for answer in answers]
    rng.shuffle(verdicts)
    for answer, (reward, correct) in zip(answers, verdicts, strict=True):
        answer.reward, answer.correct = reward, correct


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_p11_the_reward_rises(small, tmp_path, seed):
    assert rise(small, tmp_path / "run", seed) > 0.15


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_p11_with_shuffled_rewards_it_does_not(small, tmp_path, seed, monkeypatch):
    original, rng = Asker.ask, random.Random(seed)

    def ask(self, questions, seeds):
        groups = original(self, questions, seeds)
        shuffle(groups, rng)
        return groups

    monkeypatch.setattr(Asker, "ask", ask)
    assert rise(small, tmp_path / "run", seed) < 0.05
