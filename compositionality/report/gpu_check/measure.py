"""What a step of the check is measured by: tokens per second, share of the GPUs' peak (MFU), memory, forecast."""

import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from compositionality.config.cli import parse
from compositionality.config.profile import layers_of, schema_of
from compositionality.rollout.forecast.check import sampling_needs
from compositionality.rollout.forecast.need import GB, GPU, HOST, Need
from compositionality.rollout.forecast.shape import shape_of_model
from compositionality.train.common.metrics import read_metrics
from compositionality.train.engines import settle_cluster
from compositionality.train.forecast import of_verl, single
from compositionality.train.tiny.corpus import corpus_tokenizer
from compositionality.train.tiny.model import tiny_shape
from compositionality.yaml_files import read_yaml_mapping

PLAN: dict[str, Any] = read_yaml_mapping(Path(__file__).with_name("steps.yaml"))
SAMPLED = re.compile(r"(\d+) completions, (\d+) tokens, ([\d,]+) tok/s")
EVERY = 0.5  # seconds between two looks at memory


@dataclass(frozen=True)
class CheckStep:
    """One command of the check: ``kind`` as in steps.yaml, ``words`` from the entry point on."""

    name: str
    kind: str
    words: tuple[str, ...]
    engines: frozenset[str]
    model: Path | None = None
    output: Path | None = None


def figures_of(step: CheckStep, log: str, gpus: Sequence[str]) -> dict[str, float]:
    """Return tokens/s of generation and update, their MFU where the GPUs' peak is known, torch's own peak memory."""
    if step.kind == "rollouts":
        printed = SAMPLED.search(log)
        if printed is None or step.model is None:
            return {}
        completions, tokens, speed = (float(word.replace(",", "")) for word in printed.groups())
        return _speeds(speed, step.model, tokens / completions / 2, gpus, update=False)
    rows = read_metrics(step.output / "metrics.jsonl") if step.output is not None else []
    held = [row["perf/max_memory_allocated_gb"] for row in rows if row.get("perf/max_memory_allocated_gb")]
    allocated = {"allocated_gb": round(max(held) * 2**30 / 1e9, 2)} if held else {}  # on a CPU verl says 0
    speed = _typical(rows, "perf/tokens_per_second")
    if step.kind == "grpo":
        return allocated | _grpo_speeds(step, rows, gpus)
    if step.kind in ("pretrain", "sft") and step.output is not None and speed:
        final = step.output if step.kind == "pretrain" else step.output / "final"
        return allocated | _speeds(speed, final, 0, gpus, update=True)  # how long the rows are is not in the metrics
    return allocated


def _grpo_speeds(step: CheckStep, rows: Sequence[dict[str, Any]], gpus: Sequence[str]) -> dict[str, float]:
    """Return the speeds of sampling and update. Both engines name seconds and lengths alike, but not trained tokens."""
    rows = [row for row in rows if "timing_s/update_actor" in row and "timing_s/gen" in row]
    if not rows or step.model is None:
        return {}
    given = dict(word.split("=", 1) for word in step.words if "=" in word)
    completions = int(given["data.prompts_per_step"]) * int(given["rollout.n"])
    length = _typical(rows, "response_length/mean")
    trained = _typical(rows, "perf/trained_tokens") or _typical(rows, "perf/total_num_tokens")
    sampling, update = (max(_typical(rows, f"timing_s/{part}"), 1e-9) for part in ("gen", "update_actor"))
    return {
        **_speeds(length * completions / sampling, step.model, length / 2, gpus, update=False),
        **_speeds(trained / update, step.model, trained / completions, gpus, update=True),
    }


def _speeds(speed: float, model: Path, context: float, gpus: Sequence[str], *, update: bool) -> dict[str, float]:
    """Return tokens per second and their MFU, under the names that the record has."""
    share = mfu(flops_per_token(model, context, update=update) * speed, gpus)
    tokens_name, share_name = ("updated_tok_s", "update_mfu") if update else ("generated_tok_s", "generation_mfu")
    return {tokens_name: round(speed)} | ({} if share is None else {share_name: round(share, 4)})


