"""The scripts under bash/: every profile says what it would run, arguments reach the command, bad input is one line."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bash_runs import ROOT, dry, run, values

from compositionality.config.makers import maker
from compositionality.config.profile import load_profile, profile_names

SECTION = "bash/section41_42"
PROFILES = [(name, engine) for name in profile_names() for engine in load_profile(name).engines]


def of(commands: list[list[str]], verb: str) -> list[dict[str, str]]:
    """The settings of every command of an entry point."""
    return [values(command) for command in commands if command[0] == verb]


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "engine"), [(name, load_profile(name).engine) for name in profile_names()])
def test_the_whole_section_in_every_profile(profile: str, engine: str) -> None:
    """Every command is checked as its start would do it, on a machine with the profile's GPUs."""
    if engine == "verl":
        pytest.importorskip("verl")
    arms, gpus = "rl-level1 rl-level1to2 rft", "8" if profile == "paper" else "1"
    told = dry(f"{SECTION}/run_all.sh", PROFILE=profile, ENGINE=engine, ARMS=arms, N_GPUS=gpus)
    loaded = load_profile(profile, engine)
    verbs = [command[0] for command in told]
    entry_points = "create_problems collect_rollouts filter_rollouts train_sft split_chunks train_grpo evaluate"
    for verb in [*entry_points.split(), "summarise_seeds", "draw_figure"]:
        assert verb in verbs
    assert ("pretrain_tiny" in verbs) == (not loaded.base_model)
    assert {command[1] for command in told} == {f"profile={profile}/{engine}"}
    study = profile if engine == load_profile(profile).engine else f"{profile}-{engine}"
    outputs = [settings["trainer.output"] for settings in of(told, "train_grpo")]
    assert outputs == [f"checkpoints/{study}/stage2-{arm}" for arm in ("rl-level1", "rl-level1to2")]
    assert len(of(told, "train_sft")) == 1 + loaded.rft.iterations


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "engine"), PROFILES)
@pytest.mark.parametrize("script", ["stage1_rft", "stage2_rl_level1"])
def test_p12_the_numbers_of_every_profile_fit_the_trainers(profile: str, engine: str, script: str) -> None:
    """The real command, which checks its settings and stops; verl's own keys against the pinned verl."""
    if engine == "verl":
        pytest.importorskip("verl")
    done = run(f"{SECTION}/{script}.sh", PROFILE=profile, ENGINE=engine, DRY_RUN="1")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_several_seeds_have_folders_of_their_own_and_one_summary() -> None:
    told = dry(f"{SECTION}/run_all.sh", PROFILE="smoke", SEEDS="2", ARMS="rl-level2")
    assert [(one["output"], one["seed"]) for one in of(told, "pretrain_tiny")] == [
        ("checkpoints/smoke/base", "0"),
        ("checkpoints/smoke-seed1/base", "1"),
    ]
    assert [(one["trainer.output"], one["data.seed"], one["rollout.seed"]) for one in of(told, "train_grpo")] == [
        ("checkpoints/smoke/stage2-rl-level2", "1", "1"),
        ("checkpoints/smoke-seed1/stage2-rl-level2", "2", "2"),
    ]
    inputs = [f"seed{seed}:results/smoke{end}/section41_42/results.parquet" for seed, end in ((0, ""), (1, "-seed1"))]
    assert [one["inputs"] for one in of(told, "summarise_seeds")] == [f"[{','.join(inputs)}]"]


@pytest.mark.parametrize(
    ("profile", "section", "countdown"),
    [("tiny", "section41_42", "tiny-countdown"), ("tiny", "section43", "tiny-countdown"), ("paper", "", "paper")],
)
def test_the_claims_are_about_all_sections_of_a_profile(profile: str, section: str, countdown: str) -> None:
    (told,) = of(dry("bash/claims.sh", PROFILE=profile, SECTION=section, SEEDS="2"), "claims")
    expected = [
        f"{results}/seed{seed}:results/{folder}{end}/{file}"
        for results, folder, file in (
            ("accuracy", profile, "section41_42/results.parquet"),
            ("countdown", countdown, "section43/results.parquet"),
            ("strings", countdown, "section43-strings/results.parquet"),
            ("passk", profile, "section44/results.parquet"),
            ("failures", profile, "section45/results.parquet"),
        )
        for seed, end in ((0, ""), (1, "-seed1"))
    ]
    assert told["results"] == f"[{','.join(expected)}]"
    assert told["output"] == f"results/{profile}/claims.json"


