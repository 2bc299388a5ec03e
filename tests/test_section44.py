"""Section 4.4's scripts: who is asked what, in whose folders, in every profile."""

import re

import pytest
from bash_runs import commands, run

SCRIPT = "bash/section44/passk.sh"


def dry(**variables: str) -> str:
    return commands(run(SCRIPT, DRY_RUN="1", **variables))


@pytest.mark.parametrize(
    ("profile", "samples", "per_level"),
    [("tiny", 128, 24), ("smoke", 8, 4), ("single", 256, 128), ("instruct", 256, 64), ("paper", 1000, 0)],
)
def test_the_plan_comes_first_then_each_model_then_the_curves(profile: str, samples: int, per_level: int) -> None:
    lines = dry(PROFILE=profile).splitlines()
    assert "plan=true" in lines[0]
    assert all("answers_only=true" in line for line in lines[1:-1])
    names = [re.search(r"models=\\\[([\w-]+):", line)[1] for line in lines[1:-1]]  # type: ignore[index]
    assert names[:3] == ["stage1", "rl-level1", "rl-level2"]
    for line in lines:
        assert f"n_samples={samples} levels=\\[1\\,2\\,3\\,4\\,5\\,6\\] per_level={per_level} " in line
        assert f"output=results/{profile}/section44 " in line
    assert all(f"{name}:" in lines[-1] for name in names)


def test_one_model_by_its_path_and_the_plan_alone() -> None:
    told = dry(PROFILE="tiny", MODEL_PATH="some/model", MODEL_NAME="mine").splitlines()
    assert len(told) == 2
    assert "models=\\[mine:some/model\\]" in told[1]
    assert "plan=true" in dry(PROFILE="tiny", PLAN="1").splitlines()[-1]


def test_no_model_is_one_line(tmp_path: object) -> None:
    done = run(SCRIPT, PROFILE="tiny", CKPT_DIR=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("error: no model of stage1 rl-level1 rl-level2 in ")
