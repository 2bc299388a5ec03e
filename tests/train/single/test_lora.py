"""LoRA with the single-file trainers: adapters move, nothing else does, and what is written is one whole model."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from runs import apart, settings, weights

from compositionality.config.cli import parse
from compositionality.data.artefact import read_manifest
from compositionality.errors import UserError
from compositionality.rollout.model_folder import shape_of_model
from compositionality.train.checkpoint import RunFolder, whole_weights
from compositionality.train.checks import check_lora
from compositionality.train.engines import train_on_rank as train
from compositionality.train.grpo import GrpoTrainer
from compositionality.train.grpo_settings import make_recipe
from compositionality.train.memory import Ranks, training_needs
from compositionality.train.metrics import read_metrics
from compositionality.train.policy import Policy, load_model, trainable, without_adapters
from compositionality.train.rows import read_grpo_inputs
from compositionality.train.run_folder import prune
from compositionality.train.settings import LoraSettings, MeshSettings, ModelSettings
from compositionality.train.sft_settings import SftSettings

LORA = ["model.lora.rank=4", "model.lora.alpha=8", "model.lora.targets=[q_proj,down_proj]", "optim.lr=1e-2"]


@pytest.fixture(scope="module")
def adapted(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("peft", reason="peft is not installed; it comes with verl")
    out = tmp_path_factory.mktemp("lora") / "run"
    train(settings(small, out, *LORA))
    return out


@pytest.mark.full
def test_only_layers_with_adapters_change_and_the_sampler_has_the_merged_weights(small: Path, adapted: Path) -> None:
    before, after = weights(small / "model"), weights(adapted / "final")
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert {name.split(".")[-2] for name in changed} == {"q_proj", "down_proj"}
    assert len(changed) == 4
    for name in changed:  # a product of two thin matrices
        singular = torch.linalg.svdvals((after[name] - before[name]).double())
        assert singular[3] > 1e-5
        assert singular[4] < 1e-6
    updated = [row for row in read_metrics(adapted / "metrics.jsonl") if "actor/entropy" in row]
    assert len(updated) >= 3
    assert all(row["actor/rollout_gap"] <= 1e-4 for row in updated)


@pytest.mark.full
def test_the_reference_model_is_the_policy_without_its_adapters(small: Path, tmp_path: Path) -> None:
    """No second model is held, and memory is forecast for none; its log-probs are the start's, whatever was trained."""
    words = [*LORA, "algorithm.kl=k3", "algorithm.kl_coef=0.1"]
    chosen = settings(small, tmp_path, *words)
    model = load_model(chosen.model)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    policy, start = Policy(model), Policy(load_model(ModelSettings(str(small / "model"))))
    batch = torch.arange(27).view(3, 9), torch.ones(3, 9, dtype=torch.bool)
    (adapted,) = policy(*batch, with_entropy=False)
    with suppress(KeyboardInterrupt), without_adapters(policy):  # the adapters come back after an error too
        (reference,) = policy(*batch, with_entropy=False)
        raise KeyboardInterrupt
    assert torch.equal(reference, start(*batch, with_entropy=False)[0])
    assert torch.equal(adapted, policy(*batch, with_entropy=False)[0])
    assert not torch.equal(adapted, reference)
    trainer = GrpoTrainer(chosen, read_grpo_inputs(chosen), None, RunFolder(tmp_path, make_recipe(chosen), force=False))
    assert trainer.reference is trainer.policy
    trainer.close()
    shape = shape_of_model(chosen.model.path)
    parts = {
        lora: training_needs(settings(small, tmp_path, *more), shape, Ranks(1, gpu=False))
        for lora, more in ((True, words), (False, words[-2:]))
    }
    held = {lora: any("reference model" in need.parts for need in needs) for lora, needs in parts.items()}
    assert held == {True: False, False: True}


@pytest.mark.full
def test_p07_a_run_that_was_stopped_ends_with_the_same_bytes(small: Path, adapted: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(adapted, out)
    shutil.rmtree(out / "final")
    shutil.rmtree(out / "best", ignore_errors=True)
    last = out / "steps" / "global_step_4"
    shutil.rmtree(last)
    prune(out / "steps", 3)
    train(settings(small, out, *LORA))
    assert apart(weights(out / "final"), weights(adapted / "final")) == 0.0


@pytest.mark.full
def test_adapters_are_pefts(small: Path) -> None:
    peft = pytest.importorskip("peft")
    model = load_model(ModelSettings(path=str(small / "model"), lora=LoraSettings(rank=3, alpha=6)))
    policy = Policy(model)
    torch.manual_seed(1)
    for parameter in trainable(policy):
        torch.nn.init.normal_(parameter, std=0.1)
    tokens, mask = torch.arange(8, 20)[None], torch.ones(1, 12, dtype=torch.bool)
    expected, _ = policy(tokens, mask)
    found = dict(whole_weights(model))
    plain = load_model(ModelSettings(path=str(small / "model")))
    plain.load_state_dict(found, strict=False)
    assert found.keys() == {name for name, _ in plain.named_parameters()}
    got, _ = Policy(plain)(tokens, mask)
    assert torch.allclose(got, expected, atol=1e-5)
    names = {
        name.split(".")[-2] for name, module in model.named_modules() if isinstance(module, peft.tuners.lora.Linear)
    }
    assert "lm_head" not in names
    assert (
        sum(parameter.numel() for parameter in trainable(policy)) < sum(one.numel() for one in plain.parameters()) / 2
    )


@pytest.mark.full
def test_what_an_sft_run_says_of_its_model_is_without_adapters(small: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "a", "response": "b"}\n' * 8)
    lora = ["model.lora.rank=4", "model.lora.targets=[q_proj,down_proj]", "trainer.epochs=1", "data.max_length=64"]
    words = [f"model.path={small / 'model'}", f"data.train_files=[{rows}]", f"trainer.output={tmp_path / 'run'}", *lora]
    final = train(parse(SftSettings, words))
    assert read_manifest(final).facts["parameters"] == sum(one.numel() for one in weights(final).values())


@pytest.mark.full
def test_flops_of_an_update_leave_out_frozen_weights(adapted: Path) -> None:
    """Two of the six times that an update otherwise reads a weight for a token."""
    start, first = read_metrics(adapted / "metrics.jsonl")[:2]
    sampled, trained = first["perf/sampled_tokens_with_prompts"], first["perf/trained_tokens"]
    n = first["compute/flops_paper"] / (6 * sampled)
    assert first["compute/flops"] - start["compute/flops"] == pytest.approx(n * (2 * sampled + 4 * trained))


@pytest.mark.parametrize("lora", [LoraSettings(alpha=8), LoraSettings(targets=["q_proj"])])
def test_p18_adapters_without_a_rank_are_refused(lora: LoraSettings) -> None:
    with pytest.raises(UserError, match=r"say something of adapters; give model.lora.rank too"):
        check_lora(ModelSettings(lora=lora), MeshSettings())


def test_p18_without_peft_one_line_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    with pytest.raises(UserError, match=r"^model.lora.rank=1: the package peft is not installed; run: bash bash/setup"):
        check_lora(ModelSettings(lora=LoraSettings(rank=1)), MeshSettings())
