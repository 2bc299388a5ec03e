"""A whole study by one command: which scripts run for which seed, and the inputs of the report."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from bash_runs import ROOT, dry, run, values


@pytest.mark.slow
def test_every_seed_has_its_passk_and_failure_modes_and_all_of_them_one_page() -> None:
    told = dry("bash/study.sh", PROFILE="tiny", ARMS="rl-level2", SEEDS="2")
    for study in ("tiny", "tiny-seed1"):
        for verb, section in (("passk", "section44"), ("failure_modes", "section45")):
            outputs = [values(command)["output"] for command in told if command[0] == verb]
            assert f"results/{study}/{section}" in outputs
    (claims,) = (values(command) for command in told if command[0] == "claims")
    for seed, end in ((0, ""), (1, "-seed1")):
        assert f"passk/seed{seed}:results/tiny{end}/section44/results.parquet" in claims["results"]
    assert told[-1][0] == "report"
    assert values(told[-1])["study"] == "results/tiny"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_study_for_real_in_the_smallest_sizes(tmp_path: Path) -> None:
    """Through every script from nothing to a page that is up to date, by verl (engine=single: test_confirmatory.py)."""
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    settings = {"PROFILE": "smoke", "ENGINE": "verl", "ARMS": "rl-level2", **folders}
    done = run("bash/study.sh", **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    models = {
        row["model"] for row in json.loads((tmp_path / "RESULTS_DIR/section41_42/seeds.json").read_text())["accuracy"]
    }
    assert models == {"base", "stage1", "rl-level2"}
    assert run("bash/report.sh", "--check", **settings).returncode == 0


def test_the_report_reads_where_everything_is() -> None:
    audit, report = dry("bash/report.sh", PROFILE="tiny")
    assert audit[0] == "audit_data"
    assert "data/tiny/string_task/test_heldout.parquet" in values(audit)["files"]
    assert values(audit)["against"].startswith("[data/tiny/string_task/stage2_level1/train.parquet,")
    folders = {"study": "results/tiny", "output": "results/tiny/report", "countdown": "results/tiny-countdown"}
    assert folders.items() < values(report).items()
    (alone,) = dry("bash/report.sh", "--check", PROFILE="paper")
    assert "--check" in alone
    assert values(alone)["countdown"] == "results/paper"


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
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WANDB_", "SEED", "PROFILE", "SETTINGS"))
    }
    code = 'source bash/env.sh; echo "$WANDB_RUN_GROUP $WANDB_TAGS"'
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
