"""What a researcher draws of a small study from the files of its offline runs alone: the figures of the report."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from offline_wandb import about, artifacts, config, history, summary, tables

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
COMMANDS = """
import sys
from compositionality.__main__ import main
for line in sys.stdin.read().splitlines():
    sys.argv = ["compositionality", *line.split()]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""
STEPS = """
create_problems task=string split=train levels=[1,2] count=64 style=compact max_length=12 output={data}/train.parquet
create_problems task=string split=test group=heldout levels=[1,2,3] count=24 style=compact max_length=12 output={data}/test.parquet
pretrain_tiny profile=smoke step=section41_42/stage0_pretrain steps=20 output={runs}/base
write_solutions problems={data}/train.parquet output={data}/rows
train_sft profile=smoke step=section41_42/stage1_rft trainer.epochs=100 trainer.batch_rows=16 model.path={runs}/base data.train_files={data}/rows/train.parquet trainer.output={runs}/stage1-rft
train_grpo profile=smoke step=section41_42/stage2_rl_level2 model.path={runs}/stage1-rft/final data.train_files={data}/train.parquet data.val_files=[{data}/test.parquet,{data}/train.parquet] trainer.output={runs}/stage2-rl-level2 trainer.samples_every=1
evaluate profile=smoke models=[stage1:{runs}/stage1-rft/final,rl-level2:{runs}/stage2-rl-level2/final] problems=[test_heldout:{data}/test.parquet,learned:{data}/train.parquet] output={results}/section41_42
claims results=[accuracy/seed0:{results}/section41_42] output={study}/claims.json
report study={study} checkpoints={checkpoints} output={study}/report
"""  # noqa: E501


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders data, checkpoints, results: base, Stage 1 that knows its rows by heart, RL; evaluated and decided."""
    root = tmp_path_factory.mktemp("root")
    places = {
        "data": root / "data/s/seed0", "runs": root / "checkpoints/s/seed0", "results": root / "results/s/seed0",
        "study": root / "results/s", "checkpoints": root / "checkpoints/s",
    }  # fmt: skip
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    kept.pop("PROFILE", None)  # each command says it
    given = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", COMMANDS], input=STEPS.strip().format(**places), cwd=root, check=True, text=True,
        env={**kept, **given, "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    return root


def runs_of(study: Path, job: str) -> list[Path]:
    """The offline runs of one job type."""
    return [run for run in sorted(study.rglob("offline-run-*")) if about(run).job_type == job]


def test_every_step_is_a_run_of_the_study(study: Path) -> None:
    runs = {one.job_type: one for one in map(about, study.rglob("offline-run-*"))}
    assert {job: (one.display_name, one.run_group) for job, one in runs.items()} == {
        "pretrain": ("base/seed0", "s"),
        "sft": ("stage1-rft/seed0", "s"),
        "rl": ("rl-level2/seed0", "s"),
        "evaluate": ("section41_42/seed0", "s"),
        "claims": ("claims/s", "s"),
        "report": ("report/s", "s"),
    }
    for job, engines in (("claims", {"builtin"}), ("report", {"builtin", "single"})):  # of samplers, of trainings
        assert {*runs[job].tags} == {"smoke", "string", job, "seed0", "split0", *engines}
        facts = config(runs_of(study, job)[0])["facts"]
        assert facts.items() >= {"study": "s", "seed": "0", "engine": ",".join(sorted(engines))}.items()


def validations(study: Path) -> pd.DataFrame:
    """Rows of RL in which it was validated."""
    (run,) = runs_of(study, "rl")
    rows = pd.DataFrame([row for row in history(run) if any(name.startswith(("val-", "critic/")) for name in row)])
    rows = rows.groupby("_step", as_index=False).first()
    return rows.dropna(subset=[name for name in rows if name.startswith("val-core/")])


def test_accuracy_by_level_and_reasons_against_completions_and_flops_are_the_reports(study: Path) -> None:
    rows = validations(study)
    curves, spent = (pd.read_csv(study / f"results/s/report/tables/{name}.csv") for name in ("training", "budget"))
    levels = {name: int(name.split("/")[1][-1]) for name in rows if name.startswith("val-core/")}
    names = {"_step": "step", "compute/sampled_completions": "completions", "compute/flops": "flops"}
    drawn = rows.rename(columns=names | levels).melt([*names.values()], levels.values(), "level", "accuracy")
    places, figures = ["step", "level"], ["accuracy", "completions", "flops"]
    found, reported = (frame.set_index(places)[figures].sort_index() for frame in (drawn, curves))
    pd.testing.assert_frame_equal(found, reported, check_dtype=False, check_index_type=False, rtol=1e-12)
    assert curves["completions"].max() == spent["completions"].max()

    by_step = rows.set_index("_step")
    reasons = {name for name in rows if name.startswith("val-aux/")}  # the share of each verdict by level
    assert reasons
    metrics = (study / "checkpoints/s/seed0/stage2-rl-level2/metrics.jsonl").read_text()
    for written in map(json.loads, metrics.splitlines()):
        for name in reasons & {*written}:
            assert by_step.loc[written["step"], name] == written[name]


def test_ten_completions_of_the_last_step(study: Path) -> None:
    (run,) = runs_of(study, "rl")
    parts = [json.loads(path.read_text()) for path in run.glob("files/media/table/val/*.json")]
    read = pd.concat(pd.DataFrame(part["data"], columns=part["columns"]) for part in parts)
    last = read[read["step"] == read["step"].max()]
    texts = (study / f"checkpoints/s/seed0/stage2-rl-level2/samples/step_{last['step'].iloc[0]}.txt").read_text()
    assert all(completion in texts for completion in last.head(10)["completion"])


def test_the_decisions_are_those_of_the_claims_file(study: Path) -> None:
    (run,) = runs_of(study, "claims")
    sent = tables(run)["claims"].map(lambda cell: json.loads(cell) if str(cell)[:1] == "[" else cell)
    sent = sent.astype(object).where(sent.notna(), None)
    about_claims = {"claim": "claim", "text": "text"}
    about_claims |= {name: name.removeprefix("claim_") for name in sent if name.startswith("claim_")}
    content = json.loads((study / "results/s/claims.json").read_text())
    expected = [*content["claims"], *content["controls"]]
    told = sent.drop_duplicates("claim")[[*about_claims]].rename(columns=about_claims).to_dict("records")
    assert len(told) == len(expected)
    for claim, row in zip(expected, told, strict=True):
        comparisons = sent[sent["claim"] == claim["claim"]].drop(columns=[*about_claims]).to_dict("records")
        assert row | {"comparisons": comparisons} == {**dict.fromkeys(row), **claim}
    assert summary(run).items() >= {f"claims/{claim['claim']}": claim["decision"] for claim in expected}.items()


def test_the_chain_from_claims_to_base_and_to_the_problems(study: Path) -> None:
    """By the hashes of versions; what RL was trained on, and Stage 1, is a version too."""
    told: dict[str, dict[str, Any]] = {}
    for run in study.rglob("offline-run-*"):
        told |= {artifact.name: json.loads(artifact.metadata) for artifact in artifacts(run)}
    by_content: dict[str, set[str]] = {}  # the best model may be the last one
    for name, metadata in told.items():
        by_content.setdefault(metadata["content"], set()).add(name)

    def sources(name: str) -> set[str]:
        below = set[str]().union(*(by_content.get(content, ()) for content in told[name]["inputs"].values()))
        return below.union(*map(sources, below))

    models = {"base", "stage1-rft-final", "stage2-rl-level2-final"}
    files = {"train.parquet", "rows-train.parquet", "test.parquet", "section41_42-results.parquet"}
    assert sources("s-claims.json") >= {f"s-seed0-{name}" for name in models | files}
