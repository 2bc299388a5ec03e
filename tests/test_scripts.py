"""The scripts under bash/: their shape, what they run, bad input in one line."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import pytest
from bash_runs import OF_A_PERSON, ROOT, dry, run, typed, values

from compositionality.config.cli import maker
from compositionality.study.steps import STEP_VARIABLES, read_script, words_of
from compositionality.study.variables import misspelt

SECTION = "bash/section41_42"
EXEMPT = {
    *("env", "verl", "setup", "test", "lock", "quickstart", "confirmatory", "single_file/countdown"),
    *("scaling_law/run_multi_domain", "scaling_law/run_single_domain", "scaling_law/check_data"),
    *("behavior_injection/run_qwen2.5_1.5b", "behavior_injection/run_rl_qwen2.5_1.5b", "scaling_law/run_qwen2.5_7b"),
    *("section41_42/run_llama3.1_8b", "section43/run_llama3.1_8b"),
}
"""Scripts that are not one step of a study."""
SCRIPTS = sorted(path.relative_to(ROOT / "bash").with_suffix("").as_posix() for path in ROOT.glob("bash/**/*.sh"))
STEPS = [name for name in SCRIPTS if name not in EXEMPT]
OF_A_RUN = {"PROFILE", "STUDY", "SEED", "SPLIT", "TEST_SEED", "DATA", "CKPT", "RESULTS", "PROBLEMS", "OWN"}
OF_A_STUDY = {"BASE_MODEL", "CHAT_TEMPLATE", "N_GPUS"}


def write_python(folder: Path, text: str) -> str:
    """A program of these lines of sh, to give as PYTHON."""
    (folder / "python").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "python").chmod(0o755)
    return str(folder / "python")


def start(monkeypatch: pytest.MonkeyPatch, script: str, *words: str, **variables: str) -> object:
    """The exit code of a script's one command, run in this process on a machine without GPUs."""
    ((entry, *told),) = dry(f"{SECTION}/{script}.sh", *words, **variables)
    for name in OF_A_PERSON:
        monkeypatch.delenv(name, raising=False)
    for name, value in {"CUDA_VISIBLE_DEVICES": "", **variables}.items():
        monkeypatch.setenv(name, value)
    return typed(entry, [word for word in told if word != "--dry-run"])


@pytest.mark.parametrize("name", STEPS)
def test_a_script_is_a_comment_its_variables_and_one_run_line(name: str) -> None:
    text = (ROOT / f"bash/{name}.sh").read_text()
    code = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert code[0].startswith('source "$(dirname "$0")/')
    assert sum(line.startswith("run ") for line in code) == 1
    assert all(";" not in line for line in text.splitlines() if not line.startswith("#"))
    own = {line.partition("=")[0] for line in code[1:] if re.match("[A-Z_]+=", line)}
    assert own <= {*STEP_VARIABLES, "PROBLEMS"}
    read = set(re.findall(r"\$\{?(\w+)", "\n".join(code[1:])))
    assert read <= {*STEP_VARIABLES, *OF_A_RUN, *OF_A_STUDY}
    assert len(code) <= 10
    assert len(text.splitlines()) <= 13
    assert not re.search(r"^\s*(for|while|until|if|case|function)\b|\(\)", "\n".join(code), re.MULTILINE)


def test_no_line_of_a_script_is_too_long() -> None:
    files = [*ROOT.glob("bash/**/*.sh"), *ROOT.glob("bash/**/*.sbatch")]
    assert [path for path in files if max(map(len, path.read_text().splitlines())) > 140] == []


