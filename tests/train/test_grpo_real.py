"""verl's GRPO, really run on a CPU with Ray and vLLM: killed and gone on with, exported and reloaded."""

import json

import pytest
from grpo_assets import make
from trainer_runs import kill_when, train

from compositionality.data.artefact import verify
from compositionality.train.common.checkpoints import best_step, scores
from compositionality.train.common.metrics import GROUPS, read_metrics
from compositionality.train.common.run_folder import saved_steps
from compositionality.train.common.training_report import report_of

STEPS = 4
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("grpo"))


def words(made, out, *more):
    return [
        "engine=verl", "run.device=cpu", f"model.path={made / 'model'}", f"data.train_files=[{made / 'train.parquet'}]",
        f"data.val_files=[{made / 'test.parquet'}]", f"trainer.output={out}", "reward.shape=paper",
        "data.max_prompt_tokens=32", "rollout.max_tokens=64", "data.prompts_per_step=8", "rollout.n=4",
        "algorithm=dapo", "optim.lr=1e-3", "trainer.micro_batch_tokens=4096", "trainer.keep=1",
        f"trainer.steps={STEPS}", "trainer.save_every=1", "trainer.eval_every=2",
        f"verl.trainer.rollout_data_dir={out}/rollouts", f"verl.trainer.validation_data_dir={out}/validation", *more,
    ]  # fmt: skip


def kill_after(arguments, out, step):
    """SIGKILL as soon as the checkpoint of ``step`` is sealed."""
    sealed = out / "steps" / f"global_step_{step}" / "sealed.json"
    kill_when(sealed.is_file, "train_grpo", arguments, out, processes=3)


@pytest.fixture(scope="module")
def whole(made):
    out = made / "whole"
    train("train_grpo", words(made, out))
    return out


def test_p12_a_run_trains_validates_saves_and_exports(made, whole):
    rows = read_metrics(whole / "metrics.jsonl")
    steps = [row for row in rows if "actor/grad_norm" in row]
    assert [row["step"] for row in steps] == list(range(1, STEPS + 1))
    assert all(row["training/filter_groups/generated_prompts"] >= 16 for row in steps)
    report = report_of(whole / "final")
    assert (report.updates, report.updates_without_signal) == (STEPS, 0)
    assert report.groups == sum(row[GROUPS] for row in steps) > report.groups_with_signal >= 8 * STEPS
    assert report.completions == 4 * report.groups
    assert 8 * 4 * STEPS < report.tokens < 8 * 4 * STEPS * 64
    assert report.last_entropy is None  # verl computes it for an entropy_coef only
    assert all(row["actor/rollout_gap"] < 1e-4 for row in steps)  # vLLM and the trainer hold the same weights
    assert not any("actor/kl_loss" in row or "timing_s/ref" in row for row in steps)
    levels = {key for row in rows for key in row if key.startswith("val-core/") and key.endswith("/acc/mean@1")}
    assert len(levels) == 2
    assert sorted(scores(whole / "steps")) == [0, 2, 4]
    best = best_step(whole / "steps")
    assert saved_steps(whole / "steps") == sorted({best, STEPS})
    assert verify(whole / "final").facts["step"] == STEPS
    assert verify(whole / "best").facts["step"] == best
    assert "already there" in train("train_grpo", words(made, whole))
    assert "was made from other inputs" in train("train_grpo", words(made, whole, "data.seed=2"), code=2)


def test_p13_the_export_reloads(made, whole):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(whole / "final")
    new, old = (AutoModelForCausalLM.from_pretrained(path) for path in (whole / "final", made / "model"))
    assert tokenizer.chat_template
    changed = sum(not torch.equal(a, b) for a, b in zip(new.parameters(), old.parameters(), strict=True))
    assert changed == len(list(old.parameters()))
    state = torch.load(whole / f"steps/global_step_{STEPS}/actor/model_world_size_1_rank_0.pt", weights_only=False)
    for name, tensor in new.state_dict().items():
        if name in state:
            full = state[name].full_tensor() if hasattr(state[name], "full_tensor") else state[name]
            assert torch.equal(full, tensor)


def test_p07_a_killed_run_ends_like_an_uninterrupted_one(made, whole):
    out = made / "killed"
    kill_after(words(made, out), out, 2)
    printed = train("train_grpo", words(made, out))
    assert "going on from step" in printed
    for name in ("final", "best"):  # manifests also hold the version of the code, which may change under a developer
        assert verify(out / name).files == verify(whole / name).files
    assert scores(out / "steps") == scores(whole / "steps")
    steps = [row["step"] for row in read_metrics(out / "metrics.jsonl") if "actor/grad_norm" in row]
    assert steps == list(range(1, STEPS + 1))


def test_no_signal_and_nan_end_in_one_line_with_a_checkpoint(made):
    """A learning rate that destroys the model: no signal, or no number, after some steps."""
    out = made / "destroyed"
    lines = train("train_grpo", words(made, out, "optim.lr=1e3", "trainer.eval_every=0"), code=2)
    last = lines.strip().splitlines()[-1]
    assert last.startswith("error: GRPO: step ")
    assert "max_num_gen_batches=10" in last or "the last checkpoint is kept" in last
    kept = saved_steps(out / "steps")
    assert kept
    assert json.loads((out / "steps" / f"global_step_{kept[-1]}" / "sealed.json").read_text())


def test_p12_the_agent_loop_of_gpus_gives_what_the_group_loop_gives(made, whole):
    """verl's own agent loop, reward workers and store, which device=gpu takes: same responses, verdicts and updates."""
    out = made / "gpu-loop"
    train(
        "train_grpo",
        words(made, out, "trainer.steps=2", "verl.actor_rollout_ref.rollout.agent.agent_loop_manager_class=null"),
    )
    assert "AgentLoopWorkerTQ pid" in (out / "train.log").read_text()
    for step in (1, 2):
        assert responses(out / f"rollouts/{step}.jsonl") == responses(whole / f"rollouts/{step}.jsonl")
    for step in (0, 2):
        found, expected = (responses(run / f"validation/{step}.jsonl", but="uid") for run in (out, whole))
        assert found == expected
    assert -1 in {row["score"] for row in responses(out / "rollouts/1.jsonl")}, "none was overlong"
    rows, expected = (read_metrics(run / "metrics.jsonl") for run in (out, whole))
    for key in ("actor/grad_norm", "actor/rollout_gap", "critic/score/mean", "response_length/max"):
        assert [row[key] for row in rows if key in row] == [row[key] for row in expected if key in row][:2]
    assert scores(out / "steps") == {step: scores(whole / "steps")[step] for step in (0, 2)}
    assert verify(out / "final").facts["step"] == 2


def responses(path, but=""):
    """The rows of verl's dump, in an order that does not depend on when they came, without the column ``but``."""
    rows = [{key: value for key, value in row.items() if key != but} for row in map(json.loads, path.open())]
    return sorted(rows, key=lambda row: (row["input"], row["output"]))
