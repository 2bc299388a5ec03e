"""verl on a CPU: its FSDP engine computes what separate rows give, by our configuration for GPUs and our platform."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from bash_runs import warm_python

from compositionality.train.metrics import read_metrics

pytestmark = pytest.mark.full
ROOT = Path(__file__).resolve().parents[2]
TOKENS, VOCABULARY = 300, 4096
CASES = (*((family, "float32", 1e-5) for family in ("llama", "qwen2", "qwen3")), ("llama", "bfloat16", 0.02))
"""Family, data type of the computation, relative error."""


def make_family(folder: Path, family: str) -> Path:
    """A model of two layers with grouped heads, sharp enough for its log-probabilities to differ; tied for qwen3."""
    from transformers import AutoConfig, AutoModelForCausalLM

    from compositionality.train.tiny.model import build_tokenizer

    tokenizer = build_tokenizer(["reverse"])
    config = AutoConfig.for_model(
        family, vocab_size=len(tokenizer), hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=128,
        tie_word_embeddings=family == "qwen3", eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.3)
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    return folder


def run_alone(script: str, *words: str) -> None:
    """Run a script of this folder as the one process of a run of verl's on a CPU."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VERL")}
    alone = {"VERL_PLATFORM": "cpu", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "PYTHONPATH": str(ROOT)}
    alone |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}  # asked for; the processes meet in a store of their own
    command = [warm_python(), str(Path(__file__).with_name(script)), *words]
    done = subprocess.run(command, env={**kept, **alone}, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What verl_engine.py finds for CASES by verl's padded rows and by our configuration for a GPU."""
    folder = tmp_path_factory.mktemp("engine")
    words = [word for family, dtype, _ in CASES for word in (str(make_family(folder / family, family)), dtype)]
    run_alone("verl_engine.py", str(folder / "out"), *words)
    found: list[dict[str, Any]] = torch.load(folder / "out", weights_only=True)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CASES)))
def test_packed_rows_give_what_padded_rows_give(computed: list[dict[str, Any]], number: int) -> None:
    padded, packed = computed[number]["verl's"], computed[number]["ours"]
    assert padded.keys() == packed.keys()
    for name, expected in padded.items():
        difference = (packed[name].double() - expected.double()).norm() / expected.double().norm()
        assert difference < CASES[number][2], name
    assert packed["log_probs"].dtype == torch.float32


@pytest.mark.slow
def test_p09_an_update_is_reported_as_by_verl(tmp_path: Path) -> None:
    """Two steps on a scripted batch (verl_update.py); what differs is in the README's table of metrics."""
    out = tmp_path / "out.json"
    run_alone("verl_update.py", str(out), str(make_family(tmp_path / "model", "llama")))
    for case, found in json.loads(out.read_text()).items():
        for step, (ours, theirs) in enumerate(zip(found["grpo.py"], found["verl"], strict=True)):
            differ = {"actor/ppo_kl", "actor/pg_clipfrac"} if case == "micro-batches" else set()
            shared = ours.keys() & theirs.keys() - differ
            assert {name: ours[name] for name in shared} == pytest.approx(
                {name: theirs[name] for name in shared}, rel=1e-5, abs=1e-5
            ), (case, step)
            names = {"pg_loss", "pg_clipfrac", "ppo_kl", "grad_norm", "lr"}
            assert shared >= {f"actor/{name}" for name in names} - differ
            assert ("actor/kl_loss" in shared) == (case != "micro-batches")
            assert ("actor/entropy" in shared) == (case != "one update")
    first = {case: [rows[0] for rows in found.values()] for case, found in json.loads(out.read_text()).items()}
    ours, theirs = first["one update"]
    assert ours["actor/entropy"] == pytest.approx(theirs["actor/entropy_loss"], abs=1e-5)
    assert theirs["actor/kl_loss"] == pytest.approx(0, abs=1e-6), "the reference is the start, in the same precision"
    assert first["two updates"][0]["actor/pg_clipfrac"] > 0


