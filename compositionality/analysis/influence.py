"""``examples/influence.py``: per-step influence, from a model and its judged completions to a table of queries.

Let u(q) be the gradient of the trainer's objective on query q. A step along u(q) at rate η changes the mean objective
J, to first order, by ΔJ(q) = η ⟨mean of u, u(q)⟩; of this, η |u(q)|² / Q is the change of q itself. For GRPO on S fresh
completions, a share α of them correct, u(q) = √(α(1−α)) (mean score of the correct ones − mean score of the others),
here times √((S − 1)/S); a score is ∇ log π(completion | query). So a query has the largest update at α = ½, and none
at 0 and 1. Cen et al., arXiv 2505.18917, equations 4, 5 and 12.

Names of tensors: Q queries, G groups, S completions, F features (components of a gradient), R repeats, B rows, T
tokens, N response tokens.
"""

# ruff: noqa: N803, N806

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import pyarrow as pa
import torch
from torch import Tensor

from compositionality.data import artefact
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import iterate_problems, read_problems
from compositionality.errors import UserError
from compositionality.evaluate.results import INFLUENCE
from compositionality.evaluate.types import CORRECT
from compositionality.ranges import REQUIRED, NonNegativeInt, OneOf, PositiveFloat, PositiveInt
from compositionality.rollout.model_folder import check_family, check_model, resolve_model
from compositionality.rollout.store import check_answers, read_by_problem
from compositionality.types import STOP, Message, Problem, TrainSample
from compositionality.validation import check_ranges

if TYPE_CHECKING:
    from compositionality.train.grpo import Batch
    from compositionality.train.policy import Policy

STEP = "influence"
SCHEMA = pa.schema({
    "problem": pa.int64(), "level": pa.int64(), "group": pa.string(), "correct": pa.int64(), "samples": pa.int64(),
    **dict.fromkeys(("update_norm", "influence", "influence_on_others", "entropy"), pa.float64()),
})  # fmt: skip
"""``problem``: row of the problem file; ``correct``, ``samples``: completions; ``update_norm``: length of u(q);
``influence``: change of the mean objective of all queries by a step of rate 1; ``entropy``: mean −log π of the
completions' tokens, in nats, null if all were cut off."""
KINDS = ("exact", "sketch", "lora")
_ATTENTION = re.compile(r"self_attn\.[qkvo]_proj\.weight$")


@dataclass
class ProjectionSettings:
    """Settings of the projection of gradients to features."""

    kind: Annotated[str, OneOf(KINDS)] = "exact"  # exact, sketch or lora
    size: PositiveInt = 8192  # number of features of a sketch
    repeats: PositiveInt = 4  # number of features that each component is added to
    rank: PositiveInt = 64  # rank of the LoRA adapters
    seed: NonNegativeInt = 0  # seed of signs, places and adapters


class Projection:
    """A map from gradients by name to features with the same inner products, exactly or approximately.

    *exact*: all components. *sketch*: each component is added with a random sign to one of ``size`` features, in
    ``repeats`` independent ways (a sparse Johnson-Lindenstrauss projection). *lora*: the gradient of fresh LoRA
    adapters on the attention matrices (G·Aᵀ, A Gaussian), then the sketch.
    """

    def __init__(self, settings: ProjectionSettings) -> None:
        self.settings = settings
        self._adapter, self._buckets = cache(self._draw_adapter), cache(self._draw_buckets)

    def __call__(self, gradients: Mapping[str, Tensor]) -> Tensor:
        """Return the features (F), float32. UserError if kind=lora finds no attention matrices."""
        if self.settings.kind == "exact":
            return torch.cat([gradient.flatten().float() for gradient in gradients.values()])
        if self.settings.kind == "lora":
            attention = [(name, gradient.float()) for name, gradient in gradients.items() if _ATTENTION.search(name)]
            gradients = {name: g @ self._adapter(name, g.shape[1]).to(g.device).T for name, g in attention}
            if not gradients:
                raise UserError("projection.kind=lora: the model has no weights self_attn.{q,k,v,o}_proj; use sketch")
        repeats, size = self.settings.repeats, self.settings.size // self.settings.repeats
        device = next(iter(gradients.values())).device
        features_RF = torch.zeros(repeats, size, device=device)
        for name, gradient in gradients.items():
            flat = gradient.flatten().float()
            for repeat in range(repeats):
                buckets, signs = self._buckets(name, repeat, len(flat))
                features_RF[repeat].index_add_(0, buckets.to(device), flat * signs.to(device))
        return features_RF.flatten() / repeats**0.5

    def _draw_adapter(self, name: str, width: int) -> Tensor:
        """Draw the first factor (rank, width) of a LoRA adapter. The second factor is 0, and the gradient is its."""
        return torch.randn(self.settings.rank, width, generator=self._generator(name)) / self.settings.rank**0.5

    def _draw_buckets(self, name: str, repeat: int, n: int) -> tuple[Tensor, Tensor]:
        """Draw the feature and the sign of each of n components."""
        generator = self._generator(f"{name}/{repeat}")
        buckets = torch.randint(self.settings.size // self.settings.repeats, (n,), generator=generator)
        return buckets.to(torch.int32), torch.randint(2, (n,), generator=generator, dtype=torch.int8) * 2 - 1

    def _generator(self, name: str) -> torch.Generator:
        digest = blake2b(f"{self.settings.seed}/{name}".encode(), digest_size=7).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest, "big"))


