"""``examples/gpu_check.py``: does training work on this machine, how fast, in how much memory?

Every step of gpu_check.yaml runs one after the other, each measured; a table is printed and a record written.
"""

import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import psutil
import pyarrow as pa

from compositionality.config.cli import parse
from compositionality.config.profile import layers_of, schema_of
from compositionality.console import new_console, new_table
from compositionality.data.artefact import write_text
from compositionality.data.git import code_version
from compositionality.data.parquet import write_table
from compositionality.data.problems import read_problems
from compositionality.errors import UserError, without_secrets
from compositionality.gpus import VISIBLE, driver, installed_gpus, peak_of, visible_gpus, why_no_gpu
from compositionality.memory import GB, GPU, HOST
from compositionality.ranges import NonEmptyStr, OneOf, PositiveInt
from compositionality.report.record import without_places
from compositionality.rollout.engines.factory import sampling_needs
from compositionality.rollout.model_folder import resolve_model, shape_of_model
from compositionality.study.runner import machine, versions
from compositionality.train.engines import settle_cluster
from compositionality.train.launch import free_port
from compositionality.train.memory import Ranks, training_needs
from compositionality.train.metrics import read_metrics
from compositionality.validation import check_ranges
from compositionality.yaml_files import read_yaml_mapping

PLAN: dict[str, Any] = read_yaml_mapping(Path(__file__).with_suffix(".yaml"))
ENGINES = ("single", "verl", "vllm")
TRAINING = ("pretrain", "sft", "grpo")  # kinds of steps that use every GPU; the others use one
GUARD = ("-m", "compositionality.train.launch")  # ends what Ray and vLLM start
SAMPLED = re.compile(r"(\d+) completions, (\d+) tokens, ([\d,]+) tok/s")
ALL_REDUCE_SECONDS = 120  # that it may take
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
    force: bool = False  # replace a record


@dataclass(frozen=True)
class CheckStep:
    """One command of the check: ``kind`` as in gpu_check.yaml, ``words`` from the entry point on."""

    name: str
    kind: str
    words: tuple[str, ...]
    engines: frozenset[str]
    model: Path | None = None
    output: Path | None = None


def gpu_check(settings: GpuCheckSettings) -> None:
    """Run every step, print the table, write the record; SystemExit(1) if a step failed. UserError as of ``check``."""
    output, gpus = check(settings)
    processes = settings.processes or max(len(gpus), 1)
    rows: list[Row] = []
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # a CUDA context would stay in this one
        set_up = measured(rows, "set-up", lambda: pool.submit(read_set_up, settings.device).result())
    if processes > 1 and settings.device == "gpu":
        measured(rows, f"all-reduce over {processes} GPUs", lambda: all_reduce(settings.device, processes))
    record = {"code": code_version(), "machine": machine(), "versions": versions(), "set_up": set_up, "steps": rows}
    for path in (Path(settings.work), Path(settings.logs), output.parent):
        path.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gpu_check-", dir=Path(settings.work).resolve()) as work:
        try:
            rows.extend([] if rows[-1]["error"] else run_steps(settings, Path(work), processes, gpus))
        finally:  # a check that is stopped leaves what it has measured
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
    if "single" not in settings.engines and not settings.model:
        raise UserError(f"engines=[{','.join(settings.engines)}]: single makes the model; add it, or give model=")
    installed = [gpu.name for gpu in installed_gpus()] if settings.device == "gpu" else []
    gpus = installed[: len(visible_gpus(os.environ))]
    output = record_path(settings, gpus)
    if output.exists() and not settings.force and (gpus or settings.output):  # a GPU's record is to be kept
        raise UserError(f"{output}: there already; choose another output or pass --force")
    return output, gpus


def record_path(settings: GpuCheckSettings, gpus: list[str]) -> Path:
    """Return where the record goes: to the committed ones if it is of a GPU."""
    if settings.output or not gpus:
        return Path(settings.output or f"{settings.logs}/record.json")
    name = re.sub(r"[^a-z0-9]+", "-", gpus[0].lower()).strip("-") + (f"-x{len(gpus)}" if len(gpus) > 1 else "")
    return Path(f"results/records/gpu-check-{name}/record.json")


def measured(rows: list[Row], name: str, body: Callable[[], Any]) -> Any:
    """Return what ``body`` returns, None if it fails; add its row to ``rows``."""
    began, result, error = time.monotonic(), None, ""
    try:
        result = body()
    except UserError as problem:
        error = str(problem)
    rows.append({"step": name, "seconds": round(time.monotonic() - began, 1), "error": error})
    return result


def read_set_up(device: str) -> Row:
    """Return driver, torch, packages, GPUs. UserError for a GPU that torch cannot use, or that has no bfloat16."""
    import torch

    packages = {name: find_spec(name) is not None for name in ("flash_attn", "vllm", "verl")}
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


