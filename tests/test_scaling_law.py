"""The scaling study: sizes that differ in their model alone, one hold-out; all for real in the smallest sizes."""

import json
from pathlib import Path

import pytest
from bash_runs import dry, run, values

from compositionality.study.arms import load_study, runs_of_sizes
from compositionality.train.tiny.model import TinyConfig, _sizes

SECTION = "bash/scaling_law"
STUDY = load_study("scaling_law")
SIZES = [name.removeprefix("base-") for name in STUDY.arms if name.startswith("base-")]


def test_sizes_span_a_decade_and_a_half_and_are_called_by_their_parameters() -> None:
    counts = []
    for size in SIZES:
        words = dict(word.split("=") for word in STUDY.arms[f"base-{size}"].arguments[1:])
        shape = TinyConfig(**{key.removeprefix("model."): int(value) for key, value in words.items()})
        found = _sizes(shape, 100)
        width, heads = found["hidden_size"], found["num_attention_heads"] * found["head_dim"]
        of_layer = 4 * width * heads + 3 * width * found["intermediate_size"] + 2 * width
        counts.append(found["num_hidden_layers"] * of_layer + width)
        assert f"{counts[-1] / 1000:.0f}k" == size
    assert len(counts) >= 5
    assert max(counts) / min(counts) > 10**1.5


@pytest.mark.parametrize("size", [SIZES[0], SIZES[-1]])
def test_sizes_differ_in_their_model_alone(size: str) -> None:
    made, answered = (values(one) for one in dry(f"{SECTION}/arm.sh", f"base-{size}", PROFILE="tiny"))
    trained, again = (values(one) for one in dry(f"{SECTION}/arm.sh", f"rl-{size}", PROFILE="tiny"))
    assert trained["model.path"] == made["output"] == f"checkpoints/tiny-scaling/base-{size}/model"
    assert answered["problems"] == again["problems"]
    assert trained["data.val_files"] == "[data/tiny-scaling/scaling_task/holdout.parquet]"
    other = values(dry(f"{SECTION}/train.sh", "any", PROFILE="tiny")[0])
    for key in ("model.path", "trainer.output"):
        trained.pop(key), other.pop(key)
    assert trained == other


def test_the_hold_out_is_the_same_for_every_seed() -> None:
    files = [[values(one) for one in dry(f"{SECTION}/prepare_data.sh", SEED=seed, PROFILE="tiny")] for seed in "07"]
    for here, there in zip(*files, strict=True):
        where = [Path(one.pop("output")).name for one in (here, there)]
        assert where[0] == where[1]
        assert (here == there) == (here["split"] == "test")
    names = [Path(values(one)["output"]).stem for one in dry(f"{SECTION}/prepare_data.sh", PROFILE="tiny")]
    assert names == [*(f"train-level{level}" for level in range(1, 7)), "holdout", "deeper", "longer"]


def test_an_algorithm_is_one_word() -> None:
    told = values(dry(f"{SECTION}/train.sh", "85k", PROFILE="tiny", ALGORITHM="reinforce_plus_plus")[0])
    assert told["algorithm"] == "reinforce_plus_plus"
    assert told["trainer.output"] == "checkpoints/tiny-scaling/rl-85k-reinforce_plus_plus"
    lora = values(
        dry(f"{SECTION}/train.sh", "7B", "model.lora.rank=32", PROFILE="paper", MODEL_PATH="Qwen/Qwen2.5-7B")[0]
    )
    assert (lora["engine"], lora["model.lora.rank"]) == ("verl", "32")


def test_other_domains_are_prepared_trained_on_and_evaluated() -> None:
    told = dry(f"{SECTION}/prepare_data.sh", PROFILE="tiny", DOMAINS="sample", DOMAIN_COUNT="50")
    sample, made = (values(one) for one in told[-2:])
    assert (told[-2][0], told[-1][0], sample["count"]) == ("make_domain_sample", "prepare_guru", "50")
    assert made["files"] == f"[{sample['output']}]"
    (given,) = (values(one) for one in dry(f"{SECTION}/prepare_data.sh", PROFILE="tiny", DOMAINS="a.parquet,b")[-1:])
    assert given["files"] == "[a.parquet,b]"
    trained = values(dry(f"{SECTION}/train.sh", "85k", PROFILE="tiny", DOMAINS="sample")[0])
    assert trained["data.train_files"] == f"[{made['output']}/train.parquet]"
    assert trained["data.val_files"] == f"[{made['output']}/holdout.parquet]"
    assert trained["trainer.output"] == "checkpoints/tiny-scaling/rl-85k-domains"
    model = {"MODEL_PATH": "m"}
    asked = values(dry(f"{SECTION}/evaluate.sh", PROFILE="tiny", DOMAINS="sample", **model)[0])
    plain = values(dry(f"{SECTION}/evaluate.sh", PROFILE="tiny", **model)[0])
    assert asked["problems"] == f"{plain['problems'].removesuffix(']')},{made['output']}/holdout.parquet]"


