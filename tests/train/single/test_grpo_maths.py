"""P9: advantages, losses and their weights by hand and against verl's registered functions, without its dual clip."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from compositionality.config.cli import parse
from compositionality.config.profile import FOLDER, algorithm_layer
from compositionality.reward.shapes import overlong_penalty
from compositionality.reward.verl_reward import score_dict
from compositionality.train.engines import settle_cluster
from compositionality.train.grpo import (
    ADVANTAGES,
    importance_weight,
    kl_estimate,
    policy_loss,
    to_samples,
    token_weights,
)
from compositionality.train.grpo_report import (
    Report,
    RolloutGap,
    actor_mfu,
    advantage_metrics,
    rollout_metrics,
    speeds,
    update_flops,
    validation_metrics,
)
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.verl import configure
from compositionality.types import Completion, PromptGroup, Reason, TrainSample, Verdict

GROUPS, SAMPLES, WIDTH = 5, 4, 7
END = 2
"""The token that ends a response."""
ASKED = 2 * GROUPS + 1
"""Prompts, the last one in the third pass."""


def flat(values, mask):
    return values[mask.bool()]


@pytest.fixture
def batch():
    """Random rewards and lengths: one group with equal rewards, one row without a token."""
    generator = torch.Generator().manual_seed(3)
    rewards = torch.randn(GROUPS, SAMPLES, generator=generator)
    rewards[2] = 0.5
    lengths = torch.randint(1, WIDTH + 1, (GROUPS, SAMPLES), generator=generator)
    lengths[4, 1] = 0
    mask = (torch.arange(WIDTH) < lengths.flatten()[:, None]).float()
    logp, old = (torch.randn(GROUPS * SAMPLES, WIDTH, generator=generator) for _ in range(2))
    return rewards, lengths, mask, logp, old


def token_rewards(rewards, lengths):
    """verl's form: the reward stands on the last token of a row."""
    rows = torch.zeros(GROUPS * SAMPLES, WIDTH)
    rows[torch.arange(len(rows)), (lengths.flatten() - 1).clamp(min=0)] = rewards.flatten()
    return rows


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.with_name("algorithm").glob("*.yaml")))
def test_p09_advantages_are_those_that_verl_computes_with_our_configuration(batch, name):
    from verl import DataProto
    from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

    from compositionality.train.verl import trainer  # registers ours, as in verl's task runner

    assert trainer
    words = ["engine=verl", "model.path=m", "data.train_files=[a]", "trainer.output=o", "run.device=cpu"]
    settings = parse(GrpoSettings, words, [algorithm_layer(name)])
    settle_cluster(settings, imagined=True)
    config = configure.grpo_config(settings).algorithm
    rewards, lengths, mask, values, _ = batch
    tensors = {"token_level_rewards": token_rewards(rewards, lengths), "response_mask": mask, "values": values * mask}
    groups = np.repeat(np.arange(GROUPS), SAMPLES).astype(object)
    computed = compute_advantage_for_multi_trajectories(
        DataProto.from_dict(tensors, {"uid": groups}), batch_keys=[f"{row}_0_0" for row in range(len(mask))],
        adv_estimator=config.adv_estimator, gamma=config.gamma, lam=config.lam, num_repeat=SAMPLES,
        norm_adv_by_std_in_grpo=config.norm_adv_by_std_in_grpo, config=config,
    ).batch["advantages"]  # fmt: skip
    kind = settings.algorithm.advantage
    if kind == "gae":  # of engine=verl alone
        assert computed.isfinite().all()
        return
    torch.testing.assert_close(
        ADVANTAGES[kind](rewards, lengths).flatten()[:, None] * mask, computed, rtol=1e-5, atol=1e-6
    )


