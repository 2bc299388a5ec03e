"""The forecast of memory and disk against what is measured here, within 20 % (P22)."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from assets import save, tiny_model
from live_bytes import LiveBytes

from compositionality import memory
from compositionality.errors import UserError
from compositionality.memory import DISK, GPU, HOST, BatchSize, BatchSpec, ModelShape, Sharding
from compositionality.reward.verl_reward import score_dict
from compositionality.rollout.model_folder import shape_of, shape_of_model
from compositionality.train import memory as train_memory
from compositionality.train.memory import Ranks
from compositionality.train.settings import RunSettings
from compositionality.train.verl.memory import Tail, completion_files, largest_batch
from compositionality.types import Reason, Verdict

CONFIG: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 2048, "hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 16, "tie_word_embeddings": False,
}  # fmt: skip
DTYPES = {4: torch.float32, 2: torch.bfloat16}


def make_model(vocabulary: int, c: int, checkpointing: bool) -> tuple[ModelShape, Any]:
    """The shape, and the model with gradients that are there already."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = {**CONFIG, "vocab_size": vocabulary}
    settings = AutoConfig.for_model(**config, attn_implementation="sdpa")
    model = AutoModelForCausalLM.from_config(settings).to(DTYPES[c]).train()
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return shape_of(config, "test"), model


def peak_of(model: Any, loss: Callable[[], Any]) -> int:
    """Bytes beside weights and gradients at the peak of a forward and backward pass."""
    with LiveBytes() as live:
        for parameter in model.parameters():
            live.add(parameter)
            live.add(parameter.grad)
        base = live.now
        loss().backward()
        return live.peak - base


@pytest.mark.parametrize("vocabulary", [64, 1024])
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("c", [4, 2])
@pytest.mark.parametrize("entropy", [True, False])  # of GRPO; of SFT and pretraining: the backward pass has the peak
def test_p22_activations_and_logits_of_the_single_file_trainers(
    entropy: bool, c: int, checkpointing: bool, vocabulary: int
) -> None:
    from compositionality.train.policy import Policy

    shape, model = make_model(vocabulary, c, checkpointing)
    tokens = torch.randint(0, vocabulary, (2, 129))
    peak = peak_of(model, lambda: Policy(model)(tokens, torch.ones_like(tokens), with_entropy=entropy)[0].sum())
    spec = BatchSpec(BatchSize(2, 256, 128, packed=False), c, checkpointing, "sdpa", "single")
    assert sum(memory.activations(shape, spec).values()) == pytest.approx(peak, rel=0.2)


