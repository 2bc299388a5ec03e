"""Exact probabilities of gold solutions: against sampling, by step and role, in any batches; what is not known."""

import json
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch
from assets import save, tiny_model
from claim_studies import answers, results_of

from compositionality.data.create_problems import create_problems, settings_for
from compositionality.data.problems import iterate_problems, read_problems
from compositionality.evaluate.claims.decide import claim_rows, compare
from compositionality.evaluate.claims.model import Comparison, read_claims_file
from compositionality.evaluate.collect import EvaluationSettings, evaluate
from compositionality.evaluate.gold import TOO_LONG, GoldSolution, cells_of, load, read_solution, score, worst_by_cell
from compositionality.evaluate.gold_tables import (
    ANY,
    chain_and_product,
    hand_over_by_function,
    hand_over_by_pair,
    lift_by_decile,
    prob_by_part,
    rank_by_part,
    read_exact,
)
from compositionality.evaluate.results import ReplicateTables, Results
from compositionality.evaluate.summary import share as share_of
from compositionality.evaluate.table import (
    RESULTS,
    SCHEMA,
    concatenate,
    gold_pass,
    measure_of,
    problem_columns,
    read,
    write,
)
from compositionality.evaluate.types import Decision
from compositionality.report import gold_figures
from compositionality.report.page.build import packed, vega_bundle
from compositionality.report.page.figures import FIGURES
from compositionality.report.page.inputs import COMPOSITION
from compositionality.report.page.problems import DOTS, MOST, PER_LEVEL, explorer
from compositionality.report.theme import arm_styles, rendered, spec_of
from compositionality.rollout.model_folder import check_model
from compositionality.rollout.store import read_rollouts
from compositionality.stats.estimate import wilson
from compositionality.stats.pass_at_k import pass_at_k
from compositionality.tasks.diagnosis import ROLES, Span
from compositionality.tasks.string.task import TASK
from compositionality.types import Problem

