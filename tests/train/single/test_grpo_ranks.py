"""P10: the result does not depend on how the work is cut over processes (gloo); nor does resuming (P7)."""

import json
import math
from pathlib import Path

import pytest
import torch
from assets import random_model, save
from ranks import on_ranks
from runs import apart, assert_same_update, settings, weights

from compositionality.data.artefact import verify
from compositionality.errors import UserError
from compositionality.train import grpo
from compositionality.train.checkpoint import weight_buckets
from compositionality.train.checks import check_settings
from compositionality.train.dist import join_mesh, start_processes, stop_processes
from compositionality.train.engines import train_on_rank as train
from compositionality.train.metrics import read_metrics
from compositionality.train.policy import Policy, clip_gradients, load_model, new_optimizer, reduce_gradients, shard
from compositionality.train.settings import MeshSettings, ModelSettings, OptimSettings

VOCABULARY, ROWS, WIDTH = 37, 4, 12  # 37: slices of the vocabulary are not equal
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_key_value_heads": 2}
FAMILIES = ("llama", "qwen2", "qwen3")
LAYOUTS = {2: [(1, True), (1, False), (2, True), (2, False)], 4: [(2, True), (2, False)]}


@pytest.fixture(scope="module")
def random_models(tmp_path_factory):
    """Model folders: llama with biases everywhere, qwen2 with tied embeddings, qwen3 with norms on heads."""
    made = {
        "llama": random_model("Llama", **SIZES, attention_bias=True, mlp_bias=True, head_dim=16),
        "qwen2": random_model("Qwen2", **SIZES, tie_word_embeddings=True),
        "qwen3": random_model("Qwen3", **SIZES, head_dim=8),
    }
    return {family: save(tmp_path_factory.mktemp(family), model) for family, model in made.items()}


def updates(folder: Path, tensor: int, sharded: bool):
    """Two updates on a loss of log-probs and entropies: (log-probs before, norms, weights after)."""
    wanted = MeshSettings(tensor, sharded)
    return updates_on(start_processes(wanted), folder, wanted)


def updates_on(mesh, folder: Path, wanted: MeshSettings, dtype: str = "float32"):
    policy = shard(load_model(ModelSettings(str(folder))), mesh, wanted, dtype, entropy_gradient=True)
    optimizer = new_optimizer(policy, OptimSettings(lr=1e-3))
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, VOCABULARY, (ROWS, WIDTH), generator=generator)
    mask = torch.rand(ROWS, WIDTH, generator=generator) > 0.4
    with torch.no_grad():
        before = policy(tokens, mask, 0.7)
    ranks, mine = (mesh["data"].size(), mesh["data"].get_local_rank()) if mesh else (1, 0)
    norms = []
    for _ in range(2):
        logp, entropy = policy(tokens[mine::ranks], mask[mine::ranks], 0.7)
        (-(logp.sum() + 0.3 * entropy.sum()) / mask[:, 1:].sum()).backward()
        reduce_gradients(policy, mesh)
        norms.append(clip_gradients(policy.parameters(), 0.5))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    after = {name: weight.clone() for bucket in weight_buckets(policy, 1) for name, weight in bucket}
    return before, norms, after


def all_updates(folders, layouts):
    return {(family, *layout): updates(folder, *layout) for family, folder in folders.items() for layout in layouts}


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.slow)])
def found(request, random_models):
    return on_ranks(request.param, all_updates, random_models, LAYOUTS[request.param])


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_p10_updates_do_not_depend_on_the_mesh(random_models, found, family):
    before, norms, after = updates(random_models[family], 1, sharded=False)
    for logps, norms_there, weights_there in (value for key, value in found.items() if key[0] == family):
        for ours, theirs in zip(before, logps, strict=True):
            torch.testing.assert_close(theirs, ours, rtol=1e-5, atol=1e-5)
        assert norms_there == pytest.approx(norms, rel=1e-4)
        assert apart(weights_there, after) < 2e-5