@dataclass
class InfluenceSettings:
    """Settings of ``influence``. Keys of the update have the same names as in train_grpo.py."""

    model: str = REQUIRED  # a model folder or a Hub id
    rollouts: Path = REQUIRED  # folder of its completions (collect_rollouts.py), several per problem
    problems: Path = REQUIRED  # the problem file of the rollouts
    output: Path = REQUIRED  # folder of the results
    limit: NonNegativeInt = 0  # use only the first problems; 0: all
    advantage: Annotated[str, OneOf(("grpo", "dapo", "dr_grpo"))] = "grpo"  # dapo: grpo on queries with signal only
    loss_aggregation: Annotated[str, OneOf(("token", "sequence", "dr_grpo"))] = "token"  # weight of a token
    temperature: PositiveFloat = 1.0  # temperature at which the completions were sampled
    max_tokens: PositiveInt = 1024  # limit of a completion; loss_aggregation=dr_grpo divides by it
    micro_batch_tokens: PositiveInt = 16384  # tokens in one pass, including padding
    projection: ProjectionSettings = field(default_factory=ProjectionSettings)  # how gradients are stored
    force: bool = False  # replace a result that was made from something else


def measure_influence(settings: InfluenceSettings) -> Path:
    """Write ``output``/influence.parquet (a row a query) and influence.json (means); print the means by accuracy."""
    _check_settings(settings)
    model = resolve_model(settings.model)
    check_answers(settings.rollouts, settings.problems, model)
    path, recipe = settings.output / INFLUENCE, _recipe(settings, model)

    def write(partial: Path) -> dict[str, Any]:
        table, pairs = _measure(settings, model)
        write_table(table, partial)
        return {"co_influence": pairs}

    def summarise(partial: Path) -> None:
        partial.write_text(json.dumps(summary(read_table(path).to_pylist()), indent=1))

    artefact.make(path, recipe, write, force=settings.force)
    means = path.with_suffix(".json")
    artefact.make(means, artefact.Recipe(STEP, {"format": "json"}, {"table": path}), summarise, follows=True)
    content = json.loads(means.read_text())
    print(f"{content['queries']} queries, {content['mixed']:.1%} with right and wrong completions")
    for row in content["by_accuracy"]:
        value = "" if row["influence"] is None else f"  influence {row['influence']:.3g}"
        print(f"{row['correct']}/{row['samples']} correct: {row['n']} queries{value}")
    return path


def check(settings: InfluenceSettings) -> None:
    """Check the settings for a dry run, and those of model, rollouts and problems that exist."""
    _check_settings(settings)
    model = problems = None
    if artefact.is_to_be_checked(settings.model, dry=True):
        model = check_model(settings.model).path
        check_family(model)
    if artefact.is_to_be_checked(settings.problems, dry=True):
        problems = settings.problems
        read_problems(problems)
    if artefact.is_to_be_checked(settings.rollouts, dry=True):
        check_answers(settings.rollouts, problems, model)
    recipe = _recipe(settings, model or Path(settings.model))
    artefact.check_target(settings.output / INFLUENCE, recipe, force=settings.force)


def _recipe(settings: InfluenceSettings, model: Path) -> artefact.Recipe:
    free = ("model", "rollouts", "problems", "output", "micro_batch_tokens", "force")
    keys = {key: value for key, value in asdict(settings).items() if key not in free}
    inputs = {"model": model, "rollouts": settings.rollouts, "problems": settings.problems}
    return artefact.Recipe(STEP, keys, inputs)


def _check_settings(settings: InfluenceSettings) -> None:
    check_ranges(settings)
    kind, size, repeats = settings.projection.kind, settings.projection.size, settings.projection.repeats
    if kind != "exact" and size % repeats:
        raise UserError(f"projection.size={size}: give a multiple of projection.repeats={repeats}")
    artefact.hidden_sibling(settings.output, "lock")  # refuses a path without a name
    artefact.check_maker(settings.output / INFLUENCE, STEP, force=settings.force)


