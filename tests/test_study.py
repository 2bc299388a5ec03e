"""A whole study by one command: which steps run for which seed, and the inputs of the report."""

import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from bash_runs import ROOT, planned, run, warm_python


def test_every_seed_has_its_passk_and_failure_modes_and_all_of_them_one_page() -> None:
    steps = planned("bash/study.sh", PROFILE="tiny", ARMS="rl-level2", SEEDS="2")
    for seed in ("seed0", "seed1"):
        for step, section in (("passk", "section44"), ("failure-modes", "section45")):
            assert steps[f"{seed}/{step}"]["settings"]["output"] == f"results/composition/{seed}/{section}"
        claims = steps["claims"]["settings"]["results"]
        assert f"passk/{seed}:results/composition/{seed}/section44/results.parquet" in claims
    assert list(steps)[-1] == "page"
    page = steps["page"]["settings"]
    folders = {"study": "results/composition", "checkpoints": "checkpoints/composition", "data": "data/composition"}
    assert folders.items() <= page.items()
    audit = steps["audit"]["settings"]
    assert "data/composition/seed0/string_task/test_heldout.parquet" in audit["files"]
    assert audit["against"][0] == "data/composition/seed0/string_task/stage2_level1/train.parquet"


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(3600)
def test_a_study_for_real_in_the_smallest_sizes(tmp_path: Path) -> None:
    """Through every script from nothing to a page that is up to date, by verl (engine=single: test_confirmatory.py).

    vLLM answers in the rollouts; in evaluations it does in test_evaluate_real.py, in pass@k in test_scaling_law.py.
    """
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    settings = {"PROFILE": "smoke/verl", "ARMS": "rl-level2", "STUDY": "s", "PYTHON": warm_python(), **folders}
    builtin = [f"{step}:engine=builtin" for step in ("answers-*", "evaluate", "passk*")]
    short = ["base:steps=400", "base:mix.prior_chain=0", "base:mix.target_calls=0.7", "stage1-rollouts:n_samples=4"]
    done = run("bash/study.sh", *short, *builtin, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = pd.read_csv(tmp_path / "RESULTS_DIR/s/section41_42/summary.csv")
    assert {*summary["model"]} == {"base", "stage1", "rl-level2"}
    assert run("bash/report.sh", "page:check=true", **settings).returncode == 0


def test_claims_and_report_of_nothing_are_one_line(tmp_path: Path) -> None:
    own = {"PROFILE": "tiny", "RESULTS_DIR": str(tmp_path / "r"), "CKPT_DIR": str(tmp_path / "c")}
    done = run("bash/report.sh", "only=[page]", **own)
    assert done.returncode == 2
    assert "seed0/section41_42/results.parquet: no such file; make it with bash bash/section41_42" in done.stderr


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "composition seed0,tiny"),
        ({"SEED": "2", "SPLIT": "1"}, "composition seed2-split1,tiny"),
        ({"STUDY": "mine", "SEED": "1"}, "mine seed1,tiny"),
        ({"PROFILE": "paper"}, "composition-paper seed0,paper"),
        ({"WANDB_RUN_GROUP": "other"}, "other seed0,tiny"),
    ],
)
def test_wandb_has_one_group_for_all_seeds_of_a_study(variables: dict[str, str], expected: str, tmp_path: Path) -> None:
    (tmp_path / "python").write_text('#!/bin/sh\necho "$WANDB_RUN_GROUP $WANDB_TAGS"\n')
    (tmp_path / "python").chmod(0o755)
    own = {"PYTHON": str(tmp_path / "python"), "PROFILE": "tiny", **variables}
    assert run("bash/section41_42/stage1_rft.sh", **own).stdout.strip() == expected


def test_what_a_run_logs_offline_carries_the_group(tmp_path: Path) -> None:
    """The group reaches wandb by its variable: a real offline run, no network."""
    code = (
        "import sys; from pathlib import Path; from compositionality.train.log import RunLog\n"
        "out = Path(sys.argv[1]); (out / 'wandb.id').write_text('abc')\n"
        "run = RunLog(out, ['wandb'], 'rl', {}); print('group', run.wandb.group, run.wandb.tags)\n"
        "run.write({'step': 1, 'val-core/string-heldout-level3/acc/mean@1': 0.5}); run.close()"
    )
    variables = {"WANDB_MODE": "offline", "WANDB_RUN_GROUP": "tiny", "WANDB_TAGS": "seed1", "WANDB_SILENT": "true"}
    done = subprocess.run(
        [ROOT / ".venv" / "bin" / "python", "-c", code, str(tmp_path)], cwd=ROOT, env={**os.environ, **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "group tiny ('seed1',)" in done.stdout, done.stderr
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
