"""Whole runs of the single-file trainer in this process: what they leave behind, resume, sampler and trainer agree."""

import json
import math
import shutil
from collections import Counter
from pathlib import Path

import pytest
import torch
from runs import apart, settings, weights

from compositionality.data.artefact import verify
from compositionality.errors import UserError
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.train import checkpoint, grpo
from compositionality.train.checkpoint import export, with_old_config_keys
from compositionality.train.engines import settle_epochs, train_grpo
from compositionality.train.engines import train_on_rank as train
from compositionality.train.grpo import GrpoTrainer, RolloutWorker
from compositionality.train.metrics import GROUPS, read_metrics
from compositionality.train.policy import Policy, load_model
from compositionality.train.run_folder import best_step, complete_steps, saved_steps, scores
from compositionality.train.settings import ModelSettings
from compositionality.train.training_report import report_of, rl_report, trained
from compositionality.types import PromptGroup, Reason, Verdict


@pytest.fixture(scope="module")
def whole(small, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    train(settings(small, out))
    return out


@pytest.fixture(scope="module")
def two_steps(small, tmp_path_factory):
    return train(settings(small, tmp_path_factory.mktemp("two_steps") / "run", "trainer.steps=2"))


def test_a_run_trains_evaluates_saves_and_exports(small, whole):
    rows = read_metrics(whole / "metrics.jsonl")
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    assert sum("actor/entropy" in row for row in rows) >= 3
    sources = {name for name in rows[0] if name.startswith("val-core/") and name.endswith("/acc/mean@1")}
    assert sources == {name for name in rows[4] if name.startswith("val-core/")}
    assert len(sources) == 2
    assert {"critic/score/mean", "response_length/mean", "timing_s/gen", "timing_s/sync"} <= rows[1].keys()
    assert sorted(scores(whole / "steps")) == [0, 2, 4]
    best = best_step(whole / "steps")
    assert saved_steps(whole / "steps") == sorted({best, 3, 4})
    assert verify(whole / "final").facts["step"] == 4
    assert verify(whole / "best").facts["step"] == best
    assert verify(whole / "best").facts["training"] == rl_report(whole / "metrics.jsonl", best)["training"]
    assert "reward" in (whole / "samples" / "step_2.txt").read_text()
    asked = []
    for step in (0, 2, 4):
        lines = (whole / "samples" / f"validation_{step}.jsonl").read_text().splitlines()
        asked.append([(row["problem"], row["data_source"], row["prompt"]) for row in map(json.loads, lines)])
    assert asked[0] == asked[1] == asked[2]
    assert Counter(source for _, source, _ in asked[0]) == dict.fromkeys((name.split("/")[1] for name in sources), 3)
    assert apart(weights(whole / "final"), weights(small / "model")) > 1e-4


def test_the_model_says_what_its_training_did(small, whole):
    """Against the groups that the loop saw; a run of the same settings, so the same groups."""
    report, steps = report_of(whole / "final"), read_metrics(whole / "metrics.jsonl")[1:]
    given = settings(small, whole)
    assert report is not None
    assert (report.updates, report.groups) == (4, 4 * given.data.prompts_per_step)
    assert report.completions == report.groups * given.rollout.n == steps[-1]["compute/sampled_completions"]
    assert report.groups_with_signal == sum(row["training/filter_groups/kept"] for row in steps)
    assert report.updates_without_signal == sum(row["training/filter_groups/kept"] == 0 for row in steps)
    assert 0 < report.tokens < sum(row["perf/trained_tokens"] for row in steps)  # those count the prompts too
    assert trained(whole / "metrics.jsonl")["updates"] == report.updates - report.updates_without_signal
    with_entropy = [row for row in steps if "actor/entropy" in row]
    ends = [round(with_entropy[place]["actor/entropy"], 4) for place in (0, -1)]
    assert [report.first_entropy, report.last_entropy] == ends
    assert report.updates_with_signal


def test_flops_are_logged_by_both_counts(small, whole):
    """Of weights and tokens, by hand: 2 N a token forward, 6 N a token of an update; one pass is enough for π_old."""
    n = sum(
        one.numel() for name, one in weights(whole / "final").items() if "embed" not in name and "lm_head" not in name
    )
    full = paper = 0
    rows = read_metrics(whole / "metrics.jsonl")
    assert rows[0]["perf/evaluated_tokens"] > 0
    for row in rows:
        sampled, updated = row.get("perf/sampled_tokens_with_prompts", 0), row.get("perf/trained_tokens", 0)
        full += 2 * n * (sampled + row.get("perf/evaluated_tokens", 0)) + 6 * n * updated
        paper += 6 * n * sampled
        assert (row["compute/flops"], row["compute/flops_paper"]) == (full, paper)
        if row["step"]:
            assert sampled > row["perf/sampled_tokens"]  # those are without prompts


def test_the_trainer_and_the_sampler_find_the_same_log_probs(whole):
    gaps = [row["actor/rollout_gap"] for row in read_metrics(whole / "metrics.jsonl") if "actor/rollout_gap" in row]
    assert 0 < max(gaps) <= 1e-4


def test_p13_the_export_reloads(small, whole):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    before, after = (json.loads((folder / "config.json").read_text()) for folder in (small / "model", whole / "final"))
    assert after == with_old_config_keys(before)
    model = AutoModelForCausalLM.from_pretrained(whole / "final")
    assert AutoTokenizer.from_pretrained(whole / "final").chat_template
    saved = weights(whole / "final")
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, saved[name])