def test_claims_without_any_result_are_one_line(tmp_path: Path) -> None:
    done = run("bash/claims.sh", PROFILE="tiny", RESULTS_DIR=str(tmp_path / "tiny"))
    assert done.returncode == 2
    assert "error: no results: give results=[RESULTS/SEED:PATH,...] with accuracy, countdown, passk" in done.stderr


@pytest.mark.parametrize(
    ("control", "keys"),
    [
        ("shuffled", {"optim.lr"}),
        ("random", {"optim.lr", "algorithm.entropy_like", "algorithm.entropy_coef"}),
        ("format", set[str]()),
    ],
)
def test_controls_differ_from_rl_on_level_2_in_the_reward(control: str, keys: set[str]) -> None:
    (mine,) = of(dry(f"{SECTION}/stage2_rl_control.sh", PROFILE="tiny", CONTROL=control), "train_grpo")
    (theirs,) = of(dry(f"{SECTION}/stage2_rl_level2.sh", PROFILE="tiny"), "train_grpo")
    differing = {name for name in mine.keys() | theirs if mine.get(name) != theirs.get(name)}
    assert differing == {"reward.control", "trainer.keep_best", "trainer.output", *keys}
    assert (mine["reward.control"], mine["trainer.keep_best"]) == (control, "false")
    arm = dry(f"{SECTION}/arm.sh", f"rl-level2-{control}", PROFILE="tiny")
    model = f"checkpoints/tiny/stage2-rl-level2-{control}"
    assert of(arm, "train_grpo") == [mine]
    assert of(arm, "evaluate")[0]["models"] == f"[rl-level2-{control}:{model}/final]"


def test_arguments_and_a_model_reach_the_trainer() -> None:
    (told,) = of(
        dry(f"{SECTION}/stage2_rl_level2.sh", "optim.lr=0.125", PROFILE="paper", N_GPUS="4", MODEL_PATH="some/model"),
        "train_grpo",
    )
    assert (told["optim.lr"], told["model.path"], told["run.processes"]) == ("0.125", "some/model", "4")


def test_stage_0_gives_the_base_model_its_chat_template(tmp_path: Path) -> None:
    given = {"PROFILE": "paper", "BASE_MODEL": "m/Llama", "CKPT_DIR": "c"}
    assert dry(f"{SECTION}/stage0_pretrain.sh", **given, CHAT_TEMPLATE="own") == []
    (told,) = of(dry(f"{SECTION}/stage0_pretrain.sh", **given), "set_chat_template")
    assert [told[key] for key in ("model", "output", "chat_template")] == ["m/Llama", "c/base", "plain"]
    (next_,) = of(dry(f"{SECTION}/stage1_rft.sh", **given), "train_sft")
    assert next_["model.path"] == "c/base"
    (told,) = of(
        dry(f"{SECTION}/stage0_pretrain.sh", PROFILE="tiny", CHAT_TEMPLATE="qwen3", MODEL_PATH="q"), "set_chat_template"
    )
    assert [told[key] for key in ("model", "output")] == ["q", "checkpoints/tiny/base"]


