"""Which groups reach the update: verl's real replay buffer class over a store in memory (no Ray)."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

replay = pytest.importorskip("compositionality.train.verl.replay", reason="verl is not installed")

from compositionality.config.cli import parse  # noqa: E402
from compositionality.errors import UserError  # noqa: E402
from compositionality.reward.shapes import reward  # noqa: E402
from compositionality.train import grpo  # noqa: E402
from compositionality.train.grpo_settings import GrpoSettings  # noqa: E402
from compositionality.train.metrics import GROUPS, SIGNAL  # noqa: E402
from compositionality.train.prompts import Refills  # noqa: E402
from compositionality.types import Reason, Verdict  # noqa: E402

pytestmark = pytest.mark.full

GROUP = 4
CORRECT, WRONG, MALFORMED = Reason.CORRECT, Reason.WRONG, Reason.MALFORMED


class Store:
    """What the replay buffer uses of TransferQueue."""

    def __init__(self):
        self.tags, self.fields = {"train": {}, "val": {}}, {}

    def add_group(self, uid, reasons, status="finished", partition="train", order=None):
        self.tags[partition][uid] = {"is_prompt": True, "status": status, "global_steps": 1}
        for sample in order or range(len(reasons)):
            reason = reasons[sample]
            key = f"{uid}_{sample}_0"
            score = reward(Verdict(float(reason is CORRECT), reason), "paper")
            self.tags[partition][key] = {"status": "success"}
            info = {"acc": float(reason is CORRECT), "score": score}
            self.fields[key] = {"rm_scores": torch.tensor([0.0, score]), "extra_fields": {"reward_extra_info": info}}

    def kv_list(self):
        return {name: dict(tags) for name, tags in self.tags.items()}

    def kv_clear(self, keys, partition_id):
        for key in keys:
            self.tags[partition_id].pop(key, None)

    def kv_batch_get(self, keys, partition_id, select_fields):
        return {name: [self.fields[key][name] for key in keys] for name in select_fields}


@pytest.fixture
def store(monkeypatch):
    from verl.trainer.ppo.v1 import replay_buffer

    store = Store()
    monkeypatch.setattr(replay_buffer, "tq", store)
    return store


def sampler(refill=None, **changes):
    settings = {
        "filter": True, "metric": "acc", "generation_batch_size": 4, "max_num_gen_batches": 3,
        "responses_per_prompt": GROUP, "max_error_rate": 0.1, "poll_seconds": 0.001, "stall_minutes": 0.001, **changes,
    }  # fmt: skip
    return replay.GenerationBatches(
        trainer_mode="sync", trainer_config={}, max_off_policy_threshold=8, max_off_policy_strategy="drop",
        sampler_kwargs=settings, refill_fn=refill or (lambda prompts: pytest.fail(f"asked for {prompts} more prompts")),
    )  # fmt: skip


def uids(batch):
    return list(dict.fromkeys(key.split("_")[0] for key in batch.keys))


def test_groups_without_signal_do_not_reach_the_update(store):
    store.add_group("1", [CORRECT] * GROUP)
    store.add_group("2", [WRONG] * GROUP)
    store.add_group("3", [WRONG, MALFORMED, WRONG, MALFORMED])  # rewards 0 and −1: they differ, yet all are wrong
    store.add_group("4", [CORRECT, WRONG, CORRECT, MALFORMED])
    batch, metrics = sampler().sample(global_steps=1, partition_id="train", batch_size=1)
    assert uids(batch) == ["4"]
    assert len(batch.keys) == GROUP
    assert metrics["training/filter_groups/evicted_samples"] == 3
    assert metrics["training/filter_groups/all_0"] == 2
    assert metrics["training/filter_groups/all_1"] == 1
    assert (metrics[GROUPS], metrics[SIGNAL]) == (4, 1)


def test_the_reward_as_metric_would_keep_an_all_wrong_group(store):
    store.add_group("3", [WRONG, MALFORMED, WRONG, MALFORMED])
    batch, _ = sampler(metric="reward").sample(global_steps=1, partition_id="train", batch_size=1)
    assert uids(batch) == ["3"]


def test_refills_until_the_batch_is_full_and_keeps_the_order_of_the_data(store):
    store.add_group("5", [CORRECT] * GROUP)
    store.add_group("2", [CORRECT, WRONG, WRONG, WRONG], order=[2, 0, 3, 1])
    asked = []

    def refill(prompts):
        asked.append(prompts)
        for uid in ("9", "7", "8"):
            store.add_group(uid, [WRONG, CORRECT, WRONG, WRONG])

    batch, metrics = sampler(refill).sample(global_steps=1, partition_id="train", batch_size=2)
    assert asked == [4]
    assert batch.keys == [f"{uid}_{sample}_0" for uid in ("2", "7") for sample in range(GROUP)]
    assert metrics["training/filter_groups/discarded_surplus_samples"] == 2
    assert not [key for key in store.tags["train"] if key.startswith(("8", "9"))]


def test_without_filter_every_group_is_taken(store):
    store.add_group("1", [CORRECT] * GROUP)
    store.add_group("2", [WRONG] * GROUP)
    batch, metrics = sampler(filter=False).sample(global_steps=1, partition_id="train", batch_size=2)
    assert uids(batch) == ["1", "2"]
    assert metrics[SIGNAL] == 0
    assert not [name for name in metrics if "all_" in name or "evicted" in name]
    store.add_group("3", [CORRECT, WRONG, MALFORMED, WRONG])
    store.add_group("4", [WRONG] * GROUP)
    batch, metrics = sampler(filter=False).sample(global_steps=2, partition_id="train", batch_size=2)
    assert uids(batch) == ["3", "4"]
    assert metrics[SIGNAL] == 1


def test_the_limit_of_generation_batches_ends_in_one_line(store):
    sizes = []

    def refill(prompts):
        sizes.append(prompts)
        for number in range(prompts):
            store.add_group(f"{len(sizes)}{number}", [WRONG] * GROUP)

    with pytest.raises(replay.NoSignalError, match=r"step 7: only 0 of the 2 groups .* after 12 prompts"):
        sampler(refill).sample(global_steps=7, partition_id="train", batch_size=2)
    assert sizes == [4, 4]


def test_p05_a_group_with_a_failed_judge_is_replaced_and_many_stop_the_run(store):
    store.add_group("1", [CORRECT, WRONG, WRONG], status="failure")  # the fourth response has no verdict
    for uid in ("2", "3", "4"):
        store.add_group(uid, [CORRECT, WRONG, WRONG, WRONG])
    batch, metrics = sampler().sample(global_steps=1, partition_id="train", batch_size=3)
    assert uids(batch) == ["2", "3", "4"]
    assert metrics["training/rollout_failure/evicted_samples"] == 1

    store.tags["train"].clear()
    store.add_group("1", [CORRECT], status="failure")
    store.add_group("2", [CORRECT, WRONG, WRONG, WRONG])
    with pytest.raises(UserError, match=r"failed on 3 of 8 responses \(reward.max_error_rate=0.1\)"):
        sampler().sample(global_steps=1, partition_id="train", batch_size=1)


def test_a_dead_vllm_is_noticed(store):
    store.add_group("1", [], status="running")
    with pytest.raises(UserError, match=r"1 prompts wait for one: vLLM is dead or stuck"):
        sampler().sample(global_steps=1, partition_id="train", batch_size=1)


def test_validation_takes_every_group(store):
    store.add_group("b", [CORRECT], partition="val")
    store.add_group("a", [WRONG], partition="val")
    batch, metrics = sampler().sample(global_steps=1, partition_id="val", batch_size=2)
    assert uids(batch) == ["a", "b"]
    assert metrics == {}


@pytest.mark.parametrize(("kept", "size"), [(0, 8), (4, 8), (7, 2)])
def test_later_generation_batches_ask_for_what_is_missing_and_no_limit_means_none(kept, size):
    rounds = Refills(8, 8, 0)
    assert rounds.next(kept) == size
    assert sum(rounds.next(kept) for _ in range(100)) == 800


@pytest.mark.parametrize("first", [8, 16, 5])
@pytest.mark.parametrize("share", [0.9, 0.5, 0.2, 0.05])
def test_both_engines_ask_and_take_the_same_problems(store, monkeypatch, share, first):
    """Six updates of eight groups on scripted signals; where there is too little, both stop after as many."""
    signals = np.random.default_rng([first, int(100 * share)]).random(10_000) < share
    words = ["model.path=m", "data.train_files=[f]", "trainer.output=o", "algorithm.dynamic_sampling=true"]
    words += ["data.prompts_per_step=8", f"rollout.generation_batch={first}", "algorithm.max_generation_batches=7"]

    def stop(*_: int) -> None:
        raise UserError("too few")

    def groups(position: int, n_prompts: int) -> list[int]:
        return [*range(position, position + n_prompts)]

    single = SimpleNamespace(
        settings=parse(GrpoSettings, words), position=0, sample_groups=groups, is_useful=lambda place: signals[place],
        stop_without_signal=stop,
    )  # fmt: skip
    monkeypatch.setattr(grpo, "rollout_metrics", lambda sampled, _, **__: {GROUPS: len(sampled)})
    asked = 0

    def refill(prompts: int) -> None:
        nonlocal asked
        for place in groups(asked, prompts):
            store.add_group(f"{place:05d}", [CORRECT, WRONG] if signals[place] else [WRONG, WRONG])
        asked += prompts

    verl = sampler(refill, generation_batch_size=first, max_num_gen_batches=7, responses_per_prompt=2)
    for step in range(1, 7):
        refill(first)
        try:
            taken, metrics = grpo.GrpoTrainer.collect(single, step)
        except UserError:
            with pytest.raises(replay.NoSignalError):
                verl.sample(global_steps=step, partition_id="train", batch_size=8)
            assert single.position == asked
            return
        batch, of_verl = verl.sample(global_steps=step, partition_id="train", batch_size=8)
        assert [f"{place:05d}" for place in taken] == uids(batch)
        names = (GROUPS, "training/filter_groups/discarded_surplus_samples")
        assert [metrics[name] for name in names] == [of_verl[name] for name in names]
        assert single.position == asked
    assert share > 0.05
