"""The reward function for TRL, as its trainers call it."""

from pathlib import Path
from typing import Any

import pytest
from adapter_rows import NONE, PROBLEMS, RIGHT, WRONG, write_problems

from compositionality.adapters import trl_reward
from compositionality.adapters.trl_reward import reward_function
from compositionality.errors import UserError
from compositionality.reward.pool import JudgePool

ROOT = Path(__file__).parents[2]
BAD_JUDGES = f"{ROOT / 'tests/reward/bad_judges.py'}:judge"
PROMPTS = [[{"role": "user", "content": problem.prompt}] for problem in PROBLEMS]
COLUMNS: dict[str, Any] = {
    "data_source": [problem.data_source for problem in PROBLEMS],
    "reward_model": [{"ground_truth": problem.ground_truth, "style": "rule"} for problem in PROBLEMS],
    "extra_info": [{"index": problem.index} for problem in PROBLEMS],
}


def turns(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


@pytest.mark.parametrize("wrap", [str, turns, lambda text: [{"role": "assistant", "content": [{"text": text}]}]])
def test_texts_and_messages(wrap: Any) -> None:
    reward = reward_function("paper")
    for texts, value in ((RIGHT, 1.0), (WRONG, 0.0), ([NONE] * 3, -1.0)):
        assert reward(prompts=PROMPTS, completions=[wrap(text) for text in texts], **COLUMNS) == [value] * 3


def test_a_completion_that_was_cut_off_is_overlong() -> None:
    reward = reward_function("paper", end_token_ids=[0])
    ids = [[5, 0], [5, 6], []]
    assert reward(prompts=PROMPTS, completions=RIGHT, completion_ids=ids, **COLUMNS) == [1.0, -1.0, -1.0]


def test_p05_none_where_the_judge_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A response on which the judge hangs gets no reward; too many of them end the run."""

    def pool(workers: int, max_error_rate: float) -> JudgePool:
        return JudgePool(workers, timeout_s=2.0, max_error_rate=max_error_rate, function=BAD_JUDGES)

    monkeypatch.setattr(trl_reward, "JudgePool", pool)
    columns = {**COLUMNS, "reward_model": [{"ground_truth": "yes"}] * 3}
    assert reward_function(max_error_rate=0.5)(prompts=PROMPTS, completions=["yes", "hang", "no"], **columns) == [
        1.0, None, 0.0,
    ]  # fmt: skip
    with pytest.raises(UserError, match="max_error_rate"):
        reward_function()(prompts=PROMPTS, completions=["yes", "hang", "no"], **columns)


def test_shares_of_reasons_are_logged() -> None:
    logged: dict[str, float] = {}
    reward_function()(
        prompts=PROMPTS, completions=[*RIGHT[:2], NONE], log_metric=logged.__setitem__, trainer_state=None, **COLUMNS
    )
    assert logged["verdict/correct"] == pytest.approx(2 / 3)
    assert sum(logged.values()) == pytest.approx(1)


def test_p18_a_dataset_without_our_columns_is_one_line() -> None:
    with pytest.raises(UserError, match="no column reward_model"):
        reward_function()(prompts=PROMPTS, completions=RIGHT, data_source=COLUMNS["data_source"])


def test_rows_of_the_file_are_what_it_reads(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    file = str(write_problems(tmp_path / "train.parquet"))
    rows = datasets.load_dataset("parquet", data_files=file, split="train", cache_dir=str(tmp_path / "cache"))
    columns = {name: rows[name][:] for name in rows.column_names if name != "prompt"}
    rewards = reward_function()(prompts=rows["prompt"][:], completions=[turns(text) for text in RIGHT], **columns)
    assert rewards == [1.0, 1.0, 1.0]