def test_p09_advantages_by_hand():
    rewards, lengths = torch.tensor([[1.0, 0, 0, 0], [1, 1, 1, 1]]), torch.full((2, 4), 3)
    std = (0.75**2 + 3 * 0.25**2) ** 0.5 / 3**0.5
    expected = {
        "grpo": [0.75 / std, -0.25 / std], "dr_grpo": [0.75, -0.25], "rloo": [1.0, -1 / 3],
    }  # fmt: skip
    for kind, (right, wrong) in expected.items():
        found = ADVANTAGES[kind](rewards, lengths)
        torch.testing.assert_close(found[0], torch.tensor([right, wrong, wrong, wrong]), rtol=1e-5, atol=1e-6)
        assert torch.equal(found[1], torch.zeros(4))  # zero variance
    assert torch.equal(ADVANTAGES["raft"](2 * rewards - 1, lengths), rewards)  # paid −1 too, wrong ones weigh nothing
    whitened = ADVANTAGES["reinforce_plus_plus"](rewards, lengths)
    variance = (5 * (1 - 0.625) ** 2 + 3 * 0.625**2) * 3 / 23
    torch.testing.assert_close(whitened[0, 1], torch.tensor(-0.625 / variance**0.5), rtol=1e-5, atol=1e-6)
    centred = ADVANTAGES["reinforce_plus_plus_baseline"](rewards, lengths)
    spread = ((0.75**2 + 3 * 0.25**2) * 3 / 23) ** 0.5  # of R − mean over the batch's 24 tokens
    torch.testing.assert_close(centred[0, :2], torch.tensor([0.75, -0.25]) / spread, rtol=1e-5, atol=1e-6)
    assert torch.equal(centred[1], torch.zeros(4))
    assert torch.isfinite(ADVANTAGES["reinforce_plus_plus"](torch.ones(2, 2), torch.tensor([[1, 0], [0, 0]]))).all()


@pytest.mark.parametrize("name", sorted(set(ADVANTAGES) - {"raft"}))
def test_equal_rewards_are_no_signal_however_their_mean_is_rounded(name):
    for hundredths in range(100):
        advantages = ADVANTAGES[name](torch.full((16, 16), hundredths / 100), torch.full((16, 16), 5))
        assert not advantages.any(), (hundredths, advantages.unique())


MODES = {"token": "token-mean", "sequence": "seq-mean-token-mean", "dr_grpo": "seq-mean-token-sum-norm"}


@pytest.mark.full
@pytest.mark.parametrize("aggregation", MODES)
@pytest.mark.parametrize("weighted", [False, True])
def test_p09_the_loss_and_its_gradient_are_verls(batch, aggregation, weighted):
    from omegaconf import OmegaConf
    from verl.trainer.ppo.core_algos import get_policy_loss_fn

    rewards, lengths, mask, logp, old = batch
    per_row = ADVANTAGES["grpo"](rewards, lengths).flatten()
    sampler = old + 0.5 * torch.randn(old.shape, generator=torch.Generator().manual_seed(8))
    info = {"global_batch_info": {"loss_scale_factor": WIDTH} if aggregation == "dr_grpo" else {}}
    config = OmegaConf.create(
        {"clip_ratio": 0.2, "clip_ratio_low": 0.2, "clip_ratio_high": 0.28, "clip_ratio_c": 1e9} | info
    )
    theirs_in = logp.clone().requires_grad_()
    weights = importance_weight(old, sampler, 1.5) if weighted else None
    theirs, metrics = get_policy_loss_fn("vanilla")(
        old, theirs_in, per_row[:, None] * mask, mask, MODES[aggregation], config, weights
    )
    ours_in = logp.clone().requires_grad_()
    counts = lengths.flatten()
    advantage = per_row.repeat_interleave(counts)
    losses, clipped = policy_loss(flat(ours_in, mask), flat(old, mask), advantage, 0.2, 0.28)
    if weighted:
        assert float(weights[mask.bool()].max()) == 1.5
        losses = losses * importance_weight(flat(old, mask), flat(sampler, mask), 1.5)
    counts = counts[counts > 0]  # completions without tokens are no samples
    ours = (token_weights(counts, aggregation, WIDTH).repeat_interleave(counts) * losses).sum()
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    gradients = [torch.autograd.grad(*pair)[0] for pair in ((ours, ours_in), (theirs, theirs_in))]
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-7)
    assert 0 < metrics["actor/pg_clipfrac"] == pytest.approx(float(clipped.float().mean()))


@pytest.mark.full
@pytest.mark.parametrize(("ours", "theirs"), [("k1", "k1"), ("k1", "kl"), ("k2", "mse"), ("k3", "low_var_kl")])
def test_p09_kl_estimates_are_verls(batch, ours, theirs):
    from verl.trainer.ppo.core_algos import kl_penalty

    _, _, _, logp, reference = batch
    torch.testing.assert_close(kl_estimate(ours, logp, reference), kl_penalty(logp, reference, theirs))