def test_a_temperature_in_the_models_folder_is_written_as_it_was(small, tmp_path):
    """Transformers reads one without do_sample, and refuses to save it: no run ends at a checkpoint for that."""
    model = shutil.copytree(small / "model", tmp_path / "model")
    given = json.loads((model / "generation_config.json").read_text()) | {"temperature": 0.6, "top_p": 0.9}
    (model / "generation_config.json").write_text(json.dumps(given))
    export(Policy(load_model(ModelSettings(str(model)))), load_tokenizer(model), tmp_path / "final")
    written = json.loads((tmp_path / "final" / "generation_config.json").read_text())
    assert (written["temperature"], written["top_p"]) == (0.6, 0.9)


def test_a_finished_run_that_is_lengthened_ends_with_the_same_bytes(small, whole, two_steps, tmp_path, capsys):
    out = shutil.copytree(two_steps, tmp_path / "run")
    train(settings(small, out))
    assert "going on from step 2" in capsys.readouterr().out
    for name in ("final", "best"):
        assert verify(out / name).files == verify(whole / name).files
    assert [row["step"] for row in read_metrics(out / "metrics.jsonl")] == [0, 1, 2, 3, 4]
    with pytest.raises(UserError, match=r"trainer.steps: 4 then, 3 now"):
        train(settings(small, out, "trainer.steps=3"))


EPOCHS = [  # words, steps: whole ones of a pass (of 120 problems) times the passes, or the smaller trainer.steps
    (("trainer.steps=null",), 100),
    (("trainer.steps=null", "trainer.epochs=2"), 30),
    (("trainer.steps=null", "trainer.epochs=2", "data.prompts_per_step=50"), 4),
    (("trainer.steps=7", "trainer.epochs=2"), 7),
    (("trainer.steps=70", "trainer.epochs=2"), 30),
]


@pytest.mark.parametrize(("words", "steps"), EPOCHS)
def test_epochs_are_whole_steps_as_verl_counts_them(small, tmp_path, words, steps):
    chosen = settings(small, tmp_path, *words)
    settle_epochs(chosen, dry=False)
    assert chosen.trainer.last_step() == steps
    prompts = chosen.data.prompts_per_step
    ends = [step for step in range(200) if chosen.is_over(step, step * prompts, 120)]
    assert ends[0] == steps


