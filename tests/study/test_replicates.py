"""Jobs of a study of replicates: what a seed's splits share is made once, each job takes one lane."""

from pathlib import Path

import pytest

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.errors import UserError
from compositionality.study.arms import of_seeds
from compositionality.study.environment import environment
from compositionality.study.jobs import Job, Request
from compositionality.study.replicate_jobs import RESULTS, replicate_jobs
from compositionality.study.replicates import Replicate, read_replicates

REPLICATES = [Replicate(20, 61), Replicate(20, 62), Replicate(21, 63)]
NAMED = {"DATA_DIR": "data/x", "CKPT_DIR": "checkpoints/x", "RESULTS_DIR": "results/x"}


@pytest.fixture
def jobs() -> list[Job]:
    variables = environment({"PROFILE": "smoke", "ARMS": "rl-level2 rft", **NAMED})
    return replicate_jobs(Request("section41_42", 3), variables, REPLICATES, ["rl-level2-shuffled"])


def of(jobs: list[Job], script: str) -> list[Job]:
    return [job for job in jobs if job.script.endswith(script)]


def test_what_splits_share_is_made_once_a_seed(jobs: list[Job]) -> None:
    for script in ("stage0_pretrain", "stage1_create_problems", "stage1_create_train_data", "stage1_rft"):
        assert [job.variables["CKPT_DIR"] for job in of(jobs, script)] == [
            "checkpoints/x-seed20",
            "checkpoints/x-seed21",
        ]
    problems = of(jobs, "stage2_create_problems")
    assert [job.variables["FUNCTION_SPLIT"] for job in problems] == ["61", "62", "63"]
    assert [job.variables["DATA_DIR"] for job in problems][:2] == ["data/x-seed20-split61", "data/x-seed20-split62"]
    for job in problems:
        assert jobs[job.after[0]].script.endswith("stage1_rft")
        assert jobs[job.after[0]].variables["SEED"] == job.variables["SEED"]
        assert job.variables["BASE_MODEL"] == f"{job.variables['SEED_CKPT_DIR']}/base"


def test_every_job_takes_one_lane_after_those_before_it(jobs: list[Job]) -> None:
    assert all(job.one_lane for job in jobs)
    assert all(after < number for number, job in enumerate(jobs) for after in job.after)
    assert [number for number, job in enumerate(jobs) if not job.after] == [
        0,
        jobs.index(of(jobs, "stage0_pretrain")[1]),
    ]
    whole = of(jobs, "summarise")[0]
    assert {jobs[number].script for number in whole.after} == {"section44/passk", "section45/failure_modes"}
    assert len(whole.after) == 2 * len(REPLICATES)


def test_controls_are_run_in_the_first_split_of_each_seed(jobs: list[Job]) -> None:
    controls = [job.variables["REPLICATE"] for job in of(jobs, "arm") if job.words[0] == "rl-level2-shuffled"]
    assert controls == ["20-split61", "21-split63"]
    assert of(jobs, "summarise")[0].variables["MODELS"] == "base stage1 rl-level2 rft"


def test_the_whole_knows_its_replicates(jobs: list[Job]) -> None:
    for job in jobs[-4:]:
        assert job.variables["RESULTS_DIR"] == "results/x"
        assert of_seeds("results/x", "a.json", job.variables, made=False) == [
            "seed20-split61:results/x-seed20-split61/a.json",
            "seed20-split62:results/x-seed20-split62/a.json",
            "seed21-split63:results/x-seed21-split63/a.json",
        ]
    assert [job.script for job in jobs[-4:]] == ["section41_42/summarise", "claims", "report", "record"]


def test_split_0_is_the_seeds_own(jobs: list[Job]) -> None:
    assert Replicate(3).name == "seed3"
    assert read_replicates("20:61 3:0") == [Replicate(20, 61), Replicate(3, 0)]
    with pytest.raises(UserError, match="REPLICATES=a:1: words SEED:SPLIT"):
        read_replicates("a:1")


def results_of(folder: Path, arms: list[str]) -> None:
    """Results of a replicate as far as ``is_complete`` reads them."""
    for name in RESULTS:
        with new_artefact(folder / name, Recipe("made", {"models": arms})) as partial:
            partial.write_text(name)


def test_a_complete_replicate_is_not_run_again(tmp_path: Path) -> None:
    named = {key: f"{tmp_path}/{folder}/x" for key, folder in zip(NAMED, ("d", "c", "r"), strict=True)}
    variables = environment({"PROFILE": "smoke", "ARMS": "rl-level2 rft", **named})

    def left() -> list[tuple[str, str]]:
        jobs = replicate_jobs(Request("section41_42", 3), variables, REPLICATES, ["rl-level2-shuffled"])
        assert [job.script for job in jobs[-4:]] == ["section41_42/summarise", "claims", "report", "record"]
        assert all(after < number for number, job in enumerate(jobs) for after in job.after)
        return [(job.script.partition("/")[2], job.variables["REPLICATE"]) for job in jobs[:-4]]

    everything, arms = left(), ["stage1", "base", "rl-level2", "rft"]
    results_of(tmp_path / "r/x-seed20-split61", arms)
    assert left() == everything  # the first split of a seed has the control too
    results_of(tmp_path / "r/x-seed20-split61", [*arms, "rl-level2-shuffled"])
    assert left() == [job for job in everything if job[1] != "20-split61"]  # the base is there for the other split
    results_of(tmp_path / "r/x-seed20-split62", arms)
    assert left() == [job for job in everything if job[1].startswith("21")]
    (tmp_path / "r/x-seed20-split62" / RESULTS[0]).write_text("altered")
    with pytest.raises(UserError, match=r"accuracy\.json: altered"):
        left()
