"""Section 4.4's scripts: models, problem files and output folders, in every profile."""

import pytest
from bash_runs import dry, run, values

from compositionality.config.profile import load_profile, profile_names

SCRIPT = "bash/section44/passk.sh"


@pytest.mark.slow
@pytest.mark.parametrize("profile", profile_names())
def test_the_plan_comes_first_then_each_model_then_the_curves(profile: str) -> None:
    told = [values(command) for command in dry(SCRIPT, PROFILE=profile)]
    models = load_profile(profile).passk.models
    assert told[0]["plan"] == "true"
    assert [one["models"].strip("[").split(":")[0] for one in told[1:-1]] == models
    assert all(one["answers_only"] == "true" for one in told[1:-1])
    assert {one["output"] for one in told} == {f"results/{profile}/section44"}
    assert all(f"{name}:" in told[-1]["models"] for name in models)


def test_one_model_by_its_path_and_the_plan_alone() -> None:
    told = dry(SCRIPT, PROFILE="tiny", MODEL_PATH="some/model", MODEL_NAME="mine")
    assert [values(command)["models"] for command in told] == ["[mine:some/model]"] * 2
    (plan,) = dry(SCRIPT, PROFILE="tiny", PLAN="1")
    assert "plan=true" in plan


def test_no_model_is_one_line(tmp_path: object) -> None:
    done = run(SCRIPT, PROFILE="tiny", CKPT_DIR=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("error: no model of stage1 rl-level1 rl-level2 in ")
