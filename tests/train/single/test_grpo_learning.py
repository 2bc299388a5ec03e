"""P11: the reward rises from signal, and from nothing else."""

from pathlib import Path

import pytest
from runs import settings

from compositionality.train.engines import train_on_rank as train
from compositionality.train.metrics import read_metrics

STEPS, AT_BOTH_ENDS = 50, 8


def rise(small: Path, out: Path, seed: int, *control: str) -> float:
    """By how much the share of right answers grew from the first steps to the last."""
    more = ["optim.lr=1e-3", "data.prompts_per_step=24", "rollout.n=8", f"data.seed={seed}", f"rollout.seed={seed}"]
    train(
        settings(small, out, *more, f"trainer.steps={STEPS}", "trainer.eval_every=0", "trainer.save_every=0", *control)
    )
    shares = [row["critic/acc/mean"] for row in read_metrics(out / "metrics.jsonl")[1:]]
    return (sum(shares[-AT_BOTH_ENDS:]) - sum(shares[:AT_BOTH_ENDS])) / AT_BOTH_ENDS


@pytest.mark.parametrize("seed", [1, 2])
def test_p11_the_reward_rises(small, tmp_path, seed):
    assert rise(small, tmp_path / "run", seed) > 0.15


def test_p11_with_the_rewards_of_a_control_it_does_not(small, tmp_path):
    """The others are no nearer to the answers: test_a_control_is_the_same_whichever_answers_are_right."""
    assert rise(small, tmp_path / "run", 1, "reward.control=shuffled", "trainer.keep_best=false") < 0.05
