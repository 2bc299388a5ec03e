"""P20: a model folder that was written here is read by transformers 4 as it is by 5, and by both engines."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from base_models import LLAMA, QWEN, make_base

from compositionality.train.chat_template import ChatTemplateSettings, set_chat_template
from compositionality.train.checkpoint import export, with_old_config_keys, with_old_tokenizer_words
from compositionality.train.tiny.model import TinyConfig, build_model, build_tokenizer

OLD = ("transformers==4.57.*", "huggingface-hub<1", "tokenizers>=0.22,<0.23")
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32, "rope_theta": 500000.0,
}  # fmt: skip
KINDS = ("tiny", "llama3", "qwen2", "qwen3")
READ = """
import json, sys, torch, transformers
from transformers import AutoModelForCausalLM, AutoTokenizer
answers = {"version": transformers.__version__}
for folder in sys.argv[1:]:
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    chat = [{"role": "user", "content": "func_3(reverse) of abcdefgh" * 3}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    greedy = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=24, eos_token_id=None)
    with torch.no_grad():
        logits = model(ids).logits[0].tolist()
    shown = tokenizer.decode(ids[0], skip_special_tokens=True)
    answers[folder] = [ids[0].tolist(), shown, tokenizer.eos_token, str(model.dtype), greedy[0].tolist(), logits]
print(json.dumps(answers))
"""  # noqa: E501


def write_model(folder: Path, kind: str = "tiny") -> Path:
    """A folder as the single trainers export it; its answers depend on the positions."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = qwen2_tokenizer() if kind == "qwen2" else build_tokenizer(["reverse", "repeat"])
    model = build_model(TinyConfig(layers=2, width=64, heads=2, head_width=32, feed_forward=64), tokenizer, 0)
    if kind != "tiny":
        shape = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
        heads = {"num_key_value_heads": 1, "head_dim": 32, "max_position_embeddings": 512}
        rope = LLAMA3 if kind == "llama3" else {"rope_type": "default", "rope_theta": 1000.0}
        ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
        config = AutoConfig.for_model(
            "llama" if kind == "llama3" else kind, vocab_size=len(tokenizer), tie_word_embeddings=kind == "qwen2",
            rope_parameters=rope, initializer_range=0.2, dtype="float32", **shape, **heads, **ends,
        )  # fmt: skip
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config)
    export(SimpleNamespace(model=model), tokenizer, folder)
    return folder


def qwen2_tokenizer() -> Any:
    """transformers 5 takes no other class than this for a model of this type; it knows single bytes only."""
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import Qwen2Tokenizer

    vocabulary = {token: number for number, token in enumerate(sorted(ByteLevel.alphabet()))}
    tokenizer = Qwen2Tokenizer(vocab=vocabulary, merges=[], eos_token="<|im_end|>")
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    return tokenizer


def test_p20_the_texts_have_the_words_of_both_generations(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"] == 1000.0
    assert config["torch_dtype"] == config["dtype"] == "float32"
    assert "rope_scaling" not in config
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    assert tokenizer["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert tokenizer["additional_special_tokens"] == ["<|user|>", "<|assistant|>"]
    assert "extra_special_tokens" not in tokenizer


@pytest.mark.parametrize(
    ("rope", "expected"),
    [
        (LLAMA3, {"rope_theta": 500000.0, "rope_scaling": {k: v for k, v in LLAMA3.items() if k != "rope_theta"}}),
        (
            {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
            {"rope_theta": 1e4, "partial_rotary_factor": 0.5},
        ),
        (
            {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
             "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}},
            {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        ),
        ({}, {}),
    ],
    ids=["scaled", "partial", "by kind of attention", "no rope"],
)  # fmt: skip
def test_p20_rotary_settings_have_their_old_names_too(rope: dict[str, Any], expected: dict[str, Any]) -> None:
    config = {"model_type": "x", "rope_parameters": rope}
    assert with_old_config_keys(config) == config | expected
    assert with_old_config_keys({"text_config": config}) == {"text_config": config | expected}


def test_p20_a_class_that_both_know_is_kept() -> None:
    config = {"tokenizer_class": "Qwen2Tokenizer", "extra_special_tokens": {"image_token": "<image>"}}
    assert with_old_tokenizer_words(config) == config


def test_p20_the_builtin_sampler_answers_as_transformers(tmp_path: Path) -> None:
    from compositionality.rollout.engines.local import BuiltinEngine, TransformersEngine
    from compositionality.types import SamplingOptions

    chats = [[{"role": "user", "content": "reverse" + "abc" * n}] for n in range(1, 9)]
    for kind in KINDS:
        folder = write_model(tmp_path / kind, kind)
        answers = [
            engine(folder).generate(chats, range(len(chats)), SamplingOptions(temperature=0.0, max_tokens=16))
            for engine in (BuiltinEngine, TransformersEngine)
        ]
        assert answers[0] == answers[1]


@pytest.mark.slow
def test_p20_transformers_4_gives_the_logits_of_5(tmp_path: Path) -> None:
    import torch

    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]  # few modules are read
    install += ["--target", str(tmp_path / "old"), *OLD]
    installed = subprocess.run(install, capture_output=True, text=True, timeout=600)
    if installed.returncode:
        pytest.skip(f"transformers 4.57 cannot be installed: {installed.stderr.strip().splitlines()[-1]}")
    folders = [str(write_model(tmp_path / kind, kind)) for kind in KINDS]
    folders += [str(with_template(tmp_path, name, base)) for name, base in (("plain", LLAMA), ("qwen3", QWEN))]
    new, old = read(folders), read(folders, tmp_path / "old")
    assert (new.pop("version")[0], old.pop("version")[:4]) == ("5", "4.57")
    for folder in folders:
        assert old[folder][:-1] == new[folder][:-1]
        torch.testing.assert_close(torch.tensor(old[folder][-1]), torch.tensor(new[folder][-1]), atol=1e-5, rtol=1e-5)


def with_template(root: Path, name: str, family: list[str]) -> Path:
    """A base model, as transformers 5 writes it, with a chat template of ours."""
    base = make_base(root / f"base-{name}", family)
    target = root / f"template-{name}"
    set_chat_template(ChatTemplateSettings(str(base), str(target), name))
    return target


def read(folders: list[str], packages: Path | None = None) -> dict[str, Any]:
    """What transformers, of ``packages`` if given, makes of each folder."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"} | ({"PYTHONPATH": str(packages)} if packages else {})
    command = [sys.executable, "-c", READ, *folders]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


@pytest.mark.full
@pytest.mark.slow
def test_p20_vllm_answers_as_transformers(tmp_path: Path) -> None:
    from compositionality.rollout.engines.local import TransformersEngine
    from compositionality.rollout.engines.vllm import VllmEngine, VllmOptions
    from compositionality.types import SamplingOptions

    folder, options = write_model(tmp_path / "model"), SamplingOptions(temperature=0.0, max_tokens=16)
    chats = [[{"role": "user", "content": "reverse" + "abc" * n}] for n in range(1, 9)]
    engine = VllmEngine(folder, VllmOptions(max_model_len=256))
    theirs = engine.generate(chats, range(len(chats)), options)
    engine.close()
    assert theirs == TransformersEngine(folder).generate(chats, range(len(chats)), options)
