"""``examples/influence.py``: from a model and its judged completions to the influence of each query.

Names of tensors: Q queries, F features, L labels.
"""

# ruff: noqa: N806

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from compositionality.analysis.projection import ProjectionSettings
from compositionality.data.artefact import Recipe, exclusive, is_done, is_to_be_checked, new_artefact, write_derived
from compositionality.data.parquet import read_table, write_table
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonNegativeInt, OneOf, PositiveFloat, PositiveInt, check_ranges
from compositionality.rollout.model_folder import check_model, resolve_model
from compositionality.rollout.store import check_answers

STEP = "influence"
SCHEMA = pa.schema(
    [
        ("problem", pa.int64()),  # row of the problem file
        ("level", pa.int64()),
        ("group", pa.string()),
        ("correct", pa.int64()),  # completions
        ("samples", pa.int64()),
        ("update_norm", pa.float64()),  # length of u(q)
        ("influence", pa.float64()),  # of a step of rate 1 on the mean objective of all queries
        ("influence_on_others", pa.float64()),
        ("entropy", pa.float64()),  # mean −log π of the completions' tokens, in nats; null where all were cut off
    ]
)


@dataclass
class InfluenceSettings:
    """Settings of ``influence``. What decides an update has the names of train_grpo.py."""

    model: str = REQUIRED  # a model folder or a Hub id
    rollouts: Path = REQUIRED  # folder of its completions (collect_rollouts.py), several a problem
    problems: Path = REQUIRED  # the problem file that they answer
    output: Path = REQUIRED  # folder of the results
    limit: NonNegativeInt = 0  # the first so many problems; 0: all
    advantage: Annotated[str, OneOf(("grpo", "dapo", "dr_grpo"))] = "grpo"  # dapo: grpo, queries with signal alone
    loss_aggregation: Annotated[str, OneOf(("token", "sequence", "dr_grpo"))] = "token"  # what one token weighs
    temperature: PositiveFloat = 1.0  # at which the completions were sampled
    max_tokens: PositiveInt = 1024  # of a completion; loss_aggregation=dr_grpo divides by it
    micro_batch_tokens: PositiveInt = 16384  # tokens with padding in one pass
    projection: ProjectionSettings = field(default_factory=ProjectionSettings)  # how gradients are kept
    force: bool = False  # replace a result that was made from something else


def influence(settings: InfluenceSettings) -> Path:
    """Write ``output``/influence.parquet (a row a query) and influence.json (means); print the means by accuracy."""
    check_ranges(settings)
    settings.projection.check()
    model = resolve_model(settings.model)
    check_answers(settings.rollouts, settings.problems, model)
    table = settings.output / "influence.parquet"
    free = ("model", "rollouts", "problems", "output", "micro_batch_tokens", "force")
    own = {key: value for key, value in asdict(settings).items() if key not in free}
    recipe = Recipe(STEP, own, {"model": model, "rollouts": settings.rollouts, "problems": settings.problems})
    with exclusive(settings.output):
        if is_done(table, recipe, force=settings.force):
            print(f"{table} is already there")
        else:
            rows, pairs = _measure(settings, model)
            with new_artefact(table, recipe, {"co_influence": pairs}) as partial:
                write_table(pa.Table.from_pylist(rows, schema=SCHEMA), partial)
        content = summary(read_table(table).to_pylist())
        derived = Recipe(STEP, {"format": "json"}, {"table": table})
        write_derived(table.with_suffix(".json"), derived, lambda path: path.write_text(json.dumps(content, indent=1)))
    print_summary(content)
    return table


def check(settings: InfluenceSettings) -> None:
    """A dry run's: settings, and of the model, the rollouts and the problems what is there."""
    check_ranges(settings)
    settings.projection.check()
    if is_to_be_checked(settings.model, dry=True):
        check_model(settings.model)
        if is_to_be_checked(settings.rollouts, settings.problems, dry=True):
            check_answers(settings.rollouts, settings.problems, resolve_model(settings.model))