@pytest.mark.parametrize(
    "given", [{}, {"MODEL_PATH": "some lab's/model", "OUTPUT": "o, p", "N_SAMPLES": "3", "SEED": "4"}]
)
def test_a_script_is_read_as_bash_reads_it(given: dict[str, str]) -> None:
    """The plan knows each script's command without bash; a sample of all kinds of words."""
    for name in STEPS:
        script = read_script(name)
        assert script is not None, name
        if script.entry_point in ("run_study", "gpu_check"):
            continue
        (told,) = dry(f"bash/{name}.sh", "more=1", STUDY="s", **given)
        place = f"s/seed{given.get('SEED', '0')}"
        folders = {"DATA": f"data/{place}", "CKPT": f"checkpoints/{place}", "RESULTS": f"results/{place}"}
        variables = {"PROFILE": "tiny", "SEED": "0", "SPLIT": "0", "TEST_SEED": "2027", **given, **folders}
        assert told[0] == script.entry_point
        assert told[1:-1] == ["profile=tiny", f"step={name}", *words_of(script, variables, ("more=1",))], name


def test_a_model_files_and_an_output_of_ones_own_always_reach_the_command() -> None:
    given = {"MODEL_PATH": "some/model", "TRAIN_FILES": "[a.parquet,b.parquet]", "VAL_FILES": "", "OUTPUT": "o"}
    (told,) = map(values, dry(f"{SECTION}/stage2_rl_level2.sh", "optim.lr=0.125", PROFILE="paper", **given))
    assert (told["model.path"], told["trainer.output"], told["optim.lr"]) == ("some/model", "o", "0.125")
    assert (told["data.train_files"], told["data.val_files"]) == ("[a.parquet,b.parquet]", "")
    (told,) = map(values, dry(f"{SECTION}/stage1_rollouts.sh", DATA="p.parquet", N_SAMPLES="5"))
    assert (told["problems"], told["n_samples"]) == ("p.parquet", "5")


def test_what_another_model_makes_has_its_name() -> None:
    read = {name: script for name in STEPS if (script := read_script(name)) and script.entry_point != "gpu_check"}
    makers = [name for name, script in read.items() if {"MODEL_PATH", "OUTPUT"} <= dict(script.assignments).keys()]
    assert len(makers) > 20
    place = {"DATA": "d", "CKPT": "c", "RESULTS": "r", "SEED": "0", "PROFILE": "tiny"}

    def outputs(name: str, **given: str) -> set[str]:
        words = dict(word.partition("=")[::2] for word in words_of(read[name], {**place, **given}))
        return {words.get("output", words.get("trainer.output", ""))}

    for name in makers:
        for model in ("hub/mine", "runs/mine/final", "runs/mine/best/", "[x:runs/base,y:runs/mine/final]"):
            (own,), (usual,) = outputs(name, MODEL_PATH=model), outputs(name)
            assert own != usual
            assert own.replace("-mine", "") == usual
            assert outputs(name, MODEL_PATH=model, OUTPUT="o") == {"o"}
    for model in ("hub/mine", "runs/mine/final", "runs/mine/best/", "[x:runs/base,y:runs/mine/final]"):
        (told,) = map(values, dry(f"{SECTION}/evaluate.sh", MODEL_PATH=model))
        assert told["output"] == "results/composition/seed0/section41_42-mine"


def test_the_folders_of_a_run() -> None:
    verl = {"PROFILE": "smoke/verl", "SEED": "2", "SPLIT": "3"}
    for script, given, place in (
        ("section41_42/stage1_rft", {}, "composition/seed0"),
        ("section41_42/stage1_rft", verl, "composition-smoke-verl/seed2-split3"),
        ("section43/stage1_rft", {"SEED": "1"}, "countdown/seed1"),
        ("behavior_injection/sft", {"PROFILE": "paper"}, "injection-paper/seed0"),
        ("scaling_law/train", {"STUDY": "my-own"}, "my-own/seed0"),
    ):
        for roots, checkpoints in (({}, "checkpoints"), ({"CKPT_DIR": "/big"}, "/big")):
            (told,) = map(values, dry(f"bash/{script}.sh", **given, **roots))
            assert told["trainer.output"].startswith(f"{checkpoints}/{place}/")