def test_p09_the_loss_by_hand():
    """Two rows of 1 and 3 tokens; ratios 1, 2 (clipped above for a positive advantage) and 0.5."""
    logp = torch.tensor([1.0, 2.0, 1.0, 0.5]).log()
    losses, clipped = policy_loss(logp, torch.zeros(4), torch.tensor([1.0, 2.0, 2.0, -1.0]), 0.2, 0.3)
    torch.testing.assert_close(losses, torch.tensor([-1.0, -2.6, -2.0, 0.8]))
    assert clipped.tolist() == [False, True, False, True]
    lengths = torch.tensor([1, 3])
    hand = {"token": [1 / 4, 1 / 4], "sequence": [1 / 2, 1 / 6], "dr_grpo": [1 / 20, 1 / 20]}
    for aggregation, expected in hand.items():
        torch.testing.assert_close(token_weights(lengths, aggregation, 10), torch.tensor(expected))


def test_overlong_answers_cost_more_the_longer_they_are():
    assert [overlong_penalty(length, 10, 4, 2.0) for length in (3, 6, 7, 8, 10)] == [0, 0, -0.5, -1, -2]
    assert overlong_penalty(10, 10, 0, 2.0) == 0


def verls_step(monkeypatch, groups, samples, limit=WIDTH):
    """verl's trainer with at most ``limit`` tokens in a response, and its batch of these groups, out of order."""
    import transfer_queue
    from omegaconf import OmegaConf
    from transfer_queue import KVBatchMeta
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    from compositionality.train.verl.trainer import VerlGrpoTrainer

    rows, tags, left = {}, [], iter(samples)
    for group in groups:
        for number, completion in enumerate(group.completions):
            n, right = completion.n_tokens, float(group.correct[number])
            last, each = torch.zeros(n), torch.full((n,), next(left).advantage)
            last[-1] = group.rewards[number]
            rows[f"{group.position:012d}_{number}_0"] = {
                "prompts": torch.tensor(group.prompt_ids), "responses": torch.tensor(completion.token_ids),
                "response_mask": torch.ones(n, dtype=torch.long), "rm_scores": last, "token_level_rewards": last,
                "advantages": each, "returns": each, "num_turns": 2,
                "extra_fields": {"reward_extra_info": {"acc": right}},
            }  # fmt: skip
            tags.append({"response_len": n, "min_global_steps": 0, "max_global_steps": 0})

    def get(keys, partition_id, select_fields):
        asked = [rows[key] for key in keys]
        return list_of_dict_to_tensordict([{name: row[name] for name in select_fields if name in row} for row in asked])

    monkeypatch.setattr(transfer_queue, "kv_batch_get", get)
    trainer = object.__new__(VerlGrpoTrainer)
    trainer.config = OmegaConf.create(
        {"data": {"max_response_length": limit}, "actor_rollout_ref": {"rollout": {}, "model": {}}}
    )
    trainer.use_critic, trainer.ends, trainer._rollout_moe_lb_metrics_accumulator = False, {END}, None
    trainer.resource_pool_manager = SimpleNamespace(get_n_gpus=lambda: 2)
    trainer.train_dataloader, trainer.train_dataset = SimpleNamespace(position=ASKED), range(GROUPS)
    return trainer, KVBatchMeta([*rows][::-1], tags[::-1], "train")