def _measure(settings: InfluenceSettings, model: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Compute the rows of SCHEMA, and the mean co-influence of pairs by group and level."""
    from compositionality.train.dist import device
    from compositionality.train.policy import Policy, load_model
    from compositionality.train.settings import ModelSettings

    queries = list(read_queries(settings, check_model(model).tokenizer))
    if len(queries) < 2:
        raise UserError(f"{settings.rollouts}: answers {len(queries)} problems; influence needs two: raise limit")
    check_family(model)
    policy = Policy(load_model(ModelSettings(path=str(model))).to(device()))
    check_memory(sum(weights.numel() for weights in policy.parameters()), len(queries), settings.projection)
    projection = Projection(settings.projection)
    updates_QF = torch.stack([update(policy, query, projection, settings).cpu() for query in queries])
    everywhere_Q, others_Q = influence(updates_QF)
    if settings.advantage == "dapo":  # the objective is a mean over queries with signal only
        n_mixed = sum(query.is_mixed for query in queries)
        everywhere_Q *= len(queries) / max(n_mixed, 1)
        others_Q *= (len(queries) - 1) / max(n_mixed - 1, 1)
    columns = {
        "problem": [query.number for query in queries],
        "level": [query.problem.level for query in queries],
        "group": [query.problem.group for query in queries],
        "correct": [sum(query.correct) for query in queries],
        "samples": [len(query.correct) for query in queries],
        "update_norm": updates_QF.norm(dim=1).tolist(),
        "influence": everywhere_Q.tolist(),
        "influence_on_others": others_Q.tolist(),
        "entropy": [entropy(policy, query, settings) for query in queries],
    }
    names, means_LL = co_influence(updates_QF, [f"{query.problem.group} L{query.problem.level}" for query in queries])
    return pa.table(columns, SCHEMA), {"labels": names, "means": means_LL.tolist()}


@dataclass(frozen=True)
class Query:
    """One problem with its judged completions, treated as fresh samples with advantages."""

    number: int  # row of the problem file
    problem: Problem
    samples: list[TrainSample]
    correct: list[bool]

    @property
    def is_mixed(self) -> bool:
        """True if some completions are correct and some are not; otherwise the update is 0."""
        return 0 < sum(self.correct) < len(self.correct)


def read_queries(settings: InfluenceSettings, tokenizer: object) -> Iterator[Query]:
    """Read the first ``limit`` problems (0: all) with their completions. UserError for an unknown problem.

    Completions that were cut off (RL counts them as wrong), and those on which the judge failed, are left out.
    """
    rows = read_problems(settings.problems)
    problems = list(zip(iterate_problems(rows), rows["prompt"].to_pylist(), strict=True))
    for number, table in read_by_problem(settings.rollouts):
        if settings.limit and number >= settings.limit:
            return
        if number >= len(problems):
            raise UserError(
                f"{settings.rollouts}: answers problem {number}, but {settings.problems} has only {len(problems)} rows"
            )
        judged = [row for row in table.to_pylist() if row["finish_reason"] == STOP and row["reason"] != "error"]
        completions = [(row["response"], row["reason"] == CORRECT) for row in judged]
        yield make_query(number, *problems[number], completions, tokenizer, settings.advantage)


def make_query(
    number: int,
    problem: Problem,
    prompt: list[Message],
    completions: Sequence[tuple[str, bool]],
    tokenizer: object,
    advantage: str,
) -> Query:
    """Tokenise ``completions`` (text, is it correct?) of the chat ``prompt`` and compute their advantages."""
    from compositionality.rollout.prompts import chat_row
    from compositionality.train.grpo import ADVANTAGES

    correct = [is_correct for _, is_correct in completions]
    rows = [chat_row([*prompt, Message(role="assistant", content=text)], tokenizer) for text, _ in completions]
    lengths = [sum(row.loss_mask) for row in rows]
    kind, samples = "grpo" if advantage == "dapo" else advantage, list[TrainSample]()
    rewards_GS, lengths_GS = torch.tensor([correct], dtype=torch.float32), torch.tensor([lengths])
    values = ADVANTAGES[kind](rewards_GS, lengths_GS)[0].tolist() if len(rows) > 1 else [0.0] * len(rows)
    for row, length, value in zip(rows, lengths, values, strict=True):
        start = len(row.tokens) - length
        samples.append(TrainSample(row.tokens[:start], row.tokens[start:], [0.0] * length, value))
    return Query(number, problem, samples, correct)


def log_probs(policy: "Policy", query: Query, settings: InfluenceSettings) -> Iterator[tuple["Batch", Tensor]]:
    """Yield micro-batches of a query's completions with the log-probs of their tokens, (N,)."""
    from compositionality.train.grpo import make_batches

    weights = settings.loss_aggregation, settings.max_tokens
    for batch in make_batches(query.samples, *weights, settings.micro_batch_tokens):
        (logp_N,) = policy(batch["tokens_BT"], batch["loss_mask_BT"], settings.temperature, with_entropy=False)
        yield batch, logp_N


def update(policy: "Policy", query: Query, projection: Projection, settings: InfluenceSettings) -> Tensor:
    """Return u(q), (F): minus the gradient of the trainer's loss on the completions; 0 if all or none are right."""
    from compositionality.train.grpo import policy_loss

    weights = {name: parameter for name, parameter in policy.named_parameters() if parameter.requires_grad}
    totals = [torch.zeros_like(parameter) for parameter in weights.values()]
    for batch, logp_N in log_probs(policy, query, settings) if query.is_mixed else ():
        loss_N, _ = policy_loss(logp_N, logp_N.detach(), batch["advantage_N"], 0.2, 0.2)
        loss = (batch["weight_N"] * loss_N).sum()
        torch._foreach_sub_(totals, list(torch.autograd.grad(loss, list(weights.values()))))
    return projection(dict(zip(weights, totals, strict=True)))


def entropy(policy: "Policy", query: Query, settings: InfluenceSettings) -> float | None:
    """Estimate the entropy as the mean −log π of the completions' tokens, in nats; None without completions."""
    with torch.no_grad():
        logps = [logp_N for _, logp_N in log_probs(policy, query, settings)]
    return -float(torch.cat(logps).mean()) if logps else None


def influence(updates_QF: Tensor) -> tuple[Tensor, Tensor]:
    """Return ΔJ(q) of a step of rate 1 on each query, with J the mean over all queries, and over the other queries."""
    if not bool(updates_QF.isfinite().all()):
        bad = int((~updates_QF.isfinite()).any(1).nonzero()[0])
        raise UserError(f"query {bad}: its gradient is not finite; look at its completions, or use float32")
    products_Q, n = updates_QF @ updates_QF.sum(0), len(updates_QF)
    return products_Q / n, (products_Q - updates_QF.square().sum(1)) / (n - 1)


def co_influence(updates_QF: Tensor, labels: Sequence[str]) -> tuple[list[str], Tensor]:
    """Return the labels and the mean ⟨u(q), u(q')⟩ over pairs of different queries by label; NaN without pairs."""
    kernel_QQ = (updates_QF @ updates_QF.T).fill_diagonal_(torch.nan)
    names = sorted(set(labels))
    masks = [torch.tensor([label == name for label in labels]) for name in names]
    return names, torch.stack([torch.stack([kernel_QQ[row][:, col].nanmean() for col in masks]) for row in masks])


def check_memory(parameters: int, queries: int, projection: ProjectionSettings) -> None:
    """Raise UserError if the features of all queries, and the signs of a sketch, take more memory than is free."""
    import psutil

    kind, free = projection.kind, psutil.virtual_memory().available
    size = 2 * 4 * queries * (parameters if kind == "exact" else projection.size)
    size += 5 * projection.repeats * parameters if kind == "sketch" else 0  # place and sign of each component
    if size > free:
        hint = ", or use projection.kind=sketch" if kind == "exact" else ""
        fault = f"the gradients of {queries} queries take {size / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"
        raise UserError(f"projection.kind={kind}: {fault}; lower limit{hint}")


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Average over all queries (``mixed``: over queries with completions), and by the number of correct completions."""
    table, values = pd.DataFrame(rows), ["influence", "influence_on_others", "update_norm"]

    def means(queries: pd.DataFrame, names: Sequence[str]) -> dict[str, float | None]:
        return {name: float(queries[name].mean()) if queries[name].notna().any() else None for name in names}

    samples, mixed = int(table["samples"].max()), (table["correct"] > 0) & (table["correct"] < table["samples"])
    complete, by_accuracy = table[table["samples"] == samples], []  # in other queries some were cut off
    for correct in range(samples + 1):
        queries = complete[complete["correct"] == correct]
        by_accuracy.append({"correct": correct, "samples": samples, "n": len(queries)} | means(queries, values))
    share = {"mixed": float(mixed.sum() / max((table["samples"] > 0).sum(), 1))}
    return {"queries": len(table)} | share | means(table, [*values, "entropy"]) | {"by_accuracy": by_accuracy}
