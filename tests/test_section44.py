"""Section 4.4's script and steps: models, problem files and output folders."""

import pytest
from bash_runs import dry, planned, values

from compositionality.config.profile import load_profile

SCRIPT = "bash/section44/passk.sh"


@pytest.mark.parametrize("profile", ["tiny", "paper"])
def test_each_model_is_sampled_in_a_lane_then_the_curves(profile: str) -> None:
    steps = planned("bash/study.sh", "only=[passk*]", PROFILE=profile, STUDY="s")
    models = load_profile(profile).passk
    assert list(steps) == [*(f"seed0/passk-{name}" for name in models), "seed0/passk"]
    *lanes, curves = (step["settings"] for step in steps.values())
    assert all(step["one_lane"] for step in list(steps.values())[:-1])
    assert all(one["answers_only"] for one in lanes)
    assert {one["output"] for one in (*lanes, curves)} == {"results/s/seed0/section44"}
    assert [name.partition(":")[0] for name in curves["models"]] == [
        one for one in ("base", "stage1", "rl-level1", "rl-level2", "rft") if one in models
    ] or [name.partition(":")[0] for name in curves["models"]] == models


def test_one_model_by_its_path_and_the_note_alone() -> None:
    (told,) = map(values, dry(SCRIPT, "plan=true", PROFILE="tiny", MODEL_PATH="some/model", N_SAMPLES="1000"))
    assert (told["models"], told["n_samples"], told["plan"]) == ("some/model", "1000", "true")