def _typical(rows: Sequence[dict[str, Any]], key: str) -> float:
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


def peak(name: str) -> float | None:
    """Return dense bfloat16 FLOP/s of the GPU called ``name``; None for one that is not known."""
    words = name.replace("-", " ").split()
    if {"Laptop", "D", "MIG"} & set(words):
        return None
    for known, flops in PLAN["peaks"].items():
        if f" {known} " in f" {' '.join(words)} ":
            return float(flops)
    return None


def mfu(flops_per_second: float, gpus: Sequence[str]) -> float | None:
    """Return the share of the peak of all ``gpus``; None on a CPU and where one is not known."""
    peaks = [flops for flops in map(peak, gpus) if flops is not None]
    return flops_per_second / sum(peaks) if peaks and len(peaks) == len(gpus) else None


@contextmanager
def memory_watch(process: int, *, gpus: bool) -> Iterator[dict[str, float]]:
    """Yield peaks in GB (10⁹ bytes) while the block runs: of a process tree and, with ``gpus``, of the fullest GPU."""
    peaks = {"peak_host_gb": 0.0} | ({"peak_gpu_gb": 0.0} if gpus else {})
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(EVERY):
            peaks["peak_host_gb"] = max(peaks["peak_host_gb"], round(tree_bytes(process) / 1e9, 3))
            if gpus:
                peaks["peak_gpu_gb"] = max(peaks["peak_gpu_gb"], round(fullest_gpu() * 2**20 / 1e9, 2))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        stop.set()
        thread.join()


def tree_bytes(process: int) -> int:
    """Return the resident memory of a process and its descendants; what they share counts for each."""
    with suppress(psutil.Error):  # one of them has just ended: the next look counts
        root = psutil.Process(process)
        return sum(member.memory_info().rss for member in [root, *root.children(recursive=True)])
    return 0


def fullest_gpu() -> int:
    """Return MiB in use on the fullest GPU, by whomever; 0 without nvidia-smi."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    with suppress(OSError, subprocess.SubprocessError):
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
        return max((int(word) for word in shown.split() if word.isdecimal()), default=0)
    return 0


def forecast_gb(step: CheckStep, *, gpu: bool) -> float | None:
    """Return the preflight's GB for the step: of its fullest GPU, on a CPU of the machine. None for other kinds."""
    sizes = [need.total for need in _needs(step, gpu=gpu) if need.place == (GPU if gpu else HOST)]
    return round(max(sizes) / GB, 2) if sizes else None


def _needs(step: CheckStep, *, gpu: bool) -> list[Need]:
    """Return the needs of the settings that the step's command has."""
    entry_point, profile, *words = step.words
    if step.kind not in ("pretrain", "rollouts", "sft", "grpo"):
        return []
    settings = parse(schema_of(entry_point), words, layers_of(profile.removeprefix("profile="), entry_point))
    if step.kind == "pretrain":
        shape, packing = tiny_shape(settings.model, len(corpus_tokenizer(settings.mix))), settings.packing
        ranks = single.Ranks(settings.run.processes or 1, gpu=gpu)
        return single.pretraining_needs(shape, settings.mesh, settings.dtype, packing.rows, packing.length, ranks)
    shape = shape_of_model(step.model or "")
    if step.kind == "rollouts":
        return sampling_needs(settings, shape, settings.max_prompt_tokens, gpu=gpu)
    settle_cluster(settings, imagined=True)
    if settings.engine == "single":
        needs = single.sft_needs if step.kind == "sft" else single.grpo_needs
        return needs(settings, shape, single.Ranks(settings.run.processes or 1, gpu=gpu))
    from compositionality.train.verl.configure import grpo_config, sft_config

    if step.kind == "sft":
        return of_verl.sft_needs(sft_config(settings), shape)
    return of_verl.grpo_needs(grpo_config(settings), shape)
