"""A problem file as a task of LightEval."""

import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from compositionality.data.parquet import write_table
from compositionality.data.problems import read_problems
from compositionality.errors import UserError, installed
from compositionality.reward.judge import row_score

with installed("lighteval", "lighteval>=0.13"):
    import numpy as np
    from lighteval.metrics.metrics_sample import SampleLevelComputation
    from lighteval.metrics.utils.metric_utils import SampleLevelMetric
    from lighteval.tasks.lighteval_task import LightevalTaskConfig
    from lighteval.tasks.requests import Doc, SamplingMethod


def lighteval_task(problems: Path | str, name: str = "compositionality", max_tokens: int = 1024) -> LightevalTaskConfig:
    """Return the task ``name|0``: a problem file's prompts, answers of up to ``max_tokens``, and the metric ``acc``.

    UserError for a file that is no problem file, and for a prompt of several turns.
    """
    path = Path(problems)
    table = read_problems(path)
    if any(len(prompt) != 1 for prompt in table.column("prompt").to_pylist()):
        raise UserError(f"{path}: a prompt has several turns; LightEval's tasks take only one")
    folder = Path(tempfile.mkdtemp(dir=_folders().name))  # LightEval loads folders and Hub ids
    write_table(table, folder / "test.parquet")
    metric = SampleLevelMetric(
        metric_name="acc",
        higher_is_better=True,
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=RowScore(),
        corpus_level_fn=np.mean,
    )
    return LightevalTaskConfig(
        name=name,
        prompt_function=_doc,
        hf_repo=str(folder),
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        metrics=[metric],
        generation_size=max_tokens,
    )


class RowScore(SampleLevelComputation):  # type: ignore[misc]
    def compute(self, doc: Doc, model_response: Any, **_: Any) -> float:
        return row_score(json.loads(doc.specific["row"]), model_response.final_text[0])


def _doc(row: Mapping[str, Any], task_name: str) -> Doc:
    truth = row["reward_model"]["ground_truth"]
    judged = {key: row[key] for key in ("data_source", "reward_model", "extra_info")}
    specific = {"row": json.dumps(judged)}  # text, because LightEval writes details as tables
    return Doc(task_name=task_name, query=row["prompt"][0]["content"], choices=[truth], gold_index=0, specific=specific)


@cache
def _folders() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="lighteval-")