def test_log_probs_without_flash_attn_take_no_loop_over_tokens_and_are_exact() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode
    from verl.utils import torch_functional

    from compositionality.train.verl import log_probs

    class Count(TorchDispatchMode):
        operations = 0

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.operations += 1
            return function(*args, **(kwargs or {}))

    generator = torch.Generator().manual_seed(0)
    logits = (3 * torch.randn(TOKENS, VOCABULARY, generator=generator)).bfloat16()
    labels = torch.randint(VOCABULARY, (TOKENS,), generator=generator)
    weights = torch.linspace(-1, 1, TOKENS)
    exact = logits.double().requires_grad_()
    expected = exact.log_softmax(-1).gather(-1, labels[:, None])[:, 0]
    (expected * weights).sum().backward()
    for inplace in (True, False):
        leaf = logits.clone().requires_grad_()
        with Count() as count:
            found = torch_functional.logprobs_from_logits(leaf * 1, labels, inplace_backward=inplace)
            (found * weights).sum().backward()
        assert count.operations < 60
        assert (found.double() - expected).abs().max() < 1e-5  # of a number up to 20, float32
        assert (leaf.grad.double() - exact.grad).norm() / exact.grad.norm() < 2**-8  # rounded to bfloat16 once
    assert torch_functional.cross_entropy_loss is log_probs.cross_entropy


STATE = """
import importlib.metadata, os, torch.distributed as dist
def patched():
    return (importlib.metadata.version, dist.init_process_group, os.environ.get("VERL_ENGINE_DEVICE"))
before = patched()
import verl
from verl.plugin.platform import PlatformRegistry, get_platform
from verl.utils.tracking import Tracking
Tracking("p", "e", ["file"]).log({"a": 1.5}, 7)
print(PlatformRegistry.get("cpu").__module__, get_platform().device_name, patched() == before)
"""


def ask(code: str, **variables: str) -> str:
    """The last line printed by ``code`` in a fresh interpreter."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VERL")}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**kept, **variables}, capture_output=True, text=True, timeout=600, check=True
    )
    return done.stdout.strip().splitlines()[-1]


def test_verl_takes_the_cpu_platform_and_our_file_of_metrics_by_the_variables_of_the_launcher(tmp_path: Path) -> None:
    (path := tmp_path / "metrics.jsonl").write_text('{"step": 6}\n')
    modules = "compositionality.train.verl.cpu_platform,compositionality.train.verl.metrics"
    variables = {"VERL_USE_EXTERNAL_MODULES": modules, "VERL_FILE_LOGGER_PATH": str(path)}
    found = ask(STATE, VERL_PLATFORM="cpu", **variables)
    assert found == "compositionality.train.verl.cpu_platform cpu False"
    assert read_metrics(path) == [{"step": 6}, {"step": 7, "a": 1.5}]


def test_verl_has_no_cpu_platform_unless_asked() -> None:
    from verl.plugin.platform import PlatformRegistry

    from compositionality.train.verl import on_cpu

    assert (PlatformRegistry.get("cpu") is not None) == on_cpu()
    assert (importlib.metadata.version.__module__ != "importlib.metadata") == on_cpu()


def test_a_broken_plugin_is_an_error_and_not_silence() -> None:
    with pytest.raises(subprocess.CalledProcessError) as failure:
        ask("import verl", VERL_PLATFORM="cpu", VERL_USE_EXTERNAL_MODULES="compositionality.train.verl.no_such_module")
    assert "no_such_module" in failure.value.stderr


def test_vllm_plugin_changes_nothing_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    from compositionality.train.verl import vllm_cpu

    monkeypatch.delenv("VERL_PLATFORM", raising=False)
    monkeypatch.setitem(sys.modules, "vllm", None)  # importing vllm would now raise
    vllm_cpu.keep_weights()
