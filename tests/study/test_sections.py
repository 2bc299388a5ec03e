"""What the studies of the sections plan: the models, files and settings of their steps."""

from pathlib import Path
from typing import Any

import pytest
from plans import asked, by_key

from compositionality.study.model import load_study
from compositionality.study.steps import Step
from compositionality.train.tiny.model import TinyConfig, _sizes

INJECTION, SCALING = load_study("behavior_injection"), load_study("scaling_law")
BEHAVIOURS = [name.removeprefix("sft-") for name in INJECTION.arms if name.startswith("sft-")]
SIZES = [name.removeprefix("base-") for name in SCALING.arms if name.startswith("base-")]


def settings(study: str, profile: str, arms: str = "", *only: str, **keys: Any) -> dict[str, Any]:
    """The settings of every step by its key."""
    steps = by_key(asked(study, profile, arms=tuple(arms.split()), **{"report": True, **keys}), *only)
    return {key: step.settings for key, step in steps.items()}


def test_rl_sees_strings_only_and_all_arms_answer_numbers() -> None:
    found = settings("section43", "smoke", report=False)
    starts = {"multi-rl-level1": "multi", "multi-rl-level1to2": "multi", "string-rl-level1to2": "rft"}
    for arm, start in starts.items():
        assert found[f"seed0/{arm}"].model.path == f"checkpoints/s/seed0/stage1-{start}/final"
        assert "countdown_task" not in str(found[f"seed0/{arm}"])
    assert found["seed0/merge"].inputs == [
        f"data/s/seed0/{part}_rft/data" for part in ("string_task/stage1_level1", "countdown_task/stage1_level2")
    ]
    assert found["seed0/multi"].data.train_files == [f"{found['seed0/merge'].output}/train.parquet"]
    evaluated, strings = found["seed0/evaluate"], found["seed0/evaluate-strings"]
    assert [model.partition(":")[0] for model in evaluated.models] == list(load_study("section43").arms)
    assert evaluated.problems == [f"data/s/seed0/countdown_task/{name}.parquet" for name in ("test_level2", "test")]
    assert (strings.models, strings.n_samples) == (evaluated.models, 1)
    assert strings.problems == ["data/s/seed0/string_task/test_trained.parquet"]
    there = settings("section41_42", "smoke", "rl-level1to2", "rl-level1to2")
    assert found["seed0/string-rl-level1to2"] == there["seed0/rl-level1to2"]  # the run of section 4.1


# ---- behaviour injection


@pytest.fixture(scope="module")
def injection() -> dict[str, Step]:
    return by_key(asked("behavior_injection", "tiny", arms=tuple(INJECTION.arms)[1:], report=True))


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_arms_share_problems_and_rl_and_differ_in_their_solutions(name: str, injection: dict[str, Step]) -> None:
    rows, trained = (injection[f"seed0/sft-{name}-{step}"].settings for step in ("rows", "train"))
    assert rows.problems == "data/s/seed0/igsm_task/sft.parquet"
    assert trained.data.train_files == [f"{rows.output}/train.parquet"]
    assert trained.trainer.output == f"checkpoints/s/seed0/sft-{name}"
    rl, plain = (injection[f"seed0/rl-{one}"].flat for one in (name, "vanilla"))
    assert rl["model.path"] == f"{trained.trainer.output}/final"
    assert {key for key in plain if rl[key] != plain[key]} <= {"model.path", "trainer.output"}
    asked, found = (injection[f"seed0/influence-sft-{name}{step}"].settings for step in ("-rollouts", ""))
    assert found.rollouts == asked.output == Path(f"results/s/seed0/influence/sft-{name}/rollouts")


# ---- scaling laws


def test_sizes_span_a_decade_and_a_half_and_are_called_by_their_parameters() -> None:
    counts = []
    for size in SIZES:
        words = dict(word.split("=") for word in SCALING.arms[f"base-{size}"].words)
        shape = TinyConfig(**{key.removeprefix("model."): int(value) for key, value in words.items()})
        found = _sizes(shape, 100)
        width, heads = found["hidden_size"], found["num_attention_heads"] * found["head_dim"]
        of_layer = 4 * width * heads + 3 * width * found["intermediate_size"] + 2 * width
        counts.append(found["num_hidden_layers"] * of_layer + width)
        assert f"{counts[-1] / 1000:.0f}k" == size
    assert len(counts) >= 5
    assert max(counts) / min(counts) > 10**1.5


def test_sizes_differ_in_their_model_alone_and_laws_are_fitted_to_them() -> None:
    arms = ("base-15k", "rl-15k", "base-85k", "rl-85k", "rl-85k-reuse-5")
    steps = by_key(asked("scaling_law", "tiny", arms=arms, report=True, seeds=2))
    found = {key: step.settings for key, step in steps.items()}
    first, last = (steps[f"seed0/rl-{size}"].flat for size in ("15k", "85k"))
    assert {key for key in first if first[key] != last[key]} == {"model.path", "trainer.output"}
    for size, rl in (("15k", first), ("85k", last)):
        assert rl["model.path"] == str(found[f"seed0/base-{size}"].output) == f"checkpoints/s/seed0/base-{size}/model"
        assert rl["trainer.output"] == f"checkpoints/s/seed0/rl-{size}"
    assert found["seed0/rl-15k"].data.val_files == ["data/s/seed0/scaling_task/holdout.parquet"]
    assert [key for key in found if key.startswith("fit")] == ["fit-flops", "fit-flops_paper", "fit-completions"]
    assert found["fit-flops"].points == [
        f"seed{seed}-rl-{size}:checkpoints/s/seed{seed}/rl-{size}" for seed in (0, 1) for size in ("15k", "85k")
    ]


def test_the_questions_of_several_domains_are_arms() -> None:
    """Every arm reads what an arm that comes before it makes, and nothing is taken for a size of the laws."""
    names = [name for name, arm in SCALING.arms.items() if arm.script.endswith("domain") or name.startswith("sft-")]
    steps = by_key(asked("scaling_law", "paper", arms=tuple(names), report=True))
    keys = list(steps)
    for name in ("sft-domains-rows", "sft-domains-half-rows"):
        assert keys.index("seed0/rl-domains") < keys.index(f"seed0/{name}")
        assert steps[f"seed0/{name}"].settings.problems.startswith("data/s/seed0/domains/rl-domains/")
    half = dict(steps["seed0/rl-domains-half"].variables)
    assert half["MODEL_PATH"] == "checkpoints/s/seed0/sft-domains-half/final"
    assert half["TRAIN_FILES"] == "data/s/seed0/domains/rl-domains/rest.parquet"
    assert steps["seed0/rl-math-8"].words[:2] == ("math", "rows:rows_per_domain=8")
    assert not [key for key in keys if key.startswith("fit")]


def test_the_sizes_of_the_quick_profile() -> None:
    """It is in no digest of test_plan.py."""
    quick = settings("scaling_law", "quick", "", "rl-*", seeds=2)
    assert len(quick) == 8
    assert {one.trainer.steps for one in quick.values()} == {20}