def test_with_dynamic_sampling_a_run_ends_when_its_epoch_is_used_up(small, tmp_path):
    words = ("trainer.steps=null", "trainer.epochs=1", "data.prompts_per_step=24", "algorithm.dynamic_sampling=true")
    words += ("trainer.eval_every=0", "trainer.save_every=0", "algorithm.max_generation_batches=30")
    chosen = settings(small, tmp_path / "run", *words)
    settle_epochs(chosen, dry=False)
    out = train(chosen)
    rows = read_metrics(out / "metrics.jsonl")[1:]
    asked = [row[GROUPS] for row in rows]
    assert sum(asked) + 24 > 120 >= sum(asked[:-1]) + 24
    assert verify(out / "final").facts["step"] == len(rows) < 5


@pytest.mark.parametrize("changes", [["1"], ["200", "model.activation_checkpointing=true"]])
def test_p10_micro_batches_do_not_change_the_result(small, two_steps, tmp_path, changes):
    """Nor does what is computed again to save memory."""
    tokens, *more = changes
    more += [f"trainer.micro_batch_tokens={tokens}", "trainer.steps=2", "trainer.save_every=0"]
    out = train(settings(small, tmp_path / "run", *more))
    assert apart(weights(out / "final"), weights(two_steps / "final")) < 2e-5


DAPO = ("algorithm.dynamic_sampling=true", "algorithm.max_generation_batches=20", "algorithm.clip_high=0.28")


@pytest.fixture(scope="module")
def dapo(small, tmp_path_factory):
    """A run with dynamic sampling, and for each of its steps the positions of the groups it was updated by."""
    seen = []
    original = grpo.to_samples

    def note(groups, advantage):
        seen.append([group.position for group in groups])
        assert all(group.has_signal() for group in groups)
        return original(groups, advantage)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grpo, "to_samples", note)
        return train(settings(small, tmp_path_factory.mktemp("dapo") / "run", *DAPO)), seen


def test_dynamic_sampling_fills_the_batch_and_drops_the_surplus(dapo):
    out, seen = dapo
    rows = read_metrics(out / "metrics.jsonl")[1:]
    assert [len(positions) for positions in seen] == [8, 8, 8, 8]
    positions = [position for step in seen for position in step]
    assert positions == sorted(set(positions))  # no group is used twice, none is overtaken
    asked, dropped = (
        [row[f"training/filter_groups/{name}"] for row in rows]
        for name in ("generated_prompts", "discarded_surplus_samples")
    )
    assert any(dropped)
    assert dropped == [row["training/filter_groups/with_signal"] - 8 for row in rows]
    assert all(max(step) < sum(asked[:number]) for number, step in enumerate(seen, 1))