def test_p18_files_that_a_script_cannot_take_are_answered() -> None:
    done = run(f"{SECTION}/stage1_rft.sh", DATA="x")
    assert done.stderr == "error: DATA=x: this script does not sample; give TRAIN_FILES\n"
    for files in ("[a/b.parquet,c/d.parquet]", "b.parquet"):
        done = run(f"{SECTION}/stage1_rft.sh", TRAIN_FILES=files)
        assert done.returncode == 2
        assert f"TRAIN_FILES={files}: which file to validate on is not clear; give VAL_FILES too" in done.stderr


def test_p18_a_seed_or_a_study_that_is_none_is_refused_and_not_evaluated() -> None:
    seeds = ("abc", "08", "-1", "1.5", "1000000000", "SEED[$(touch ran)0]")
    said = "give a whole number from 0 to 999999999 without leading zeros"
    refusals = [("SEED", value, said) for value in seeds] + [(name, seeds[-1], said) for name in ("SPLIT", "TEST_SEED")]
    said = "give letters, digits, dots, dashes, underscores"
    refusals += [("STUDY", value, said) for value in ("a/b/c", "..", "/abs", "a:b", "[a")]
    for name, value, said in refusals:
        done = run(f"{SECTION}/stage2_rl_level2.sh", DRY_RUN="1", **{name: value})
        assert (done.returncode, done.stderr) == (2, f"error: {name}={value}: {said}\n")
    assert not (ROOT / "ran").exists()


def test_p18_a_misspelt_variable_is_named_and_behind_a_script_refused(tmp_path: Path) -> None:
    """By a Python that runs nothing but the check of variables."""
    python = write_python(tmp_path, f'case "$*" in *variables.py*) exec {sys.executable} "$@" ;; esac')
    for script, words, variables, code, told in (
        ("stage1_rft", [], {"MODLE_PATH": "m"}, 0, "note: MODLE_PATH: {}give MODEL_PATH, if it was meant for this"),
        ("stage1_rft", ["MODLE_PATH=m"], {}, 2, "error: MODLE_PATH: {}give MODEL_PATH\n"),
        (
            "stage2_create_problems",
            [],
            {"TRAIN_FILES": "a/b"},
            0,
            "note: TRAIN_FILES: {}give it to a script that reads it",
        ),
        ("run_all", ["MODEL_PATH=m"], {}, 2, "error: MODEL_PATH: {}give BASE_MODEL to a study\n"),
        ("run_all", ["FUNCTION_SPLIT=3"], {}, 2, "error: FUNCTION_SPLIT: {}give SPLIT\n"),
        ("stage1_rft", ["COLOUR=red"], {}, 0, "note: COLOUR: {}it is passed on to the program\n"),
    ):
        done = run(f"{SECTION}/{script}.sh", *words, PYTHON=python, **variables)
        assert done.returncode == code
        assert done.stderr.startswith(told.format(f"{SECTION}/{script}.sh reads no such variable; ")), done.stderr

    step, study = "section41_42/stage2_rl_level2", "section41_42/run_all"
    meant = {"NUM_GPUS": "N_GPUS", "PROFIL": "PROFILE", "SEEDS": "SEED"}
    assert misspelt(step, meant) == meant
    assert misspelt(study, ["SEEDS", "SEED", "ARM"]) == {"ARM": "ARMS"}
    of_others = (
        "AWS_PROFILE BASE_MODEL DATA_ROOT HF_HOME MODEL_NAME OUTPUT_DIR PATH PYTHONPATH PYTHON_VERSION SLURM_NNODES"
    )
    for name in (*STEPS, study):
        assert not misspelt(
            name, [*of_others.split(), *STEP_VARIABLES, "CUDA_VISIBLE_DEVICES", "DATA_DIR", "TEST_SEED"]
        )