SAMPLES = 10_000
RECORD = Path(__file__).parents[2] / "results/records/composition-3"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two problems, and a model that gives their gold solutions with some probability."""
    home = tmp_path_factory.mktemp("gold")
    create_problems(
        settings_for(
            "string", output=str(home / "two.parquet"), split="test", count=2, levels=[1, 2], style="compact",
            functions="trained", frozen_parameters=True, alphabet="abcdefghij", input_length=[3, 4], max_length=10,
        )
    )  # fmt: skip
    model, tokenizer = tiny_model([], layers=1)
    save(home / "model", model, tokenizer)
    rows = [solution.row for solution in solutions(home)]
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(300):
        if min(logp_T.sum() for logp_T, _ in score(model, rows)) > np.log(0.3):
            break
        for row in rows:
            tokens, marked = torch.tensor(row.tokens), torch.tensor(row.loss_mask[1:])
            logp = model(input_ids=tokens[None, :-1]).logits[0].log_softmax(-1)
            (-(logp[torch.arange(len(marked)), tokens[1:]] * marked).sum()).backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(home / "model")
    return home


def asked(home: Path) -> list[tuple[list[Any], Problem]]:
    table = read_problems(home / "two.parquet")
    return list(zip(table["prompt"].to_pylist(), iterate_problems(table), strict=True))


def solutions(home: Path) -> list[GoldSolution]:
    folder = check_model(home / "model")
    return [read_solution(chat, problem, folder) for chat, problem in asked(home)]


def settings(home: Path, output: str, **changes: Any) -> EvaluationSettings:
    return EvaluationSettings(
        models=[f"m:{home}/model"], problems=[f"two:{home}/two.parquet"], output=home / output,
        gold_log_probs=True, **{"max_tokens": 64, **changes},
    )  # fmt: skip


def test_the_exact_probability_is_the_share_of_sampled_answers(home: Path) -> None:
    """By step and role it adds up to the whole; pass@k of it is that of the samples."""
    evaluate(settings(home, "many", n_samples=SAMPLES))
    answers = pa.concat_tables(read_rollouts(home / "many/rollouts/m/two"))
    rows = read(home / "many/results.parquet")
    for (_, problem), row in zip(asked(home), rows.itertuples(), strict=True):
        mine = answers.filter(pc.equal(answers["problem"], row.problem))["response"]
        share = pc.mean(pc.equal(mine, TASK.gold(problem))).as_py()
        low, high = wilson(share, SAMPLES)
        assert row.canonical == round(SAMPLES * share)
        passed = pass_at_k(np.array([round(SAMPLES * share)]), np.array([SAMPLES]), [8])[0, 0]
        assert gold_pass(rows[rows["problem"] == row.problem], 8)[0] == pytest.approx(passed, abs=0.03)
        wider = (high - low) / 2  # two intervals wide on each side: 1 in 10,000 falls out
        assert low - wider < np.exp(row.gold_log_prob) < high + wider
        assert sum(row.gold_log_prob_by_step_role) / 100 == pytest.approx(row.gold_log_prob, abs=0.005 * 4 * row.level)
        assert len(row.gold_log_prob_by_step_role) == len(row.gold_rank_by_step_role) == len(ROLES) * row.level


def test_batches_of_any_size_give_the_same(home: Path) -> None:
    model, rows = load(home / "model"), [solution.row for solution in solutions(home)]
    (together, ranks), (alone, again) = (zip(*score(model, rows, budget), strict=True) for budget in (4096, 1))
    np.testing.assert_allclose(np.concatenate(together), np.concatenate(alone), atol=1e-4)
    np.testing.assert_array_equal(np.concatenate(ranks), np.concatenate(again))
    assert list(map(len, together)) == [sum(row.loss_mask) for row in rows]


def test_a_rank_is_the_place_of_the_token_among_all_by_their_logits(home: Path) -> None:
    model, (row, _) = load(home / "model"), [solution.row for solution in solutions(home)]
    ((_, ranks),) = score(model, [row])
    order = (-model(input_ids=torch.tensor(row.tokens)[None, :-1]).logits[0]).argsort(-1).tolist()
    tokens = zip(order, row.tokens[1:], row.loss_mask[1:], strict=True)
    assert ranks.tolist() == [places.index(token) + 1 for places, token, marked in tokens if marked]
    assert worst_by_cell(np.array([1, 7, 2, 3]), [0, 2, 2, 5]) == [1, 0, 7, 0, 0, 3]


def test_what_is_not_known_is_counted_and_named(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = home / "model/config.json"
    whole = config.read_text()
    config.write_text(json.dumps({**json.loads(whole), "max_position_embeddings": 40}))
    evaluate(settings(home, "short", levels=[1, 2], per_level=1, engine="transformers", max_tokens=8))
    config.write_text(whole)
    assert f"1 problems, the first in row 1: {TOO_LONG}" in capsys.readouterr().out
    assert read(home / "short/results.parquet")["gold_log_prob"].isna().tolist() == [False, True]


def test_a_token_of_two_roles_and_a_solution_without_steps_have_no_cells() -> None:
    spans = [Span(0, 2, 0, "name"), Span(2, 2, 0, "copy"), Span(2, 4, 0, "result")]
    assert cells_of(spans, [(0, 1), (1, 2), (2, 4)]) == [0, 0, 2, 3]
    assert cells_of(spans, [(0, 1), (1, 3), (3, 4)]) == []


def test_measures_of_a_model_against_its_base() -> None:
    """Four problems are solved after RL: one before too, two of the others had less than one chance in a million."""
    before, after = [0.5, 1e-3, 1e-7, 1e-9, 0.4, 0.01], [0.5, 0.9, 0.3, 0.6, 0.1, 0.2]
    rows = [
        answers(arm, "heldout", 3, np.zeros(6, int), gold_log_prob=np.log(probs))
        for arm, probs in (("stage1", before), ("rl", after))
    ]
    results = results_of([rows])
    problems = results.sets[0]
    for measure, value in {
        "beyond@1e-6": 2 / 4, "beyond@1e-2": 3 / 4, "new@1e-6": 2 / 6, "new@1e-2": 3 / 6,
        "support_kept": 1 / 6, "support_gained": 3 / 6, "support_lost": 1 / 6,
    }.items():  # fmt: skip
        assert share_of(results, "rl", problems, measure, "stage1").value == pytest.approx(value), measure
    assert share_of(results, "rl", problems, "gold_prob").value == pytest.approx(np.mean(after))
    outcome = compare(Comparison("heldout", 3, "rl", "stage1", measure="beyond@1e-6"), {"accuracy": results})
    assert (outcome.estimate.value, outcome.estimate.n_problems) == (0.5, 4)


def test_a_share_of_no_problem_in_one_replicate_is_not_testable_and_told_of_the_others() -> None:
    """It was *not run*, as if nobody had measured it; the other replicates' share is told, and decides nothing."""
    probs = {"a": [0.9, 0.9], "b": [0.1, 0.2], "c": [0.9, 0.1]}  # after; b solves nothing
    tables = [
        [
            answers(arm, "heldout", 3, np.zeros(2, int), gold_log_prob=np.log(found))
            for arm, found in (("stage1", [1e-9, 1e-3]), ("rl", after))
        ]
        for after in probs.values()
    ]
    results = results_of(tables)
    claimed = Comparison("heldout", 3, "rl", "stage1", measure="beyond@1e-6")
    outcome = compare(claimed, {"accuracy": results})
    empty = results.replicates[1].name
    assert (outcome.decision, outcome.these_seeds) == (Decision.NOT_TESTABLE, Decision.NOT_TESTABLE)
    assert outcome.reason == f"no problem counts in {empty}; the figure is of the others"
    assert outcome.estimate.by_seed == pytest.approx([0.5, 1.0])
    nothing = results.only([empty])
    outcome = compare(claimed, {"accuracy": nothing})
    assert (outcome.estimate, outcome.reason) == (None, f"no problem counts in {empty}")
    of_all = compare(replace(claimed, measure="new@1e-6"), {"accuracy": results})
    assert of_all.estimate.by_seed == pytest.approx([0.5, 0.0, 0.5]), "a share of all problems has a value"
    unknown = results_of([[one.assign(gold_log_prob=np.nan) for one in table] for table in tables])
    assert compare(claimed, {"accuracy": unknown}).decision is Decision.NOT_RUN, "nobody has measured it"


