"""Section 4.5's script, dry and for real."""

from pathlib import Path

import pytest
from bash_runs import ROOT, commands, dry, run, values

from compositionality.config.profile import profile_names

SCRIPT = "bash/section45/failure_modes.sh"


@pytest.mark.parametrize("profile", profile_names())
def test_every_profile_says_what_it_would_run(profile: str) -> None:
    (told,) = (values(command) for command in dry(SCRIPT, "level=2", PROFILE=profile))
    assert told["evaluation"] == f"results/{profile}/section41_42"
    assert told["models"] == "[base,stage1,rft,rl-level1,rl-level2]"
    assert (told["output"], told["level"]) == (f"results/{profile}/section45", "2")


def test_every_seed_has_a_folder_of_its_own() -> None:
    told = dry(SCRIPT, PROFILE="tiny", SEEDS="2", EVALUATE_ON="validation")
    for one, study in zip(map(values, told), ("tiny", "tiny-seed1"), strict=True):
        assert one["evaluation"] == f"results/{study}/section41_42-validation"
        assert f"data/{study}/string_task/validation_heldout.parquet" in one["problems"]
        assert one["output"] == f"results/{study}/section45-validation"


def test_p18_without_answers_it_says_what_to_run(tmp_path: Path) -> None:
    done = run(SCRIPT, PROFILE="tiny", RESULTS_DIR=str(tmp_path))
    assert done.returncode == 2
    assert "run: bash bash/section41_42/evaluate.sh" in done.stderr
    assert done.stderr.count("\n") == 1


def test_it_takes_the_models_that_are_there(tmp_path: Path) -> None:
    import sys

    sys.path.insert(0, str(ROOT / "tests/evaluate"))
    from failure_runs import always_right, first_line_only, problem_file, rollouts

    data, results = tmp_path / "data", tmp_path / "results"
    for number, kind in enumerate(("trained", "heldout", "heldout_ordered")):
        problems = problem_file(data / f"string_task/test_{kind}.parquet", seed=number)
        for model, answer in (("stage1", first_line_only), ("rl-level2", always_right)):
            rollouts(results / f"section41_42/rollouts/{model}/string_task-test_{kind}", problems, answer)
    done = run(SCRIPT, PROFILE="tiny", DATA_DIR=str(data), RESULTS_DIR=str(results))
    assert done.returncode == 0, done.stderr
    assert "string_task-test_heldout, level 3" in done.stdout
    assert values(commands(done)[0])["models"] == "[stage1,rl-level2]"
    made = {path.name for path in (results / "section45").iterdir()}
    wanted = {f"{name}.{ending}" for name in ("failure_modes", "functions") for ending in ("png", "svg", "pdf")}
    assert wanted | {"labels.parquet", "results.parquet"} <= made