@pytest.mark.full
@pytest.mark.parametrize("vocabulary", [64, 4096])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("c", [4, 2])
def test_p22_activations_and_logits_of_verl(
    c: int, checkpointing: bool, packed: bool, vocabulary: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its way from tokens to log-probabilities, with the cross-entropy that stands in for flash-attn's."""
    from compositionality.train.verl import log_probs

    monkeypatch.setattr(log_probs, "CHUNK_BYTES", 1 << 17)  # as small beside these logits as it is on a GPU
    shape, model = make_model(vocabulary, c, checkpointing)
    tokens, places = torch.randint(0, vocabulary, (2, 128)), torch.arange(128).repeat(2, 1)

    def loss() -> Any:
        mask = None if packed else torch.ones(2, 128).long().index_fill(1, torch.tensor([127]), 0)
        form = (1, -1) if packed else (2, -1)
        given = {"input_ids": tokens.reshape(form), "position_ids": places.reshape(form), "attention_mask": mask}
        logits = model(**given, use_cache=False).logits
        rows = logits.squeeze(0) if packed else torch.cat(logits.unbind())
        del logits
        return log_probs.CrossEntropy.apply(rows, tokens.flatten(), True).sum()

    peak = peak_of(model, loss)
    spec = BatchSpec(BatchSize(2, 256, 128, packed=packed), c, checkpointing, "sdpa", "verl")
    # The head's gradient, which the forecast counts with what FSDP2 holds whole; padded, the peak comes before it.
    gradient = c * vocabulary * shape.width if packed else 0
    assert sum(memory.activations(shape, spec).values()) + gradient == pytest.approx(peak, rel=0.2)


def test_p22_weights_gradients_and_adam() -> None:
    from compositionality.train.policy import new_optimizer
    from compositionality.train.settings import OptimSettings

    shape, model = make_model(64, 4, checkpointing=False)
    optimizer = new_optimizer(model, OptimSettings(lr=1e-3))
    optimizer.step()
    moments = sum(value.nbytes for state in optimizer.state.values() for value in state.values())
    held = moments + sum(2 * parameter.nbytes for parameter in model.parameters())
    assert sum(memory.states(shape, Sharding(1)).values()) == pytest.approx(held, rel=0.01)
    assert sum(memory.states(shape, Sharding(8)).values()) == pytest.approx(held / 8, rel=0.01)
    assert sum(memory.states(shape, Sharding(8, sharded=False)).values()) == pytest.approx(held, rel=0.01)


def test_parking_saves_nothing_in_an_update_and_the_offload_policy_does() -> None:
    """verl loads what param_offload and optimizer_offload have moved before each update."""
    shape = shape_of(CONFIG, "test")
    sharding = Sharding(8, parked_weights=True, parked_moments=True)
    assert memory.states(shape, sharding) == memory.states(shape, Sharding(8))
    assert sum(memory.states(shape, Sharding(8, resident=False)).values()) == 0
    pinned = memory.parked(shape, Sharding(8, parked_weights=True))
    assert memory.parked(shape, sharding) == 3 * pinned >= 12 * shape.parameters / 8
    assert memory.gathered(shape, Sharding(8, sharded=False), 2) == (0, 0)


@pytest.mark.long
def test_p22_the_disk_of_a_run(tmp_path: Path) -> None:
    """A real SFT of the single-file trainer: its folder as it is left."""
    from sft_assets import make_rows

    from compositionality.config.cli import parse
    from compositionality.train.engines import train_on_rank as train
    from compositionality.train.sft_settings import SftSettings

    out, shape = tmp_path / "out", {"layers": 3, "width": 128, "heads": 4, "feed_forward": 352}
    model = save(tmp_path / "model", *tiny_model(["reverse"], **shape))
    words = ["optim.lr=1e-3", "trainer.steps=3", "trainer.save_every=1", "trainer.batch_rows=8", "data.max_length=64"]
    rows = make_rows(tmp_path / "rows.parquet", 16)
    paths = [f"model.path={model}", f"data.train_files=[{rows}]", f"trainer.output={out}"]
    train(parse(SftSettings, [*paths, *words]))
    texts = ("*.json", "*.jsonl", "*.txt", "*.jinja", ".metadata", "*.log")  # as large as the weights of such a model
    small = {path for pattern in texts for path in out.rglob(pattern)}
    weights = sum(path.stat().st_size for path in out.rglob("*") if path.is_file() and path not in small)
    parts = memory.run_folder(
        shape_of_model(model), keep=2, best=False, dtype="float32", whole_model=True, saving=False
    )
    assert sum(parts.values()) == pytest.approx(weights, rel=0.2)


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "made"),
    [
        ([], False),
        (["algorithm.kl=k3", "algorithm.kl_coef=0.1"], True),
        (["verl.algorithm.use_kl_in_reward=true"], True),
        (["verl.algorithm.use_kl_in_reward=true", "model.lora.rank=8"], False),
    ],
)
def test_a_reference_of_verl_is_in_host_memory_and_none_with_adapters(words: list[str], made: bool) -> None:
    shape = shape_of(CONFIG, "test")
    for device in ("gpu", "cpu"):
        needs = verl_needs(shape, device, *words)
        held = {need.place: need.parts["reference model"] for need in needs if "reference model" in need.parts}
        assert held.keys() == ({HOST} if made else set())
        for size in held.values():  # four shards, pinned beside a GPU: each tensor up to the next power of two
            assert shape.parameters * 4 <= size <= shape.parameters * 4 * (2 if device == "gpu" else 1)