@pytest.mark.parametrize(("level2", "level3", "decisions"), [
    (0.2, 0.01, ("supported", "supported")), (0.002, 0.001, ("undecided", "supported")),
    (0.6, 0.3, ("supported", "contradicted")),
])  # fmt: skip
def test_a_base_that_composes_already_or_does_not_begin_to_is_told(
    level2: float, level3: float, decisions: tuple[str, str]
) -> None:
    rows = [
        answers("base", group, level, np.zeros(200, int), gold_log_prob=np.log(prob * np.linspace(0.5, 1.5, 200)))
        for group, level, prob in (("trained", 2, level2), ("heldout", 3, level3))
    ]
    claims = read_claims_file("start").claims
    assert tuple(row["decision"] for row in claim_rows(claims, {"accuracy": results_of([rows])})) == decisions


def test_hand_over_is_of_the_copies_after_the_first_line() -> None:
    cells = [[-9, -50, -9, 0, -9, -100, -9, -9], [0, 0, 0, -5]]
    rows = answers("rl", "heldout", 2, np.zeros(2, int), gold_log_prob=[-2.0, -0.05], gold_log_prob_by_step_role=cells)
    values, weights = measure_of("gold_hand_over", 1)(rows)
    assert values == pytest.approx([np.exp(-1.0), 1.0])
    assert weights.tolist() == [1, 1]