@pytest.mark.parametrize("family", FAMILIES)
def test_p09_log_probs_and_entropy_are_the_plain_ones(random_models, family):
    """Against log_softmax of the whole logits, with gradients."""
    model = load_model(ModelSettings(str(random_models[family])))
    tokens = torch.randint(0, VOCABULARY, (3, 9), generator=torch.Generator().manual_seed(2))
    mask = torch.rand(3, 9, generator=torch.Generator().manual_seed(3)) > 0.5
    logp, entropy = Policy(model, entropy_gradient=True)(tokens, mask, 1.3)
    plain = (model(tokens).logits[:, :-1] / 1.3).log_softmax(-1)
    plain_logp = plain.gather(-1, tokens[:, 1:, None]).squeeze(-1)[mask[:, 1:]]
    plain_entropy = -(plain.exp() * plain).sum(-1)[mask[:, 1:]]
    torch.testing.assert_close(logp, plain_logp, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(entropy, plain_entropy, rtol=1e-5, atol=1e-5)
    weight = model.model.layers[0].mlp.up_proj.weight
    for ours, theirs in ((logp, plain_logp), (entropy, plain_entropy)):
        found, expected = (torch.autograd.grad(x.sum(), weight, retain_graph=True)[0] for x in (ours, theirs))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_log_probs_of_the_reference_take_no_entropy(random_models, monkeypatch, checkpointing):
    policy = Policy(load_model(ModelSettings(str(random_models["llama"]), activation_checkpointing=checkpointing)))
    trainer = object.__new__(grpo.GrpoTrainer)
    trainer.settings = settings(Path(), Path())
    batch = {"tokens_BT": torch.arange(27).view(3, 9), "loss_mask_BT": torch.ones(3, 9, dtype=torch.bool)}
    expected, _ = policy(*batch.values())
    monkeypatch.setattr("compositionality.train.policy.entropy", lambda *_: pytest.fail("not asked for"))
    trainer.compute_log_probs("ref_logp_N", policy, [[batch]])
    assert torch.equal(batch["ref_logp_N"], expected)


def run(small: Path, out: Path, *changes: str) -> None:
    train(settings(small, out, *changes))


def run_until(small: Path, out: Path, last: int, *changes: str) -> None:
    """A run that dies after the checkpoint of step ``last``."""
    original = grpo.GrpoTrainer.collect
    grpo.GrpoTrainer.collect = lambda self, step: original(self, step) if step <= last else 1 / 0
    try:
        train(settings(small, out, *changes))
    except ZeroDivisionError:
        return
    finally:
        grpo.GrpoTrainer.collect = original
    raise AssertionError("it should have died")


BRIEF = ("trainer.steps=2", "trainer.eval_every=2", "trainer.keep_best=false", "optim.lr=2e-4")
MESHES = {"sharded": "mesh.shard=true", "replicated": "mesh.shard=false", "tensor": "mesh.tensor=2"}


def refused(small: Path, out: Path, *changes: str) -> str:
    chosen = settings(small, out, *changes)
    try:
        check_settings(chosen)
        train(chosen)
    except UserError as error:
        return str(error)
    return ""


def refused_on_one_rank(small: Path, out: Path, error: Exception) -> str:
    """The second rank cannot sample; what this rank hears of it."""
    original = grpo.RolloutWorker._generate

    def fail(self, *arguments):
        if grpo.rank() == 1:
            raise error
        return original(self, *arguments)

    grpo.RolloutWorker._generate = fail
    try:
        return refused(small, out, *BRIEF)
    finally:
        grpo.RolloutWorker._generate = original


FAILURES = {"refused": UserError("the second rank cannot"), "full": OSError(28, "No space left on device", "rows")}


def runs_on_two(small: Path, folder: Path) -> list[str]:
    for name, change in MESHES.items():
        run(small, folder / name, *BRIEF, change)
    run_until(small, folder / "two-then-one", 1, *BRIEF)
    run(small, folder / "one-then-two", *BRIEF, "mesh.tensor=2")
    run(small, folder / "bfloat16", *BRIEF, "model.dtype=bfloat16")
    return [refused_on_one_rank(small, folder / name, error) for name, error in FAILURES.items()]


def runs_on_three(small: Path, folder: Path) -> list[str]:
    run(small, folder / "three", *BRIEF, "trainer.micro_batch_tokens=60")
    return [refused(small, folder / "refused", f"mesh.tensor={tensor}") for tensor in (3, 2)]


@pytest.fixture(scope="module")
def alone(small, tmp_path_factory):
    """The folder of all runs; the one by a single process is the measure of the others."""
    folder = tmp_path_factory.mktemp("runs")
    run(small, folder / "alone", *BRIEF)
    return folder


@pytest.fixture(scope="module")
def on_two(small, alone):
    run_until(small, alone / "one-then-two", 1, *BRIEF)
    heard = on_ranks(2, runs_on_two, small, alone)
    run(small, alone / "two-then-one", *BRIEF)
    return heard


def compare(small: Path, folder: Path, name: str) -> None:
    assert_same_update(*(weights(folder / run / "final") for run in (name, "alone")), weights(small / "model"))
    here, there = (read_metrics(folder / run / "metrics.jsonl") for run in (name, "alone"))
    for key in ("critic/score/mean", "actor/entropy", "actor/grad_norm", "actor/pg_loss"):
        for one, other in zip(here, there, strict=True):
            assert one.get(key, 0.0) == pytest.approx(other.get(key, 0.0), rel=1e-3, abs=1e-6)
    assert 0 < max(row.get("actor/rollout_gap", 0.0) for row in here) <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", MESHES)
def test_p10_runs_do_not_depend_on_the_mesh(small, alone, on_two, name):
    assert apart(weights(alone / "alone" / "final"), weights(small / "model")) > 1e-4
    compare(small, alone, name)


@pytest.mark.parametrize("name", ["two-then-one", "one-then-two"])
def test_p07_the_number_of_processes_may_change_on_resuming(small, alone, on_two, name):
    assert verify(alone / name / "final").facts["step"] == 2
    compare(small, alone, name)


def test_p05_the_verdicts_of_all_processes_are_counted_and_go_on_when_resumed(alone, on_two):
    names = ("alone", *MESHES, "two-then-one", "one-then-two")
    states = [json.loads((alone / name / "steps" / "global_step_2" / "state.json").read_text()) for name in names]
    assert [state["judged"] for state in states] == [states[0]["judged"]] * len(names)


def test_bfloat16_computes_in_half_the_bits_and_keeps_float32_weights(alone, on_two):
    """Two gloo ranks; the paths are those of GPUs."""
    assert all(tensor.dtype == torch.float32 for tensor in weights(alone / "bfloat16" / "final").values())
    updated = [row for row in read_metrics(alone / "bfloat16" / "metrics.jsonl") if "actor/entropy" in row]
    assert updated
    assert all(math.isfinite(row["actor/grad_norm"]) and row["actor/rollout_gap"] < 0.2 for row in updated)


def test_bfloat16_on_one_process_stays_near_float32(random_models):
    """One GPU's mesh, a world of one process without a port, on gloo."""
    mesh = join_mesh(MeshSettings(), 1, on_gpu=False)
    try:
        for family, folder in random_models.items():
            before, norms, after = updates_on(mesh, folder, MeshSettings(), "bfloat16")
            exact_before, exact_norms, exact_after = updates(folder, 1, sharded=False)
            assert (before[0] - exact_before[0]).abs().max() < 0.15, family
            assert norms == pytest.approx(exact_norms, rel=0.05)
            assert all(weight.dtype == torch.float32 for weight in after.values())
            start = weights(folder)
            change, exact_change = (
                torch.cat([(now[name] - start[name]).flatten() for name in after]) for now in (after, exact_after)
            )
            assert torch.cosine_similarity(change, exact_change, dim=0) > 0.9
    finally:
        stop_processes()


def test_an_error_on_one_rank_is_told_by_all(on_two):
    assert on_two == ["the second rank cannot", "rows: No space left on device; free some, or choose another place"]


@pytest.mark.slow
def test_p10_three_ranks_some_without_rows(small, alone):
    heads, world = on_ranks(3, runs_on_three, small, alone)
    compare(small, alone, "three")
    assert "mesh.tensor=3 does not divide num_attention_heads=2" in heads
    assert "mesh.tensor=2 does not divide the 3 processes" in world
