"""``examples/gpu_check.py``: every step one after the other, each measured; a table and a record."""

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
from compositionality.ranges import NonEmptyStr, OneOf, PositiveInt, check_ranges
from compositionality.report.gpu_check.facts import all_reduce, facts, installed, names_of_gpus
from compositionality.report.gpu_check.figures import figures_of, problem_in
from compositionality.report.gpu_check.forecast import forecast_gb
from compositionality.report.gpu_check.plan import CPU, GPU, CheckStep, steps_of, subjects
from compositionality.report.gpu_check.watch import MemoryWatch
from compositionality.report.record import without_places
from compositionality.rollout.model_folder import resolve_model
from compositionality.study.machine import machine, versions

ROOT = Path(__file__).parents[3]
ENGINES = ("single", "verl", "vllm")
PACKAGES = {"verl": "verl", "vllm": "vllm"}
GUARD = ("-m", "compositionality.train.verl.process_guard")  # ends what Ray and vLLM start
COLUMNS = {
    "generated_tok_s": "generated tok/s",
    "generation_mfu": "MFU",
    "updated_tok_s": "updated tok/s",
    "update_mfu": "MFU",
    "peak_gpu_gb": "peak GB",
    "allocated_gb": "allocated GB",
    "forecast_gb": "forecast GB",
    "peak_host_gb": "host GB",
}
TRAINING = ("pretrain", "sft", "grpo")
"""Kinds of steps that use every GPU; the others use one."""
Row = dict[str, Any]


@dataclass
class GpuCheckSettings:
    """Settings of ``examples/gpu_check.py``."""

    work: NonEmptyStr = "checkpoints"  # folder in which a temporary one is made for models and data
    logs: NonEmptyStr = "results/gpu_check"  # folder for the output of every step
    output: str = ""  # record (JSON); empty: results/records/gpu-check-GPU.json, on a CPU LOGS/record.json
    model: str = ""  # a real model to check too, a folder or a Hub id; empty: only the one made here
    device: Annotated[str, OneOf(("cpu", "gpu"))] = "gpu"  # cpu: the same steps in the smallest sizes, in float32
    processes: PositiveInt | None = None  # GPUs of a training; null: all that are visible
    engines: list[str] = field(default_factory=lambda: [*ENGINES])  # whose steps: single, verl, vllm
    minutes: PositiveInt = 8  # that a step may take
    keep: bool = False  # keep the temporary folder
    force: bool = False  # replace a record


def gpu_check(settings: GpuCheckSettings) -> None:
    """Run every step, print the table, write the record; SystemExit(1) if one failed.

    UserError before the first step as ``check`` has it.
    """
    check(settings)
    gpus = names_of_gpus(settings.device)
    output = record_path(settings, gpus)
    rows: list[Row] = []
    set_up = measured(rows, "set-up", lambda: in_a_process(facts, settings.device))
    processes = settings.processes or max(len(gpus), 1)
    if processes > 1 and settings.device == "gpu":
        measured(rows, f"all-reduce over {processes} GPUs", lambda: all_reduce(settings.device, processes))
    Path(settings.work).mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="gpu_check-", dir=settings.work))
    try:
        if not rows[-1]["error"]:
            rows += run_steps(settings, work, processes, gpus)
    finally:
        if not settings.keep:
            shutil.rmtree(work)
    record = {"code": code_version(), "machine": machine(), "versions": versions(), "set_up": set_up, "steps": rows}
    output.parent.mkdir(parents=True, exist_ok=True)
    write_text(output, json.dumps(without_places(record), indent=1, ensure_ascii=False) + "\n")
    show(rows)
    failed = [row["step"] for row in rows if row["error"]]
    print(f"{output}: {len(rows) - len(failed)} of {len(rows)} steps are right; logs: {settings.logs}")
    if failed:
        raise SystemExit(1)


def check(settings: GpuCheckSettings) -> None:
    """UserError for an engine that there is not, and a record that is there already."""
    check_ranges(settings)
    for name in settings.engines:
        if name not in ENGINES:
            raise UserError(f"engines={name}: choose from {', '.join(ENGINES)}")
    gpus = names_of_gpus(settings.device)
    output = record_path(settings, gpus)
    if output.exists() and not settings.force and (gpus or settings.output):  # a GPU's record is to be kept
        raise UserError(f"{output}: there already; choose another output or pass --force")


def record_path(settings: GpuCheckSettings, gpus: list[str]) -> Path:
    """Where the record goes: to the committed ones if it is of a GPU."""
    if settings.output:
        return Path(settings.output)
    if not gpus:
        return Path(settings.logs, "record.json")
    name = re.sub(r"[^a-z0-9]+", "-", gpus[0].lower()).strip("-")
    return Path("results/records", f"gpu-check-{name}{f'-x{len(gpus)}' if len(gpus) > 1 else ''}.json")


