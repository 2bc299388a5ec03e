"""A task in a package of its own goes from problems to the page, and nothing of this package is changed for it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from assets import save, teach, tiny_model
from toy_registry import register

from compositionality.config.cli import parse
from compositionality.data.artefact import verify
from compositionality.data.audit import AuditData, audit_data
from compositionality.data.create_problems import create_problems, settings_for
from compositionality.data.parquet import read_table
from compositionality.tasks import find_task

LIMITS = ["engine=builtin", "max_tokens=8", "max_prompt_tokens=32"]


@pytest.fixture
def home(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study's folder with problem files and a model that knows some of their answers."""
    register(site)
    monkeypatch.chdir(tmp_path)
    create("train", 32, seed=1)
    create("validation", 8, seed=1, avoid=["train.parquet"])
    create("test", 20, seed=2, avoid=["train.parquet"])
    torch.set_num_threads(1)
    task, (model, tokenizer) = find_task("digit_sorting"), tiny_model([], feed_forward=64)
    problems = [task.problem(task.modes["clean"].options(), "train", 9, row) for row in range(32 * 40)]
    teach(model, tokenizer, lambda row: (problems[row].prompt, task.gold(problems[row])), 40, 6e-3, answers_alone=True)
    save(tmp_path / "model", model, tokenizer)
    return tmp_path


def create(split: str, count: int, **more: Any) -> Path:
    return create_problems(settings_for("digit_sorting", output=f"{split}.parquet", split=split, count=count, **more))


def test_the_toy_task_goes_from_problems_to_the_page(home: Path) -> None:
    samples_and_filter()
    train()
    results = home / "results" / "toy"
    tables(results)
    page = (results / "report" / "index.html").read_text()
    assert 'id="specs"' in page
    assert "func_" not in page


def samples_and_filter() -> None:
    from compositionality.rft.filter import FilterSettings, filter_rollouts
    from compositionality.rollout.collect import collect
    from compositionality.rollout.settings import CollectSettings

    words = ["problems=train.parquet", "model=model", "output=rollouts", "n_samples=8", *LIMITS]
    collect(parse(CollectSettings, words))
    rules = ["hide_definitions=true", "max_correct_ratio=null", "val_prompts=2"]
    filter_rollouts(parse(FilterSettings, ["rollouts=[rollouts]", "problems=train.parquet", "output=sft", *rules]))
    rows = read_table(Path("sft/train.parquet")).to_pylist()
    assert rows
    assert {row["data_source"] for row in rows} <= {"digits-level2", "digits-level3"}


def train() -> None:
    from compositionality.train.engines import train_on_rank as train
    from compositionality.train.grpo_settings import GrpoSettings

    words = [
        "model.path=model", "data.train_files=[train.parquet]", "data.val_files=[validation.parquet]",
        "trainer.output=checkpoints/seed0/rl-level2", "data.max_prompt_tokens=32", "data.prompts_per_step=4",
        "rollout.n=4", "rollout.max_tokens=8", "optim.lr=1e-3", "trainer.steps=2",
        "trainer.save_every=2", "trainer.eval_every=2",
    ]  # fmt: skip
    train(parse(GrpoSettings, words))
    verify(Path("checkpoints/seed0/rl-level2/final"))


def tables(results: Path) -> None:
    """Evaluation, failure modes, audit, the table over seeds, and the page."""
    from compositionality.evaluate.collect import EvaluationSettings, evaluate
    from compositionality.evaluate.failures import FailureSettings, find_failures
    from compositionality.evaluate.seeds import SummariseSettings, summarise
    from compositionality.report.page.build import report
    from compositionality.report.page.inputs import ReportSettings

    seed, problems = results / "seed0", "problems=[test:test.parquet]"
    section = seed / "section41_42"
    models = "models=[stage1:model,rl-level2:checkpoints/seed0/rl-level2/final]"
    evaluate(parse(EvaluationSettings, [models, problems, f"output={section}", *LIMITS]))
    table = read_table(section / "results.parquet").to_pandas()
    assert set(table["level"]) == {2, 3}
    assert set(table["skills"].explode()) == set("0123456789")
    find_failures(
        parse(FailureSettings, [f"evaluation={section}", problems, f"output={seed / 'section45'}", "level=2"])
    )
    classes = {row["class"] for row in read_table(seed / "section45" / "labels.parquet").to_pylist()}
    assert classes <= {"correct", "atomic_error", "format", "overlong", "unparsed"}
    audit_data(AuditData(files=["test.parquet"], against=["train.parquet"], output=str(results / "data_audit.json")))
    levels = json.loads((results / "data_audit.json").read_text())["test.parquet"]
    assert [(level["level"], level["rows"], level["overlap_problems"], level["wrong_gold"]) for level in levels] == [
        (2, 10, 0, 0),
        (3, 10, 0, 0),
    ]
    summarise(parse(SummariseSettings, [f"inputs=[seed0:{section}]", f"output={results / 'summary.csv'}"]))
    report(parse(ReportSettings, [f"study={results}", f"output={results / 'report'}", "checkpoints=checkpoints"]))
