"""``examples/gpu_check.py``: every step one after the other, each measured; a table and a record."""

import importlib.util
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from compositionality.console import new_console, new_table
from compositionality.data.artefact import code_version, write_text
from compositionality.data.parquet import write_table
from compositionality.data.problems import read_problems
from compositionality.errors import UserError, without_secrets
from compositionality.gpus import VISIBLE, driver, installed_gpus, visible_gpus, why_no_gpu
from compositionality.ranges import NonEmptyStr, OneOf, PositiveInt, check_ranges
from compositionality.report.gpu_check.measure import PLAN, CheckStep, figures_of, forecast_gb, memory_watch
from compositionality.report.record import without_places
from compositionality.rollout.model_folder import resolve_model
from compositionality.study.machine import machine, versions
from compositionality.train.common.ranks import free_port

ROOT = Path(__file__).parents[3]
ENGINES = ("single", "verl", "vllm")
TRAINING = ("pretrain", "sft", "grpo")  # kinds of steps that use every GPU; the others use one
GUARD = ("-m", "compositionality.train.verl.process_guard")  # ends what Ray and vLLM start
ALL_REDUCE = """
import os, sys, torch, torch.distributed as dist
rank, on_gpu = int(os.environ["RANK"]), sys.argv[1] == "gpu"
if on_gpu: torch.cuda.set_device(rank)
dist.init_process_group("nccl" if on_gpu else "gloo")
ones = torch.ones(1 << 20, device="cuda" if on_gpu else "cpu")
dist.all_reduce(ones)
assert float(ones.mean()) == dist.get_world_size(), float(ones.mean())
dist.destroy_process_group()
"""
SECONDS = 120  # that an all-reduce may take
Row = dict[str, Any]


@dataclass
class GpuCheckSettings:
    """Settings of ``examples/gpu_check.py``."""

    work: NonEmptyStr = "checkpoints"  # folder in which a temporary one is made for models and data
    logs: NonEmptyStr = "results/gpu_check"  # folder for the output of every step
    output: str = ""  # record (JSON); empty: results/records/gpu-check-GPU/record.json, on a CPU LOGS/record.json
    model: str = ""  # a real model to check too, a folder or a Hub id; empty: only the one made here
    device: Annotated[str, OneOf(("cpu", "gpu"))] = "gpu"  # cpu: the same steps in the smallest sizes, in float32
    processes: PositiveInt | None = None  # GPUs of a training; null: all that are visible
    engines: list[str] = field(default_factory=lambda: [*ENGINES])  # whose steps: single, verl, vllm
    minutes: PositiveInt = 8  # that a step may take
    keep: bool = False  # keep the temporary folder
    force: bool = False  # replace a record


def gpu_check(settings: GpuCheckSettings) -> None:
    """Run every step, print the table, write the record; SystemExit(1) if a step failed. UserError as of ``check``."""
    output, gpus = check(settings)
    processes = settings.processes or max(len(gpus), 1)
    rows: list[Row] = []
    set_up = measured(rows, "set-up", lambda: set_up_in_a_process(settings.device))
    if processes > 1 and settings.device == "gpu":
        measured(rows, f"all-reduce over {processes} GPUs", lambda: all_reduce(settings.device, processes))
    Path(settings.work).mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="gpu_check-", dir=settings.work))
    try:
        rows += [] if rows[-1]["error"] else run_steps(settings, work, processes, gpus)
    finally:
        if not settings.keep:
            shutil.rmtree(work)
    record = {"code": code_version(), "machine": machine(), "versions": versions(), "set_up": set_up, "steps": rows}
    output.parent.mkdir(parents=True, exist_ok=True)
    write_text(output, json.dumps(without_places(record), indent=1, ensure_ascii=False) + "\n")
    print_table(rows)
    passed = sum(not row["error"] for row in rows)
    print(f"{output}: {passed} of {len(rows)} steps are right; logs: {settings.logs}")
    if passed < len(rows):
        raise SystemExit(1)


