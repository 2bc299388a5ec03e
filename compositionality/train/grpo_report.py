"""Reports of a run of grpo.py: metrics of its rollouts, a line a step, a table of accuracies, some completions."""

# ruff: noqa: N803, N806

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from compositionality.data.artefact import remove, write_text
from compositionality.train.dist import device
from compositionality.train.grpo_settings import AlgorithmSettings, GrpoSettings
from compositionality.train.log import Progress, RunLog, to_read
from compositionality.train.metrics import (
    ENTROPY,
    EVALUATED_TOKENS,
    GROUPS,
    NO_SIGNAL,
    ROLLOUT_ENTROPY,
    SAMPLED,
    SAMPLED_TOKENS,
    SIGNAL,
    SMALLEST_ADVANTAGE,
    TOKENS,
    TRAINED,
    UPDATES,
    ComputeMeter,
    accuracies,
    non_embedding_parameters,
)
from compositionality.train.prompts import TokenizedProblem
from compositionality.train.run_folder import models_in
from compositionality.types import LENGTH, Completion, PromptGroup, Reason, TrainSample

PROBABILITIES = "training/rollout_probs_diff"


class Clock:
    """Seconds spent by name, since ``seconds`` was last emptied."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the seconds of a ``with`` block to ``name``."""
        started = time.monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started


def rollout_metrics(
    sampled: Sequence[PromptGroup], batch: Sequence[PromptGroup], *, by_reward: bool = False
) -> dict[str, float]:
    """Return metrics of all completions of a step; ``by_reward``: what signal is.

    Those under verl's names are of the groups that reach the update, ``batch``, as verl's are.
    """
    completions = [completion for group in sampled for completion in group.completions]
    rewards = [reward for group in sampled for reward in group.rewards if reward is not None]
    lengths = [completion.n_tokens for completion in completions]
    log_probs = [value for completion in completions for value in completion.log_probs]
    correct = [sum(group.correct) for group in sampled]
    own: dict[str, list[float]] = {}  # metrics of a reward function, over the completions that have them
    for name, value in (item for group in sampled for metrics in group.metrics for item in metrics.items()):
        own.setdefault(f"reward/{name}/mean", []).append(value)
    return {
        **batch_metrics(batch),
        "critic/acc/mean": sum(correct) / len(completions),
        **({"rollout/score/mean": sum(rewards) / len(rewards)} if rewards else {}),
        "rollout/response_length/mean": sum(lengths) / len(lengths),
        "rollout/response_length/clip_ratio": cut_share(completions),
        ROLLOUT_ENTROPY: -sum(log_probs) / max(len(log_probs), 1),
        SAMPLED: len(completions),
        GROUPS: len(sampled),
        SIGNAL: sum(group.has_signal(by_reward=by_reward) for group in sampled),
        "training/filter_groups/all_right": sum(all(group.correct) for group in sampled),
        "training/filter_groups/all_wrong": correct.count(0),
        "training/filter_groups/kept": len(batch),
        "perf/sampled_tokens": sum(lengths),
        SAMPLED_TOKENS: n_tokens(sampled),
        **{name: sum(values) / len(values) for name, values in own.items()},
    }


def batch_metrics(batch: Sequence[PromptGroup]) -> dict[str, float]:
    """Return what verl reports of the prompts and completions of an update, and their tokens."""
    completions = [completion for group in batch for completion in group.completions]
    lengths = [completion.n_tokens for completion in completions]
    rewards = [reward for group in batch for reward in group.rewards if reward is not None]
    return {
        **spread("critic/score", rewards),
        **spread("critic/rewards", rewards),  # nothing is taken off the score
        **spread("prompt_length", [len(group.prompt_ids) for group in batch for _ in group.completions]),
        **spread("response_length", lengths),
        **({"response_length/clip_ratio": cut_share(completions)} if completions else {}),
        TOKENS: sum(lengths),
        TRAINED: n_tokens(batch),
        "perf/total_num_tokens": n_tokens(batch),
    }


def cut_share(completions: Sequence[Completion]) -> float:
    """Return the share of completions that the limit of tokens ended."""
    return sum(answer.finish_reason == LENGTH for answer in completions) / len(completions)


def advantage_metrics(samples: Sequence[TrainSample]) -> dict[str, float]:
    """Return the advantages of a step's tokens, under verl's names (none without samples), and whether all are 0."""
    spreads = spread("critic/advantages", [sample.advantage for sample in samples for _ in sample.response_ids])
    return {**spreads, NO_SIGNAL: int(all(abs(sample.advantage) <= SMALLEST_ADVANTAGE for sample in samples))}