def _measure(settings: InfluenceSettings, model: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    import torch

    from compositionality.analysis.influence import between, influence
    from compositionality.analysis.projection import Projection
    from compositionality.analysis.updates import UpdateSettings, entropy, read_queries, updates
    from compositionality.train.common.processes import device
    from compositionality.train.common.settings import ModelSettings
    from compositionality.train.policy import Policy, load_model

    tokenizer = check_model(model).tokenizer
    queries = list(read_queries(settings.rollouts, settings.problems, tokenizer, settings.limit))
    if len(queries) < 2:
        raise UserError(f"{settings.rollouts}: answers {len(queries)} problems; influence needs two (limit, problems)")
    n_mixed = sum(query.is_mixed for query in queries)
    policy = Policy(load_model(ModelSettings(path=str(model))).to(device()))
    advantage = "grpo" if settings.advantage == "dapo" else settings.advantage
    how = UpdateSettings(
        advantage, settings.loss_aggregation, settings.temperature, settings.max_tokens, settings.micro_batch_tokens
    )
    check_memory(sum(one.numel() for one in policy.parameters()), len(queries), settings.projection)
    updates_QF = torch.stack(list(updates(policy, queries, Projection(settings.projection), how)))
    everywhere_Q, others_Q = influence(updates_QF), influence(updates_QF, itself=False)
    if settings.advantage == "dapo":  # the objective is a mean over queries with signal alone
        everywhere_Q *= len(queries) / max(n_mixed, 1)
        others_Q *= (len(queries) - 1) / max(n_mixed - 1, 1)
    norms = updates_QF.norm(dim=1).tolist()
    entropies = [entropy(policy, query, how) for query in queries]
    rows = [
        {
            "problem": query.number,
            "level": query.problem.level,
            "group": query.problem.group,
            "correct": query.n_correct,
            "samples": len(query.correct),
            "update_norm": norm,
            "influence": value,
            "influence_on_others": other,
            "entropy": nats,
        }
        for query, norm, value, other, nats in zip(
            queries, norms, everywhere_Q.tolist(), others_Q.tolist(), entropies, strict=True
        )
    ]
    names, means_LL = between(updates_QF, [f"{query.problem.group} L{query.problem.level}" for query in queries])
    return rows, {"labels": names, "means": means_LL.tolist()}


def check_memory(parameters: int, queries: int, projection: ProjectionSettings) -> None:
    """UserError if the features of all queries, with the places and signs of a sketch, are more than is free."""
    import psutil

    exact = projection.kind == "exact"
    numbers = queries * (parameters if exact else projection.size)
    tables = 5 * projection.repeats * parameters if projection.kind == "sketch" else 0
    needed, free = 2 * 4 * numbers + tables, psutil.virtual_memory().available
    if needed > free:
        raise UserError(
            f"projection.kind={projection.kind}: the gradients of {queries} queries take {needed / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB are free; lower limit" + (", or take projection.kind=sketch" if exact else "")
        )


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over all queries (mixed: those with completions), and over those with equal numbers of correct ones."""
    samples = max(row["samples"] for row in rows)
    whole = [row for row in rows if row["samples"] == samples]  # others lost some that were cut off
    bins = [[row for row in whole if row["correct"] == count] for count in range(samples + 1)]
    values = ("influence", "influence_on_others", "update_norm")
    nats = [row["entropy"] for row in rows if row["entropy"] is not None]
    return {
        "queries": len(rows),
        "mixed": sum(0 < row["correct"] < row["samples"] for row in rows)
        / max(sum(row["samples"] > 0 for row in rows), 1),
        **{name: sum(row[name] for row in rows) / len(rows) for name in values},
        "entropy": sum(nats) / len(nats) if nats else None,
        "by_accuracy": [
            {"correct": count, "samples": samples, "n": len(mine)}
            | {name: sum(row[name] for row in mine) / len(mine) if mine else None for name in values}
            for count, mine in enumerate(bins)
        ],
    }


def print_summary(content: Mapping[str, Any]) -> None:
    """A line for each number of correct completions."""
    print(f"{content['queries']} queries, {content['mixed']:.1%} with right and wrong completions")
    for row in content["by_accuracy"]:
        value = "" if row["influence"] is None else f"  influence {row['influence']:.3g}"
        print(f"{row['correct']}/{row['samples']} correct: {row['n']} queries{value}")