@pytest.mark.full
@pytest.mark.parametrize("limit", [WIDTH, WIDTH + 1])
def test_p09_metrics_under_verls_names_are_those_that_verls_trainer_reports(monkeypatch, limit):
    """The same prompts, completions, rewards and advantages; ours has sampled groups besides that it dropped.

    Of the longest completions one ends by itself, and none of them is cut where the limit is larger.
    """
    generator = np.random.default_rng(5)
    lengths = generator.integers(1, WIDTH + 1, (GROUPS, SAMPLES)).tolist()
    correct = generator.integers(0, 2, (GROUPS, SAMPLES)).astype(bool).tolist()
    prompts = generator.integers(1, 6, GROUPS).tolist()
    lengths[0] = [WIDTH, WIDTH, 1, 1]

    def completion(n, ends):
        tokens = [7] * (n - 1) + [END if ends else 7]
        return Completion("", n, "stop" if ends else "length", tokens, [-1.0] * n)

    groups = [
        PromptGroup(
            number,
            [1] * prompts[number],
            [completion(n, n < limit or (number, place) == (0, 1)) for place, n in enumerate(lengths[number])],
            [float(value) for value in correct[number]],
            correct[number],
        )
        for number in range(GROUPS)
    ]
    samples = to_samples(groups, "grpo")
    seconds = {"gen": 2.0, "ref": 1.0, "update_actor": 3.0, "step": 6.0}
    alike = PromptGroup(9, [1], [completion(50, ends=False)] * 2, [9.0] * 2, [True] * 2)
    metrics = rollout_metrics([alike, *groups, alike], groups) | advantage_metrics(samples)
    metrics |= speeds(seconds, metrics, processes=2)
    trainer, batch = verls_step(monkeypatch, groups, samples, limit)
    theirs = {}
    trainer._compute_metrics(batch, theirs, seconds, global_steps=1, epoch=0)
    shared = metrics.keys() & theirs.keys()
    assert {name: metrics[name] for name in shared} == pytest.approx({name: theirs[name] for name in shared}, abs=1e-5)
    families = ["critic/score", "critic/rewards", "critic/advantages", "prompt_length", "response_length"]
    assert shared >= {f"{family}/{end}" for family in families for end in ("mean", "max", "min")}
    assert shared >= {"response_length/clip_ratio", "perf/throughput", "perf/time_per_step", "perf/total_num_tokens"}
    assert shared >= {f"timing_per_token_ms/{stage}" for stage in ("gen", "ref", "update_actor")}
    assert (theirs["response_length/clip_ratio"] > 0) == (limit == WIDTH)
    assert {name for name in theirs if name.endswith("clip_ratio")} == {"response_length/clip_ratio"}
    assert metrics["rollout/response_length/mean"] > metrics["response_length/mean"]
    assert theirs["training/epoch"] == 2, "of the prompts asked, as in grpo.py, in place of verl's steps"


@pytest.mark.full
def test_the_completions_to_read_are_the_same_with_either_engine(monkeypatch, tmp_path):
    """Groups with right and wrong ones come first, five at most; of each the first right and the first wrong one."""
    patterns = ["www", "rrr", "wrw", "www", "rwr", "rrr", "www"]
    groups = []
    for position, pattern in enumerate(patterns):
        right = [letter == "r" for letter in pattern]
        texts = [[position, number, END] for number in range(len(pattern))]
        completions = [Completion("", len(text), "stop", text, [-1.0] * len(text)) for text in texts]
        rewards = [float(one) for one in right]
        groups.append(PromptGroup(position, [1] * (1 + position), completions, rewards, right))
    trainer, batch = verls_step(monkeypatch, groups, to_samples(groups, "grpo"))
    trainer.tokenizer = SimpleNamespace(decode=lambda ids: " ".join(str(int(token)) for token in ids))
    kept = []
    run_log = SimpleNamespace(keep_generations=lambda _, rows: kept.extend(rows))
    report = SimpleNamespace(out=tmp_path, samples_every=1, run_log=run_log)
    Report.write_samples(report, 1, groups, trainer.tokenizer)
    assert kept == trainer._completions(batch)
    assert [(one["position"], one["completion"], one["right"]) for one in kept] == [
        *((2, "2 1 2", True), (2, "2 0 2", False), (4, "4 0 2", True), (4, "4 1 2", False)),
        *((0, "0 0 2", False), (1, "1 0 2", True), (3, "3 0 2", False)),
    ]


