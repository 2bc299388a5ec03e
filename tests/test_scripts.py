"""The scripts under bash/: every profile composes, every step says what it would run, bad input is one line."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from bash_runs import ROOT, commands, run

SECTION = "bash/section41_42"


VERL = [("tiny", "verl"), ("smoke", "verl"), ("single", "verl"), ("instruct", ""), ("paper", "")]
SINGLE = [("tiny", ""), ("smoke", ""), ("single", "")]


@pytest.mark.full
@pytest.mark.parametrize("script", ["stage1_rft", "stage2_rl_level2"])
@pytest.mark.parametrize(("profile", "engine"), VERL)
def test_p12_every_profile_composes_against_the_pinned_verl(profile: str, engine: str, script: str) -> None:
    done = run(f"{SECTION}/{script}.sh", PROFILE=profile, ENGINE=engine, DRY_RUN="1")
    assert done.returncode == 0, done.stderr
    started = "torchrun" if script == "stage1_rft" else "compositionality.train.verl.grpo_trainer"
    assert started in done.stdout.replace("torch.distributed.run", "torchrun")


@pytest.mark.parametrize(("script", "trainer"), [("stage1_rft", "sft"), ("stage2_rl_level2", "grpo")])
@pytest.mark.parametrize(("profile", "engine"), SINGLE)
def test_the_numbers_of_a_profile_fit_the_single_file_trainers(
    profile: str, engine: str, script: str, trainer: str
) -> None:
    done = run(f"{SECTION}/{script}.sh", PROFILE=profile, ENGINE=engine, DRY_RUN="1")
    assert f"examples/train_{trainer}.py engine=single model.path=" in commands(done)
    assert f"output: checkpoints/{profile}/" in done.stdout  # the trainer has read the settings and shows them


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "engine"), [*VERL, *SINGLE])
def test_the_whole_section_composes(profile: str, engine: str) -> None:
    done = run(f"{SECTION}/run_all.sh", PROFILE=profile, ENGINE=engine, DRY_RUN="1", ARMS="rl-level1 rl-level1to2 rft")
    told = commands(done)
    entry_points = "create_problems collect_rollouts filter_rollouts split_chunks evaluate summarise_seeds draw_figure"
    for verb in entry_points.split():
        assert f"examples/{verb}.py" in told
    assert ("pretrain_tiny" in told) == (profile in ("tiny", "smoke", "single"))
    assert ("train_grpo.py engine=verl" in told) == ((profile, engine) in VERL)
    assert ("train_grpo.py engine=single" in told) == ((profile, engine) in SINGLE)
    of_its_own = (profile, engine) in (("tiny", "verl"), ("smoke", "verl"), ("single", "verl"))
    assert f"checkpoints/{profile}{'-verl' if of_its_own else ''}/stage2-rl-level1/final" in told


@pytest.mark.slow
def test_several_seeds_have_folders_of_their_own_and_one_summary() -> None:
    told = commands(run(f"{SECTION}/run_all.sh", PROFILE="smoke", DRY_RUN="1", SEEDS="2", ARMS="rl-level2"))
    for study in ("smoke", "smoke-seed1"):
        assert f"examples/pretrain_tiny.py output=checkpoints/{study}/base seed={int(study != 'smoke')}" in told
        assert f"trainer.output=checkpoints/{study}/stage2-rl-level2" in told
    inputs = [f"seed{seed}:results/smoke{end}/section41_42/accuracy.json" for seed, end in ((0, ""), (1, "-seed1"))]
    assert "\\,".join(inputs) in told


@pytest.mark.parametrize(
    ("profile", "section", "countdown"),
    [("tiny", "section41_42", "tiny-countdown"), ("tiny", "section43", "tiny-countdown"), ("paper", "", "paper")],
)
def test_the_claims_are_about_all_sections_of_a_profile(profile: str, section: str, countdown: str) -> None:
    told = commands(run("bash/claims.sh", PROFILE=profile, SECTION=section, DRY_RUN="1", SEEDS="2"))
    for word in (
        rf"accuracy=\[seed0:results/{profile}/section41_42/accuracy.json\,seed1:results/{profile}-seed1/section41_42/",
        rf"countdown=\[seed0:results/{countdown}/section43/accuracy.json\,seed1:results/{countdown}-seed1/section43/",
        rf"passk=\[seed0:results/{profile}/section44/by_problem.parquet\,",
        rf"failures=\[seed0:results/{profile}/section45/by_problem.parquet\,",
        f"output=results/{profile}/claims.json",
    ):
        assert word in told


def test_claims_without_any_result_are_one_line(tmp_path: Path) -> None:
    done = run("bash/claims.sh", PROFILE="tiny", RESULTS_DIR=str(tmp_path / "tiny"))
    assert done.returncode == 2
    assert "error: no results: give at least one of accuracy, countdown, passk, failures" in done.stderr


@pytest.mark.parametrize(("control", "reward"), [("shuffled", "shuffle=true"), ("format", "shape=format")])
def test_controls_differ_from_rl_on_level_2_in_the_reward_alone(control: str, reward: str) -> None:
    control_told = commands(run(f"{SECTION}/stage2_rl_control.sh", PROFILE="tiny", DRY_RUN="1", CONTROL=control))
    told = commands(run(f"{SECTION}/stage2_rl_level2.sh", PROFILE="tiny", DRY_RUN="1"))
    name = f"stage2-rl-level2-{control}"
    assert control_told == told.replace("stage2-rl-level2 ", f"{name} ") + f" reward.{reward}"
    arm = commands(run(f"{SECTION}/arm.sh", f"rl-level2-{control}", PROFILE="tiny", DRY_RUN="1"))
    assert f"models=\\[rl-level2-{control}:checkpoints/tiny/{name}/final\\]" in arm


def test_arguments_reach_the_trainer() -> None:
    done = run(
        f"{SECTION}/stage2_rl_level2.sh", "optim.lr=0.125", PROFILE="paper", DRY_RUN="1",
        NNODES="4", N_GPUS="4", RAY_ADDRESS="10.0.0.1:6379", MODEL_PATH="some/model",
    )  # fmt: skip
    assert "optim.lr=0.125" in commands(done)
    assert "model.path=some/model" in commands(done)


def test_both_budgets_of_rft_have_folders_of_their_own() -> None:
    told = {}
    for budget in ("original", "rl"):
        variables = {"PROFILE": "tiny", "ENGINE": "verl", "DRY_RUN": "1", "ITERATION": "1", "RFT_BUDGET": budget}
        told[budget] = "".join(
            commands(run(f"{SECTION}/{script}.sh", **variables))
            for script in ("stage2_rft_create_problems", "stage2_rft_create_train_data", "stage2_rft_train")
        )
    for word in ("stage2-rft-iteration0/final", "stage2_level2_rft/iteration1/data", "n_samples=2"):
        assert word in told["original"]
    for word in ("stage2-rft-matched-iteration0/final", "stage2_level2_rft_matched/iteration1/data", "n_samples=4"):
        assert word in told["rl"]
        assert word not in told["original"]


def test_the_test_problems_are_the_same_for_every_seed_and_the_others_are_not() -> None:
    told = {seed: commands(run(f"{SECTION}/stage2_create_problems.sh", SEED=seed, DRY_RUN="1")) for seed in "07"}
    seeds = {seed: re.findall(r"(\w+)\.parquet .*?split=(\w+) seed=(\d+)", text) for seed, text in told.items()}
    assert [name for name, *_ in seeds["0"]] == [name for name, *_ in seeds["7"]]
    for (_, split, ours), (_, _, other) in zip(seeds["0"], seeds["7"], strict=True):
        assert (ours, other) == ("2027", "2027") if split == "test" else int(other) == int(ours) + 7


def test_one_arm_through_verl_works_in_the_folders_of_the_study() -> None:
    told = commands(run(f"{SECTION}/stage2_rl_level2_verl.sh", PROFILE="single", DRY_RUN="1"))
    assert "model.path=checkpoints/single/stage1-rft/final" in told
    assert "trainer.output=checkpoints/single/stage2-rl-level2-verl" in told


@pytest.mark.parametrize(
    ("script", "arguments", "variables", "told"),
    [
        ("stage1_rft", ["no.such.key=1"], {"PROFILE": "tiny"}, r"no\.such|no such|'no'"),
        ("stage1_rft", ["no.such.key=1"], {"PROFILE": "tiny", "ENGINE": "verl"}, r"no\.such|no such"),
        ("stage1_rft", [], {"PROFILE": "huge"}, "no profile huge; there are: instruct paper single smoke tiny"),
        ("stage1_rft", [], {"ENGINE": "vllm"}, "no engine vllm; there are: single verl"),
        ("stage1_rft", [], {"PROFILE": "paper", "ENGINE": "single"}, "profile paper has no numbers for ENGINE=single"),
        ("stage2_rft_loop", [], {"RFT_BUDGET": "large"}, "RFT_BUDGET=large: choose original or rl"),
        ("run_all", [], {"SEED": "1", "SEEDS": "2"}, "SEED=1 SEEDS=2: give one of the two"),
        ("run_all", [], {"SEEDS": "three"}, "SEEDS=three: whole numbers"),
        ("stage2_rl_control", [], {"PROFILE": "tiny"}, "CONTROL=: choose shuffled or format"),
        ("stage2_rl_control", [], {"CONTROL": "format", "PROFILE": "paper"}, "only ENGINE=single has this reward"),
        ("arm", ["rl-level9"], {"DRY_RUN": "1"}, "no model rl-level9; there are: base stage1"),
        ("stage1_create_problems", ["colour=red"], {"PROFILE": "tiny"}, "colour"),
        ("stage1_create_train_data", [], {"PROFILE": "tiny", "MODEL_PATH": "no"}, "train.parquet: no such file"),
    ],
)
def test_p18_bad_input_is_one_line_and_exit_code_2(
    script: str, arguments: list[str], variables: dict[str, str], told: str, tmp_path: Path
) -> None:
    folders = {"DATA_DIR": str(tmp_path / "data"), "CKPT_DIR": str(tmp_path / "checkpoints")}
    done = run(f"{SECTION}/{script}.sh", *arguments, **{**folders, **variables})
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert re.search(told, errors[0])
    assert "Traceback" not in done.stderr


def test_engine_verl_without_verl_is_one_line(tmp_path: Path) -> None:
    """In a checkout whose .venv holds the small set only."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "bash").symlink_to(ROOT / "bash")
    script = tmp_path / "step.sh"
    script.write_text('cd "$(dirname "$0")" && source bash/lib.sh\n')
    done = run(str(script), PROFILE="tiny", ENGINE="verl")
    assert done.returncode == 2
    assert "run: bash bash/setup.sh --full" in done.stderr


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
    assert (tmp_path / "table" / "accuracy.json").is_file()


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
    assert {"torch", "transformers", "pandas", "pyarrow", "matplotlib", "hydra-core"} <= small.keys()
    assert {"verl", "ray", "wandb"}.isdisjoint(small)


def test_what_the_tests_add_changes_no_pin() -> None:
    assert pins("dev").keys().isdisjoint(pins("cpu").keys())