class RolloutGap:
    """The distance of the trainer's and the sampler's probabilities of a step's sampled tokens.

    Sums over micro-batches; ``metrics`` adds up those of the data ranks.
    """

    def __init__(self) -> None:
        self.sums, self.largest = list[Tensor](), list[Tensor]()

    def add(self, trainer_N: Tensor, sampler_N: Tensor, counted_N: Tensor) -> None:
        """Add the tokens for which ``counted_N`` is true; given are log-probs, the trainer's before its updates."""
        gap_N = (trainer_N - sampler_N).abs() * counted_N
        p_N, q_N = (logp_N.exp() * counted_N for logp_N in (trainer_N, sampler_N))
        apart_N = (p_N - q_N).abs()
        n_N, apart_N, p_N, q_N = (values_N.double() for values_N in (counted_N, apart_N, p_N, q_N))
        self.sums.append(torch.stack([n_N, apart_N, p_N, q_N, apart_N**2, p_N**2, q_N**2, p_N * q_N]).sum(1))
        self.largest.append(torch.stack([gap_N.max(), apart_N.max()]))

    def metrics(self, group: dist.ProcessGroup | None = None) -> dict[str, float]:
        """Return the largest difference of log-probs, and what verl's ``calculate_debug_metrics`` does."""
        sums, largest = torch.stack(self.sums).sum(0), torch.stack(self.largest).amax(0)
        if group is not None:
            dist.all_reduce(sums, group=group)
            dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)
        n, apart, p, q, squares, pp, qq, pq = sums.tolist()
        gap, top = largest.tolist()
        metrics = {"actor/rollout_gap": gap, f"{PROBABILITIES}_valid": 1}
        metrics |= {f"{PROBABILITIES}_mean": apart / n, f"{PROBABILITIES}_max": top}
        if n > 1:
            metrics[f"{PROBABILITIES}_std"] = (max(squares - apart**2 / n, 0.0) / (n - 1)) ** 0.5
        if (spreads := (n * pp - p**2) * (n * qq - q**2)) > 0:
            metrics["training/rollout_actor_probs_pearson_corr"] = (n * pq - p * q) / spreads**0.5
        return metrics


def update_metrics(
    sums: Sequence[Mapping[str, Tensor]],
    norms: Sequence[float],
    gap: RolloutGap,
    group: dist.ProcessGroup | None,
    updates_per_step: int,
) -> dict[str, float]:
    """Return metrics of a step: ``sums`` over micro-batches and data ranks, and gradient ``norms``, means over updates.

    A step without samples counts as its updates, all without signal: ``rl_report`` multiplies the two.
    """
    if not sums:
        return {UPDATES: updates_per_step}
    totals = torch.stack([torch.stack([*shares.values()]) for shares in sums]).sum(0)
    if group is not None:
        dist.all_reduce(totals, group=group)
    means = zip(sums[0], (totals / len(norms)).tolist(), strict=True)
    metrics = {f"actor/{name}": mean for name, mean in means}
    return {**metrics, **gap.metrics(group), "actor/grad_norm": sum(norms) / len(norms), UPDATES: len(norms)}


