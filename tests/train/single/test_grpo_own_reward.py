"""Runs that learn from a user's reward function, on rows of a data source that no task knows."""

from pathlib import Path
from typing import Any

import pytest
from own_rows import OWN, SOURCE, write_own_rows
from runs import apart, settings, weights

from compositionality.errors import UserError
from compositionality.train.engines import train_on_rank as train
from compositionality.train.metrics import GROUPS, SIGNAL, read_metrics


@pytest.fixture(scope="module")
def own(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model, and its problems as rows of others."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "model").symlink_to(small / "model")
    for name in ("train", "validation"):
        write_own_rows(small / f"{name}.parquet", folder / f"{name}.parquet")
    return folder


def run(own: Path, out: Path, name: str, *more: str) -> list[dict[str, Any]]:
    given = settings(own, out, f"reward.function={OWN}:{name}", "trainer.steps=2", "trainer.keep_best=false", *more)
    train(given)
    return read_metrics(out / "metrics.jsonl")


def test_rewards_are_the_scores_and_metrics_are_logged(own: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "run"
    first, *steps = run(own, out, "as_dict")
    assert 0 < first[f"val-core/{SOURCE}/acc/mean@1"] < 1
    for row in steps:
        right, mean = row["critic/acc/mean"], row["rollout/score/mean"]
        assert 1.01 * right + 0.01 * (1 - right) <= mean + 1e-9
        assert mean <= 1.01 * right + 0.02 * (1 - right) + 1e-9
        assert row["reward/signs/mean"] > 0.5
        assert "reward/said/mean" not in row
    assert any(f"reward {score}" in (out / "samples" / "step_2.txt").read_text() for score in (0.02, 1.01))
    assert apart(weights(out / "final"), weights(own / "model")) > 1e-4
    assert "correct: acc of own_reward.py:as_dict, without it a score of 1 or more" in capsys.readouterr().out


def test_groups_that_are_all_wrong_teach_where_their_scores_differ(own: Path, tmp_path: Path) -> None:
    by_score = run(own, tmp_path / "score", "never_right")[1:]
    assert {row["critic/acc/mean"] for row in by_score} == {0}
    assert all(0 < row[SIGNAL] < row[GROUPS] for row in by_score)
    with_acc = run(own, tmp_path / "binary", "never_right", "reward.shape=binary")[1:]
    assert {row[SIGNAL] for row in with_acc} == {0}
    assert {row["rollout/score/mean"] for row in with_acc} == {0}


def test_p05_a_function_that_fails_stops_the_run_in_one_line(own: Path, tmp_path: Path) -> None:
    """The ways to fail: tests/reward/test_reward_function.py."""
    with pytest.raises(UserError, match=r"the judge failed on 1 of \d+ responses, .* \(the last: .*\); fix the judge"):
        run(own, tmp_path / "run", "raises")
    assert not (tmp_path / "run" / "final").exists()
