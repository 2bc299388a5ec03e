"""bash/gpu_check.sh: its formulas, its commands against the settings they meet, failures, and all of it on a CPU."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from assets import save, tiny_model

from compositionality.config.cli import parse, split_layers
from compositionality.config.profile import schema_of
from compositionality.data.create_problems import problem_settings
from compositionality.errors import UserError
from compositionality.report import gpu_check as module
from compositionality.report.gpu_check import (
    CheckStep,
    GpuCheckSettings,
    figures_of,
    flops_per_token,
    forecast_gb,
    gpu_check,
    mfu,
    steps_of,
)
from compositionality.train.checks import check_settings
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.sft_settings import SftSettings

H100 = "NVIDIA H100 80GB HBM3"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("model"), *tiny_model(["reverse"], head_width=16, feed_forward=64))


# ---- formulas


def test_operations_are_2n_and_6n_and_attention_and_the_input_embedding_is_no_matrix_product(model: Path) -> None:
    from transformers import AutoModelForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(model)
    weights = sum(weight.numel() for weight in loaded.parameters()) - loaded.model.embed_tokens.weight.numel()
    assert flops_per_token(model, 0, update=False) == 2 * weights
    assert flops_per_token(model, 0, update=True) == 6 * weights
    assert flops_per_token(model, 50, update=True) - 6 * weights == 12 * 2 * 32 * 50


def test_the_share_of_the_peak_is_of_all_gpus_and_not_claimed_where_one_is_unknown() -> None:
    for name, flops in ((H100, 989e12), ("NVIDIA A100-SXM4-80GB", 312e12), ("NVIDIA L40S", 362e12)):
        assert mfu(1e12, [name]) == 1e12 / flops
        assert mfu(1e12, [name, name]) == 0.5e12 / flops
    for name in ("NVIDIA H100 PCIe", f"{H100} MIG 1g.10gb", "NVIDIA T1000", "NVIDIA A1000"):
        assert mfu(1e12, [name]) is mfu(1e12, [H100, name]) is None
    assert mfu(1e12, []) is None


# ---- commands


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_p12_every_command_fits_its_entry_point(tmp_path: Path, device: str) -> None:
    """Parsed as the command would, with what the trainers refuse; no name is there twice."""
    steps = all_steps(tmp_path, device)
    assert len({step.name for step in steps}) == len(steps)
    for step in steps:
        settings = settings_of(step)
        if isinstance(settings, GrpoSettings):
            check_settings(settings)
            assert settings.model.dtype == ("bfloat16" if device == "gpu" else "float32")
        if isinstance(settings, SftSettings):
            check_settings(settings)


@pytest.mark.full
def test_p12_verl_takes_the_configuration_of_its_steps(tmp_path: Path) -> None:
    pytest.importorskip("verl")
    from compositionality.train.engines import settle_cluster
    from compositionality.train.verl import configure

    for step in all_steps(tmp_path, "gpu"):
        if "verl" in step.engines and step.words[0].startswith("train_"):
            settings = settings_of(step)
            settle_cluster(settings, imagined=True)
            make: Any = configure.grpo_config if isinstance(settings, GrpoSettings) else configure.sft_config
            assert make(settings).run.model == step.model.as_posix()  # type: ignore[union-attr]


@pytest.mark.full
def test_p22_every_step_of_a_model_is_forecast(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("verl")
    for device in ("cpu", "gpu"):
        for step in all_steps(tmp_path, device):
            here = replace(step, model=step.model and model)
            figure = forecast_gb(here, gpu=device == "gpu")
            assert (figure is not None) == (step.kind in ("rollouts", "sft", "grpo")), step.name
            assert figure is None or 0.1 < figure < 80, step.name


def all_steps(work: Path, device: str) -> list[CheckStep]:
    steps = list(steps_of(work, device, "some/model" if device == "gpu" else ""))
    assert len(steps) == (23 if device == "gpu" else 12)  # only the model made here is pretrained
    return steps


def settings_of(step: CheckStep) -> Any:
    verb, words = step.words[0], step.words[1:]
    schema = problem_settings(words) if verb == "create_problems" else schema_of(verb)
    overrides, layers = split_layers(schema, words, getattr(schema, "entry_point", verb))
    return parse(schema, overrides, layers)


# ---- figures


def grpo_step(model: Path, output: Path) -> CheckStep:
    words = ("train_grpo", "data.prompts_per_step=4", "rollout.n=2")
    return CheckStep("made grpo", "grpo", words, frozenset(), model, output)


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> None:
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("tokens", ["perf/trained_tokens", "perf/total_num_tokens"], ids=["single", "verl"])
def test_the_speed_of_rl_is_that_of_its_later_steps(model: Path, tmp_path: Path, tokens: str) -> None:
    slow = {"timing_s/gen": 50.0, "timing_s/update_actor": 50.0, "response_length/mean": 10.0, tokens: 160}
    fast = {**slow, "timing_s/gen": 0.5, "timing_s/update_actor": 2.0, "perf/max_memory_allocated_gb": 1.0}
    write_rows(tmp_path / "run", [{"step": 0}, {"step": 1, **slow}, {"step": 2, **fast}, {"step": 3, **fast}])
    found = figures_of(grpo_step(model, tmp_path / "run"), "", [H100])
    assert (found["generated_tok_s"], found["updated_tok_s"], found["allocated_gb"]) == (160, 80, 1.07)
    assert found["update_mfu"] == round(80 * flops_per_token(model, 20, update=True) / 989e12, 4)
    assert "update_mfu" not in figures_of(grpo_step(model, tmp_path / "run"), "", [])


def test_the_speed_of_rollouts_is_what_they_print(model: Path) -> None:
    step = CheckStep("made rollouts", "rollouts", ("collect_rollouts",), frozenset(), model)
    assert figures_of(step, "x\n64 completions, 1280 tokens, 12,345 tok/s\n", []) == {"generated_tok_s": 12345}
    assert figures_of(step, "64 completions are there", []) == {}


def test_a_failure_is_told_by_its_own_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("Traceback\nerror: a: no such file\nbye\n")
    assert module.problem_in(log, 2) == "a: no such file"
    log.write_text("Traceback\nRuntimeError: CUDA error\n\n")
    assert module.problem_in(log, 1) == "RuntimeError: CUDA error"
    log.write_text("")
    assert module.problem_in(log, 137) == "exit code 137"


# ---- set-up and memory


def test_the_memory_of_a_command_counts_its_children() -> None:
    child = "held = b'x' * (200 << 20); input()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    process, deadline = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE), time.monotonic() + 300
    with module.memory_watch(process.pid, gpus=False) as peaks:
        while peaks["peak_host_gb"] < 0.2 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.communicate(b"\n")
    assert peaks.keys() == {"peak_host_gb"}
    assert 0.2 < peaks["peak_host_gb"] < 0.5


def test_the_fullest_gpu_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert module.fullest_gpu() == 0
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 1024\necho 70000\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert module.fullest_gpu() == 70000


def test_p18_a_gpu_that_torch_cannot_use_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(module, "why_no_gpu", lambda _: "the driver is too old")
    with pytest.raises(UserError, match="the driver is too old"):
        module.read_set_up("gpu")


def test_the_sum_over_processes_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    module.all_reduce("cpu", 2)
    monkeypatch.setitem(module.PLAN, "all_reduce", "raise SystemExit('no NCCL')")
    with pytest.raises(UserError, match="all-reduce over 1 GPUs: process 0: no NCCL"):
        module.all_reduce("cpu", 1)


def test_memory_has_verls_names_and_is_not_there_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from compositionality.train.dist import memory_metrics

    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert memory_metrics() == {}
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.max_memory_allocated", lambda: 3 << 30)
    monkeypatch.setattr("torch.cuda.max_memory_reserved", lambda: 4 << 30)
    assert memory_metrics() == {"perf/max_memory_allocated_gb": 3.0, "perf/max_memory_reserved_gb": 4.0}


def test_a_step_without_a_figure_has_an_empty_cell(capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"generated_tok_s": 25708, "generation_mfu": 0.0123, "peak_gpu_gb": 8.64}
    module.print_table([{"step": "a", "seconds": 5.3, "error": "", **given} for given in ({}, figures)])
    assert {"25,708", "1.2%", "8.64"} < {*capsys.readouterr().out.split()}


# ---- the run


def check(tmp_path: Path, **own: Any) -> GpuCheckSettings:
    return GpuCheckSettings(str(tmp_path / "work"), str(tmp_path / "logs"), device="cpu", **own)


def test_a_check_that_is_stopped_leaves_what_it_has_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any) -> Iterator[dict[str, Any]]:
        yield {"step": "pretrain", "seconds": 1.0, "error": ""}
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_steps", stopped)
    with pytest.raises(KeyboardInterrupt):
        gpu_check(check(tmp_path))
    record = json.loads((tmp_path / "logs/record.json").read_text())
    assert [row["step"] for row in record["steps"]] == ["set-up", "pretrain"]


def test_a_failing_step_stops_only_what_needs_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def two(*_: Any) -> list[CheckStep]:
        lost, run = tmp_path / "run" / "final", tmp_path / "verl"
        run.mkdir()
        (run / "train.log").write_text("of verl")
        return [
            CheckStep("a", "problems", ("create_problems", "task=nothing", "output=x"), frozenset(), None, run),
            CheckStep("b", "reload", ("collect_rollouts",), frozenset(), lost),
            CheckStep("c", "problems", ("create_problems", "--help"), frozenset()),
            CheckStep("d", "sft", ("train_sft",), frozenset({"verl"})),
        ]

    monkeypatch.setattr(module, "steps_of", two)
    monkeypatch.setattr(module, "find_spec", lambda package: None if package == "verl" else package)
    with pytest.raises(SystemExit) as ended:
        gpu_check(check(tmp_path))
    assert ended.value.code == 1
    record = json.loads((tmp_path / "logs" / "record.json").read_text())
    errors = {row["step"]: row["error"] for row in record["steps"]}
    assert errors["set-up"] == errors["c"] == ""
    assert "nothing" in errors["a"]
    assert errors["b"] == "not run: the step that makes its model (run) has failed"
    assert errors["d"] == "verl is not installed; run: bash bash/setup.sh --full"
    assert record["machine"].keys() == {"cpu", "cores", "memory_gib", "gpus", "system", "python"}  # without its name
    assert record["machine"]["memory_gib"] > 0
    assert str(tmp_path) not in json.dumps(record)
    assert not [*(tmp_path / "work").iterdir()]
    assert (tmp_path / "logs" / "a.train.log").read_text() == "of verl"
    assert "2 of 5 steps are right" in capsys.readouterr().out


def test_a_step_that_takes_too_long_is_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    assert module.wait_for(process, 0) is None
    assert process.returncode is not None


def test_p18_bad_settings_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="engines=sglang: choose from single, verl, vllm"):
        gpu_check(check(tmp_path, engines=["sglang"]))
    with pytest.raises(UserError, match=r"engines=\[verl,vllm\]: single makes the model; add it, or give model="):
        gpu_check(check(tmp_path, engines=["verl", "vllm"]))
    (tmp_path / "record.json").write_text("{}")
    with pytest.raises(UserError, match=r"record\.json: there already; choose another output or pass --force"):
        gpu_check(check(tmp_path, output=str(tmp_path / "record.json")))


def test_the_record_of_a_gpu_is_named_after_it() -> None:
    path = module.record_path(GpuCheckSettings(), [H100, H100])
    assert path == Path("results/records/gpu-check-nvidia-h100-80gb-hbm3-x2/record.json")


@pytest.mark.slow
def test_the_whole_check_with_the_single_file_trainers(tmp_path: Path) -> None:
    from bash_runs import run as run_script

    folders = {"CKPT_DIR": str(tmp_path / "c"), "OUTPUT": str(tmp_path / "r")}
    done = run_script("bash/gpu_check.sh", "device=cpu", "engines=[single]", **folders)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["step"]: row for row in json.loads((tmp_path / "r/record.json").read_text())["steps"]}
    assert [*rows] == ["set-up", *(f"made {name}" for name in (
        "problems train", "problems validation", "pretrain", "rollouts builtin", "sft single", "grpo single builtin",
        "reload single",
    ))]  # fmt: skip
    assert not any(row["error"] for row in rows.values())
    assert rows["made grpo single builtin"].keys() >= {"generated_tok_s", "updated_tok_s", "peak_host_gb"}
    assert rows["made sft single"]["updated_tok_s"] > 0
    assert rows["made sft single"]["forecast_gb"] > 0
    assert rows["made rollouts builtin"]["generated_tok_s"] > 0