def in_a_process(body: Callable[[str], Any], device: str) -> Any:
    """What ``body`` returns for the device, in a process of its own: a CUDA context would stay for all of the check."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(body, device).result()


def measured(rows: list[Row], name: str, body: Callable[[], Any]) -> Any:
    """What ``body`` returns, None if it fails; its row goes to ``rows``."""
    began, found, error = time.monotonic(), None, ""
    try:
        found = body()
    except UserError as problem:
        error = str(problem)
    rows.append({"step": name, "seconds": round(time.monotonic() - began, 1), "error": error})
    return found


def run_steps(settings: GpuCheckSettings, work: Path, processes: int, gpus: list[str]) -> Iterator[Row]:
    """A row for every step of every model. One that fails stops none but those that start from its model."""
    model = str(resolve_model(settings.model)) if settings.model else ""
    sizes = CPU if settings.device == "cpu" else GPU
    logs = Path(settings.logs)
    logs.mkdir(parents=True, exist_ok=True)
    for subject in subjects(work, settings.device, model):
        run = (f"run.processes={processes}", f"run.device={settings.device}")
        for step in steps_of(subject, work, sizes, run):
            if step.engines <= {*settings.engines}:
                print(f"== {step.name}", flush=True)
                used = gpus[: processes if step.kind in TRAINING else 1]
                yield run_step(step, logs / f"{step.name.replace(' ', '-')}.log", settings, used)
                write_rows(work / subject.name)


def run_step(step: CheckStep, log: Path, settings: GpuCheckSettings, gpus: list[str]) -> Row:
    """Run one command with its output in ``log``; its row."""
    began, row = time.monotonic(), {"step": step.name, "seconds": 0.0, "error": ""}
    lacking = [name for name in sorted(step.engines) if not installed(PACKAGES.get(name, "torch"))]
    if lacking:
        return row | {"error": f"{lacking[0]} is not installed; run: bash bash/setup.sh --full"}
    if step.model is not None and not step.model.is_dir():
        return row | {"error": f"not run: the step that makes its model ({step.model.parent.name}) has failed"}
    command = [sys.executable, *GUARD, sys.executable, f"examples/{step.words[0]}.py", *step.words[1:]]
    with log.open("w") as stream:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))},
        )  # fmt: skip
        with MemoryWatch(process.pid, gpus=bool(gpus)) as watch:
            code = wait_for(process, settings.minutes)
    row |= {"seconds": round(time.monotonic() - began, 1), **watch.figures()}
    of_verl = step.output / "train.log" if step.output is not None else None
    if code != 0 and of_verl is not None and of_verl.is_file():  # its folder will be deleted
        shutil.copyfile(of_verl, log.with_suffix(".train.log"))
    if code is None:
        return row | {"error": f"not done after minutes={settings.minutes}; its log: {log}"}
    if code:
        return row | {"error": without_secrets(problem_in(log, code))}
    forecast = forecast_gb(step, gpu=bool(gpus))
    return row | figures_of(step, log.read_text(), gpus) | ({"forecast_gb": forecast} if forecast is not None else {})


def wait_for(process: "subprocess.Popen[bytes]", minutes: int) -> int | None:
    """The exit code; None if the command was ended because it took too long. It is ended with this process too."""
    try:
        return process.wait(60 * minutes)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()


def write_rows(folder: Path) -> None:
    """Rows to fine-tune on, once the problems are there: questions, and the start of their gold answers as text."""
    problems, rows = folder / "train.parquet", folder / "sft.parquet"
    if problems.is_file() and not rows.is_file():
        table = read_problems(problems).select(["prompt", "reward_model"]).to_pylist()
        answers = [row["reward_model"]["ground_truth"][:64] for row in table]
        chats = [
            [*row["prompt"], {"role": "assistant", "content": answer}]
            for row, answer in zip(table, answers, strict=True)
        ]
        write_table(pa.table({"messages": chats}), rows)


def show(rows: list[Row]) -> None:
    """The table of all steps."""
    used = {key: title for key, title in COLUMNS.items() if any(key in row for row in rows)}
    table = new_table("step", "s", *used.values(), "")
    for row in rows:
        cells = [_cell(key, row[key]) if key in row else "" for key in used]
        table.add_row(row["step"], f"{row['seconds']:.0f}", *cells, row["error"] or "ok")
    new_console().print(table)


def _cell(key: str, value: float) -> str:
    return f"{100 * value:.1f} %" if key.endswith("mfu") else f"{value:,.0f}" if "tok" in key else f"{value:.2f}"