def test_p07_a_run_that_was_stopped_ends_with_the_same_bytes(small, dapo, tmp_path, monkeypatch):
    """Stopped in the evaluation of step 4, before anything of that step is on disk."""
    (whole, _), out, original = dapo, tmp_path / "run", GrpoTrainer.evaluate
    with monkeypatch.context() as patch:
        patch.setattr(GrpoTrainer, "evaluate", lambda self, step: original(self, step) if step < 4 else 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(settings(small, out, *DAPO))
    assert complete_steps(out / "steps")[-1] == 3
    train(settings(small, out, *DAPO))
    for name in ("final", "best"):
        assert verify(out / name).files == verify(whole / name).files
        assert verify(out / name).facts == verify(whole / name).facts
    assert scores(out / "steps") == scores(whole / "steps")
    assert [row["step"] for row in read_metrics(out / "metrics.jsonl")] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("changes", [
    ["algorithm.advantage=dr_grpo", "algorithm.loss_aggregation=dr_grpo", "algorithm.entropy_coef=0.01",
     "algorithm.kl=k3", "algorithm.kl_coef=0.1", "algorithm.updates_per_step=4"],
    ["algorithm.advantage=rloo", "algorithm.loss_aggregation=sequence", "algorithm.importance_cap=2",
     "algorithm.overlong_buffer=8", "reward.shape=paper", "rollout.temperature=0.8", "rollout.top_k=20"],
    ["algorithm.advantage=reinforce_plus_plus", "algorithm.drop_equal_groups=false", "rollout.n=1"],
])  # fmt: skip
def test_every_algorithm_runs(small, tmp_path, changes):
    short = ("trainer.steps=2", "trainer.eval_every=0", "trainer.save_every=0")
    out = train(settings(small, tmp_path / "run", *changes, *short))
    rows = read_metrics(out / "metrics.jsonl")
    assert all(math.isfinite(value) for row in rows for value in row.values())
    updated = [row for row in rows if "actor/entropy" in row]
    assert updated
    assert all(row["actor/rollout_gap"] <= 1e-4 for row in updated)
    if "algorithm.kl=k3" in changes:
        assert updated[-1]["actor/kl_loss"] > 0
        assert updated[-1]["actor/ppo_kl"] != 0  # the later updates of a step are off-policy
        assert report_of(out / "final").updates == 8
    assert report_of(out / "final").updates_with_signal


@pytest.mark.parametrize(("control", "dynamic"), [("format", "true"), ("random", "false")])
def test_a_control_is_the_same_whichever_answers_are_right(small, tmp_path, monkeypatch, control, dynamic):
    """In a step, and in the validations: the filter, the batch and the final model depend on their number at most."""
    original = RolloutWorker.generate

    def moved(self, *arguments):
        groups = original(self, *arguments)
        right = iter([one for group in groups for one in group.correct][::-1])
        for group in groups:
            group.correct = [next(right) for _ in group.correct]
        return groups

    words = [f"reward.control={control}", f"algorithm.dynamic_sampling={dynamic}", "trainer.keep_best=false"]
    short = ["trainer.steps=2", "algorithm.max_generation_batches=30", "trainer.save_every=0"]
    one = train(settings(small, tmp_path / "one", *words, *short))
    monkeypatch.setattr(RolloutWorker, "generate", moved)
    other = train(settings(small, tmp_path / "other", *words, *short))
    assert apart(weights(one / "final"), weights(other / "final")) == 0
    assert apart(weights(one / "final"), weights(small / "model")) > 0
    assert not (one / "best").exists()


def test_the_entropy_follows_another_run(small, tmp_path):
    """From the same start: down to a lower one, up to a higher one."""
    last = {}
    for wanted in (0.01, 1.5):
        like = tmp_path / f"{wanted}.jsonl"
        like.write_text("".join(f'{{"step": {step}, "rollout/entropy": {wanted}}}\n' for step in range(1, 9)))
        words = ["reward.control=random", "trainer.keep_best=false", "trainer.steps=8", "trainer.eval_every=0"]
        words += ["trainer.save_every=0"]
        follow = [f"algorithm.entropy_like={like}", "algorithm.entropy_coef=10"]
        out = train(settings(small, tmp_path / str(wanted), *words, *follow))
        rows = read_metrics(out / "metrics.jsonl")[1:]
        weights_of_it = [10 * (wanted - row["rollout/entropy"]) for row in rows]
        assert [row["actor/entropy_coef"] for row in rows] == pytest.approx(weights_of_it)
        last[wanted] = rows[-1]["rollout/entropy"]
        first = rows[0]["rollout/entropy"]
    assert last[0.01] < first < last[1.5]
    like.write_text('{"step": 1, "rollout/entropy": 0.1}\n')
    with pytest.raises(UserError, match=r"no rollout/entropy of step 2: .* trainer.steps=8 steps"):
        train(settings(small, tmp_path / "short", *words, *follow))


def test_a_step_without_signal_is_no_update(small, tmp_path, monkeypatch, capsys):
    original = RolloutWorker.generate

    def all_right(self, *arguments):
        groups = original(self, *arguments)
        for group in groups:
            group.correct, group.rewards = [True] * len(group.correct), [1.0] * len(group.rewards)
        return groups

    monkeypatch.setattr(RolloutWorker, "generate", all_right)
    out = train(settings(small, tmp_path / "run", "trainer.steps=2", "trainer.eval_every=0", "trainer.save_every=0"))
    begin, *rows = read_metrics(out / "metrics.jsonl")
    assert not any(name.startswith("val-") for name in begin), "eval_every=0: no evaluation, none before the first step"
    assert [row["training/no_signal"] for row in rows] == [1, 1]
    made = ("actor/grad_norm", "actor/pg_loss", "actor/entropy", "training/rollout_probs_diff_mean")
    of_updates = (*made, "critic/score/mean", "critic/advantages/mean", "response_length/mean", "prompt_length/mean")
    assert not {*of_updates} & {*rows[0], *rows[1]}, "nothing was in the update: absent, not 0"
    assert "no group with signal" in capsys.readouterr().out
    report = report_of(out / "final")
    assert report is not None
    assert report.updates_with_signal == 0
    assert (report.updates, report.updates_without_signal, report.groups_with_signal, report.tokens) == (2, 2, 0, 0)
    assert apart(weights(out / "final"), weights(small / "model")) == 0
    limit = (*DAPO, "algorithm.max_generation_batches=3", "trainer.steps=2", "trainer.eval_every=0")
    with pytest.raises(UserError, match=r"step 1: only 0 of the 8 groups .*max_generation_batches=3\).*this model\. "):
        train(settings(small, tmp_path / "other", *limit))
    out = train(settings(small, tmp_path / "on", *limit, "algorithm.too_few_groups=train"))
    report = report_of(out / "final")
    assert (report.updates_without_signal, report.groups) == (2, 2 * 3 * 16)
    assert apart(weights(out / "final"), weights(small / "model")) == 0


@pytest.mark.parametrize("save_every", [0, 1])
def test_dynamic_sampling_without_signal_goes_on_with_other_prompts(small, tmp_path, monkeypatch, save_every):
    """From step 3 on all answers are wrong; nothing would be saved before the end. Then the signal is back."""
    out, steps, asked = tmp_path / "run", [], []
    more = [*DAPO, f"trainer.save_every={save_every}", "algorithm.max_generation_batches=2"]
    more += ["trainer.steps=3", "trainer.eval_every=0"]
    collect, sample_groups = GrpoTrainer.collect, GrpoTrainer.sample_groups
    monkeypatch.setattr(GrpoTrainer, "collect", lambda self, step: steps.append(step) or collect(self, step))
    monkeypatch.setattr(
        GrpoTrainer, "sample_groups", lambda self, *where: asked.append(where) or sample_groups(self, *where)
    )
    monkeypatch.setattr(PromptGroup, "has_signal", lambda *_, **__: steps[-1] < 3 or Path(out, "repaired").exists())
    with pytest.raises(UserError, match=r"step 3: only \d of the 8 .*; the same command continues with other"):
        train(settings(small, out, *more))
    assert complete_steps(out / "steps")[-1] == 2
    (out / "repaired").touch()
    so_far = len(asked)
    train(settings(small, out, *more, "algorithm.max_generation_batches=9"))
    assert asked[so_far][0] == sum(asked[so_far - 1])
    assert verify(out / "final").facts["step"] == 3


def test_nan_stops_with_the_last_good_checkpoint(small, tmp_path, monkeypatch):
    out, original, update = tmp_path / "run", grpo.policy_loss, grpo.GrpoTrainer.update
    steps, short = [], ("trainer.steps=3", "trainer.eval_every=0")

    def noted(trainer, samples, step, *rest):
        steps.append(step)
        return update(trainer, samples, step, *rest)

    def spoilt(*given):
        loss, clipped = original(*given)
        return loss * (math.nan if steps[-1] > 2 else 1), clipped

    monkeypatch.setattr(grpo.GrpoTrainer, "update", noted)
    monkeypatch.setattr(grpo, "policy_loss", spoilt)
    with pytest.raises(UserError, match=r"step 3: actor/grad_norm is nan; the last checkpoint is kept"):
        train(settings(small, out, *short))
    assert complete_steps(out / "steps") == [1, 2]
    monkeypatch.setattr(grpo, "policy_loss", original)
    train(settings(small, out, *short))
    assert verify(out / "final").facts["step"] == 3


def test_p05_a_judge_that_fails_is_no_zero(small, tmp_path, monkeypatch):
    from compositionality.reward.pool import ERROR, JudgePool

    def failing(self, items):
        return [ERROR, *[Verdict(1.0, Reason.CORRECT)] * (len(items) - 1)]

    monkeypatch.setattr(JudgePool, "judge", failing)
    seen = []
    made = grpo.to_samples
    monkeypatch.setattr(grpo, "to_samples", lambda groups, *rest: seen.extend(groups) or made(groups, *rest))
    train(settings(small, tmp_path / "run", "trainer.steps=1", "algorithm.drop_equal_groups=false"))
    assert [group.position for group in seen] == list(range(1, 8))  # the whole first group is left out
    first = read_metrics(tmp_path / "run" / "metrics.jsonl")[0]
    assert {first[name] for name in first if name.startswith("val-core/")} == {1.0}  # nor is it wrong in validation


@pytest.mark.parametrize("failing", [1, 4])
def test_p05_completions_to_read_are_of_judged_groups_where_none_has_signal(small, tmp_path, monkeypatch, failing):
    """All others are right; the judge fails on one completion, then on one of each group."""
    original = RolloutWorker.generate

    def generate(self, *arguments):
        groups = original(self, *arguments)
        for group in groups:
            group.correct, group.rewards = [True] * len(group.correct), [1.0] * len(group.rewards)
        for group in groups[:failing]:
            group.rewards[0], group.correct[0] = None, False
        return groups

    monkeypatch.setattr(RolloutWorker, "generate", generate)
    short = ("trainer.steps=1", "trainer.eval_every=0", "trainer.samples_every=1", "data.prompts_per_step=4")
    out = train(settings(small, tmp_path / "run", *short))
    shown = [path.read_text().count("reward 1\n") for path in out.glob("samples/step_1.txt")]
    assert shown == ([] if failing == 4 else [3])


def test_p07_a_run_killed_between_checkpoint_and_row_has_completions_and_judge_errors(small, tmp_path, monkeypatch):
    out, log = tmp_path / "run", GrpoTrainer.log
    more = ("trainer.samples_every=1", "trainer.steps=2")

    def killed(self, row):
        self.worker.judges.errors += row["step"] == 1
        if row["step"] == 2:
            raise KeyboardInterrupt
        log(self, row)

    monkeypatch.setattr(GrpoTrainer, "log", killed)
    with pytest.raises(KeyboardInterrupt):
        train(settings(small, out, *more))
    assert complete_steps(out / "steps")[-1] == 2
    budgets = []
    monkeypatch.setattr(GrpoTrainer, "log", log)
    monkeypatch.setattr(
        GrpoTrainer, "close", lambda self: budgets.append((self.worker.judges.judged, self.worker.judges.errors))
    )
    train(settings(small, out, *more))
    kept = [row["step"] for row in map(json.loads, (out / "samples" / "generations.jsonl").open())]
    assert sorted({*kept}) == [1, 2]
    assert (out / "samples" / "step_2.txt").is_file()
    ((judged, errors),) = budgets
    assert errors == 1
    assert judged > 2 * 8 * 4


def test_p18_a_checkpoint_of_an_earlier_version_is_one_line(small, two_steps, tmp_path, monkeypatch):
    out, load = shutil.copytree(two_steps, tmp_path / "run"), checkpoint.load_checkpoint
    monkeypatch.setattr(checkpoint, "load_checkpoint", lambda *given: {"position": load(*given)["position"]})
    with pytest.raises(UserError, match=r"global_step_2: of an earlier version; git checkout 10436686\^ reads"):
        train(settings(small, out))


def test_the_model_may_be_a_hub_id(small, tmp_path, monkeypatch, capsys):
    """A model in the local Hugging Face cache; the run is the same as with the folder."""
    from huggingface_hub import constants

    cached, commit = tmp_path / "hub" / "models--lab--small", "0" * 40
    shutil.copytree(small / "model", cached / "snapshots" / commit)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    short = ("trainer.steps=1", "trainer.eval_every=0")
    train_grpo(settings(small, tmp_path / "run", *short, "model.path=lab/small"))
    train_grpo(settings(small, tmp_path / "run", *short))
    assert "already there" in capsys.readouterr().out
    with pytest.raises(UserError, match="lab/none: no such folder, and no such model"):
        train_grpo(settings(small, tmp_path / "other", *short, "model.path=lab/none"))