def test_both_budgets_of_rft_have_folders_of_their_own() -> None:
    scripts = ("stage2_rft_create_problems", "stage2_rft_create_train_data", "stage2_rft_train")
    for budget, name, n_samples in (("original", "rft", "2"), ("completions", "rft-matched", "4")):
        variables = {"PROFILE": "tiny", "ENGINE": "verl", "ITERATION": "1", "RFT_BUDGET": budget}
        chunks, rollouts, kept, sft = (
            values(command) for script in scripts for command in dry(f"{SECTION}/{script}.sh", **variables)
        )
        folder = f"data/tiny-verl/string_task/stage2_level2_{name.replace('-', '_')}"
        model = f"checkpoints/tiny-verl/stage2-{name}"
        assert chunks["output"] == f"{folder}/problems"
        assert (rollouts["model"], rollouts["n_samples"]) == (f"{model}-iteration0/final", n_samples)
        assert kept["output"] == f"{folder}/iteration1/data"
        assert sft["trainer.output"] == f"{model}-iteration1"


@pytest.mark.parametrize(
    ("arm", "size", "answers", "filtered", "length"),
    [
        ("rft-paper-filter", {"rows_per_chunk": "4500"}, "2", "1.0", None),
        ("rft-16", {"rollout_budget": "102400", "n_samples": "16"}, "16", None, None),
        ("rft-updates", {"rollout_budget": "102400", "n_samples": "4"}, "4", None, "trainer.steps"),
    ],
)
def test_arms_of_rft_differ_in_filter_answers_and_budget(
    arm: str, size: dict[str, str], answers: str, filtered: str | None, length: str | None
) -> None:
    told = dry(f"{SECTION}/arm.sh", arm, PROFILE="tiny")
    (chunks,), kept, trained = (of(told, verb) for verb in ("split_chunks", "filter_rollouts", "train_sft"))
    assert size.items() <= chunks.items()
    assert {one["n_samples"] for one in of(told, "collect_rollouts")} == {answers}
    assert {one.get("max_correct_ratio") for one in kept} == {filtered}
    assert {key for one in trained for key in one if key == "trainer.steps"} == {length} - {None}
    model = f"checkpoints/tiny/stage2-{arm}-iteration2"
    assert trained[-1]["trainer.output"] == model
    assert of(told, "evaluate")[0]["models"] == f"[{arm}:{model}/final]"


@pytest.mark.long
@pytest.mark.parametrize("arm", ["rl-level2", pytest.param("rft-16", marks=pytest.mark.slow)])
def test_rates_are_tuned_on_validation_problems_with_seeds_of_their_own(arm: str) -> None:
    short = {"PROFILE": "tiny", "RFT_ITERATIONS": "1"}
    told = dry(f"{SECTION}/tune_lr.sh", ARM=arm, RATES="3e-4", TUNING_SEEDS="12", **short)
    runs = [one for verb in ("train_grpo", "train_sft") for one in of(told, verb) if "optim.lr" in one]
    end = "-iteration0" if arm == "rft-16" else ""
    output = f"checkpoints/tiny/tuning-seed12/stage2-{arm}-lr3e-4{end}"
    assert [(one["trainer.output"], one["optim.lr"]) for one in runs] == [(output, "3e-4")]
    starts = {one["model.path"] for one in runs} | {one["trainer.output"] + "/final" for one in of(told, "train_sft")}
    assert "checkpoints/tiny/tuning-seed12/stage1-rft/final" in starts
    assert "checkpoints/tiny/stage1-rft/final" not in starts
    (evaluated,) = of(told, "evaluate")
    assert evaluated["models"] == f"[3e-4:{output}/final]"
    assert "validation" in evaluated["problems"]
    assert "test_" not in evaluated["problems"]
    assert {one["seed"] for one in of(told, "pretrain_tiny")} == {"12"}
    refused = run(f"{SECTION}/tune_lr.sh", PROFILE="tiny", TUNING_SEEDS="3", DRY_RUN="1")
    assert (refused.returncode, "the seeds kept for tuning are 10 to 19" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("script", "place"),
    [
        ("section41_42/stage1_create_problems", "tiny-seed7/string"),
        ("section41_42/stage2_create_problems", "tiny-seed7-split2/string"),
        ("section43/create_countdown_data", "tiny-countdown-seed7-split2/countdown"),
        ("behavior_injection/generate_data", "tiny-injection-seed7-split2/igsm"),
        ("scaling_law/prepare_data", "tiny-scaling-seed7-split2/scaling"),
    ],
)
def test_a_problem_set_is_made_with_the_seeds_and_the_split_of_the_run(script: str, place: str) -> None:
    seeds = {"SEED": "7", "TEST_SEED": "5", "FUNCTION_SPLIT": "2"}
    (made,) = of(dry(f"bash/{script}.sh", "count=4", PROFILE="tiny", **seeds), "create_problems")
    assert (made["set"], made["output"], made["count"]) == (place.rpartition("/")[2], f"data/{place}_task", "4")
    assert (made["seed"], made.get("test_seed", "5"), made.get("function_split", "2")) == ("7", "5", "2")
    assert ("function_split" in made, "test_seed" in made) == ("stage2" in script, "stage1" not in script)