def test_exact_probabilities_stand_beside_those_of_the_model_that_an_arm_starts_from() -> None:
    """A dot for each problem of each arm; gains by role add up to the gain of the whole."""
    cells = {"stage1": [-5, -20, -30, 0, -5, -900, -40, -10], "rl-level2": [-5, -20, -35, 0, -5, -40, -50, -10]}
    rows = [
        answers(
            arm, "heldout", 2, [0] * 3, gold_log_prob=[sum(by_cell) / 100] * 3, gold_log_prob_by_step_role=[by_cell] * 3
        )
        for arm, by_cell in cells.items()
    ]
    results = results_of([rows])
    known = gold_figures.gold_rows(results, results.replicates[0].name)
    assert known["model"].tolist() == ["rl-level2"] * 3
    assert known[[*ROLES]].sum(axis=1).tolist() == pytest.approx([8.45] * 3)
    styles = arm_styles([*cells])
    spec = spec_of(gold_figures.gold_probability(known, styles))
    (dots,) = map(pd.DataFrame, spec["datasets"].values())
    assert dots[["before", "after"]].iloc[0].tolist() == pytest.approx([np.exp(-10.1), np.exp(-1.65)], rel=1e-4)
    (bars,) = map(pd.DataFrame, spec_of(gold_figures.gold_roles(known, styles))["datasets"].values())
    assert dict(zip(bars["role"], bars["gain"], strict=True)) == pytest.approx(
        {"name": 0, "input or handed-on string": 8.6, "result": -0.15, "end": 0}
    )
    assert rendered(spec, "png")[:4] == b"\x89PNG"
    assert [len(figure.rows) for figure in on_page(results_of([rows])) if figure] == [3, 3]
    assert on_page(results_of([[one.drop(columns="gold_log_prob") for one in rows]])) == [None, None, None]


def on_page(results: Results) -> list[Any]:
    inputs: Any = SimpleNamespace(evaluated=results, summary={"models": results.arms}, own="accuracy", starting=list)
    inputs.settings = SimpleNamespace(arms={}, section="section41_42")
    inputs.shown, inputs.effects = results.replicates[0].name, {}
    return [FIGURES[COMPOSITION][name](inputs, name) for name in (*gold_figures.FIGURES, "hand_over")]


def exact_rows(replicate: str, level: int, functions: str, probs: Any, **columns: Any) -> pd.DataFrame:
    """Problems of one model with P before and after; a letter is a function, the outermost first."""
    rows = pd.DataFrame(np.log(probs), columns=["gold_log_prob_before", "gold_log_prob"])
    names = {"model": "rl", "start": "stage1", "replicate": replicate, "level": level}
    return rows.assign(functions=list(map(list, functions.split())), **names, **columns)


def test_functions_are_read_from_the_outermost_to_the_one_that_the_gold_solution_applies_first(tmp_path: Path) -> None:
    words = {"count": 60, "levels": [1, 2, 3], "functions": "heldout", "split": "test", "style": "compact"}
    path, place = tmp_path / "problems.parquet", ReplicateTables("seed0", {RESULTS: tmp_path / RESULTS})
    create_problems(settings_for("string", output=str(path), **words))
    problems = read_problems(path)
    write(problem_columns(problems).assign(arm="base", file="f", gold_log_prob=-1.0), tmp_path / RESULTS)
    exact = read_exact(Results.of([concatenate([])], [place]), {"base": "base"})
    solutions = [TASK.gold(problem).splitlines() for problem in iterate_problems(problems)]
    applied = [[line.partition(":")[0].split(",")[-1].partition("[")[0] for line in lines] for lines in solutions]
    assert exact["functions"].tolist() == [names[::-1] for names in applied]


def test_hand_over_is_by_place_and_function_and_every_replicate_counts_once() -> None:
    rows = [
        exact_rows("seed0", 2, "ab bb", [(0.5, 0.5)] * 2, hand_over_before=[0.1, 0.3], hand_over=[0.9, 0.5]),
        exact_rows("seed1", 2, "ab", [(0.5, 0.5)], hand_over_before=[0.4], hand_over=[0.4]),
        exact_rows("seed1", 3, "aab", [(0.5, 0.5)], hand_over_before=[0.0], hand_over=[0.0]),
    ]
    table = hand_over_by_function(pd.concat(rows, ignore_index=True))
    lines = [*table[["place", "function", "replicates"]].itertuples(index=False, name=None)]
    assert lines == [("inner", "b", 2), ("outer", "a", 2), ("outer", "b", 1)]
    assert table[["before", "after"]].to_numpy() == pytest.approx(np.array([(0.3, 0.55), (0.25, 0.65), (0.3, 0.5)]))
    pairs = hand_over_by_pair(pd.concat(rows, ignore_index=True)).set_index(["outer", "inner"])
    assert pairs.loc[("a", "b"), ["before", "after", "replicates"]].tolist() == pytest.approx([0.25, 0.65, 2])
    assert pairs.loc[(ANY, "b"), ["before", "after", "replicates"]].tolist() == pytest.approx([0.3, 0.55, 2])
    assert pairs.loc[(ANY, ANY)].equals(pairs.loc[(ANY, "b")])  # the only inner function


