"""algorithm=NAME: what makes a published algorithm, in one word."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from compositionality.config.cli import parse, show_sources, split_layers
from compositionality.config.profile import load_profile, profile_names
from compositionality.errors import UserError
from compositionality.ranges import OF_PROFILE, marks_of
from compositionality.train.checks import check_settings
from compositionality.train.grpo_settings import AlgorithmSettings, GrpoSettings
from compositionality.train.settings import ENGINES

FOLDER = Path(__file__).parents[2] / "compositionality" / "config" / "algorithm"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
FILES = ["model.path=m", "data.train_files=[a.parquet]", "trainer.output=out"]
ALGORITHM = "algorithm: {advantage: rloo, clip_high: 0.4}"


def settings_of(*words: str) -> GrpoSettings:
    overrides, layers = split_layers(GrpoSettings, [*FILES, *words], "train_grpo")
    return parse(GrpoSettings, overrides, layers)


def rl_keys(step: Mapping[str, Any] | None) -> dict[str, Any]:
    return (step or {}).get("train_grpo") or {}


def steps_of_rl() -> list[list[str]]:
    """Return profile and step of every section of a profile with keys of an algorithm, and each profile alone."""
    profiles = {
        f"{name}/{engine}": load_profile(f"{name}/{engine}")
        for name in profile_names()
        for engine in ENGINES
        if engine in load_profile(name).engines
    }
    return [
        [f"profile={name}", f"engine={profile.engine}", *step]
        for name, profile in profiles.items()
        for step in [[], *([f"step={step}"] for step, keys in profile.steps.items() if "algorithm" in rl_keys(keys))]
    ]


@pytest.mark.parametrize("name", NAMES)
def test_an_algorithm_is_one_word_and_leaves_nothing_that_makes_it_to_the_profile(name: str) -> None:
    """Profiles leave out equal groups, sample on, add a KL term or an entropy bonus; none is part of GRPO."""

    def made_of(*words: str) -> dict[str, Any]:
        return {
            key: value
            for key, value in asdict(settings_of(*words, f"algorithm={name}").algorithm).items()
            if OF_PROFILE not in marks_of(AlgorithmSettings)[key]
        }

    check_settings(settings_of(f"algorithm={name}", "engine=verl" if name == "ppo" else "engine=single"))
    bare = made_of()
    assert bare["advantage"] == {"dapo": "grpo", "ppo": "gae"}.get(name, name)
    assert bare["dynamic_sampling"] == (name == "dapo")
    assert (bare["kl"], bare["kl_coef"], bare["entropy_coef"]) == ("none", 0, 0)
    for words in steps_of_rl():
        assert made_of(*words) == bare, words


def test_single_keys_win_over_a_named_algorithm_and_the_profile_says_how_much() -> None:
    words = ["profile=paper/verl", "engine=verl", "step=scaling_law/train", "algorithm=grpo"]
    for keys, kl, weight in (
        ("algorithm.kl_coef=0.04", "k3", 0.04),
        ("algorithm.kl=k1 algorithm.kl_coef=0.04", "k1", 0.04),
        ("", "none", 0.0),
    ):
        algorithm = settings_of(*words, *keys.split()).algorithm
        assert (algorithm.kl, algorithm.kl_coef, algorithm.updates_per_step) == (kl, weight, 4)
    with pytest.raises(UserError, match=r"^algorithm.kl=k1: give algorithm.kl_coef, the weight of that loss, or kl=n"):
        check_settings(settings_of(*words, "algorithm.kl=k1"))


def test_p18_what_only_verl_has_is_one_line() -> None:
    with pytest.raises(UserError, match=r"^critic.clip=0.2: engine=single does not have it; take"):
        check_settings(settings_of("critic.clip=0.2"))
    with pytest.raises(UserError, match=r"^model.lora.rank=4: needs mesh.tensor=1, or engine=verl$"):
        check_settings(settings_of("model.lora.rank=4", "mesh.tensor=2", "run.processes=2"))


@pytest.mark.parametrize(
    ("words", "kl", "weight"),
    [
        ([], "k3", 0.001),
        (["algorithm.kl=none"], "none", 0.0),  # none is none, as without use_kl_loss in verl, whatever the weight is
        (["algorithm.kl=k1"], "k1", 0.001),
        (["algorithm.kl_coef=0.04"], "k3", 0.04),
    ],
)
def test_the_kl_term_of_a_profile_can_be_left_out_by_one_key(words: list[str], kl: str, weight: float) -> None:
    found = settings_of("profile=paper/verl", "engine=verl", "step=behavior_injection/rl", *words)
    check_settings(found)
    assert (found.algorithm.kl, found.algorithm.kl_coef) == (kl, weight)


def test_a_value_that_follows_from_others_is_shown_with_what_was_given() -> None:
    words = [*FILES, "profile=paper/verl", "engine=verl", "step=behavior_injection/rl", "algorithm.kl=none"]
    overrides, layers = split_layers(GrpoSettings, [*words, "optim.lr=1e-3"], "train_grpo")
    shown = show_sources(parse(GrpoSettings, overrides, layers), overrides, layers)
    assert re.search(
        r"^algorithm\.kl_coef=0\.0 +# 0\.001, .*paper\.yaml: steps\.behavior_injection/rl$", shown, re.MULTILINE
    )
    assert re.search("^algorithm.kl=none +# auto, default$", show_sources(settings_of(), FILES, ()), re.MULTILINE)
    assert re.search("^optim.lr=0.001 +# command line$", shown, re.MULTILINE), "only its type is another"


def test_a_kl_term_needs_its_weight_and_no_more() -> None:
    assert settings_of("algorithm.kl_coef=0.04").algorithm.kl == "k3"
    assert settings_of().algorithm.kl == "none"


def test_keys_of_the_command_line_come_last(tmp_path: Path) -> None:
    words = ["algorithm=dapo", "algorithm.clip_high=0.3"]
    assert settings_of(*words).algorithm.clip_high == 0.3
    overrides, layers = split_layers(GrpoSettings, [*FILES, *words], "train_grpo")
    shown = show_sources(parse(GrpoSettings, overrides, layers), overrides, layers)
    assert any("dynamic_sampling=true" in line and "config/algorithm/dapo.yaml" in line for line in shown.split("\n"))
    mine = tmp_path / "mine.yaml"
    mine.write_text(ALGORITHM)
    assert settings_of(f"algorithm={mine}").algorithm.advantage == "rloo"
    assert settings_of("algorithm={clip_high: 0.5}").algorithm.clip_high == 0.5


def test_p18_an_unknown_algorithm_or_key_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"algorithm=trpo: no such file; known are dapo, dr_grpo, grpo, .*, or give a path"
    ):
        settings_of("algorithm=trpo")
    mine = tmp_path / "mine.yaml"
    for text, told in (
        (ALGORITHM.replace("}", ", colour: red}"), "algorithm.colour"),
        ("optim: {lr: 1}", "algorithm: no keys; give it those that differ from the defaults in --help"),
        ("algorithm: 7", "algorithm: no keys; give it those that differ from the defaults in --help"),
    ):
        mine.write_text(text)
        with pytest.raises(UserError, match=rf"mine.yaml: {told}"):
            settings_of(f"algorithm={mine}")
    mine.write_text(ALGORITHM.replace("rloo", "trpo"))
    with pytest.raises(UserError, match=r"algorithm.advantage=trpo: must be one of"):
        check_settings(settings_of(f"algorithm={mine}"))
