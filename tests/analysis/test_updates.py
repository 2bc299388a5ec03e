"""Updates of a real model: the trainer's own gradient, and what it changes."""

# ruff: noqa: N806

import copy
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from assets import save

from compositionality.analysis.influence import (
    InfluenceSettings,
    Projection,
    ProjectionSettings,
    Query,
    check_memory,
    influence,
    make_query,
    measure_influence,
    summary,
    update,
)
from compositionality.data.artefact import Recipe, new_artefact, read_manifest, verify
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.rollout.store import STEP, shard_table
from compositionality.tasks.igsm.generate import IgsmOptions
from compositionality.tasks.igsm.task import TASK
from compositionality.train.grpo import make_batches, policy_loss
from compositionality.train.policy import Policy, load_model
from compositionality.train.settings import ModelSettings
from compositionality.train.tiny.corpus import Mix, corpus_tokenizer
from compositionality.train.tiny.model import TinyConfig, build_model
from compositionality.types import Completion, Problem, Reason, Verdict

OPTIONS = IgsmOptions(levels=(3,), modulus=10, most_edges=6, most_common=1, style="compact")
SAMPLES = 4
GOLDEN = json.loads((Path(__file__).parents[1] / "golden/influence.json").read_text())


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return [TASK.problem(OPTIONS, "train", 1, index) for index in range(5)]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer, shape = corpus_tokenizer(Mix()), TinyConfig(layers=2, width=32, heads=2, feed_forward=64)
    return save(tmp_path_factory.mktemp("model"), build_model(shape, tokenizer, 0), tokenizer)


def completions(problem: Problem, number: int) -> list[tuple[str, bool]]:
    """Of problem ``number`` so many of its four completions are right."""
    right = TASK.gold(problem)
    return [(right if place < number else f"{right}{place}", place < number) for place in range(SAMPLES)]


@pytest.fixture(scope="module")
def policy(model_folder: Path) -> Policy:
    return Policy(load_model(ModelSettings(path=str(model_folder))).double())


@pytest.fixture(scope="module")
def tokenizer(model_folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_folder)


def queries_of(problems: list[Problem], tokenizer: Any, advantage: str) -> list[Query]:
    return [
        make_query(
            n, problem, [{"role": "user", "content": problem.prompt}], completions(problem, n), tokenizer, advantage
        )
        for n, problem in enumerate(problems)
    ]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("right", [True, False])
def test_a_single_completion_has_no_advantage(problems: list[Problem], tokenizer: Any, right: bool) -> None:
    prompt = [{"role": "user", "content": problems[0].prompt}]
    query = make_query(0, problems[0], prompt, [("a", right)], tokenizer, "grpo")
    assert [sample.advantage for sample in query.samples] == [0.0]


def objective(policy: Policy, old: dict[int, torch.Tensor], queries: list[Query], how: InfluenceSettings) -> float:
    """Mean over queries of the surrogate with the old policy's log-probs."""
    total = 0.0
    with torch.no_grad():
        for query in queries:
            if not query.is_mixed:
                continue
            (batch,) = make_batches(query.samples, how.loss_aggregation, how.max_tokens, budget=10**6)
            logp_N, _ = policy(batch["tokens_BT"], batch["loss_mask_BT"], how.temperature)
            old_N = old.setdefault(query.number, logp_N.clone())
            loss_N, _ = policy_loss(logp_N, old_N, batch["advantage_N"], 0.9, 9.0)
            total -= float((batch["weight_N"] * loss_N).sum())
    return total / len(queries)


@pytest.mark.parametrize("aggregation", ["token", "sequence", "dr_grpo"])
@pytest.mark.parametrize("advantage", ["grpo", "dr_grpo"])
def test_t3_a_step_on_one_query_changes_the_objective_as_predicted(
    policy: Policy, problems: list[Problem], tokenizer: Any, aggregation: str, advantage: str
) -> None:
    """What is missed falls with the square of the rate."""
    how = InfluenceSettings(advantage=advantage, loss_aggregation=aggregation)
    queries, exact = queries_of(problems, tokenizer, advantage), Projection(ProjectionSettings())
    found_QF = torch.stack([update(policy, query, exact, how) for query in queries])
    assert [bool(one.any()) for one in found_QF] == [False, True, True, True, False]
    old: dict[int, torch.Tensor] = {}
    before = objective(policy, old, queries, how)
    missed = []
    for length in (0.04, 0.02):  # of the step
        rate = length / float(found_QF[2].norm())
        predicted = rate * influence(found_QF)[0][2]
        moved = copy.deepcopy(policy)
        start = 0
        for parameter in moved.parameters():
            step = found_QF[2, start : start + parameter.numel()].view_as(parameter)
            parameter.data += rate * step
            start += parameter.numel()
        missed.append(abs(objective(moved, old, queries, how) - before - float(predicted)))
    assert missed[0] / missed[1] == pytest.approx(4, rel=0.35)


def test_micro_batches_do_not_change_an_update(policy: Policy, problems: list[Problem], tokenizer: Any) -> None:
    exact, query = Projection(ProjectionSettings()), queries_of(problems, tokenizer, "grpo")[2]
    whole, cut = (update(policy, query, exact, InfluenceSettings(micro_batch_tokens=n)) for n in (10_000, 1))
    torch.testing.assert_close(whole, cut, rtol=1e-5, atol=1e-8)