@pytest.mark.slow
def test_quick_is_a_profile_of_four_sizes_and_two_seeds() -> None:
    quick = dry(f"{SECTION}/run_all.sh", "--quick")
    trained = [values(one) for one in quick if one[0] == "train_grpo"]
    assert len(trained) == 8
    assert {one["profile"] for one in trained} == {"quick/single"}


@pytest.mark.slow
def test_the_papers_sizes_and_settings() -> None:
    pytest.importorskip("verl", reason="the paper's profile is verl's")
    told = dry(f"{SECTION}/run_all.sh", PROFILE="paper", SEEDS="1")
    models = [values(one)["model.path"] for one in told if one[0] == "train_grpo"]
    assert sorted(models) == sorted(
        f"Qwen/Qwen2.5-{size}" for size in ("0.5B", "1.5B", "3B", "7B", "14B", "32B", "72B")
    )
    problems = {Path(values(one)["output"]).stem: values(one)["count"] for one in told if one[0] == "create_problems"}
    assert problems["holdout"] == "500"


def test_laws_are_fitted_to_runs_that_differ_in_their_size_alone(tmp_path: Path) -> None:
    variables = {"SECTION": "scaling_law", "SEED": "0", "SEEDS": "2", "CKPT_DIR": str(tmp_path / "c")}
    variables["ARMS"] = "base-15k rl-15k rl-85k rl-85k-reuse-5"
    for folder in ("c/rl-15k", "c/rl-85k-reuse-5", "c-seed1/rl-85k"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "metrics.jsonl").write_text("")
    assert runs_of_sizes(variables) == [
        f"seed0-rl-15k:{tmp_path}/c/rl-15k",
        f"seed1-rl-85k:{tmp_path}/c-seed1/rl-85k",
    ]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_scaling_study_for_real_in_the_smallest_sizes(tmp_path: Path) -> None:
    """From nothing to fits, claims and page; a second time nothing is made again."""
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    for again in (False, True):
        done = run(f"{SECTION}/run_all.sh", PROFILE="smoke", SEEDS="1", **folders)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (f"{folders['CKPT_DIR']}/rl-85k/final is already there" in done.stdout) == again
    results = tmp_path / "RESULTS_DIR"
    summary = json.loads((results / "scaling_law/seeds.json").read_text())
    assert {(row["group"], row["level"]) for row in summary["accuracy"]} == {
        ("holdout", 1),
        ("holdout", 2),
        ("longer", 1),
    }
    for resource in ("flops", "flops_paper", "completions"):
        fits = json.loads((results / f"scaling_law/{resource}/scaling.json").read_text())
        assert (len(fits["sizes"]), fits["runs"]) == (3, 3)
        assert {one["law"] for one in fits["laws"]} >= {"log_linear", "saturating_slope"}
    claims = json.loads((results / "claims.json").read_text())["claims"]
    decided = {row["claim"]: row["decision"] for row in claims}
    assert decided["S6"] == "not run"
    assert decided["S1"] in ("not testable", "undecided")  # one run a size
    page = (results / "report/index.html").read_text()
    for name in ("accuracy", "training", "scaling_flops", "scaling_completions", "claims"):
        assert f'<section id="{name}"' in page
    assert "the paper is “Scaling Behaviors of LLM RL Post-Training”" in page
    during = (results / "report/tables/training.csv").read_text()
    assert ",holdout," in during
    assert ",longer," not in during
    told = run(f"{SECTION}/passk.sh", "85k", "n_samples=4", "levels=[1]", PROFILE="smoke", **folders)
    assert told.returncode == 0, told.stdout + told.stderr
    along = json.loads((results / "passk-85k/passk.json").read_text())
    assert along["models"] == ["base", "step2", "step4"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_other_domains_for_real_in_the_smallest_sizes(tmp_path: Path) -> None:
    """A generated sample of six domains: prepared, trained on, evaluated domain by domain."""
    folders = {name: str(tmp_path / name) for name in ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")}
    domains = {"PROFILE": "smoke", "DOMAINS": "sample", "DOMAIN_COUNT": "24", "DOMAIN_HOLDOUT": "24", **folders}
    trained = tmp_path / "CKPT_DIR/rl-any-domains"
    for script, *arguments in (("prepare_data",), ("pretrain", "any", "model.width=16"), ("train", "any")):
        done = run(f"{SECTION}/{script}.sh", *arguments, **domains)
        assert done.returncode == 0, done.stdout + done.stderr
    done = run(f"{SECTION}/evaluate.sh", **domains, MODEL_PATH=str(trained / "final"), MODEL_NAME="rl")
    assert done.returncode == 0, done.stdout + done.stderr
    logged = (trained / "metrics.jsonl").read_text()
    measured = json.loads((tmp_path / "RESULTS_DIR/scaling_law/accuracy.json").read_text())["results"]
    domains_seen = {"code", "logic", "math", "simulation", "stem", "table"}
    assert all(f"val-core/{domain}" in logged for domain in domains_seen)
    assert {row["group"] for row in measured} >= domains_seen
