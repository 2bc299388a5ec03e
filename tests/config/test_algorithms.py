"""algorithm=NAME: what makes a published algorithm, in one word."""

import re
from pathlib import Path

import pytest

from compositionality.config.cli import parse, show_sources, split_layers
from compositionality.config.profile import ALGORITHM_KEYS
from compositionality.errors import UserError
from compositionality.train.grpo_checks import check_settings
from compositionality.train.grpo_settings import GrpoSettings

FOLDER = Path(__file__).parents[2] / "compositionality" / "config" / "algorithm"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
FILES = ["model.path=m", "data.train_files=[a.parquet]", "trainer.output=out"]
ALGORITHM = (
    "algorithm: {advantage: rloo, loss_aggregation: token, clip_low: 0.2, clip_high: 0.4, dynamic_sampling: false, "
    "drop_equal_groups: null}"
)


def settings_of(*words: str) -> GrpoSettings:
    overrides, layers = split_layers(GrpoSettings, [*FILES, *words], "train_grpo")
    return parse(GrpoSettings, overrides, layers)


@pytest.mark.parametrize("name", NAMES)
def test_an_algorithm_is_one_word_and_leaves_nothing_that_makes_it_to_the_profile(name: str) -> None:
    """The tiny profile leaves out equal groups, and with verl samples on; neither is part of GRPO."""
    found = settings_of(f"algorithm={name}", "engine=verl" if name == "ppo" else "engine=single")
    check_settings(found)
    bare = found.algorithm
    assert bare.advantage == {"dapo": "grpo", "ppo": "gae"}.get(name, name)
    assert bare.dynamic_sampling == (name == "dapo")
    for profile in ("tiny/single", "tiny/verl", "paper/verl"):
        engine = profile.partition("/")[2]
        found = settings_of(f"profile={profile}", f"engine={engine}", f"algorithm={name}")
        assert {key: getattr(found.algorithm, key) for key in ALGORITHM_KEYS} == {
            key: getattr(bare, key) for key in ALGORITHM_KEYS
        }


def test_p18_what_only_verl_has_is_one_line() -> None:
    with pytest.raises(UserError, match=r"^algorithm.advantage=gae: engine=single has no critic; take engine=verl$"):
        check_settings(settings_of("algorithm=ppo"))
    with pytest.raises(UserError, match=r"^critic.clip=0.2: engine=single does not have it; it has no critic; take"):
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
    with pytest.raises(UserError, match=r"^algorithm.kl=k2: give algorithm.kl_coef, the weight of that loss, or kl=n"):
        check_settings(settings_of("algorithm.kl=k2"))


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
        (ALGORITHM.replace("clip_low: 0.2, ", ""), "algorithm: no value for clip_low; add it to the file"),
        ("optim: {lr: 1}", "algorithm: no value for advantage, clip_high, "),
        ("algorithm: 7", "algorithm: no value for advantage, clip_high, "),
    ):
        mine.write_text(text)
        with pytest.raises(UserError, match=rf"mine.yaml: {told}"):
            settings_of(f"algorithm={mine}")
    mine.write_text(ALGORITHM.replace("rloo", "trpo"))
    with pytest.raises(UserError, match=r"algorithm.advantage=trpo: must be one of"):
        check_settings(settings_of(f"algorithm={mine}"))