def test_tenths_are_of_the_problems_of_a_level_by_what_the_start_gives_them() -> None:
    powers = np.random.default_rng(0).permutation(np.arange(1, 21))
    probs = [(10.0**-power, 0.3 if power >= 19 else 10.0 ** (1 - power)) for power in powers]
    rows = [exact_rows("seed0", 1, "a", [(0.5, 0.5)]), exact_rows("seed0", 3, "aaa " * 20, probs)]
    table = lift_by_decile(pd.concat(rows, ignore_index=True)).query("level == 3")
    assert table["log10_before"].tolist() == pytest.approx([*np.arange(-19.5, -1, 2)])
    assert table["log10_lift"].tolist() == pytest.approx([19.5 + np.log10(0.3)] + [1.0] * 9)
    assert table["solved"].tolist() == [1.0] + [0.0] * 8 + [0.5]


def test_a_product_is_of_the_same_models_single_functions_and_c_has_none() -> None:
    rows = [
        exact_rows("seed0", 1, "a a b", [(0.7, 0.5), (0.9, 0.7), (1.0, 0.9)]),
        exact_rows("seed0", 2, "ab bb ac", [(0.01, 0.3), (0.03, 0.5), (0.9, 0.9)]),
        *(exact_rows("seed1", level, "b" * level, [(0.5, 0.5)]) for level in (1, 2)),
    ]
    table = chain_and_product(pd.concat(rows, ignore_index=True)).set_index("figure")[["before", "after"]]
    assert table.loc["chain"].tolist() == pytest.approx([(0.02 + 0.5) / 2, (0.4 + 0.5) / 2])
    assert table.loc["product"].tolist() == pytest.approx([(0.9 + 0.25) / 2, (0.675 + 0.25) / 2])


def test_parts_tell_the_problems_string_from_one_that_is_handed_on() -> None:
    """Ranks are those under the start, of the problems that the model solves: of three the first two."""
    ranks = [[1, 1, 2, 0, 1, 9, 1, 1], [1, 3, 1, 0, 1, 1, 1, 1], [50] * 8]
    cells = [[-10, -20, -30, 0, -1, -2, -3, -4]] * 3
    lists = {"gold_rank_by_step_role_before": ranks, "gold_log_prob_by_step_role": cells}
    rows = exact_rows("seed0", 2, "ab ab ab", [(0.1, 0.5), (0.1, 0.5), (0.1, 0.1)], **lists)
    rows = rows.assign(file="f", problem=range(3))
    table = rank_by_part(rows).set_index("part")
    assert table["first"].to_dict() == {"name": 1.0, "input": 0.5, "handed on": 0.5, "result": 0.75, "end": 1.0}
    assert table["five"].to_dict() == {"name": 1.0, "input": 1.0, "handed on": 0.5, "result": 1.0, "end": 1.0}
    probs = prob_by_part(rows).set_index("part")["prob"]
    expected = {"name": -11, "input": -20, "handed on": -2, "result": -33, "end": -4}
    assert probs.to_dict() == pytest.approx({part: np.exp(value / 100) for part, value in expected.items()})


def test_checkpoints_of_a_run_stand_in_the_order_of_their_steps(tmp_path: Path) -> None:
    steps = {"step10": -200, "step2": -500, "stage1": -900}
    cells = {arm: [[0, 0, 0, 0, 0, value, 0, 0]] for arm, value in steps.items()}
    rows = [
        answers(arm, "heldout", 2, [0], gold_log_prob=[value / 100], gold_log_prob_by_step_role=cells[arm])
        for arm, value in steps.items()
    ]
    write(pd.concat(rows).assign(skills=[[]] * 3), tmp_path / RESULTS)
    results = Results.of([read(tmp_path / RESULTS)], [ReplicateTables("seed0", {RESULTS: tmp_path / RESULTS})])
    made = gold_figures.checkpoint_rows(results)
    hand_over = made[made["part"] == "handed on"].set_index("step")["prob"]
    assert hand_over.to_dict() == pytest.approx({2.0: np.exp(-5), 10.0: np.exp(-2)})
    assert rendered(spec_of(gold_figures.checkpoints(made)), "png")[:4] == b"\x89PNG"