def test_one_arm_through_verl_works_in_the_folders_of_the_study() -> None:
    (told,) = of(dry(f"{SECTION}/stage2_rl_level2_verl.sh", PROFILE="single"), "train_grpo")
    assert (told["engine"], told["profile"]) == ("verl", "single/verl")
    assert told["model.path"] == "checkpoints/single/stage1-rft/final"
    assert told["trainer.output"] == "checkpoints/single/stage2-rl-level2-verl"


@pytest.mark.parametrize(
    ("script", "arguments", "variables", "told"),
    [
        ("stage1_rft", ["no.such.key=1"], {"PROFILE": "tiny"}, r"no\.such|no such|'no'"),
        (
            "stage1_rft",
            [],
            {"PROFILE": "huge"},
            "no profile huge; there are: instruct paper quick single small smoke tiny",
        ),
        ("stage1_rft", [], {"ENGINE": "vllm"}, "no engine vllm; there are: single verl"),
        ("stage1_rft", [], {"PROFILE": "paper", "ENGINE": "single"}, "profile paper has no numbers for ENGINE=single"),
        (
            "stage2_rft_loop",
            [],
            {"RFT_BUDGET": "large"},
            "RFT_BUDGET=large: choose original, problems, completions, updates",
        ),
        ("stage2_rft_loop", [], {"RFT_FILTER": "none"}, "RFT_FILTER=none: choose all or paper"),
        ("run_all", [], {"SEED": "1", "SEEDS": "2"}, "SEED=1 SEEDS=2: give one of the two"),
        ("run_all", [], {"SEEDS": "three"}, "SEEDS=three: give a whole number from 1"),
        ("run_all", [], {"ARMS": "rl-level9", "DRY_RUN": "1"}, "no arm rl-level9; there are: base stage1"),
        ("run_all", [], {"BACKEND": "cloud"}, "backend=cloud: choose local, ray or slurm"),
        ("stage2_rl_control", [], {"PROFILE": "tiny"}, "CONTROL=: choose shuffled, random or format"),
        ("stage2_rl_control", [], {"CONTROL": "format", "PROFILE": "paper"}, "only ENGINE=single has this reward"),
        ("arm", ["rl-level9"], {"DRY_RUN": "1"}, "no arm rl-level9; there are: base stage1"),
        (
            "arm",
            ["rl-level2"],
            {},
            r"arm rl-level2 starts from stage1, whose model \S+/stage1-rft/final does not exist",
        ),
        ("stage1_create_problems", ["colour=red"], {"PROFILE": "tiny"}, "colour"),
        ("arm", ["base", "rollout.n=8"], {}, "rollout.n=8: no step of bash/section41_42/arm.sh has this setting"),
        ("arm", ["base", "n_samples=few"], {"DRY_RUN": "1"}, "n_samples=few.*examples/evaluate.py"),
        ("stage1_create_train_data", ["n_sample=8"], {"DRY_RUN": "1"}, "n_sample=8: .*; did you mean n_samples"),
        ("stage1_create_train_data", [], {"PROFILE": "tiny", "MODEL_PATH": "no"}, "no: no such model folder"),
    ],
)
def test_p18_bad_input_is_one_line_and_exit_code_2(
    script: str, arguments: list[str], variables: dict[str, str], told: str, tmp_path: Path
) -> None:
    folders = {"DATA_DIR": str(tmp_path / "data"), "CKPT_DIR": str(tmp_path / "checkpoints")}
    done = run(
        f"{SECTION}/{script}.sh", *arguments, **{**folders, "RESULTS_DIR": str(tmp_path / "results"), **variables}
    )
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert re.search(told, errors[0])
    assert "Traceback" not in done.stderr


