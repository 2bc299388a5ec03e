"""A whole study by one command: which scripts run for which seed, and what the report is told."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from bash_runs import ROOT, commands, run

STUDY = {"PROFILE": "tiny", "DRY_RUN": "1", "ARMS": "rl-level2"}


@pytest.mark.slow
def test_every_seed_has_its_passk_and_failure_modes_and_all_of_them_one_page() -> None:
    done = run("bash/study.sh", **STUDY, SEEDS="2")
    told = commands(done)
    for study in ("tiny", "tiny-seed1"):
        assert told.count(f"output=results/{study}/section44 ") >= 1
        assert f"output=results/{study}/section45" in told
        assert f"data/{study}/string_task/test_heldout.parquet" in told
    assert len(re.findall(r"examples/claims\.py", told)) == 1
    assert "passk=\\[seed0:results/tiny/section44/by_problem.parquet\\,seed1:results/tiny-seed1/section44" in told
    assert told.splitlines()[-1].startswith("+ .venv/bin/python examples/report.py study=results/tiny ")


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("engine", ["single", "verl"])
def test_a_study_for_real_in_the_smallest_sizes(engine: str, tmp_path: Path) -> None:
    """Through every script from nothing to a page that is up to date, with either engine."""
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    settings = {"PROFILE": "smoke", "ENGINE": engine, "ARMS": "rl-level2 rft", **folders}
    done = run("bash/study.sh", **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    models = {
        row["model"] for row in json.loads((tmp_path / "RESULTS_DIR/section41_42/seeds.json").read_text())["accuracy"]
    }
    assert models == {"base", "stage1", "rl-level2", "rft"}
    assert run("bash/report.sh", "--check", **settings).returncode == 0


def test_the_report_is_told_where_everything_is() -> None:
    audit, report = commands(run("bash/report.sh", PROFILE="tiny", DRY_RUN="1")).splitlines()
    assert "examples/audit_data.py" in audit
    assert "data/tiny/string_task/test_heldout.parquet" in audit
    assert "against=\\[data/tiny/string_task/stage2_level1/train.parquet" in audit
    words = ("study=results/tiny", "output=results/tiny/report", "countdown=results/tiny-countdown")
    for word in (*words, "checkpoints=checkpoints/tiny", "data=data/tiny"):
        assert f" {word}" in report
    alone = commands(run("bash/report.sh", "--check", PROFILE="paper", DRY_RUN="1")).splitlines()
    assert len(alone) == 1
    assert alone[0].endswith("countdown=results/paper checkpoints=checkpoints/paper data=data/paper --check")


def test_a_report_of_nothing_says_what_to_run(tmp_path: Path) -> None:
    folders = {"DATA_DIR": str(tmp_path / "d"), "CKPT_DIR": str(tmp_path / "c"), "RESULTS_DIR": str(tmp_path / "r")}
    done = run("bash/report.sh", PROFILE="tiny", **folders)
    assert done.returncode == 2
    assert "section41_42/seeds.json: no such file; make it with bash bash/section41_42/summarise.sh" in done.stderr


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "tiny seed0"),
        ({"SEED": "2"}, "tiny seed2"),
        ({"SEED": "1", "SECTION": "section43"}, "tiny-countdown seed1"),
        ({"PROFILE": "paper"}, "paper seed0"),
        ({"WANDB_RUN_GROUP": "mine"}, "mine seed0"),
    ],
)
def test_wandb_has_one_group_for_all_seeds_of_a_study(variables: dict[str, str], expected: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WANDB_", "SEED", "PROFILE"))}
    code = 'source bash/lib.sh; echo "$WANDB_RUN_GROUP $WANDB_TAGS"'
    environment = {**kept, "PROFILE": "tiny", **variables}
    done = subprocess.run(["bash", "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == expected, done.stderr


def test_what_a_run_logs_offline_carries_the_group(tmp_path: Path) -> None:
    """The group reaches wandb by its variable: a real offline run, no network."""
    pytest.importorskip("wandb")
    code = (
        "import sys; from pathlib import Path; from compositionality.train.common import trackers\n"
        "out = Path(sys.argv[1]); (out / 'wandb.id').write_text('abc')\n"
        "run = trackers.Trackers(out, ['wandb'], {}); print('group', run._wandb.group, run._wandb.tags)\n"
        "run.write({'step': 1, 'val-core/string-heldout-level3/acc/mean@1': 0.5}); run.close()"
    )
    variables = {"WANDB_MODE": "offline", "WANDB_RUN_GROUP": "tiny", "WANDB_TAGS": "seed1", "WANDB_SILENT": "true"}
    done = subprocess.run(
        [ROOT / ".venv" / "bin" / "python", "-c", code, str(tmp_path)], cwd=ROOT, env={**os.environ, **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "group tiny ('seed1',)" in done.stdout, done.stderr
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
