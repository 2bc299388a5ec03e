"""The variables of bash/env.sh: numbers and choices in their ranges, folders that lists can hold."""

from pathlib import Path

import pytest

from compositionality.errors import UserError
from compositionality.study.arms import as_list
from compositionality.study.environment import environment
from compositionality.study.run import RunStudySettings, variables_of


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("TEST_SEED", "abc", "a whole number from 0 to"),
        ("SEED", "08", "without leading zeros"),
        ("SEED", "-1", "a whole number from 0 to"),
        ("SEED", "٣", "a whole number from 0 to"),
        ("SEEDS", "0", "a whole number from 1 to"),
        ("LANES", "0", "a whole number from 1 to"),
        ("PROCESSES", "0", "a whole number from 1 to"),
        ("NNODES", "x", "a whole number from 1 to"),
        ("N_GPUS", "-1", "a whole number from 1 to"),
        ("ITERATION", "1.5", "a whole number from 0 to"),
        ("STRING_STAGE1_COUNT", "0", "a whole number from 1 to"),
        ("DRY_RUN", "0", "choose 1, or leave it out"),
        ("EVALUATE_ON", "val", "choose test or validation"),
        ("DEVICE", "cuda", "choose cpu or gpu"),
        ("DATA_DIR", "a\\b", "a path with"),
        ("MODEL_PATH", "a\nb", "a path with"),
    ],
)
def test_a_variable_out_of_its_range_is_named(key: str, value: str, told: str) -> None:
    with pytest.raises(UserError, match=rf"{key}=.*{told}"):
        environment({"PROFILE": "tiny", key: value})


def test_what_a_profile_does_without_may_be_0_and_null_is_every_gpu() -> None:
    assert environment({"PROFILE": "paper"})["STRING_VALIDATION_PER_LEVEL"] == "0"
    assert environment({"PROFILE": "tiny", "PROCESSES": "null"})["PROCESSES"] == "null"
    assert environment({"PROFILE": "tiny", "LANES": ""})["LANES"] != ""


@pytest.mark.parametrize(
    ("settings", "told"), [({"lanes": 0}, "LANES=0"), ({"seeds": 0}, "SEEDS=0"), ({"seed": -1}, "SEED=-1")]
)
def test_settings_of_a_study_have_the_same_ranges(settings: dict[str, int], told: str) -> None:
    with pytest.raises(UserError, match=told):
        variables_of(RunStudySettings("section41_42", profile="tiny", **settings), {})  # type: ignore[arg-type]


def test_the_results_of_section_43_lie_beside_the_others(tmp_path: Path) -> None:
    found = [
        environment({"PROFILE": profile, "ENGINE": engine, **own})["COUNTDOWN_RESULTS_DIR"]
        for profile, engine, own in (
            ("tiny", "", {}),
            ("tiny", "verl", {"SEED": "3"}),
            ("paper", "", {}),
            ("tiny", "", {"RESULTS_DIR": str(tmp_path)}),
        )
    ]
    assert found == ["results/tiny-countdown", "results/tiny-countdown-verl-seed3", "results/paper", str(tmp_path)]


def test_elements_of_a_list_are_quoted_where_they_need_it() -> None:
    assert as_list(["data/a.parquet", "m:c/final"]) == "data/a.parquet,m:c/final"
    assert as_list(["d (1)/a", "it's"]) == r"'d (1)/a','it\'s'"