@pytest.mark.full
def test_a_critic_of_verl_is_a_second_model_that_is_trained_whole() -> None:
    """Beside adapters of the policy, too; on the GPU it takes the policy's place where both are moved off it."""
    shape = shape_of({**CONFIG, "vocab_size": 64}, "test")
    whole, part = 16 * shape.parameters / 4, 4 * shape.parameters / 4
    places = "param_offload", "optimizer_offload"
    resident = [f"verl.actor_rollout_ref.actor.fsdp_config.{name}=false" for name in places]
    for more, resting in ([], 0.0), (resident, part):
        policy, critic = (
            need.parts for need in verl_needs(shape, "gpu", "algorithm.advantage=gae", "model.lora.rank=1", *more)
            if need.place == GPU and "update" in need.step
        )  # fmt: skip
        assert critic["weights, gradients and Adam"] == whole
        assert resting <= critic["policy at rest"] <= 1.2 * resting
        assert policy["critic at rest"] == 3 * resting
        assert policy["weights, gradients and Adam"] < 1.3 * part
    for device in ("gpu", "cpu"):
        plain, ppo = (verl_needs(shape, device, *words) for words in ([], ["algorithm.advantage=gae"]))
        disks, hosts = ([need for needs in (plain, ppo) for need in needs if need.place == at] for at in (DISK, HOST))
        assert disks[1].parts["2 checkpoints"] == 2 * disks[0].parts["2 checkpoints"]
        assert hosts[1].total - hosts[0].total >= 12 * shape.parameters


def verl_needs(shape: ModelShape, device: str, *words: str) -> list[memory.Need]:
    """What GRPO with verl needs on four GPUs, or on this machine alone."""
    from compositionality.config.cli import parse
    from compositionality.train.engines import settle_cluster
    from compositionality.train.grpo_settings import GrpoSettings
    from compositionality.train.verl.configure import grpo_config
    from compositionality.train.verl.memory import training_needs

    place = [f"run.device={device}", "run.processes=4"]
    settings = parse(
        GrpoSettings, ["engine=verl", "model.path=m", "data.train_files=[p]", "trainer.output=o", *place, *words]
    )
    settle_cluster(settings, imagined=True)
    return training_needs(grpo_config(settings), shape)


@pytest.mark.full
def test_p22_the_completions_that_verl_writes_down(tmp_path: Path) -> None:
    """By its own function: the batches of 5 updates, and a validation before the first, every second and the last."""
    from omegaconf import OmegaConf
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    def write(folder: str, step: int, rows: int, verdict: dict[str, float]) -> None:
        truth = json.dumps({"ref_input": {"x": "adi"}, "ref_output": "da", "ref_code": "f(g(x))" * 12, "style": "llm"})
        beside = {**{name: [value] * rows for name, value in verdict.items()}, "uid": ["000000000004_0_0"] * rows}
        texts = (["p" * 800] * rows, ["r" * 400] * rows)  # 200 and 100 tokens
        PPOTrainer._write_generations(*texts, [truth] * rows, [1.0] * rows, beside, str(tmp_path / folder), step)

    for step in range(1, 6):
        write("rollouts", step, 4 * 2, {})
    for step in (0, 2, 4, 5):
        write("validation", step, 3, score_dict(Verdict(1.0, Reason.CORRECT)))
    config = OmegaConf.create({
        "run": {"train_files": ["train"], "val_files": ["val"]}, "data": {"train_batch_size": 4},
        "trainer": {"total_training_steps": None, "total_epochs": 2, "test_freq": 2, "rollout_data_dir": "r",
                    "validation_data_dir": "v"},
        "actor_rollout_ref": {"rollout": {"n": 2, "val_kwargs": {"n": 1}}},
    })  # fmt: skip
    sizes, written = {"train": 10, "val": 3}, sum(path.stat().st_size for path in tmp_path.rglob("*.jsonl"))
    assert completion_files(config, Tail(mean=300.0), sizes) == pytest.approx(written, rel=0.2)
    config.trainer.rollout_data_dir = config.trainer.validation_data_dir = None
    assert completion_files(config, Tail(), sizes) == 0


