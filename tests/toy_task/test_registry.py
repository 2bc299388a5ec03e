"""Third parties register tasks by entry points; what cannot be is one line."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from assets import save, tiny_model
from toy_registry import register

from compositionality.config.cli import parse
from compositionality.data.audit import AuditData, audit_data
from compositionality.data.create_problems import create_problems, problem_settings, settings_for
from compositionality.errors import UserError
from compositionality.tasks.registry import BUILT_IN, all_tasks, find_task, task_of
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.metrics import read_metrics


def test_a_package_registers_a_task(site: Path, tmp_path: Path) -> None:
    register(site)
    assert list(all_tasks()) == [*BUILT_IN, "digit_sorting"]
    assert task_of("digits-level3") is find_task("digit_sorting")
    made = create_problems(settings_for("digit_sorting", output=str(tmp_path / "d.parquet"), levels=[3], count=9))
    assert made.is_file()


@pytest.mark.parametrize(
    ("name", "place", "said"),
    [
        ("string", "digit_sorting:TASK", "task 'string' is registered twice"),
        ("mine", "no_such_module:TASK", "task 'mine': no_such_module:TASK cannot be loaded"),
        ("mine", "digit_sorting:NONE", "task 'mine': digit_sorting:NONE cannot be loaded"),
        ("mine", "digit_sorting:TASK", "task 'mine': digit_sorting:TASK is no Task of that name"),
        ("mine", "digit_sorting:SPLITS", "task 'mine': digit_sorting:SPLITS is no Task of that name"),
    ],
)
def test_p18_what_cannot_be_registered_is_one_line(site: Path, name: str, place: str, said: str) -> None:
    register(site, name, place)
    with pytest.raises(UserError, match=said):
        all_tasks()


def test_p18_two_tasks_for_one_data_source(site: Path) -> None:
    register(site)
    (site / "other_digits.py").write_text(
        "import digit_sorting as d\n\n\nclass Other(d.DigitSorting):\n    name = 'other'\n\n\nTASK = Other()\n"
    )
    register(site, "other", "other_digits:TASK")
    with pytest.raises(UserError, match="'digits-level1' is claimed by the tasks digit_sorting and other"):
        task_of("digits-level1")


def test_p18_an_unknown_task_lists_the_known_ones() -> None:
    with pytest.raises(UserError, match="unknown task 'chess'; there are: string, countdown"):
        find_task("chess")


def test_settings_are_the_tasks() -> None:
    assert {"stage", "output"} <= set(problem_settings(["task=string", "mode=paper"]).__dataclass_fields__)
    assert "numbers" in problem_settings(["task=countdown"]).__dataclass_fields__
    with pytest.raises(UserError, match="or task=NAME, one of string, countdown"):
        problem_settings(["output=x"])
    with pytest.raises(UserError, match="mode=hard: choose clean or paper"):
        problem_settings(["task=string", "mode=hard"])


JUDGE_ALONE = """
from compositionality.tasks import Task
from compositionality.types import Reason, Verdict


class Echo(Task):
    name, title, data_sources = "echo", "Echo", ("echo-.*",)

    def judge(self, answer_text, ground_truth):
        right = ground_truth in answer_text
        return Verdict(float(right), Reason.CORRECT if right else Reason.WRONG)


TASK = Echo()
"""


def test_a_task_with_a_judge_alone_is_enough_to_train_on_rows_made_elsewhere(site: Path, tmp_path: Path) -> None:
    from compositionality.train.engines import train_on_rank as train

    (site / "echo_task.py").write_text(JUDGE_ALONE)
    register(site, "echo", "echo_task:TASK")
    rows = [
        {
            "data_source": "echo-level2",
            "prompt": [{"role": "user", "content": f"say {letter}"}],
            "ability": "none",
            "reward_model": {"style": "rule", "ground_truth": letter},
            "extra_info": {"index": 0},
        }
        for letter in "abcdefgh"
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    save(tmp_path / "model", *tiny_model([], layers=1, width=16, head_width=8, feed_forward=16))
    words = [
        "data.prompts_per_step=8",
        "rollout.n=4",
        "rollout.max_tokens=8",
        "data.max_prompt_tokens=32",
        "trainer.steps=1",
        "trainer.keep_best=false",
    ]
    files = [f"data.train_files=[{tmp_path / 'rows.parquet'}]", f"data.val_files=[{tmp_path / 'rows.parquet'}]"]
    out = tmp_path / "run"
    train(parse(GrpoSettings, [*words, *files, f"model.path={tmp_path / 'model'}", f"trainer.output={out}"]))
    metrics = read_metrics(out / "metrics.jsonl")
    assert "val-core/echo-level2/acc/mean@1" in metrics[0]
    assert (out / "final").is_dir()
    with pytest.raises(UserError, match="task=echo: only judges rows and makes none"):
        settings_for("echo", output=str(tmp_path / "made.parquet"))
    with pytest.raises(UserError, match="task echo knows no right completion of 'say a'"):
        audit_data(AuditData(files=[str(tmp_path / "rows.parquet")]))
