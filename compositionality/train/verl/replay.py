"""Choose the groups of responses that reach an update: verl's replay buffer with three rules of ours.

verl's own sampler refills while other requests are still running, so what a batch holds depends on timing, and it
ignores ``algorithm.filter_groups.max_num_gen_batches``. Here a generation batch is finished before it is judged:
the same run gives the same batches, and the limit holds.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.replay_buffer import DAPO_FILTERED_REWARD_COUNTS_KEY, ReplayBuffer

from compositionality.errors import UserError
from compositionality.train.metrics import GROUPS, SAMPLED, SIGNAL
from compositionality.train.prompts import Refills, too_few_groups

VALIDATION = "val"


class NoSignalError(UserError):
    """The limit of generation batches was reached before a training batch was full."""


class FailedResponsesError(UserError):
    """More responses than allowed got no verdict."""


class GenerationBatches(ReplayBuffer):  # type: ignore[misc]
    """Samples whole groups in the order of the data; drops groups without signal and groups whose judge failed.

    ``sampler_kwargs``: filter (whether groups without signal are dropped), metric (they are equal in it),
    generation_batch_size (prompts), max_num_gen_batches (0: no limit), responses_per_prompt, max_error_rate,
    poll_seconds, stall_minutes.
    """

    def __init__(self, *, sampler_kwargs: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(
            sampler_kwargs=sampler_kwargs,
            poll_interval=sampler_kwargs["poll_seconds"],
            filter_groups_metric=sampler_kwargs["metric"],
            **kwargs,
        )
        self.settings = sampler_kwargs
        self.without_signal: set[str] = set()

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[KVBatchMeta, dict[str, Any]]:
        """Return ``batch_size`` groups of ``partition_id``, and what was dropped on the way, as metrics."""
        limit = self.settings["max_num_gen_batches"]
        refills = Refills(batch_size, self.settings["generation_batch_size"], limit)
        metrics: Counter[str] = Counter()
        while True:
            self._wait_until_settled(partition_id)
            self._refuse_errors(partition_id)
            uids = self._drop_groups(global_steps, partition_id, metrics)
            if partition_id == VALIDATION or len(uids) >= batch_size:
                break
            prompts = refills.next(len(uids))
            if not prompts:
                name = f"algorithm.filter_groups.max_num_gen_batches={limit}"
                raise NoSignalError(too_few_groups(global_steps, len(uids), batch_size, refills.asked, name))
            self.refill_fn(prompts)
        chosen = sorted(uids)[:batch_size]
        surplus = uids - set(chosen)
        with_signal = uids - self.without_signal
        snapshot = dict(self.partitions[partition_id])
        self._clear_groups(partition_id, surplus)
        if partition_id != VALIDATION:
            metrics["training/filter_groups/discarded_surplus_samples"] = len(surplus)
            metrics[GROUPS], metrics[SIGNAL] = refills.asked, len(with_signal)
            metrics[SAMPLED] = refills.asked * self.settings["responses_per_prompt"]
        return self._materialize_batch(partition_id, chosen, snapshot), dict(metrics)

    def _wait_until_settled(self, partition_id: str) -> None:
        """Poll until no prompt is pending or running; UserError if nothing moves for ``stall_minutes``."""
        responses, since, minutes = -1, time.monotonic(), self.settings["stall_minutes"]
        while True:
            self._sync_metadata_from_transfer_queue()
            waiting = len(self.pending_keys[partition_id]) + len(self.running_keys[partition_id])
            if not waiting:
                return
            if responses != len(self.partitions[partition_id]):
                responses, since = len(self.partitions[partition_id]), time.monotonic()
            elif time.monotonic() - since > 60 * minutes:
                raise UserError(
                    f"no response was finished for {minutes:g} minutes although {waiting} prompts wait for one: vLLM "
                    "is dead or stuck; run the same command again to continue"
                )
            time.sleep(self.poll_interval)

    def _refuse_errors(self, partition_id: str) -> None:
        """Raise FailedResponsesError when more responses than ``max_error_rate`` got no verdict (P5)."""
        failed, limit = self.failure_keys[partition_id], self.settings["max_error_rate"]
        missing, expected, name = len(failed), len(self.finished_keys[partition_id] | failed), "prompts"
        if partition_id != VALIDATION:  # there another number of responses for each prompt: prompts are counted
            each, name = self.settings["responses_per_prompt"], "responses"
            missing = missing * each - sum(key.split("_")[0] in failed for key in self.partitions[partition_id])
            expected *= each
        if missing > limit * expected:
            raise FailedResponsesError(
                f"the judge or vLLM failed on {missing} of {expected} {name} (reward.max_error_rate={limit:g}); "
                "the first failure is in the log above"
            )

    def _drop_groups(self, global_steps: int, partition_id: str, metrics: Counter[str]) -> set[str]:
        """Evict what must not reach the update, count it, and return the uids that are left."""
        reasons = self._terminal_eviction_reasons(global_steps, partition_id)
        _, _, _, evicted = self._evict_terminal_groups(global_steps, partition_id, reasons)
        counts = evicted.pop(DAPO_FILTERED_REWARD_COUNTS_KEY, {})
        metrics.update(evicted)
        metrics.update({f"training/filter_groups/all_{value:g}": count for value, count in counts.items()})
        uids: set[str] = self._sampleable_terminal_keys(partition_id, reasons)
        return uids

    def _terminal_eviction_reasons(
        self, global_steps: int, partition_id: str
    ) -> tuple[set[str], set[str], set[str], Counter[float]]:
        """Return verl's reasons, and every group with a failed response: the rest of it would be a biased sample.

        Without a filter, groups without signal are known (``without_signal``) and stay.
        """
        stale, equal, failed, counts = super()._terminal_eviction_reasons(global_steps, partition_id)
        self.without_signal = equal
        if not self.settings["filter"]:
            equal, counts = set(), Counter()
        if partition_id != VALIDATION:
            failed = set(self.failure_keys[partition_id])
        return stale, equal, failed, counts

    def _materialize_batch(
        self, partition_id: str, selected_prompt_uids: Sequence[str], partition_snapshot: Mapping[str, Any]
    ) -> KVBatchMeta:
        """Return verl's batch with the rows in the order of the data and not of their arrival."""
        ordered = {key: partition_snapshot[key] for key in sorted(partition_snapshot, key=row_order)}
        return super()._materialize_batch(partition_id, selected_prompt_uids, ordered)


def row_order(key: str) -> tuple[str, int, int]:
    """Return the sort key of a stored response, named ``{uid}_{sample}_{output}`` by verl."""
    uid, sample, output = key.split("_")
    return uid, int(sample), int(output)
