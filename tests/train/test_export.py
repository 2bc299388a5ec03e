"""A checkpoint of verl becomes a model folder with the same weights, or is refused by name."""

import json
from pathlib import Path

import pytest
from assets import Attack
from sft_assets import make_model

from compositionality.data.artefact import verify
from compositionality.errors import UserError
from compositionality.train.run_folder import HASHES
from compositionality.train.verl import export as module
from compositionality.train.verl.export import ExportSettings, export_step


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """What verl saves of a model on one rank, without the optimiser; tied weights are there twice."""
    import torch
    from transformers import AutoModelForCausalLM

    folder = tmp_path / "run/steps/global_step_3"
    texts = make_model(folder / "huggingface")
    state = AutoModelForCausalLM.from_pretrained(texts).state_dict()
    torch.save({name: tensor + 1e-5 for name, tensor in state.items()}, folder / "model_world_size_1_rank_0.pt")
    (texts / "model.safetensors").unlink()
    (folder / "fsdp_config.json").write_text(json.dumps({"FSDP_version": 2, "world_size": 1}))
    return folder


def run(checkpoint: Path, target: Path, dtype: str = "float32") -> None:
    export_step(ExportSettings(str(checkpoint), str(target), dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shard_bytes", [2**30, 20_000], ids=["one file", "many files"])
def test_p13_p20_weights_are_exact_and_both_transformers_reload_them(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, shard_bytes: int
) -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    monkeypatch.setattr(module, "SHARD_BYTES", shard_bytes)
    run(checkpoint, tmp_path / "model", dtype)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype="auto")
    state = torch.load(checkpoint / "model_world_size_1_rank_0.pt")
    assert model.dtype == getattr(torch, dtype)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name].to(model.dtype)), name
    assert AutoTokenizer.from_pretrained(tmp_path / "model").chat_template
    config, tokenizer = (
        json.loads((tmp_path / "model" / name).read_text()) for name in ("config.json", "tokenizer_config.json")
    )
    assert (config["rope_theta"], config["dtype"], config["torch_dtype"]) == (1000.0, dtype, dtype)  # P20
    assert tokenizer["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert (len(list((tmp_path / "model").glob("*.safetensors"))) > 1) == (shard_bytes < 2**30)
    kinds = {tensor.dtype for path in (tmp_path / "model").glob("*.safetensors") for tensor in load_file(path).values()}
    assert kinds == {getattr(torch, dtype)}
    verify(tmp_path / "model")


def test_p18_what_is_no_checkpoint_is_refused_by_name(checkpoint: Path, tmp_path: Path) -> None:
    import torch

    def refused(folder: Path, said: str) -> None:
        with pytest.raises(UserError, match=said):
            run(folder, tmp_path / "model")
        assert not (tmp_path / "model").exists()

    refused(tmp_path, "no checkpoint of verl")
    refused(tmp_path / "nowhere", "nowhere: no such folder; give …/steps/global_step_N of a run of verl")
    (tmp_path / HASHES).touch()
    refused(tmp_path, r"of engine=single, which has its model folder in it: .*/huggingface")
    shard = checkpoint / "model_world_size_1_rank_0.pt"
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    refused(checkpoint, r"rank_0\.pt: damaged checkpoint")
    torch.save({}, shard)
    refused(checkpoint, "the checkpoint lacks")
    shard.unlink()
    refused(checkpoint, "missing shard")


def test_p16_a_checkpoint_that_would_run_code_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    import torch

    shard, trace = checkpoint / "model_world_size_1_rank_0.pt", tmp_path / "trace"
    torch.save({"lm_head.weight": Attack(trace)}, shard)
    with pytest.raises(UserError, match=r"rank_0\.pt: holds more than tensors and would run code"):
        run(checkpoint, tmp_path / "model")
    assert not trace.exists()
    assert not (tmp_path / "model").exists()


def test_p13_sharded_tensors_are_read(tmp_path: Path) -> None:
    """What FSDP2 saves, unpickled where there is no process group."""
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    if dist.is_initialized():  # left by a test before
        dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        layer = torch.nn.Linear(4, 4)
        fully_shard(layer, mesh=dist.device_mesh.init_device_mesh("cpu", (1,)))
        torch.save(layer.state_dict(), tmp_path / "model_world_size_1_rank_0.pt")
        whole = layer.weight.full_tensor()
    finally:
        dist.destroy_process_group()
    (tmp_path / "fsdp_config.json").write_text(json.dumps({"FSDP_version": 2, "world_size": 1}))
    weights = module.Weights(tmp_path)
    assert type(weights.shards[0]["weight"]).__name__ == "DTensor"
    assert torch.equal(weights.read("weight", "float32"), whole)


def test_adapters_are_merged(checkpoint: Path, tmp_path: Path) -> None:
    """As verl saves LoRA in RL: in ``actor``, peft's names, the base beside the factors, rank and alpha in a file."""
    import torch
    from safetensors.torch import load_file

    shard = checkpoint / "model_world_size_1_rank_0.pt"
    state, name = torch.load(shard, weights_only=True), "model.layers.0.self_attn.q_proj"
    weight = state.pop(f"{name}.weight")
    down, up = torch.randn(2, weight.shape[1]), torch.randn(weight.shape[0], 2)
    state |= {
        f"{name}.base_layer.weight": weight,
        f"{name}.lora_A.default.weight": down,
        f"{name}.lora_B.default.weight": up,
    }
    torch.save({f"base_model.model.{key}": value for key, value in state.items()}, shard)
    (checkpoint / "lora_train_meta.json").write_text(json.dumps({"r": 2, "lora_alpha": 6, "task_type": "CAUSAL_LM"}))
    outer = tmp_path / "rl/global_step_7"
    outer.mkdir(parents=True)
    checkpoint.rename(outer / "actor")
    run(outer, tmp_path / "model")
    found = load_file(tmp_path / "model/model.safetensors")
    assert torch.equal(found[f"{name}.weight"], weight + 3.0 * (up @ down))
    assert not [key for key in found if "lora" in key or "base" in key]


def test_a_weight_that_was_not_written_right_is_noticed(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors import torch as module

    save = module.save_file
    monkeypatch.setattr(
        module,
        "save_file",
        lambda tensors, *rest, **names: save({key: value + 1 for key, value in tensors.items()}, *rest, **names),
    )
    with pytest.raises(UserError, match="was not written as it is in the checkpoint"):
        run(checkpoint, tmp_path / "model")