@pytest.mark.parametrize(
    ("rows", "limit", "budget"), [(128, 256, 4096), (8, 900, 512), (40, 64, 16384), (300, 70, 1000)]
)
def test_the_largest_micro_batch_is_no_less_than_the_trainers_cut(rows: int, limit: int, budget: int) -> None:
    from compositionality.rollout.prompts import ChatRow
    from compositionality.train.sft import micro_batches

    bound = train_memory.largest_batch(rows, limit, budget).computed
    for seed in range(20):
        lengths = Tail(mean=limit / 4, at_limit=0.1).lengths(rows, limit, seed)
        parts = micro_batches([ChatRow([1] * length, [1] * length) for length in lengths], budget)
        assert max(part.tokens.numel() for part in parts) <= bound <= max(budget, limit)


@pytest.mark.full
def test_verl_pads_what_it_cuts_by_real_tokens() -> None:
    """32 rows on a GPU, a hundredth at the limit: padded micro-batches are many times the budget."""
    padded = largest_batch(32, 9216, 17408, Tail(), packed=False)
    assert padded.computed > 5 * 17408
    assert largest_batch(32, 9216, 17408, Tail(), packed=True).computed == 17408


def test_known_shapes() -> None:
    assert shape_of_model("somewhere/Llama-3.1-8B-Instruct").parameters == 8_030_261_248
    reasoning = {
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": 1_777_088_000,
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": 7_615_616_512,
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B": 14_770_033_664,
        "Qwen/QwQ-32B": 32_763_876_352,
    }
    assert {name: shape_of_model(name).parameters for name in reasoning} == reasoning
    qwen = shape_of_model("Qwen2.5-1.5B-Instruct")
    assert (qwen.parameters, qwen.tied, qwen.cache_bytes(2)) == (1_543_714_304, True, 28_672)
    with pytest.raises(UserError, match=r"nowhere: no such model here; .*Llama-3\.1-8B, QwQ-32B, .*Qwen2\.5-7B$"):
        shape_of_model("nowhere")


def test_p22_keeping_all_takes_the_disk_of_every_save(tmp_path: Path) -> None:
    from compositionality.config.cli import parse
    from compositionality.train.grpo_settings import GrpoSettings
    from compositionality.train.sft_settings import SftSettings

    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"messages": []}\n' * 10)
    given = ["model.path=m", "trainer.output=o", "trainer.keep=all"]
    rl, sft = [*given, "data.train_files=[p]"], [*given, f"data.train_files=[{rows}]", "trainer.batch_rows=4"]
    for schema, words, kept in (
        (GrpoSettings, [*rl, "trainer.steps=12", "trainer.save_every=5"], 3),
        (GrpoSettings, [*rl, "trainer.steps=12", "trainer.save_every=0"], 1),
        (GrpoSettings, [*rl, "trainer.keep=4"], 4),
        (SftSettings, [*sft, "trainer.epochs=3"], 3),
        (SftSettings, [*sft, "trainer.epochs=3", "trainer.save_every=2"], 5),
        (SftSettings, [*given, "data.train_files=[p]", "trainer.epochs=3"], 3),
    ):
        settings: Any = parse(schema, words)
        needs = train_memory.training_needs(settings, shape_of(CONFIG, "test"), Ranks(1, gpu=False))
        assert f"{kept} checkpoints" in needs[-1].parts


def test_p18_a_single_gpu_is_too_small_for_eight_billion_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    from compositionality.train.sft_settings import SftSettings

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: SimpleNamespace(total_memory=80 * 10**9))
    settings = SftSettings()
    settings.model.path, settings.trainer.output = "Llama-3.1-8B", "out"
    with pytest.raises(UserError, match=r"SFT: needs \d{3} GB of memory of each GPU .*gradients and Adam 128 GB"):
        train_memory.check_training(settings)


def test_a_dry_run_counts_the_processes_that_a_start_would_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_memory, "count_gpus", lambda: 8)
    assert train_memory.ranks_of(RunSettings("gpu", 8)) == Ranks(8, 1, gpu=True)
    assert train_memory.ranks_of(RunSettings("cpu", 2)) == Ranks(2, 1, gpu=False)
    for name, value in (("RANK", "9"), ("WORLD_SIZE", "16"), ("LOCAL_WORLD_SIZE", "8")):
        monkeypatch.setenv(name, value)
    assert train_memory.ranks_of(RunSettings("gpu")) == Ranks(8, 2, gpu=True)
