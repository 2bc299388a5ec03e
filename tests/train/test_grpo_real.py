"""verl's GRPO, really run on a CPU with Ray and vLLM: two ways to sample, killed and gone on with, reloaded.

DAPO. Dr. GRPO, with a reward of one's own: test_cluster_real.py; PPO with LoRA: test_recipes.py; GRPO: test_studies.py.
Those that differ from these by their advantages alone are not run: what verl computes with our configuration is
compared in single/test_grpo_maths.py.
"""

import json

import pytest
from assets import taught
from trainer_runs import kill_at, train

from compositionality.data.artefact import verify
from compositionality.errors import UserError
from compositionality.study.steps import settings_of
from compositionality.train.engines import train_grpo
from compositionality.train.metrics import GROUPS, read_metrics
from compositionality.train.run_folder import best_step, saved_steps, scores
from compositionality.train.training_report import report_of

STEPS = 4
LOOP_OF_GPUS = ("verl.actor_rollout_ref.rollout.agent.agent_loop_manager_class=null", "verl.reward.num_workers=1")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model whose groups have signal, and problems for it."""
    files, folder = {"train": 300, "test": 24}, tmp_path_factory.mktemp("grpo")
    return taught(folder, files, steps=250, lr=3e-3, answers_alone=False, width=64)


def words(made, out, *more):
    return [
        "engine=verl", "run.device=cpu", f"model.path={made / 'model'}", f"data.train_files=[{made / 'train.parquet'}]",
        f"data.val_files=[{made / 'test.parquet'}]", f"trainer.output={out}", "reward.shape=paper",
        "data.max_prompt_tokens=32", "rollout.max_tokens=23", "data.prompts_per_step=8", "rollout.n=4",
        "algorithm=dapo", "optim.lr=1e-3", "trainer.micro_batch_tokens=4096", "trainer.keep=1",
        f"trainer.steps={STEPS}", "trainer.save_every=1", "trainer.eval_every=2",
        "optim.warmup_steps=2", "trainer.samples_every=1", *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def killed(made):
    """A run that was killed after its second step and gone on with."""
    out = made / "killed"
    sealed = out / "steps/global_step_2/sealed.json"
    kill_at(2, sealed.is_file, "train_grpo", words(made, out), out)
    assert "going on from step 2" in train("train_grpo", words(made, out))
    return out


@pytest.fixture(scope="module")
def loop_of_gpus(made):
    """A run that nobody disturbed, by verl's own agent loop, reward workers and store, which device=gpu takes."""
    out = made / "gpu-loop"
    train("train_grpo", words(made, out, *LOOP_OF_GPUS))
    return out


def test_p12_a_run_trains_validates_saves_and_exports(made, killed, capsys):
    rows = read_metrics(killed / "metrics.jsonl")
    steps = [row for row in rows if "actor/grad_norm" in row]
    assert [row["step"] for row in steps] == list(range(1, STEPS + 1))
    assert all(row["training/filter_groups/generated_prompts"] >= 16 for row in steps)
    # verl logs the rate of the next update; by its own schedule the first would have none, the second half
    assert [row["actor/lr"] for row in steps] == pytest.approx([2e-3 / 3, 1e-3, 1e-3, 1e-3])
    report = report_of(killed / "final")
    assert (report.updates, report.updates_without_signal) == (STEPS, 0)
    assert report.groups == sum(row[GROUPS] for row in steps) > report.groups_with_signal >= 8 * STEPS
    assert report.completions == 4 * report.groups == steps[-1]["compute/sampled_completions"]
    assert 8 * 4 * STEPS < report.tokens < 8 * 4 * STEPS * 23
    assert report.last_entropy is None  # verl computes it for an entropy_coef only
    assert all(row["actor/rollout_gap_mean"] < 1e-4 for row in steps)  # vLLM and the trainer hold the same weights
    assert not any("actor/kl_loss" in row or "timing_s/ref" in row for row in steps)
    levels = {key for row in rows for key in row if key.startswith("val-core/") and key.endswith("/acc/mean@1")}
    assert len(levels) == 2
    assert sorted(scores(killed / "steps")) == [0, 2, 4]
    best = best_step(killed / "steps")
    assert saved_steps(killed / "steps") == sorted({best, STEPS})
    assert verify(killed / "final").facts["step"] == STEPS
    assert verify(killed / "best").facts["step"] == best
    train_grpo(settings_of("train_grpo", words(made, killed)))
    assert "already there" in capsys.readouterr().out
    with pytest.raises(UserError, match="was made from other inputs"):
        train_grpo(settings_of("train_grpo", words(made, killed, "data.seed=2")))


def test_p13_the_export_reloads_with_other_weights(made, killed):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(killed / "final")
    new, old = (AutoModelForCausalLM.from_pretrained(path) for path in (killed / "final", made / "model"))
    assert tokenizer.chat_template == AutoTokenizer.from_pretrained(made / "model").chat_template
    changed = sum(not torch.equal(a, b) for a, b in zip(new.parameters(), old.parameters(), strict=True))
    assert changed == len(list(old.parameters()))


def test_p07_a_killed_run_ends_like_an_uninterrupted_one(killed, loop_of_gpus):
    """And the loop of CPUs gives the responses, verdicts, updates and models that the loop of GPUs gives (P12)."""
    assert "GroupWorker pid" in (killed / "train.log").read_text()
    told = (loop_of_gpus / "train.log").read_text()
    assert "AgentLoopWorkerTQ pid" in told
    assert "GroupWorker pid" not in told
    for name in ("final", "best"):  # manifests also hold the version of the code, which may change under a developer
        assert verify(killed / name).files == verify(loop_of_gpus / name).files
    assert scores(killed / "steps") == scores(loop_of_gpus / "steps")
    for step in (1, 3, 4):  # verl writes those of a step after its checkpoint, and so after the kill
        found, expected = (responses(run / f"rollouts/{step}.jsonl") for run in (killed, loop_of_gpus))
        assert found == expected
    for step in (0, 2, 4):
        found, expected = (responses(run / f"validation/{step}.jsonl", but="uid") for run in (killed, loop_of_gpus))
        assert found == expected
    kept, expected = ((run / "samples/generations.jsonl").read_text() for run in (killed, loop_of_gpus))
    assert kept == expected
    assert {row["step"] for row in map(json.loads, kept.splitlines())} == {1, 2, 3, 4}
    scored = {row["score"] for step in (1, 3, 4) for row in responses(killed / f"rollouts/{step}.jsonl")}
    assert scored == {-1, 0, 1}, "no right, wrong or overlong response"
    rows, expected = (read_metrics(run / "metrics.jsonl") for run in (killed, loop_of_gpus))
    for key in ("actor/grad_norm", "actor/rollout_gap_mean", "critic/score/mean", "response_length/max"):
        assert [row[key] for row in rows if key in row] == [row[key] for row in expected if key in row]
    assert report_of(killed / "final") == report_of(loop_of_gpus / "final")
    assert verify(loop_of_gpus / "final").facts["step"] == STEPS


def responses(path, but=""):
    """The rows of verl's dump, in an order that does not depend on when they came, without the column ``but``."""
    rows = [{key: value for key, value in row.items() if key != but} for row in map(json.loads, path.open())]
    return sorted(rows, key=lambda row: (row["input"], row["output"]))