@pytest.fixture
def collected(problems: list[Problem], tmp_path: Path) -> dict[str, Any]:
    """A problem file and judged completions of it."""
    file = tmp_path / "problems.parquet"
    write_table(to_table(problems, "train"), file)
    found = [one for number, problem in enumerate(problems) for one in completions(problem, number)]
    units = [(number, sample) for number in range(len(problems)) for sample in range(SAMPLES)]
    verdicts = [Verdict(float(right), Reason.CORRECT if right else Reason.WRONG) for _, right in found]
    done = [Completion(text, 9, "stop") for text, _ in found]
    with new_artefact(tmp_path / "rollouts", Recipe(STEP, {})) as partial:
        partial.mkdir()
        groups = [(problems[number].level, problems[number].group) for number, _ in units]
        write_table(shard_table(units, groups, done, verdicts), partial / "shard-00000.parquet")
    return {"problems": file, "rollouts": tmp_path / "rollouts", "output": tmp_path / "out"}


def test_from_rollouts_to_a_table(model_folder: Path, collected: dict[str, Any], capsys: Any) -> None:
    settings = InfluenceSettings(model=str(model_folder), **collected)
    path = measure_influence(settings)
    rows = pq.read_table(path).to_pylist()
    assert [row["correct"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["influence"] != 0 for row in rows] == [False, True, True, True, False]
    said = capsys.readouterr().out
    assert "5 queries, 60.0% with right and wrong completions" in said
    assert "2/4 correct: 1 queries  influence" in said


def test_p08_two_at_once_do_not_write_one_folder(
    model_folder: Path, collected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run, started while the first is between its table and influence.json, is refused."""
    settings = InfluenceSettings(model=str(model_folder), **collected)

    def summary_beside_another_run(rows: Any) -> dict[str, Any]:
        monkeypatch.undo()
        with pytest.raises(UserError, match="another process is writing it"):
            measure_influence(settings)
        return summary(rows)

    monkeypatch.setattr("compositionality.analysis.influence.summary", summary_beside_another_run)
    assert verify(measure_influence(settings).with_suffix(".json")).settings == {"format": "json"}


@pytest.mark.parametrize("case", GOLDEN)
def test_tables_are_those_of_the_first_version(case: str, model_folder: Path, collected: dict[str, Any]) -> None:
    """tests/golden/influence.json: made by commit c988634 from the same completions."""
    advantage, aggregation, kind = case.split()
    how = {"advantage": advantage, "loss_aggregation": aggregation, "projection": ProjectionSettings(kind, 512)}
    path = measure_influence(InfluenceSettings(model=str(model_folder), **how, **collected))
    table, manifest = pq.read_table(path).to_pydict(), read_manifest(path)
    table["co_influence"] = manifest.facts["co_influence"]["means"][0][0]
    for name, values in GOLDEN[case].items():
        assert table[name] == pytest.approx(values, rel=1e-4, abs=1e-6), name


def test_dapo_is_a_mean_over_queries_with_signal(model_folder: Path, collected: dict[str, Any]) -> None:
    """3 of the 5: the influence is 5/3 of GRPO's, on other queries 4/2; the others keep their rows, with 0."""
    tables = {}
    for name in ("grpo", "dapo"):
        collected["output"] = collected["output"].with_name(name)
        path = measure_influence(InfluenceSettings(model=str(model_folder), advantage=name, **collected))
        tables[name] = pq.read_table(path).to_pandas()
    for column, factor in (("influence", 5 / 3), ("influence_on_others", 2)):
        assert tables["dapo"][column].tolist() == pytest.approx((factor * tables["grpo"][column]).tolist())


def test_a_model_without_signal_has_influence_0(model_folder: Path, collected: dict[str, Any], capsys: Any) -> None:
    path = measure_influence(InfluenceSettings(model=str(model_folder), limit=2, **collected))
    assert pq.read_table(path)["correct"].to_pylist() == [0, 1]
    collected["output"] = collected["output"].with_name("none")
    with pytest.raises(UserError, match="answers 1 problems; influence needs two"):
        measure_influence(InfluenceSettings(model=str(model_folder), limit=1, **collected))


def test_rollouts_of_other_problems_or_another_model_are_refused(
    model_folder: Path, collected: dict[str, Any], tmp_path: Path
) -> None:
    manifest = collected["rollouts"] / "manifest.json"
    content = json.loads(manifest.read_text())
    for name, told in (("problems", "come from another problem file than"), ("model", "come from another model than")):
        manifest.write_text(json.dumps({**content, "inputs": {name: "0" * 64}}))
        with pytest.raises(UserError, match=told):
            measure_influence(InfluenceSettings(model=str(model_folder), **collected))
    assert not (collected["output"] / "influence.parquet").exists()


def test_gradients_larger_than_memory_are_one_line() -> None:
    with pytest.raises(UserError, match=r"of 1000 queries take 8000\.0 GB, .* or use projection\.kind=sketch"):
        check_memory(10**9, 1000, ProjectionSettings())
    with pytest.raises(UserError, match=r"are free; lower limit$"):
        check_memory(10**12, 1000, ProjectionSettings("sketch"))
    check_memory(10**6, 100, ProjectionSettings("sketch"))