def all_reduce(device: str, count: int) -> None:
    """Sum a tensor over ``count`` processes, one a GPU. UserError if that fails or hangs."""
    group = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PLAN["all_reduce"], device], env={**os.environ, **group, "RANK": str(rank)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(count)
    ]  # fmt: skip
    what = f"all-reduce over {count} GPUs"
    try:
        for number, rank in enumerate(ranks):
            _, errors = rank.communicate(timeout=ALL_REDUCE_SECONDS)
            if rank.returncode:
                raise UserError(f"{what}: process {number}: {(errors.splitlines() or ['?'])[-1]}")
    except subprocess.TimeoutExpired as error:
        advice = "look at nvidia-smi topo -m, try NCCL_DEBUG=INFO and NCCL_P2P_DISABLE=1"
        raise UserError(f"{what}: not done after {ALL_REDUCE_SECONDS} s; {advice}") from error
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def run_steps(settings: GpuCheckSettings, work: Path, processes: int, gpus: list[str]) -> Iterator[Row]:
    """Yield a row for every step of every model. One that fails stops none but those that start from its model."""
    model = str(resolve_model(settings.model)) if settings.model else ""
    for step in steps_of(work, settings.device, model, processes):
        if step.engines <= {*settings.engines}:
            print(f"== {step.name}", flush=True)
            log = Path(settings.logs, f"{step.name.replace(' ', '-')}.log")
            yield run_step(step, log, settings, gpus[: processes if step.kind in TRAINING else 1])
            problems = work / step.name.split()[0] / "train.parquet"
            rows = problems.with_name("sft.parquet")
            if problems.is_file() and not rows.is_file():  # to fine-tune on, with the start of the gold answers
                asked = read_problems(problems).select(["prompt", "reward_model"]).to_pylist()
                answers = ({"role": "assistant", "content": row["reward_model"]["ground_truth"][:64]} for row in asked)
                chats = [[*row["prompt"], answer] for row, answer in zip(asked, answers, strict=True)]
                write_table(pa.table({"messages": chats}), rows)


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
                name, engines = f"{subject} {entry['name'].format_map(names)}", entry.get("engines", "").split()
                ends = [Path(entry[key].format_map(names)) if key in entry else None for key in ("model", "output")]
                yield CheckStep(name, entry["kind"], words, frozenset(engines), *ends)


def run_step(step: CheckStep, log: Path, settings: GpuCheckSettings, gpus: list[str]) -> Row:
    """Run one command with its output in ``log``; return its row."""
    began, row = time.monotonic(), {"step": step.name, "seconds": 0.0, "error": ""}
    if lacking := [name for name in sorted(step.engines - {"single"}) if find_spec(name) is None]:
        return row | {"error": f"{lacking[0]} is not installed; run: bash bash/setup.sh --full"}
    if step.model is not None and not step.model.is_dir():
        return row | {"error": f"not run: the step that makes its model ({step.model.parent.name}) has failed"}
    command = [sys.executable, *GUARD, sys.executable, "-m", "compositionality", *step.words]
    with log.open("w") as stream:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT)
        with memory_watch(process.pid, gpus=bool(gpus)) as peaks:
            code = wait_for(process, settings.minutes)
    row |= {"seconds": round(time.monotonic() - began, 1), **peaks}
    if code != 0 and step.output is not None and (step.output / "train.log").is_file():  # its folder will be deleted
        shutil.copyfile(step.output / "train.log", log.with_suffix(".train.log"))
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


def print_table(rows: list[Row]) -> None:
    used = {key: title for key, title in PLAN["columns"].items() if any(key in row for row in rows)}
    table = new_table("step", "s", *used.values(), "")
    for row in rows:
        cells = (format(row[key], PLAN["formats"][key.rpartition("_")[2]]) if key in row else "" for key in used)
        table.add_row(row["step"], f"{row['seconds']:.0f}", *cells, row["error"] or "ok")
    new_console().print(table)


def figures_of(step: CheckStep, log: str, gpus: Sequence[str]) -> dict[str, float]:
    """Return tokens/s of generation and update, their MFU where the GPUs' peak is known, torch's own peak memory."""
    if step.kind == "rollouts":
        printed = SAMPLED.search(log)
        if printed is None or step.model is None:
            return {}
        completions, tokens, speed = (float(word.replace(",", "")) for word in printed.groups())
        return speeds(speed, step.model, tokens / completions / 2, gpus, update=False)
    rows = read_metrics(step.output / "metrics.jsonl") if step.output is not None else []
    held = [row["perf/max_memory_allocated_gb"] for row in rows if row.get("perf/max_memory_allocated_gb")]
    figures = {"allocated_gb": round(max(held) * 2**30 / 1e9, 2)} if held else {}  # on a CPU verl says 0
    speed = typical(rows, "perf/tokens_per_second")
    if step.kind in ("pretrain", "sft") and step.output is not None and speed:
        final = step.output if step.kind == "pretrain" else step.output / "final"
        figures |= speeds(speed, final, 0, gpus, update=True)  # how long the rows are is not in the metrics
    rows = [row for row in rows if "timing_s/update_actor" in row and "timing_s/gen" in row]
    if step.kind == "grpo" and rows and step.model is not None:  # both engines name seconds and lengths alike
        options = dict(word.split("=", 1) for word in step.words if "=" in word)
        completions = int(options["data.prompts_per_step"]) * int(options["rollout.n"])
        length = typical(rows, "response_length/mean")
        trained = typical(rows, "perf/trained_tokens") or typical(rows, "perf/total_num_tokens")
        sampling, update = (max(typical(rows, f"timing_s/{part}"), 1e-9) for part in ("gen", "update_actor"))
        figures |= speeds(length * completions / sampling, step.model, length / 2, gpus, update=False)
        figures |= speeds(trained / update, step.model, trained / completions, gpus, update=True)
    return figures


