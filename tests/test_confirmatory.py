"""A confirmatory study by one command, in a clone of its own: registered, committed, run, decided."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bash_runs import OF_A_PERSON, ROOT, warm_python
from test_git import commit, git

REGISTRATION = """
title: the smallest study
study: section41_42
profile: small
claims: composition
primary: [H2-deeper]
arms: [rl-level2]
replicates: {20: [61, 62]}
test_seed: 3031
failed: a step ends in an error
"""
PROFILE = """
title: small, and answers enough that some are right
base: smoke
problems:
  string:
    "*": {input_length: [3, 4]}
    stage2*: {count: 300}
    test*: {per_level: 4}
settings:
  passk: {n_samples: 2, per_level: 2}
steps:
  section41_42/stage0_pretrain: # half of the functions, composed too: about 1 in 100 answers to level 2 is right
    pretrain_tiny:
      steps: 300
      drop: [0, 3, 4, 7, 8, 10, 12, 14, 16, 18, 19, 20, 22, 24]
      mix:
        {target_calls: 0.4, target_chain: 0.25, most_calls: 2, visible_chain: 0, prior_chain: 0, prior_single: 0,
        pairs: [], pair_chain: 0}
  section41_42/stage1_rollouts: {collect_rollouts: {n_samples: 4, max_tokens: 64}}
"""


def start(clone: Path, script: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script of the clone, with the clone's package."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_PERSON}
    own = {"PYTHON": sys.executable, "PYTHONPATH": str(clone), "REGISTRATION": "small", **variables}
    return subprocess.run(
        ["bash", script, *words], cwd=clone, env={**kept, **own}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The working tree, committed in a repository of its own, with a registration."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tmp_path / name)
    (tmp_path / "compositionality/config/profile/small.yaml").write_text(PROFILE)
    git(tmp_path, "init", "-q")
    commit(tmp_path, "the code")
    (tmp_path / "compositionality/config/registrations/small.yaml").write_text(REGISTRATION)
    done = start(tmp_path, "bash/confirmatory.sh", "register=true")
    assert done.returncode == 0, done.stderr
    commit(tmp_path, "registered")
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_confirmatory_study_for_real(clone: Path) -> None:
    """From nothing to a record that names registration and commit."""
    made = git(clone, "rev-parse", "HEAD")
    done = start(clone, "bash/confirmatory.sh", PYTHON=warm_python())
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((clone / "results/records/small/study/record.json").read_text())
    assert (record["registration"]["commit"], record["registration"]["test_seed"]) == (made, 3031)
    assert {row["claim"]: row["registration_status"] for row in record["claims"]}["H2-deeper"] == "primary"
    assert [seed["name"] for seed in record["seeds"]] == ["seed20-split61", "seed20-split62"]
    report = clone / "results/small/report"
    page = (report / "index.html").read_text()
    assert all(part in page for part in ("every problem was solved again", "if one step runs at a time"))
    assert ",stage1," in (report / "tables/stages.csv").read_text()