def test_without_an_environment_the_scripts_say_what_to_run() -> None:
    done = run(f"{SECTION}/stage1_rft.sh", PYTHON="no/such/python")
    assert done.returncode == 2
    assert done.stderr == "error: no no/such/python; run: bash bash/setup.sh\n"


def test_without_venv_the_active_python_is_taken_if_it_has_the_package(tmp_path: Path) -> None:
    """In a copy of the scripts beside which there is no .venv; a package in the current folder alone is not enough."""
    shutil.copytree(ROOT / "bash", tmp_path / "bash")
    (tmp_path / "compositionality").mkdir()
    (tmp_path / "compositionality/__init__.py").touch()
    (tmp_path / "bin").mkdir()
    for script, told in (
        (f'exec "{sys.executable}" "$@"', f"no .venv here; this runs with {tmp_path}/bin/python\n"),
        ("exit 1", "error: no .venv/bin/python; run: bash bash/setup.sh\n"),
    ):
        (tmp_path / "bin/python").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin/python").chmod(0o755)
        done = subprocess.run(
            ["bash", "bash/claims.sh"], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PROFILE": "tiny"},
        )  # fmt: skip
        assert done.stderr.startswith(told)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, ["tensor: 1", "engine: builtin", "shard: false", "apply_chat_template: true"]),
        ({"MODEL_PATH": "a/model", "N_GPUS": "8"}, ["tensor: 2", "engine: vllm", "processes: 8", "source: countdown"]),
    ],
)
def test_the_single_file_trainers_recipe_fits_the_trainer(
    given: dict[str, str], told: list[str], tmp_path: Path
) -> None:
    folders = {"DATA_DIR": str(tmp_path / "d"), "CKPT_DIR": str(tmp_path / "c")}
    if given:
        pytest.importorskip("vllm")
    done = run("bash/single_file/countdown.sh", "algorithm.clip_high=0.3", DRY_RUN="1", **folders, **given)
    assert done.returncode == 0, done.stderr
    for words in (*told, "clip_high: 0.3", "entropy_coef: 0.001"):
        assert words in done.stdout
    assert not [*tmp_path.iterdir()]


def test_a_model_of_ones_own_writes_beside_nothing_of_the_study() -> None:
    given = {"PROFILE": "tiny", "MODEL_PATH": "runs/My model/final"}
    (told,) = of(dry(f"{SECTION}/stage2_rl_level2.sh", **given), "train_grpo")
    assert told["trainer.output"] == "checkpoints/tiny/stage2-rl-level2-My-model"
    (told,) = of(dry(f"{SECTION}/evaluate.sh", **given), "evaluate")
    assert told["output"] == "results/tiny/section41_42-My-model"
    assert told["models"] == "['My-model:runs/My model/final']"
    (told,) = of(dry(f"{SECTION}/evaluate.sh", **given, MODEL_NAME="x", OUTPUT="o"), "evaluate")
    assert (told["output"], told["models"]) == ("o", "['x:runs/My model/final']")