def speeds(speed: float, model: Path, context: float, gpus: Sequence[str], *, update: bool) -> dict[str, float]:
    """Return tokens per second and their MFU, under the names that the record has."""
    share = mfu(flops_per_token(model, context, update=update) * speed, gpus)
    tokens_name, share_name = ("updated_tok_s", "update_mfu") if update else ("generated_tok_s", "generation_mfu")
    return {tokens_name: round(speed)} | ({} if share is None else {share_name: round(share, 4)})


def typical(rows: Sequence[dict[str, Any]], key: str) -> float:
    """Return the median over the steps, without the first where there are more: it warms up. 0 without any."""
    values = [float(row[key]) for row in rows if row.get(key) is not None]
    return median(values[1:] or values or [0.0])


def flops_per_token(model: Path, context: float, *, update: bool) -> float:
    """Return 2 N + 4 L W T, the operations of a forward pass for a token that sees T tokens; of an update thrice that.

    N: weights of matrix products, so without an input embedding that is a look-up only; L layers; W: all heads' width.
    """
    shape = shape_of_model(model)
    weights = shape.parameters - (0 if shape.tied else shape.vocabulary * shape.width)
    forward = 2 * weights + 4 * shape.layers * shape.heads * shape.head_width * context
    return 3 * forward if update else forward


def mfu(flops_per_second: float, gpus: Sequence[str]) -> float | None:
    """Return the share of the peak of all ``gpus``; None on a CPU and where the peak of one is not known."""
    peaks = [*filter(None, map(peak_of, gpus))]
    return flops_per_second / sum(peaks) if peaks and len(peaks) == len(gpus) else None


@contextmanager
def memory_watch(process: int, *, gpus: bool) -> Iterator[dict[str, float]]:
    """Yield peaks in GB (10⁹ bytes) while the block runs: of a process tree and, with ``gpus``, of the fullest GPU.

    Memory that processes share counts for each.
    """
    peaks = {"peak_host_gb": 0.0} | ({"peak_gpu_gb": 0.0} if gpus else {})
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.5):
            with suppress(psutil.Error):  # a process has just ended: the next look counts
                root = psutil.Process(process)
                held = sum(member.memory_info().rss for member in [root, *root.children(recursive=True)])
                peaks["peak_host_gb"] = max(peaks["peak_host_gb"], round(held / 1e9, 3))
            if gpus:
                peaks["peak_gpu_gb"] = max(peaks["peak_gpu_gb"], round(fullest_gpu() * 2**20 / 1e9, 2))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        stop.set()
        thread.join()


def fullest_gpu() -> int:
    """Return MiB in use on the fullest GPU, by whomever; 0 without nvidia-smi."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    with suppress(OSError, subprocess.SubprocessError):
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
        return max((int(word) for word in shown.split() if word.isdecimal()), default=0)
    return 0


def forecast_gb(step: CheckStep, *, gpu: bool) -> float | None:
    """Return the preflight's GB for the step: of its fullest GPU, on a CPU of the machine. None for other kinds."""
    if step.kind not in ("rollouts", "sft", "grpo"):
        return None
    entry_point, profile, *words = step.words
    settings = parse(schema_of(entry_point), words, layers_of(profile.removeprefix("profile="), entry_point))
    shape = shape_of_model(step.model or "")
    if step.kind == "rollouts":
        needs = sampling_needs(settings, shape, settings.max_prompt_tokens, gpu=gpu)
    elif settings.engine == "single":
        settle_cluster(settings, imagined=True)
        needs = training_needs(settings, shape, Ranks(settings.run.processes or 1, gpu=gpu))
    else:
        from compositionality.train.verl import memory
        from compositionality.train.verl.configure import grpo_config, sft_config

        settle_cluster(settings, imagined=True)
        needs = memory.training_needs(sft_config(settings) if step.kind == "sft" else grpo_config(settings), shape)
    sizes = [need.total for need in needs if need.place == (GPU if gpu else HOST)]
    return round(max(sizes) / GB, 2) if sizes else None
