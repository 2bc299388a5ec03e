"""The variables of bash/env.sh: numbers and choices in their ranges, folders that lists can hold."""

from pathlib import Path

import pytest
from fake_gpus import MIG, UUIDS, install_nvidia_smi

from compositionality.errors import UserError
from compositionality.study.arms import as_list
from compositionality.study.environment import environment
from compositionality.study.jobs import Request, study_jobs
from compositionality.study.run import RunStudySettings, gpus_of_lanes, variables_of


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("TEST_SEED", "abc", "a whole number from 0 to"),
        ("SEED", "08", "without leading zeros"),
        ("SEED", "-1", "a whole number from 0 to"),
        ("SEED", "٣", "a whole number from 0 to"),
        ("FUNCTION_SPLIT", "-1", "a whole number from 0 to"),
        ("SEEDS", "0", "a whole number from 1 to"),
        ("LANES", "0", "a whole number from 1 to"),
        ("PROCESSES", "0", "a whole number from 1 to"),
        ("NNODES", "x", "a whole number from 1 to"),
        ("N_GPUS", "-1", "a whole number from 1 to"),
        ("ITERATION", "1.5", "a whole number from 0 to"),
        ("RFT_PROMPTS", "0", "a whole number from 1 to"),
        ("STRING_STAGE1_COUNT", "9", "give problems.SET.FILE in the profile"),
        ("DRY_RUN", "0", "choose 1, or leave it out"),
        ("EVALUATE_ON", "val", "choose test or validation"),
        ("DEVICE", "cuda", "choose cpu or gpu"),
        ("DATA_DIR", "a\\b", "a path with"),
        ("MODEL_PATH", "a\nb", "a path with"),
        ("CHAT_TEMPLATE", "llama3", "choose own, text, llama-3.1, plain, qwen2.5, qwen3, or a file that ends"),
        ("CHAT_TEMPLATE", "plain", "this profile makes has a chat template of its own"),
    ],
)
def test_a_variable_out_of_its_range_is_named(key: str, value: str, told: str) -> None:
    with pytest.raises(UserError, match=rf"{key}=.*{told}"):
        environment({"PROFILE": "tiny", key: value})


def test_splits_of_a_seed_share_its_base_and_stage_1() -> None:
    found = environment({"PROFILE": "tiny", "SEED": "3", "FUNCTION_SPLIT": "2"})
    assert [found[key] for key in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR", "SEED_CKPT_DIR", "BASE_MODEL")] == [
        "data/tiny-seed3-split2",
        "checkpoints/tiny-seed3-split2",
        "results/tiny-seed3-split2",
        "checkpoints/tiny-seed3",
        "checkpoints/tiny-seed3/base",
    ]
    assert environment(found) == found
    with pytest.raises(UserError, match="FUNCTION_SPLIT=2: the paper's problems"):
        environment({"PROFILE": "paper", "FUNCTION_SPLIT": "2"})


def test_seeds_and_a_split_are_a_study_of_replicates() -> None:
    with pytest.raises(UserError, match="FUNCTION_SPLIT=3 SEEDS=2: give one of the two"):
        study_jobs(Request("section41_42", 2), environment({"PROFILE": "tiny", "FUNCTION_SPLIT": "3"}))


def test_null_is_every_gpu_and_an_empty_variable_is_not_given() -> None:
    assert environment({"PROFILE": "tiny", "PROCESSES": "null"})["PROCESSES"] == "null"
    assert environment({"PROFILE": "tiny", "LANES": ""})["LANES"] != ""


@pytest.mark.parametrize(
    ("settings", "told"), [({"lanes": 0}, "LANES=0"), ({"seeds": 0}, "SEEDS=0"), ({"seed": -1}, "SEED=-1")]
)
def test_settings_of_a_study_have_the_same_ranges(settings: dict[str, int], told: str) -> None:
    with pytest.raises(UserError, match=told):
        variables_of(RunStudySettings("section41_42", profile="tiny", **settings), {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "visible", "lanes"),
    [
        ({}, None, "8"),
        ({}, "4,5", "2"),
        ({}, ",".join(UUIDS[:3]), "3"),
        ({}, MIG[0], "4"),
        ({"N_GPUS": "2"}, None, "2"),
        ({"N_GPUS": "1"}, None, "4"),
        ({"LANES": "3"}, "4,5", "3"),
    ],
)
def test_lanes_by_the_visible_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], visible: str | None, lanes: str
) -> None:
    """One GPU each; on one GPU as many as the profile says."""
    install_nvidia_smi(tmp_path, monkeypatch, 8, mig=MIG if visible == MIG[0] else ())
    shown = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    found = environment({**given, **shown})
    assert (found["PROFILE"], found["DEVICE"], found["LANES"]) == ("single", "gpu", lanes)


@pytest.mark.parametrize("visible", ["", "-1", "0,0", "9"])
def test_hidden_gpus_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str) -> None:
    install_nvidia_smi(tmp_path, monkeypatch, 8)
    assert environment({"CUDA_VISIBLE_DEVICES": visible})["PROFILE"] == "tiny"


def test_lanes_have_the_first_of_the_visible_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_nvidia_smi(tmp_path, monkeypatch, 8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    assert gpus_of_lanes({"DEVICE": "gpu"}) == ["4", "5", "6", "7"]
    assert gpus_of_lanes({"DEVICE": "gpu", "N_GPUS": "2"}) == ["4", "5"]
    assert gpus_of_lanes({"DEVICE": "cpu"}) == []
    with pytest.raises(UserError, match=r"N_GPUS=8, but the visible GPUs are 4,5,6,7 \(CUDA_VISIBLE_DEVICES=4,5,6,7\)"):
        gpus_of_lanes({"DEVICE": "gpu", "N_GPUS": "8"})


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


def test_a_model_with_another_chat_template_is_made_of_the_one_given() -> None:
    given = {"PROFILE": "paper", "BASE_MODEL": "m/Llama", "CKPT_DIR": "c"}
    first = environment(given)
    assert [first[key] for key in ("CHAT_TEMPLATE", "SOURCE_MODEL", "BASE_MODEL")] == ["plain", "m/Llama", "c/base"]
    assert environment({**given, **first}) == first  # as a script that another one starts finds it
    own = environment({**given, "CHAT_TEMPLATE": "own"})
    assert (own["SOURCE_MODEL"], own["BASE_MODEL"]) == ("", "m/Llama")
    assert environment({**given, **own})["BASE_MODEL"] == "m/Llama"
    tiny = environment({"PROFILE": "tiny", "CHAT_TEMPLATE": "qwen3", "MODEL_PATH": "m/Qwen"})
    assert tiny["BASE_MODEL"] == "checkpoints/tiny/base"


def test_elements_of_a_list_are_quoted_where_they_need_it() -> None:
    assert as_list(["data/a.parquet", "m:c/final"]) == "data/a.parquet,m:c/final"
    assert as_list(["d (1)/a", "it's"]) == "'d (1)/a','it''s'"