@pytest.mark.parametrize(
    ("script", "arguments", "variables", "told"),
    [
        ("stage1_rft", ["no.such.key=1"], {}, r"no\.such|no such|'no'"),
        ("run_all", [], {"SEED": "1", "SEEDS": "2"}, "SEED=1 SEEDS=2: give only one of the two"),
        ("run_all", [], {"SPLIT": "1", "SEEDS": "2"}, "SPLIT=1 SEEDS=2: give only one of the two"),
        ("run_all", [], {"SEEDS": "three"}, "SEEDS=three: give a whole number from 1"),
        ("run_all", [], {"SEEDS": "1000000"}, "SEEDS=1000000: give a whole number from 1 to 1000"),
        ("run_all", [], {"BACKEND": "cloud"}, "backend=cloud: choose local, ray or slurm"),
        ("run_all", [], {"CKPT_DIR": "README.md", "DRY_RUN": "1"}, "CKPT_DIR=README.md: is a file; give a folder"),
        (
            "run_all",
            [],
            {"MODEL_PATH": "m"},
            "MODEL_PATH=m: this variable is for a single script; give a study BASE_MODEL",
        ),
        (
            "../report",
            [],
            {"STUDY": "composition-9"},
            "STUDY=composition-9: no study .* has been run; .* you mean c",
        ),
        ("run_all", ["optim.lr=1"], {}, "optim.lr: no such setting; a key of one step is STEP:KEY="),
        ("stage1_rollouts", [], {"MODEL_PATH": "no"}, "no: no such model folder"),
    ],
)
def test_p18_bad_input_is_one_line_and_exit_code_2(
    script: str, arguments: list[str], variables: dict[str, str], told: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    code = start(monkeypatch, script, *arguments, **{**folders, "PROFILE": "tiny", **variables})
    shown = capsys.readouterr().err
    errors = [line for line in shown.splitlines() if line.startswith("error: ")]
    assert (code, len(errors)) == (2, 1)
    assert re.search(told, errors[0]), errors
    assert "Traceback" not in shown
    assert script != "run_all" or not [*tmp_path.iterdir()]


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["tiny", "paper"])
def test_a_dry_run_checks_every_step_and_writes_nothing(profile: str, tmp_path: Path) -> None:
    """As its start would do it, on a machine with the profile's GPUs."""
    if profile == "paper":
        pytest.importorskip("verl")
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    own = {"PROFILE": profile, "DRY_RUN": "1", **({"N_GPUS": "8"} if profile == "paper" else {})}
    done = run("bash/study.sh", **own, **folders)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\d+ steps: all settings checked, nothing was run$", done.stderr, re.MULTILINE)
    assert not [*tmp_path.iterdir()]
    done = run("bash/study.sh", "only=[rl-level2]", "rl-level2:rollout.n=1", **own, **folders)
    assert done.returncode == 2
    assert "error: seed0/rl-level2: rollout.n=1: a group of one" in done.stderr


def test_a_studys_script_prints_the_plan_for_its_variables(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"PROFILE": "tiny", "ARMS": "rl-level2", "STUDY": "mine", "SEEDS": "2"}
    assert start(monkeypatch, "run_all", "print=json", **given) == 0
    steps = {step["key"]: step for step in json.loads(capsys.readouterr().out)}
    assert steps["seed1/rl-level2"]["settings"]["model"]["path"] == "checkpoints/mine/seed1/stage1-rft/final"