def test_p18_a_missing_input_names_the_script_that_makes_it(tmp_path: Path) -> None:
    folders = {"PROFILE": "tiny", "CKPT_DIR": str(tmp_path / "c"), "DATA_DIR": str(tmp_path / "d")}
    for script, makes in (
        (f"{SECTION}/stage2_rl_level2", "section41_42/stage1_rft"),
        (f"{SECTION}/stage1_rft", "section41_42/stage0_pretrain"),
        (f"{SECTION}/stage1_create_train_data", "section41_42/stage0_pretrain"),
    ):
        done = run(f"{script}.sh", **folders)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].endswith(f"; bash bash/{makes}.sh makes it"), done.stderr
    done = run(f"{SECTION}/stage2_rl_level2.sh", MODEL_PATH=str(tmp_path / "mine"), **folders)
    assert done.returncode == 2
    assert "makes it" not in done.stderr
    assert maker("no model at checkpoints/tiny/stage1-rft/final").endswith("stage1_rft.sh makes it")
    assert maker("bash/behavior_injection/thin.jinja: no such file") == ""


def test_a_profile_for_verl_makes_its_problems_without_it(tmp_path: Path) -> None:
    """Only training asks for verl: in an environment that cannot import it, the paper's problems are made."""
    hidden = tmp_path / "verl"
    hidden.mkdir()
    (hidden / "__init__.py").write_text("raise ImportError('no verl here')\n")
    done = run(
        f"{SECTION}/stage1_create_problems.sh", "count=20", PROFILE="paper", DATA_DIR=str(tmp_path / "data"),
        PYTHONPATH=f"{tmp_path}:{ROOT}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data" / "string_task" / "stage1_level1" / "train.parquet").is_file()


def test_an_override_reaches_the_steps_that_know_it() -> None:
    told = dry(f"{SECTION}/arm.sh", "rl-level2", "trainer.steps=4", "n_samples=2", "--force", PROFILE="tiny")
    assert [(command[0], "trainer.steps=4" in command, "n_samples=2" in command) for command in told] == [
        ("train_grpo", True, False),
        ("evaluate", False, True),
    ]
    assert all("--force" in command for command in told)
    told = dry(f"{SECTION}/stage1_create_train_data.sh", "temperature=0.5", "val_fraction=0.5", PROFILE="tiny")
    assert [sorted({"temperature", "val_fraction"} & values(command).keys()) for command in told] == [
        ["temperature"],
        ["val_fraction"],
    ]


@pytest.mark.slow
@pytest.mark.long
def test_an_override_of_a_whole_study() -> None:
    quick = {"PROFILE": "smoke", "ARMS": "rl-level2", "PYTHON": str(ROOT / "tests/dry_python"), "DRY_RUN": "1"}
    told = dry("bash/study.sh", "rollout.n=8", "markdown=x.md", **quick)
    assert {command[0] for command in told if "rollout.n=8" in command} == {"train_grpo"}
    assert {command[0] for command in told if "markdown=x.md" in command} == {"summarise_seeds", "claims"}
    done = run(f"{SECTION}/run_all.sh", "rollout.m=8", **quick, REAL_PYTHON=sys.executable)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "error: rollout.m=8: no step of section41_42 has this setting; did you mean rollout.n"
    )
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("script", ["claims.sh", "report.sh"])
def test_a_section_that_there_is_not(script: str) -> None:
    done = run(f"bash/{script}", SECTION="section99", DRY_RUN="1")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no study section99; there are: ")


SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("bash/**/*.sh"), *ROOT.glob("bash/**/*.sbatch")]
)
SOURCED = {"bash/env.sh", "bash/functions.sh", "bash/help.sh"}


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_every_script_has_its_head_as_help(word: str, tmp_path: Path) -> None:
    for script in sorted({*SCRIPTS} - SOURCED):
        done = subprocess.run(
            ["bash", ROOT / script, "more", word], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        head = re.match(r"#!.*\n((?:#(?: .*)?\n)+)", (ROOT / script).read_text())
        assert head, script
        expected = [line[2:] for line in head[1].splitlines()]
        assert done.stdout.splitlines()[: len(expected)] == expected, script
        assert (done.returncode, done.stderr) == (0, ""), script
        for step in re.findall(r"examples/(\S+) --help", done.stdout):
            assert (ROOT / "examples" / step).is_file(), (script, step)
    assert not [*tmp_path.iterdir()]


def test_every_script_of_several_steps_shares_its_arguments() -> None:
    """Its steps have other keys: of the same entry point, or of one alone, the arguments go straight on."""
    for script in sorted({*SCRIPTS} - SOURCED):
        text = (ROOT / script).read_text()
        steps = set(re.findall(r"^[^#\n]*\b(?:run|script) (?:\S+/)?(\S+) ", text, re.MULTILINE))
        assert len(steps) < 2 or 'share "$@"' in text or script == "bash/section43/stage2_rl_level1to2.sh", script


def test_a_folder_may_have_any_letters(tmp_path: Path) -> None:
    folder = tmp_path / "donn\u00e9es (1), d'\u00e9t\u00e9"
    variables = {"PROFILE": "tiny", "DATA_DIR": f"{folder}/d", "CKPT_DIR": f"{folder}/c", "RESULTS_DIR": f"{folder}/r"}
    quoted = str(folder).replace("'", "''")
    (told,) = of(dry(f"{SECTION}/evaluate.sh", **variables), "evaluate")
    assert f"'stage1:{quoted}/c/stage1-rft/final'" in told["models"]
    audit, _ = dry("bash/report.sh", **variables)
    assert values(audit)["files"].startswith(f"['{quoted}/d/string_task/test_trained.parquet',")
    (claims,) = of(dry("bash/claims.sh", **variables), "claims")
    assert f"'accuracy/seed0:{quoted}/r/section41_42/results.parquet'" in claims["results"]
    (training,) = of(dry(f"{SECTION}/stage2_rl_level2.sh", **variables), "train_grpo")
    assert training["data.train_files"] == f"['{quoted}/d/string_task/stage2_level2/train.parquet']"
    for _ in range(2):
        done = run(f"{SECTION}/stage1_create_problems.sh", "count=20", **variables)
        assert done.returncode == 0, done.stderr
    assert "is already there" in done.stdout


NO_NETWORK = ["unshare", "--net", "--map-root-user"]


@pytest.mark.skipif(subprocess.run([*NO_NETWORK, "true"], check=False).returncode != 0, reason="no network namespaces")
def test_p14_nothing_needs_the_network(tmp_path: Path) -> None:
    """Problems, answers of a model made on the spot, filter and table, with no network interface at all."""
    code = (
        "import sys; from pathlib import Path; from compositionality.train.tiny import corpus, model, tokenizer as t\n"
        "made = t.build_tokenizer(corpus.definition_names())\n"
        "[part.save_pretrained(sys.argv[1]) for part in (model.build_model(model.TinyConfig(), made, 0), made)]"
    )
    python, problems, base = sys.executable, str(tmp_path / "problems.parquet"), str(tmp_path / "model")
    commands = [
        [python, "-c", code, base],
        [python, "examples/create_problems.py", "task=string", f"output={problems}", "count=8", "style=compact",
         "max_length=20"],
        [python, "examples/evaluate.py", f"models=[m:{base}]", f"problems=[{problems}]", f"output={tmp_path / 'table'}",
         "engine=transformers", "max_tokens=8"],
    ]  # fmt: skip
    for command in commands:
        done = subprocess.run([*NO_NETWORK, *command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "table" / "results.parquet").is_file()


@pytest.mark.parametrize("script", ["quickstart", "setup"])
def test_unknown_options_are_refused(script: str) -> None:
    done = run(f"bash/{script}.sh", "--fast")
    assert done.returncode == 2
    assert "unknown option --fast" in done.stderr


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / f"requirements-{name}.lock").read_text().split()
    return dict(line.split("==") for line in lines)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_small_set_is_a_part_of_the_full_one(device: str) -> None:
    small, full = pins(f"{device}-small"), pins(device)
    assert small.items() < full.items()
    assert {"torch", "transformers", "pandas", "pyarrow", "altair", "hydra-core"} <= small.keys()
    assert {"verl", "ray", "wandb"}.isdisjoint(small)


def test_what_the_tests_add_changes_no_pin() -> None:
    assert pins("dev").keys().isdisjoint(pins("cpu").keys())
