"""Section 4.5's script, dry and for real."""

from pathlib import Path

from bash_runs import dry, planned, run, values

SCRIPT = "bash/section45/failure_modes.sh"


def test_the_completions_of_the_test_files_are_read() -> None:
    (told,) = map(values, dry(SCRIPT, "level=2", PROFILE="tiny"))
    assert told["evaluation"] == "results/composition/seed0/section41_42"
    assert (told["output"], told["level"]) == ("results/composition/seed0/section45", "2")
    words = {"PROFILE": "tiny", "ARMS": "rl-level2", "STUDY": "nobodys"}  # a study that is there has more models
    step = planned("bash/study.sh", "only=[failure-modes]", **words)["seed0/failure-modes"]
    assert step["settings"]["models"] == ["base", "stage1", "rl-level2"]


def test_it_takes_the_models_that_are_there(tmp_path: Path) -> None:
    from failure_runs import always_right, first_line_only, problem_file, rollouts

    data, results = tmp_path / "data/s/seed0", tmp_path / "results/s/seed0"
    for number, kind in enumerate(("trained", "heldout", "heldout_ordered")):
        problems = problem_file(data / f"string_task/test_{kind}.parquet", seed=number)
        for model, answer in (("stage1", first_line_only), ("rl-level2", always_right)):
            rollouts(results / f"section41_42/rollouts/{model}/string_task-test_{kind}", problems, answer)
    roots = {"DATA_DIR": str(tmp_path / "data"), "RESULTS_DIR": str(tmp_path / "results")}
    done = run(SCRIPT, PROFILE="tiny", STUDY="s", **roots)
    assert done.returncode == 0, done.stderr
    assert "string_task-test_heldout, level 3" in done.stdout
    made = {path.name for path in (results / "section45").iterdir()}
    assert {"labels.parquet", "results.parquet"} <= made