def validation_costs(groups: Sequence[PromptGroup], seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the tokens and the seconds of a validation."""
    return {EVALUATED_TOKENS: n_tokens(groups), "timing_s/testing": seconds["testing"]}


def validation_metrics(problems: Sequence[TokenizedProblem], groups: Sequence[PromptGroup]) -> dict[str, float]:
    """Return the share of right answers and of each reason for another verdict by data source, as verl names them.

    And the means of rewards and of a reward function's own metrics, and pass@k. A problem is in none if the judge
    failed on one of its completions.
    """
    pairs = zip(problems, groups, strict=True)
    judged = [(problem.data_source, group) for problem, group in pairs if group.is_judged()]
    failures = [reason for reason in Reason if reason not in (Reason.CORRECT, Reason.ERROR)]
    values: dict[str, list[Any]] = {}
    for source, group in judged:
        for reward, reason, metrics in zip(group.rewards, group.reasons, group.metrics, strict=True):
            scores = {"reward": reward, **metrics, "score": reward, "acc": float(reason is Reason.CORRECT)}
            scores |= {failure.value: float(reason is failure) for failure in failures}
            for name, value in scores.items():
                section = "val-core" if name == "acc" else "val-aux"
                values.setdefault(f"{section}/{source}/{name}/mean@{len(group.rewards)}", []).append(value)
    means = {name: sum(sample) / len(sample) for name, sample in sorted(values.items())}
    return means | pass_at_k_metrics([(source, group.correct) for source, group in judged])


def pass_at_k_metrics(answers: Sequence[tuple[str, Sequence[float]]]) -> dict[str, float]:
    """Return unbiased pass@k by data source, for k of 2, 4 … below n, and n; nothing for n = 1.

    ``answers``: of each problem its data source, and of its n completions whether they are right (1 or 0).
    """
    n = max((len(right) for _, right in answers), default=1)
    if n == 1:
        return {}
    from compositionality.stats.pass_at_k import pass_at_k

    ks = [*(2**power for power in range(1, (n - 1).bit_length())), n]
    counts: dict[str, list[float]] = {}
    for source, right in answers:
        counts.setdefault(source, []).append(sum(right))
    metrics: dict[str, float] = {}
    for source, correct in counts.items():
        shares = pass_at_k(np.array(correct, int), np.full(len(correct), n), ks).mean(0)
        metrics |= {f"val-core/{source}/acc/pass@{k}": float(share) for k, share in zip(ks, shares, strict=True)}
    return metrics


def validation_score(metrics: Mapping[str, float]) -> float:
    """Return the mean accuracy over data sources (levels), each of the same weight."""
    means = accuracies(metrics).values()
    return float(sum(means) / len(means)) if means else 0.0


def update_flops(config: Any, lengths: Sequence[int]) -> int:
    """Return FLOPs of an update on rows of these tokens, by verl's count: embedding, head and attention included."""
    heads, kv_heads, width = config.num_attention_heads, config.num_key_value_heads, config.hidden_size
    head_width = getattr(config, "head_dim", None) or width // heads
    layer = width * (3 * config.intermediate_size + 2 * head_width * (heads + kv_heads))
    weights = config.num_hidden_layers * layer + 2 * config.vocab_size * width
    attention = config.num_hidden_layers * heads * head_width * sum(length**2 for length in lengths)
    return int(6 * (weights * sum(lengths) + attention))


def actor_mfu(
    config: Any, samples: Sequence[TrainSample], seconds: Mapping[str, float], processes: int
) -> dict[str, float]:
    """Return the share of the GPUs' peak that the update reached; nothing on a CPU or a GPU of unknown peak."""
    if device().type != "cuda" or not samples:
        return {}
    from compositionality.gpus import peak_of

    peak = peak_of(torch.cuda.get_device_name())
    if peak is None:
        return {}
    return {"perf/mfu/actor": update_flops(config, [*map(len, samples)]) / seconds["update_actor"] / peak / processes}


def spread(name: str, values: Sequence[float]) -> dict[str, float]:
    """Return mean, largest and smallest of the values, as verl names them; nothing where there are none."""
    if not values:
        return {}
    return {f"{name}/mean": sum(values) / len(values), f"{name}/max": max(values), f"{name}/min": min(values)}


def new_meter(weights: Iterable[tuple[str, Any]], algorithm: AlgorithmSettings) -> ComputeMeter:
    """Return the FLOPs of a run with these weights; several updates a step need a pass for π_old."""
    shapes = {name: tuple(weight.shape) for name, weight in weights}
    return ComputeMeter(
        non_embedding_parameters(shapes),
        old=algorithm.updates_per_step > 1,
        reference=algorithm.kl != "none",
        frozen=any("lora_" in name for name in shapes),
    )


def n_tokens(groups: Sequence[PromptGroup]) -> int:
    """Return tokens of all completions, each with its prompt."""
    return sum(len(group.prompt_ids) + answer.n_tokens for group in groups for answer in group.completions)


def speeds(seconds: Mapping[str, float], metrics: Mapping[str, float], processes: int) -> dict[str, float]:
    """Return seconds by stage, milliseconds a token and tokens a second, under verl's names where it has them."""
    sampled, trained = metrics["perf/sampled_tokens"], metrics[TRAINED]
    per_token = {"gen": metrics[TOKENS], "ref": trained, "update_actor": trained}
    return {
        **{f"timing_s/{name}": value for name, value in seconds.items()},
        **{
            f"timing_per_token_ms/{name}": 1000 * seconds[name] / n
            for name, n in per_token.items()
            if n and name in seconds
        },
        "perf/time_per_step": seconds["step"],
        "perf/throughput": trained / max(seconds["step"], 1e-9) / processes,
        "perf/sampled_tokens_per_second": sampled / max(seconds["gen"], 1e-9),
        **({"perf/trained_tokens_per_second": trained / max(seconds["update_actor"], 1e-9)} if trained else {}),
    }


class Report:
    """Metrics, a line for every step, a growing table of validation accuracies, some completions."""

    def __init__(self, out: Path, settings: GrpoSettings, first: int) -> None:
        self.out, self.samples_every = out, settings.trainer.samples_every
        if not first:
            remove(out / "metrics.jsonl")
        self.run_log = RunLog(out, settings.trainer.logger, "rl", asdict(settings))
        self.progress = Progress(settings.trainer.last_step(), first)
        if rule := settings.reward.rule():
            print(rule, flush=True)
        self.table_begun = False

    def write(self, row: Mapping[str, Any]) -> None:
        self.run_log.write(row)
        if row["step"] > 0:
            print(self.progress.line(row["step"], step_parts(row)), flush=True)
        if accuracy := accuracies(row):
            print(accuracy_row(row["step"], accuracy, header=not self.table_begun), flush=True)
            self.table_begun = True

    def write_samples(self, step: int, groups: Sequence[PromptGroup], tokenizer: Any) -> None:
        """Write, now and then, some completions of a step to read, with their special tokens."""
        if not groups or not self.samples_every or step % self.samples_every:
            return
        rows, form = [], "[{position}] reward {reward:g}\n{prompt}\n>>> {completion}\n"
        for number, place in to_read([group.correct for group in groups]):
            group = groups[number]
            prompt, text = map(tokenizer.decode, (group.prompt_ids, group.completions[place].token_ids))
            about = {"position": group.position, "prompt": prompt, "completion": text}
            rows.append({**about, "reward": group.rewards[place], "right": group.correct[place]})
        (self.out / "samples").mkdir(exist_ok=True)
        write_text(self.out / "samples" / f"step_{step}.txt", "\n".join(form.format(**row) for row in rows))
        self.run_log.keep_generations(step, rows)

    def write_validation(
        self, step: int, problems: Sequence[TokenizedProblem], groups: Sequence[PromptGroup], tokenizer: Any
    ) -> None:
        """Write the completions of the first three problems of each data source: the same ones at every validation."""
        if not self.samples_every:
            return
        lines, counts = list[str](), Counter[str]()
        for place, (problem, group) in enumerate(zip(problems, groups, strict=True)):
            counts[problem.data_source] += 1
            if counts[problem.data_source] <= 3 and group.is_judged():
                asked = {"problem": place, "data_source": problem.data_source, "ground_truth": problem.ground_truth}
                prompt, completion = tokenizer.decode(problem.prompt_ids), group.completions[0].text
                row = {**asked, "prompt": prompt, "completion": completion, "right": group.correct[0]}
                lines.append(f"{json.dumps(row)}\n")
        (self.out / "samples").mkdir(exist_ok=True)
        write_text(self.out / "samples" / f"validation_{step}.jsonl", "".join(lines))

    def send_models(self, used: Iterable[Path]) -> None:
        """Send the models of the run, and what it ``used``, to wandb if it is logged there."""
        self.run_log.send_artifacts(used, models_in(self.out))

    def close(self) -> None:
        self.run_log.close()


def step_parts(row: Mapping[str, Any]) -> list[str]:
    """Return ``right 31.2 %``, ``groups 40/64`` and so on, for the line of progress."""
    groups = f"{row['training/filter_groups/kept']}/{row[GROUPS]}"
    parts = [f"right {100 * row['critic/acc/mean']:4.1f} %", f"groups {groups}"]
    parts += [f"length {row['rollout/response_length/mean']:.0f}"]
    if ENTROPY not in row:
        parts += ["no group with signal: no update"]
    else:
        parts += [f"entropy {row[ENTROPY]:.3f}", f"grad {row['actor/grad_norm']:.2f}"]
        parts += [f"gap {row['actor/rollout_gap']:.0e}"]
    times = f"gen {row['timing_s/gen']:.1f}, update {row['timing_s/update_actor']:.1f}"
    return [*parts, f"{row['timing_s/step']:.1f} s ({times})"]


def accuracy_row(step: int, accuracy: Mapping[str, float], *, header: bool) -> str:
    """Return a line of the table of accuracies in %; with a header if asked for: ``step  heldout-level1  level2 …``."""
    labels, last = [], ""
    for source in accuracy:
        name, dash, level = source.rpartition("-")
        labels.append(level if dash and name == last else source.partition("-")[2] or source)
        last = name
    cells = [f"{100 * share:>{max(len(label), 6)}.1f}" for label, share in zip(labels, accuracy.values(), strict=True)]
    line = f"accuracy %  step {step:>6}  " + "  ".join(cells)
    named = " " * 25 + "  ".join(f"{label:>6}" for label in labels)
    return f"{named}\n{line}" if header else line