@pytest.mark.full
def test_p09_probabilities_of_trainer_and_sampler_differ_as_verl_measures(batch):
    from verl import DataProto
    from verl.utils.debug.metrics import calculate_debug_metrics

    _, _, mask, logp, _ = batch
    trainer = logp.clamp(max=0)
    sampler = trainer + 0.05 * torch.randn(logp.shape, generator=torch.Generator().manual_seed(4))
    gap, half = RolloutGap(), len(mask) // 2
    for rows in (slice(half), slice(half, None)):
        gap.add(flat(trainer[rows], mask[rows]), flat(sampler[rows], mask[rows]), torch.ones(int(mask[rows].sum())) > 0)
    gap.add(torch.tensor([-1.0]), torch.tensor([0.0]), torch.tensor([False]))  # a rank without rows
    found = gap.metrics()
    names = {"rollout_log_probs": sampler, "old_log_probs": trainer, "response_mask": mask, "responses": mask}
    expected = calculate_debug_metrics(DataProto.from_dict(names))
    assert found == pytest.approx(expected | {"actor/rollout_gap": found["actor/rollout_gap"]}, abs=1e-6)
    assert found["actor/rollout_gap"] == pytest.approx(float(((trainer - sampler).abs() * mask).max()))


@pytest.mark.full
@pytest.mark.parametrize(("n", "passes"), [(1, {}), (3, {2: 5 / 6, 3: 1.0})])
def test_p09_validation_is_reported_as_by_verl(n, passes):
    """Two levels, n completions of each problem; the judge failed on one, whose problem neither engine counts.

    verl's trainer has ours: pass@k, unbiased. It alone has spreads and its own best@k, by bootstrap.
    """
    from compositionality.train.verl.trainer import VerlGrpoTrainer

    level = [SimpleNamespace(data_source=f"string-level{1 + (place > 2)}") for place in range(6)]
    first = [Reason.CORRECT, Reason.WRONG, Reason.ERROR, Reason.OVERLONG, Reason.NO_ANSWER, Reason.CORRECT]
    groups, sources, uids, infos = [], [], [], {"reward": []}
    for place, reason in enumerate(first):
        reasons = [reason, Reason.CORRECT, Reason.WRONG][:n]
        verdicts = [Verdict(float(one is Reason.CORRECT), one, metrics={"turns": 2.0}) for one in reasons]
        rewards = [None if verdict.reason is Reason.ERROR else verdict.score for verdict in verdicts]
        correct, metrics = [reward == 1 for reward in rewards], [verdict.metrics for verdict in verdicts]
        groups.append(PromptGroup(0, [1], [], rewards, correct, metrics, reasons))
        for verdict, reward in zip(verdicts, rewards, strict=True):
            if reward is not None:
                sources.append(level[place].data_source)
                uids.append(str(place))
                for name, value in {"reward": reward, **score_dict(verdict)}.items():
                    if name != Reason.ERROR:  # as our reward manager
                        infos.setdefault(name, []).append(value)
    counts = {(level[place].data_source, str(place)): n for place in range(6)}
    theirs = object.__new__(VerlGrpoTrainer)._val_metrics_update(sources, uids, infos, [], expected_acc_counts=counts)
    ours = validation_metrics(level, groups)
    spreads = {name for name in theirs if {"std", "best", "worst"} & {*re.split("[/@]", name)}}
    assert ours == pytest.approx({name: value for name, value in theirs.items() if name not in spreads})
    assert bool(spreads) == (n > 1)
    assert {name: ours[name] for name in ours if "pass@" in name and "level1" in name} == pytest.approx(
        {f"val-core/string-level1/acc/pass@{k}": share for k, share in passes.items()}
    )
    if n == 1:
        assert ours["val-core/string-level1/acc/mean@1"] == 0.5
        assert ours["val-aux/string-level2/overlong/mean@1"] == pytest.approx(1 / 3)


@pytest.mark.full
def test_p09_operations_of_an_update_are_those_that_verl_counts(monkeypatch):
    from transformers import LlamaConfig
    from verl.utils import flops_counter

    config = LlamaConfig(hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
                         num_key_value_heads=2, head_dim=24, vocab_size=101)  # fmt: skip
    lengths = [5, 17, 9]
    monkeypatch.setattr(flops_counter, "get_device_flops", lambda: 1.0)  # it asks CUDA for a name
    speed, _ = flops_counter.FlopsCounter(config).estimate_flops(lengths, 2.0)  # 10¹² a second
    assert update_flops(config, lengths) == pytest.approx(speed * 1e12 * 2.0)


def test_no_share_of_a_peak_is_claimed_on_a_cpu():
    assert actor_mfu(None, [TrainSample([1], [2], [0.0], 1.0)], {"update_actor": 1.0}, 1) == {}
