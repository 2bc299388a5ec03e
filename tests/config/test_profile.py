"""Profiles: every file fits its schema and the entry points; what does not fit is one line with file and key."""

import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from compositionality.config import profile as profiles
from compositionality.config.cli import parse, show_sources, split_layers
from compositionality.config.problem_sets import file_settings
from compositionality.config.profile import (
    FOLDER,
    TRAINERS,
    Profile,
    layers_of,
    load_profile,
    machine_settings,
    profile_names,
    schema_of,
    shown,
)
from compositionality.config.verbs import VERBS
from compositionality.errors import UserError
from compositionality.validation import keys_of, validated

NAMES = profile_names()


def check_profile(profile: Profile, path: Path) -> None:
    """Hold all of a profile's settings against the entry points' dataclasses; UserError names file and key."""
    sections = [(f"settings.{name}", name, values) for name, values in profile.settings.items()]
    for step, parts in profile.steps.items():
        sections += [(f"steps.{step}.{name}", name, values) for name, values in parts.items()]
    for where, name, values in sections:
        validated(schema_of(name), values or {}, shown(path), f"{where}.")


@pytest.mark.parametrize("name", NAMES)
def test_p12_every_profile_fits_the_entry_points_with_each_of_its_engines(name: str) -> None:
    for engine in load_profile(name).engines:
        profile = load_profile(f"{name}/{engine}")
        check_profile(profile, FOLDER / f"{name}.yaml")
        assert profile.engine == engine


def test_a_profile_gives_every_entry_point_the_keys_that_it_has() -> None:
    """Entry points are told apart by name where a plan is made, since their schemas load half of the package."""
    profile = load_profile("single/single")
    sampling = {entry.name for entry in fields(profile.sampling)}
    for name in VERBS:
        keys, given = set(keys_of(schema_of(name))), profile.sampling.settings(name)
        assert ("run.device" in keys) == (name in TRAINERS) == ("run" in machine_settings(profile, name)), name
        assert ("workers" in keys) == ("workers" in machine_settings(profile, name)), name
        assert (sampling <= keys) == ({*given} == sampling), name
        assert {"run.device", "engine"} <= keys or "engine" not in machine_settings(profile, name), name


def test_an_engine_has_numbers_of_its_own() -> None:
    single, verl = load_profile("tiny"), load_profile("tiny/verl")
    sets = [file_settings(["set=string", "output=o", f"profile={name}"]) for name in ("tiny", "tiny/verl")]
    counts = [files["test_trained"].count for files in sets]
    assert (single.engine, single.sampling.engine, counts[0]) == ("single", "builtin", 4 * 500)
    assert (verl.engine, verl.sampling.engine, counts[1]) == ("verl", "vllm", 4 * 256)


