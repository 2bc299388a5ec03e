"""RL's budget of completions, and whether its problems last: for every profile, and from the metrics of a run."""

import json
from pathlib import Path

import pytest

from compositionality.config.problem_sets import read_set
from compositionality.config.profile import load_profile, profile_names
from compositionality.errors import UserError
from compositionality.study import budgets
from compositionality.study.arms import load_study, study_names
from compositionality.study.budgets import budget, check_budgets, length_of, length_words, problems_asked, rl_settings
from compositionality.study.environment import environment
from compositionality.study.jobs import Request, study_jobs
from compositionality.study.types import Arm
from compositionality.train.common.metrics import NO_SIGNAL, SAMPLED, TRAINED, sampled_completions
from compositionality.train.common.prompt_stream import refill_size
from compositionality.train.grpo_settings import generation_batch

PROFILES = [(name, engine) for name in profile_names() for engine in load_profile(name).engines]
STUDY = load_study("section41_42")


def variables(profile: str, engine: str = "", **own: str) -> dict[str, str]:
    return environment({"PROFILE": profile, "ENGINE": engine, "DEVICE": "cpu", **own})


@pytest.mark.parametrize(("profile", "engine"), PROFILES)
@pytest.mark.parametrize("study", ["section41_42", "section43"])
def test_the_problems_of_every_profile_last_for_its_steps(profile: str, engine: str, study: str) -> None:
    found = load_study(study)
    arms = [name for name, arm in found.arms.items() if "/stage2_rl_" in arm.script and "_verl" not in arm.script]
    assert arms
    check_budgets(variables(profile, engine, SECTION=study), found, arms)


def test_p18_problems_that_do_not_last_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    few = load_profile("instruct")
    few.problems["string"]["stage2*"] = {"count": 20000}
    monkeypatch.setattr(budgets, "load_profile", lambda name, engine: few)
    said = r"rl-level2: stage2_level2/train: 20000 .* last for 156 of trainer.steps=300 steps, each of at least 128"
    with pytest.raises(UserError, match=said):
        study_jobs(Request("section41_42", 1), {**variables("instruct"), "ARMS": "rl-level2"})


def test_instruct_takes_all_its_steps_when_half_of_the_groups_are_dropped() -> None:
    settings = rl_settings("instruct", "verl", "section41_42/stage2_rl_level2")
    batch, needed = generation_batch(settings), settings.data.prompts_per_step
    steps, epochs = length_of(settings, read_set("string", load_profile("instruct")).count("stage2_level2/train"))
    assert steps == 300
    for share in (0.5, 0.4):
        asked, kept = batch, share * batch
        while kept < needed:
            more = refill_size(int(needed - kept), kept / asked, batch)
            asked, kept = asked + more, kept + share * more
        assert asked * steps <= read_set("string", load_profile("instruct")).count("stage2_level2/train") * epochs


@pytest.mark.parametrize(
    ("profile", "engine", "expected"),
    [
        ("tiny", "single", 100 * 64 * 16),
        ("single", "single", 150 * 128 * 16),
        ("single", "verl", 150 * 128 * 16),
        ("smoke", "single", 2400),
        ("smoke", "verl", 2400),
    ],
)
def test_the_settings_tell_the_budget_without_dynamic_sampling(profile: str, engine: str, expected: int) -> None:
    assert budget(variables(profile, engine), STUDY, "rft-matched") == expected


def finished_run(folder: Path, *, whole: bool = True) -> dict[str, str]:
    """A run of RL on level 2 with dynamic sampling, in three steps and a validation between; variables of its study."""
    run = folder / "stage2-rl-level2"
    (run / "final").mkdir(parents=True)
    rows: list[dict[str, float]] = [{"step": 0, "val-core/x": 0.5}]
    rows += [{"step": n, "actor/grad_norm": 1.0, SAMPLED: 16.0 * (128 + n)} for n in (1, 2, 3)]
    if not whole:
        del rows[2][SAMPLED]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return variables("instruct", CKPT_DIR=str(folder))


def test_with_dynamic_sampling_the_finished_run_tells_the_budget(tmp_path: Path) -> None:
    there = finished_run(tmp_path)
    assert budget(there, STUDY, "rft-matched") == 16 * (3 * 128 + 6)
    assert budget({**there, "RFT_RL_ROLLOUTS": "77"}, STUDY, "rft-matched") == 77