def test_a_table_of_before_is_read_without_the_columns_that_came_later(tmp_path: Path) -> None:
    rows = answers("rl", "heldout", 2, [0], gold_log_prob=[-1.0]).assign(skills=[[]])
    write(rows, tmp_path / "now")
    table = pa.parquet.read_table(tmp_path / "now")
    pa.parquet.write_table(table.drop_columns(["gold_rank_by_step_role"]), tmp_path / "before")
    pd.testing.assert_frame_equal(read(tmp_path / "before"), read(tmp_path / "now"))


def committed(folder: Path, n: int) -> Results:
    """The results of the first replicates of a registered study, from its committed tables."""
    places = list[ReplicateTables]()
    for seed, kept in enumerate(sorted(RECORD.glob("seed*-split*"))[:n]):
        rows = pa.parquet.read_table(kept / RESULTS, filters=pc.field("evaluation") == "accuracy")
        columns = [field for field in SCHEMA if field.name in rows.column_names]
        rows = rows.select([field.name for field in columns]).cast(pa.schema(columns))
        pa.parquet.write_table(rows, folder / kept.name)
        places.append(ReplicateTables(kept.name, {RESULTS: folder / kept.name}, seed, seed))
    return Results.of([read(place.tables[RESULTS]) for place in places], places)


def test_a_page_of_ten_replicates_stays_under_three_megabytes(tmp_path: Path) -> None:
    results = committed(tmp_path, 10)
    seeds, summary = tuple(place.name for place in results.replicates), {"models": results.arms}
    inputs: Any = SimpleNamespace(evaluated=results, seeds=seeds, summary=summary, files={}, problems={})
    inputs.shown, inputs.effects = seeds[0], {}
    inputs.settings, inputs.starting = SimpleNamespace(arms={}, checkpoints=""), lambda prefix: ()
    drawn: Any = SimpleNamespace(name=DOTS, spec={"datasets": {}})
    made = explorer(inputs, [drawn])
    assert [len(replicate["level"]) for replicate in made["replicates"]] == [6 * PER_LEVEL] * 10
    assert made["replicates"][0]["cluster"][-1].startswith("func_")
    texts = random.Random(0).choices("abcdefghij (),=:\n", k=MOST)  # as many as a page may have, hardly compressed
    most = packed(json.dumps({**made, "texts": "".join(texts)}))
    assert len(most) + len(packed(vega_bundle())) + 400_000 < 3_000_000  # the rest of composition-3's page: 0.2 MB


def test_means_of_committed_tables_are_those_of_the_results_and_stand_on_the_page(tmp_path: Path) -> None:
    results = committed(tmp_path, 2)
    figures = on_page(results)
    tables = {table["name"]: table for figure in figures for table in figure.details}
    assert [len(tables[name]["rows"]) for name in ("lift_by_decile", "chain_and_product")] == [6 * 10, 5 * 2]
    (cells,) = [figure.rows for figure in figures if figure.name == "hand_over"]
    by_function = hand_over_by_function(read_exact(results, gold_figures.starts_of(results)))
    for place, other in (("outer", "inner"), ("inner", "outer")):
        known = by_function[by_function["place"] == place].set_index(["model", "function"])
        means = cells[cells[other] == ANY].set_index(["model", place]).reindex(known.index)
        assert means["after"].tolist() == pytest.approx(known["after"].tolist())
    for row in tables["chain_and_product"]["frame"].query("figure == 'chain'").itertuples():
        problems = results.problem_set("heldout", row.level)
        estimates = [share_of(results, arm, problems, "gold_prob") for arm in (row.start, row.model)]
        assert [estimate.value for estimate in estimates] == pytest.approx([row.before, row.after], rel=0, abs=1e-9)