def check(settings: GpuCheckSettings) -> tuple[Path, list[str]]:
    """Return the record's path and the GPUs' names. UserError for an unknown engine, and a record that exists."""
    check_ranges(settings)
    for name in settings.engines:
        if name not in ENGINES:
            raise UserError(f"engines={name}: choose from {', '.join(ENGINES)}")
    on_gpu = settings.device == "gpu"
    gpus = [gpu.name for gpu in installed_gpus()][: len(visible_gpus(os.environ))] if on_gpu else []
    output = record_path(settings, gpus)
    if output.exists() and not settings.force and (gpus or settings.output):  # a GPU's record is to be kept
        raise UserError(f"{output}: there already; choose another output or pass --force")
    return output, gpus


def record_path(settings: GpuCheckSettings, gpus: list[str]) -> Path:
    """Return where the record goes: to the committed ones if it is of a GPU."""
    if settings.output or not gpus:
        return Path(settings.output or f"{settings.logs}/record.json")
    name = re.sub(r"[^a-z0-9]+", "-", gpus[0].lower()).strip("-")
    return Path("results/records", f"gpu-check-{name}{f'-x{len(gpus)}' if len(gpus) > 1 else ''}", "record.json")


def measured(rows: list[Row], name: str, body: Callable[[], Any]) -> Any:
    """Return what ``body`` returns, None if it fails; add its row to ``rows``."""
    began, result, error = time.monotonic(), None, ""
    try:
        result = body()
    except UserError as problem:
        error = str(problem)
    rows.append({"step": name, "seconds": round(time.monotonic() - began, 1), "error": error})
    return result