def test_p18_a_budget_that_no_run_tells_is_one_line(tmp_path: Path) -> None:
    missing = variables("instruct", CKPT_DIR=str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"the run of rl-level2, which is not finished .*; run arm rl-level2 first, or"):
        budget(missing, STUDY, "rft-matched")
    assert budget({**missing, "DRY_RUN": "1"}, STUDY, "rft-matched") == 300 * 128 * 16
    with pytest.raises(UserError, match="which has no training/sampled_completions for every step"):
        budget(finished_run(tmp_path, whole=False), STUDY, "rft-matched")
    with pytest.raises(UserError, match="arm rft: no budget_of"):
        budget(missing, STUDY, "rft")
    assert sampled_completions(tmp_path / "absent.jsonl") is None


def test_rft_in_rls_budget_comes_after_rl_only_where_the_run_tells_it(tmp_path: Path) -> None:
    for profile, waits in (("instruct", True), ("tiny", False)):
        arms = variables(profile, ARMS="rft-matched rl-level1 rl-level2", CKPT_DIR=str(tmp_path))
        jobs = study_jobs(Request("section41_42", 1), arms)
        matched = next(job for job in jobs if job.words[:1] == ("rft-matched",))
        level2 = next(number for number, job in enumerate(jobs) if job.words[:1] == ("rl-level2",))
        assert (level2 in matched.after) == waits
    with pytest.raises(UserError, match=r"rft-matched samples as many .* run arm rl-level2 first"):
        study_jobs(Request("section41_42", 1), variables("instruct", ARMS="rft-matched", CKPT_DIR=str(tmp_path)))


@pytest.mark.parametrize("arm", ["rl-level2-random", "rft-updates", "rft-tokens"])
def test_an_arm_comes_after_those_whose_runs_it_reads(arm: str) -> None:
    jobs = study_jobs(Request("section41_42", 1), variables("tiny", ARMS=f"{arm} rl-level1 rl-level2"))
    follower = next(job for job in jobs if job.words[:1] == (arm,))
    assert [jobs[number].words[0] for number in follower.after] == ["rl-level2"]


def test_rl_asks_as_many_problems_as_it_has_groups() -> None:
    assert problems_asked(variables("tiny"), STUDY, "rft-16") == 100 * 64


@pytest.mark.parametrize(("unit", "key", "whole"), [("updates", "steps", 9), ("tokens", "tokens", 9000)])
def test_the_iterations_of_rft_share_what_the_run_has_trained(tmp_path: Path, unit: str, key: str, whole: int) -> None:
    given = {**variables("tiny", CKPT_DIR=str(tmp_path)), "RFT_BUDGET": unit}
    assert length_words({**given, "DRY_RUN": "1"}, STUDY, "rft-matched") == f"trainer.{key}=1"
    with pytest.raises(UserError, match=r"metrics.jsonl: no perf/trained_tokens of every step"):
        length_words(given, STUDY, "rft-matched")
    run = tmp_path / "stage2-rl-level2"
    (run / "final").mkdir(parents=True)
    row = {"actor/grad_norm": 1, TRAINED: 1000, NO_SIGNAL: 0}
    rows: list[dict[str, float]] = [{"step": n, **row} for n in range(10)]
    rows[3] |= {NO_SIGNAL: 1, TRAINED: 0}
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = [length_words({**given, "ITERATION": str(number)}, STUDY, "rft-matched") for number in range(3)]
    assert all(word.startswith(f"trainer.{key}=") for word in words)
    assert sum(int(word.partition("=")[2]) for word in words) == whole
    assert length_words({**given, "RFT_BUDGET": "completions"}, STUDY, "rft-matched") == ""


def test_overrides_are_in_the_budget_too(tmp_path: Path) -> None:
    """The profile does not know them: the finished run tells, and so rft-matched waits for it."""
    run = finished_run(tmp_path)
    tiny = {**variables("tiny", CKPT_DIR=str(tmp_path)), "RFT_ITERATIONS": run["RFT_ITERATIONS"]}
    assert budget(tiny, STUDY, "rft-matched") == 16 * (3 * 128 + 6)
    jobs = study_jobs(Request("section41_42", 1, ("trainer.steps=3",)), {**tiny, "ARMS": "rl-level2 rft-matched"})
    matched = next(job for job in jobs if job.words[:1] == ("rft-matched",))
    assert [jobs[number].words[0] for number in matched.after] == ["rl-level2"]


def test_arms_of_one_name_in_two_studies_are_the_same() -> None:
    """Figures know an arm by its name alone."""
    seen: dict[str, Arm] = {}
    for study in study_names():
        for name, arm in load_study(study).arms.items():
            assert seen.setdefault(name, arm) == arm, name