def test_without_venv_the_active_python_is_taken_if_it_has_the_package(tmp_path: Path) -> None:
    """In a copy of the scripts beside which there is no .venv; a package in the current folder alone is not enough."""
    done = run(f"{SECTION}/stage1_rft.sh", PYTHON="no/such/python")
    assert (done.returncode, done.stderr) == (2, "error: no no/such/python; run: bash bash/setup.sh\n")
    shutil.copytree(ROOT / "bash", tmp_path / "bash")
    (tmp_path / "compositionality").mkdir()
    (tmp_path / "compositionality/__init__.py").touch()
    (tmp_path / "bin").mkdir()
    for script, told in (
        (f'exec "{sys.executable}" "$@"', f"no .venv here; using {tmp_path}/bin/python\n"),
        ("exit 1", "error: no .venv/bin/python; run: bash bash/setup.sh\n"),
    ):
        write_python(tmp_path / "bin", script)
        done = subprocess.run(
            ["bash", "bash/section41_42/stage1_rft.sh"], cwd=tmp_path, capture_output=True, text=True, check=False,
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
    given: dict[str, str], told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Its commands run in this process."""
    folders = {"DATA_DIR": str(tmp_path / "d"), "CKPT_DIR": str(tmp_path / "c")}
    if given:
        pytest.importorskip("vllm")
    python = write_python(tmp_path, """exec bash -c 'printf "%q " "$@"; echo' python "$@" """)
    more = {"DRY_RUN": "1", "PYTHON": python, **folders, **given}
    done = run("bash/single_file/countdown.sh", "algorithm.clip_high=0.3", **more)
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(ROOT)
    for program, *words in map(shlex.split, done.stdout.splitlines()):
        entry = os.path.relpath(program, "examples").removesuffix(".py")
        assert typed(entry, words) in (0, None), capsys.readouterr().err
    shown = capsys.readouterr().out
    for words in (*told, "clip_high: 0.3", "entropy_coef: 0.001"):
        assert words in shown
    assert [path.name for path in tmp_path.iterdir()] == ["python"]


def test_p18_a_missing_input_names_the_script_that_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = {"PROFILE": "tiny", "CKPT_DIR": str(tmp_path / "c"), "DATA_DIR": str(tmp_path / "d")}
    assert start(monkeypatch, "stage2_rl_level2", **folders) == 2
    assert capsys.readouterr().err.endswith("; bash bash/section41_42/stage1_rft.sh makes it\n")
    for path, makes in (
        ("checkpoints/composition/seed0/base", "section41_42/stage0_pretrain"),
        ("checkpoints/countdown/seed1/base", "section43/stage0_pretrain"),
        (
            "data/composition/seed0-split3/string_task/stage2_level2/train.parquet",
            "section41_42/stage2_create_problems",
        ),
        ("data/injection/seed0/igsm_task/rl.parquet", "behavior_injection/generate_data"),
    ):
        assert maker(f"no model at {path}").endswith(f"{makes}.sh makes it")
    named = "results/composition/seed0/section41_42/results.parquet: make it with bash bash/section41_42/run_all.sh"
    for path in ("bash/behavior_injection/thin.jinja", "elsewhere/other", named):
        assert maker(f"{path}: no such file") == ""


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
    assert (tmp_path / "data/composition-paper/seed0/string_task/stage1_level1/train.parquet").is_file()


def test_every_script_has_its_head_as_help(tmp_path: Path) -> None:
    sourced = {ROOT / "bash/env.sh", ROOT / "bash/verl.sh"}
    scripts = sorted({*ROOT.glob("bash/**/*.sh"), *ROOT.glob("bash/**/*.sbatch")} - sourced)
    for script, word in zip(scripts, cycle(("--help", "-h"))):
        done = subprocess.run(
            ["bash", script, "more", word], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        text = script.read_text()
        head = re.match(r"#!.*\n((?:#(?: .*)?\n)+)", text)
        assert head, script
        lines = [line[2:] for line in head[1].splitlines()]
        if re.search(r"^(source|\.) .*/env\.sh", text, re.M) and not any(line.startswith("Usage") for line in lines):
            lines.append(
                f"Usage: [NAME=value …] bash {script} [key=value …]   "
                "names: bash/README.md; keys: --help of its Python program"
            )
        assert done.stdout.splitlines() == lines, script
        assert (done.returncode, done.stderr) == (0, ""), script
    assert not [*tmp_path.iterdir()]


def test_a_folder_may_have_any_letters(tmp_path: Path) -> None:
    folder = tmp_path / "donn\u00e9es (1), d'\u00e9t\u00e9"
    own = {"PROFILE": "tiny", "DATA_DIR": f"{folder}/d", "CKPT_DIR": f"{folder}/c", "RESULTS_DIR": f"{folder}/r"}
    for _ in range(2):
        done = run(f"{SECTION}/stage1_create_problems.sh", "count=20", **own)
        assert done.returncode == 0, done.stderr
    assert "is already there" in done.stdout


def test_a_repository_behind_a_link_runs_the_same_commands(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ROOT)
    for script in ("bash/section43/stage2_rl_level1to2.sh", f"{SECTION}/stage1_rft.sh"):
        assert dry(str(tmp_path / "link" / script)) == dry(script)


NO_NETWORK = ["unshare", "--net", "--map-root-user"]


@pytest.mark.skipif(subprocess.run([*NO_NETWORK, "true"], check=False).returncode != 0, reason="no network namespaces")
def test_p14_nothing_needs_the_network(tmp_path: Path) -> None:
    """Problems, answers of a model made on the spot, filter and table, with no network interface at all."""
    code = """
import sys
from compositionality.__main__ import main
from compositionality.train.tiny import corpus, model
vocabulary = model.build_tokenizer(corpus.definition_names())
for part in (model.build_model(model.TinyConfig(), vocabulary, 0), vocabulary):
    part.save_pretrained("model")
for line in sys.stdin.read().splitlines():
    sys.argv = ["compositionality", *line.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code
"""
    commands = """create_problems task=string output=problems.parquet count=8 style=compact max_length=20
evaluate models=[m:model] problems=[problems.parquet] output=table engine=transformers max_tokens=8"""
    done = subprocess.run(
        [*NO_NETWORK, sys.executable, "-c", code], cwd=tmp_path, input=commands, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "table" / "results.parquet").is_file()


@pytest.mark.parametrize(
    ("script", "words", "variables", "told"),
    [
        ("quickstart", ["--fast"], {}, "quickstart.sh: unknown option --fast; known: --cpu"),
        ("setup", ["--fast"], {}, "setup.sh: unknown option --fast; known: --cpu"),
        ("test", ["--unknown"], {}, "test.sh: unknown option --unknown; known: --fast"),
        ("test", ["tests", "--fast"], {}, "test.sh: --fast: give one such word, before all others"),
        *(("quickstart", [], {"SEEDS": one}, f"SEEDS={one}: give a whole number") for one in ("abc", "0", "1001")),
        *(("quickstart", [], {"PROFILE": name}, f"PROFILE={name}: no such profile; there are: instruct")
          for name in ("nope", "tiny/nope", "../x", "small smoke", "*")),
    ],
)  # fmt: skip
def test_p18_what_is_refused_is_refused_before_anything_is_installed(
    script: str, words: list[str], variables: dict[str, str], told: str, tmp_path: Path
) -> None:
    """In a copy, without an environment, on a machine without Python."""
    shutil.copytree(ROOT / "bash", tmp_path / "bash")
    shutil.copytree(ROOT / "compositionality/config/profile", tmp_path / "compositionality/config/profile")
    path = tmp_path / "programs"
    path.mkdir()
    for program in ("bash", "dirname"):
        (path / program).symlink_to(shutil.which(program) or program)
    done = subprocess.run(
        [path / "bash", tmp_path / f"bash/{script}.sh", *words], env={"PATH": str(path), **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.startswith(f"error: {told}"), done.stdout) == (2, True, ""), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / ".venv").exists()


def test_wandb_has_one_group_for_all_seeds_of_a_study(tmp_path: Path) -> None:
    python = write_python(tmp_path, 'echo "$WANDB_RUN_GROUP"')
    for variables, expected in (
        ({"SEED": "2", "SPLIT": "1"}, "composition"),
        ({"STUDY": "mine", "SEED": "1"}, "mine"),
        ({"PROFILE": "paper"}, "composition-paper"),
        ({"WANDB_RUN_GROUP": "other"}, "other"),
    ):
        done = run(f"{SECTION}/stage1_rft.sh", **{"PYTHON": python, "PROFILE": "tiny", **variables})
        assert done.stdout.split()[-1] == expected