def set_up_in_a_process(device: str) -> Row:
    """Return ``read_set_up`` of a process of its own: a CUDA context would stay for all of the check."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(read_set_up, device).result()


def read_set_up(device: str) -> Row:
    """Return driver, torch, packages, GPUs. UserError for a GPU that torch cannot use, or that has no bfloat16."""
    import torch

    packages = {name: installed(name) for name in ("flash_attn", "vllm", "verl")}
    set_up = {"device": device, "torch_cuda": torch.version.cuda, **packages}
    if device == "cpu":
        return set_up
    if not torch.cuda.is_available():
        raise UserError(why_no_gpu(os.environ))
    devices = range(torch.cuda.device_count())
    names = [torch.cuda.get_device_name(index) for index in devices]
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        raise UserError(f"{names[0]} has no bfloat16; the GPU profiles want it: take a GPU from Ampere on")
    free_and_total = [[round(size / 2**30, 1) for size in torch.cuda.mem_get_info(index)] for index in devices]
    return set_up | {
        "driver": driver(), "visible": os.environ.get(VISIBLE, "all"), "gpus_there": len(installed_gpus()),
        "gpus": names, "memory_gib": free_and_total, "nccl": ".".join(map(str, torch.cuda.nccl.version())),
    }  # fmt: skip


def installed(package: str) -> bool:
    """Return whether a package can be imported."""
    return importlib.util.find_spec(package) is not None


def all_reduce(device: str, count: int) -> None:
    """Sum a tensor over ``count`` processes, one a GPU. UserError if that fails or hangs."""
    group = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", ALL_REDUCE, device], env={**os.environ, **group, "RANK": str(rank)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(count)
    ]  # fmt: skip
    try:
        for number, rank in enumerate(ranks):
            _, errors = rank.communicate(timeout=SECONDS)
            if rank.returncode:
                last = (errors.splitlines() or ["?"])[-1]
                raise UserError(f"all-reduce over {count} GPUs: process {number}: {last}")
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"all-reduce over {count} GPUs: not done after {SECONDS} s; look at nvidia-smi topo -m, "
            "try NCCL_DEBUG=INFO and NCCL_P2P_DISABLE=1"
        ) from error
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def run_steps(settings: GpuCheckSettings, work: Path, processes: int, gpus: list[str]) -> Iterator[Row]:
    """Yield a row for every step of every model. One that fails stops none but those that start from its model."""
    model = str(resolve_model(settings.model)) if settings.model else ""
    Path(settings.logs).mkdir(parents=True, exist_ok=True)
    for step in steps_of(work, settings.device, model, processes):
        if step.engines <= {*settings.engines}:
            print(f"== {step.name}", flush=True)
            log = Path(settings.logs, f"{step.name.replace(' ', '-')}.log")
            yield run_step(step, log, settings, gpus[: processes if step.kind in TRAINING else 1])
            write_sft_rows(work / step.name.split()[0])


def steps_of(work: Path, device: str, model: str, processes: int = 1) -> Iterator[CheckStep]:
    """Yield the steps of the model made here and then, where one is given, of ``model``."""
    for subject, profile in PLAN["profiles"][device].items():
        path = str(work / "made" / "base") if subject == "made" else model
        places = {"work": work, "folder": work / subject, "model": path, "profile": profile}
        sizes = {**PLAN["sizes"][device], **places, "processes": processes, "device": device}
        for step in PLAN["steps"] if path else ():
            for variant in step.get("variants", [{}]) if step.get("only", subject) == subject else ():
                entry = {**step, **variant}
                names = sizes | {key: value.format_map(sizes) for key, value in variant.items()}
                words = tuple(word.format_map(names) for word in entry["words"].split())  # a path may hold spaces
                start, end = (
                    Path(entry[key].format_map(names)) if key in entry else None for key in ("model", "output")
                )
                name, engines = f"{subject} {entry['name'].format_map(names)}", entry.get("engines", "").split()
                yield CheckStep(name, entry["kind"], words, frozenset(engines), start, end)


def run_step(step: CheckStep, log: Path, settings: GpuCheckSettings, gpus: list[str]) -> Row:
    """Run one command with its output in ``log``; return its row."""
    began, row = time.monotonic(), {"step": step.name, "seconds": 0.0, "error": ""}
    lacking = [name for name in sorted(step.engines - {"single"}) if not installed(name)]
    if lacking:
        return row | {"error": f"{lacking[0]} is not installed; run: bash bash/setup.sh --full"}
    if step.model is not None and not step.model.is_dir():
        return row | {"error": f"not run: the step that makes its model ({step.model.parent.name}) has failed"}
    command = [sys.executable, *GUARD, sys.executable, f"examples/{step.words[0]}.py", *step.words[1:]]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with log.open("w") as stream:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        with memory_watch(process.pid, gpus=bool(gpus)) as peaks:
            code = wait_for(process, settings.minutes)
    row |= {"seconds": round(time.monotonic() - began, 1), **peaks}
    verl_log = step.output / "train.log" if step.output is not None else None
    if code != 0 and verl_log is not None and verl_log.is_file():  # its folder will be deleted
        shutil.copyfile(verl_log, log.with_suffix(".train.log"))
    if code is None:
        return row | {"error": f"not done after minutes={settings.minutes}; its log: {log}"}
    if code:
        return row | {"error": without_secrets(problem_in(log, code))}
    forecast = forecast_gb(step, gpu=bool(gpus))
    return row | figures_of(step, log.read_text(), gpus) | ({} if forecast is None else {"forecast_gb": forecast})


def wait_for(process: "subprocess.Popen[bytes]", minutes: int) -> int | None:
    """Return the exit code; None if the command took too long. It is ended then, and with this process."""
    try:
        return process.wait(60 * minutes)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()


def problem_in(log: Path, code: int) -> str:
    """Return one line on why a command failed: its ``error:``, else its last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or lines or [f"exit code {code}"])[-1][:300]


def write_sft_rows(folder: Path) -> None:
    """Write rows to fine-tune on, once the problems exist: questions, and the start of their gold answers as text."""
    problems, rows = folder / "train.parquet", folder / "sft.parquet"
    if problems.is_file() and not rows.is_file():
        table = read_problems(problems).select(["prompt", "reward_model"]).to_pylist()
        chats = [
            [*row["prompt"], {"role": "assistant", "content": row["reward_model"]["ground_truth"][:64]}]
            for row in table
        ]
        write_table(pa.table({"messages": chats}), rows)


def print_table(rows: list[Row]) -> None:
    """Print a line for every step."""
    used = {key: title for key, title in PLAN["columns"].items() if any(key in row for row in rows)}
    table = new_table("step", "s", *used.values(), "")
    for row in rows:
        cells = [
            f"{100 * row[key]:.1f} %" if key.endswith("mfu") else f"{row[key]:,.{0 if 'tok' in key else 2}f}"
            if key in row else "" for key in used
        ]  # fmt: skip
        table.add_row(row["step"], f"{row['seconds']:.0f}", *cells, row["error"] or "ok")
    new_console().print(table)