@pytest.fixture
def profile_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder of profiles, in its place."""
    monkeypatch.setattr(profiles, "FOLDER", shutil.copytree(FOLDER, tmp_path / "profile"))
    return tmp_path / "profile"


def write(folder: Path, text: str, base: str = "tiny") -> Path:
    """One more profile, called mine."""
    path = folder / "mine.yaml"
    path.write_text(f"base: {base}\n{text}" if base else text)
    return path


def test_a_new_profile_is_one_file(profile_folder: Path) -> None:
    text = "base_model: Qwen/Qwen2.5-7B-Instruct\nsettings: {train_grpo: {rollout: {n: 8}}}\n"
    path = write(profile_folder, text, base="instruct")
    profile = load_profile("mine")
    check_profile(profile, path)
    assert profile.base_model == "Qwen/Qwen2.5-7B-Instruct"
    assert profile.settings["train_grpo"]["rollout"]["n"] == 8
    assert profile.settings["train_grpo"]["data"]["prompts_per_step"] == 64


@pytest.mark.parametrize(
    ("text", "base", "named"),
    [
        ("studdies: {}", "tiny", r"mine\.yaml: studdies: no such setting; did you mean"),
        ("sampling: {max_token: 3}", "tiny", r"mine\.yaml: sampling\.max_token: no such setting; did you mean"),
        ("lanes: many", "tiny", r"mine\.yaml: lanes=many: give a whole number"),
        ("problems: {string: 3}", "tiny", r"mine\.yaml: problems\.string=3: holds several keys"),
        ("engines: {verl: {sampling: {chunks: 3}}}", "tiny", r"mine\.yaml: engines\.verl\.sampling\.chunks: no such"),
        ("settings: {train_dpo: {}}", "tiny", r"mine\.yaml: settings\.train_dpo: no entry point"),
        ("device: tpu", "tiny", r"mine\.yaml: device=tpu: must be one of"),
        ("title: x\nengine: single\nengines: {single: {}}", "", r"mine\.yaml: no value for arms, passk, sampling\."),
        ("title: x\nengine: fast", "", r"no engine fast \(sampling.engine is another key\); there are: single, verl"),
        ("", "mine", "mine builds on itself"),
        ("", "huge", "no profile huge; there are: instruct, mine, paper, quick, single, small, smoke, tiny"),
        ("problems: [", "tiny", r"mine\.yaml: not readable as YAML"),
        ("engines: [1]", "tiny", r"mine\.yaml: engines=\[1\]: holds several keys"),
        ("steps: {a: {evaluate: x}}", "tiny", r"mine\.yaml: steps\.a\.evaluate=x: holds several keys"),
        ("", "[tiny]", r"mine\.yaml: base=\[tiny\]: give one text"),
    ],
)
def test_p18_what_a_profile_cannot_hold_is_one_line(text: str, base: str, named: str, profile_folder: Path) -> None:
    write(profile_folder, text, base)
    with pytest.raises(UserError, match=named):
        load_profile("mine/verl" if "verl" in text else "mine")


def test_p18_a_path_is_no_profile() -> None:
    with pytest.raises(UserError, match=r"no profile /tmp/tiny\.yaml; there are: "):
        load_profile("/tmp/tiny.yaml")


def test_defaults_then_profile_then_step_then_command_line(profile_folder: Path) -> None:
    text = "settings: {filter_rollouts: {seed: 5}}\n"
    text += "steps: {a/b: {filter_rollouts: {seed: 6}}, a/*: {filter_rollouts: {seed: 8}}}\n"  # the whole name wins
    write(profile_folder, text)
    schema = schema_of("filter_rollouts")
    words = ["rollouts=[r]", "problems=p", "output=o", "profile=mine"]
    for more, seed, source in (
        ([], 5, "settings.filter_rollouts"),
        (["step=b/c"], 5, "settings.filter_rollouts"),
        (["step=a/b"], 6, "steps.a/b"),
        (["step=a/c"], 8, "steps.a/*"),
        (["step=a/b", "seed=7"], 7, "command line"),
    ):
        overrides, layers = split_layers(schema, [*words, *more], "filter_rollouts")
        settings = parse(schema, overrides, layers)
        assert (settings.seed, settings.max_correct_ratio, settings.val_fraction) == (seed, None, 0.02)
        shown = show_sources(settings, overrides, layers).splitlines()
        assert source in next(line for line in shown if line.startswith("seed="))
        assert next(line for line in shown if line.startswith("val_fraction=")).endswith("# default")


def test_a_step_without_a_profile_is_one_line() -> None:
    with pytest.raises(UserError, match="step=a/b: give profile=NAME too"):
        split_layers(schema_of("filter_rollouts"), ["step=a/b"], "filter_rollouts")


def test_a_study_may_start_from_a_model_of_its_own() -> None:
    paper = load_profile("paper")
    own = paper.for_study("behavior_injection")
    assert (own.base_model, own.chat_template) == ("Qwen/Qwen2.5-1.5B", "own")
    assert paper.for_study("section41_42") == paper


def test_a_list_of_problem_files_stands_behind_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["profile=tiny", "data.val_files=d, e/@rl_validation", "data.train_files=x/@y.parquet"]
    found, _ = split_layers(schema_of("train_grpo"), words, "train_grpo")
    assert found == [
        "data.val_files=['d, e/string_task/validation_heldout.parquet','d, e/string_task/validation_trained.parquet']",
        "data.train_files=x/@y.parquet",
    ]
    with pytest.raises(UserError, match=r"data.val_files=d/@odd: no files.odd in the profile; there are: "):
        split_layers(schema_of("train_grpo"), ["profile=tiny", "data.val_files=d/@odd"], "train_grpo")


def test_a_training_knows_its_engine_device_and_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["model.path=m", "data.train_files=[f]", "trainer.output=o"]
    monkeypatch.delenv("N_GPUS", raising=False)
    settings = parse(schema_of("train_grpo"), words, layers_of("tiny/verl", "train_grpo"))
    assert (settings.engine, settings.run.device, settings.run.processes) == ("verl", "cpu", None)
    monkeypatch.setenv("N_GPUS", "4")
    settings = parse(schema_of("train_grpo"), words, layers_of("paper", "train_grpo"))
    assert (settings.engine, settings.run.device, settings.run.processes) == ("verl", "gpu", 4)
    monkeypatch.setenv("N_GPUS", "few")
    with pytest.raises(UserError, match="N_GPUS=few: give a whole number from 1"):
        layers_of("paper", "train_grpo")
