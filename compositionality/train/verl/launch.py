"""Run verl's trainer under watch: what SFT and GRPO share."""

import os
import queue
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

from omegaconf import DictConfig, OmegaConf

from compositionality.console import natural_key
from compositionality.data.artefact import remove, write_text
from compositionality.errors import UserError
from compositionality.train.boards import SERVICE, facts_of, tags_of
from compositionality.train.log import Progress
from compositionality.train.metrics import accuracies
from compositionality.train.run_folder import WANDB_ID, facts_at_start
from compositionality.train.verl import hooks

FAILURE_FILE = "COMPOSITIONALITY_FAILURE_FILE"
TAIL_LINES = 400
EXCEPTION = re.compile(r"\b[\w.]*(?:Error|Exception): \S.*")
STEP = re.compile(r"(?:^|[\s\]])step:(\d+) - (.*)")
VALUE = re.compile(r"([\w/@.()-]+):(?:np\.float64\()?(-?[\d.]+(?:e-?\d+)?|nan)")
SHOWN = (
    ("loss", "train/loss"),
    ("validation loss", "val/loss"),
    ("reward", "critic/score/mean"),
    ("gradient", "actor/grad_norm"),
    ("tokens", "response_length/mean"),
    ("seconds", "timing_s/step"),
)
TRAINED = {"train/loss", "timing_s/step"}


class StepLines:
    """Turns each of verl's long lines into a short one: step, loss or reward, accuracy by level, time left.

    ``steps`` is how many updates there will be, if that is known.
    """

    def __init__(self, steps: int | None):
        self._progress = Progress(steps)

    def read(self, line: str) -> str | None:
        """Return what to show for ``line``: nothing unless it reports a step."""
        match = STEP.search(line)
        if match is None:
            return None
        step, values = int(match[1]), dict(VALUE.findall(match[2]))
        parts = [f"{name} {float(values[key]):.3g}" for name, key in SHOWN if key in values]
        by_level = sorted(accuracies(values).items(), key=lambda level: natural_key(level[0]))
        parts += [f"{source} {100 * float(share):.0f} %" for source, share in by_level]
        if not parts:
            return None
        # a validation before the first step says nothing about a step's time
        return self._progress.line(step, parts, timed=bool(TRAINED & values.keys()))


def write_config(config: DictConfig, path: Path) -> None:
    """Write the resolved configuration as YAML: what the trainer reads, and the record of the run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, OmegaConf.to_yaml(config, resolve=True, sort_keys=True))


def environment(config: DictConfig, out: Path) -> dict[str, str]:
    """Return the environment of the trainer's processes: device, modules that verl imports, where metrics go."""
    device, grpo, facts = config.run.device, "algorithm" in config, facts_of(out)
    modules = [*([hooks.CPU_MODULE] if device == "cpu" else []), hooks.EVERY_MODULE]
    if grpo and config.algorithm.adv_estimator == "gae":
        modules.append(hooks.CRITIC_MODULE)
    modules += filter(None, os.environ.get("VERL_USE_EXTERNAL_MODULES", "").split(","))
    fixed = {
        "VERL_USE_EXTERNAL_MODULES": ",".join(dict.fromkeys(modules)),
        "VERL_FILE_LOGGER_PATH": str((out / "metrics.jsonl").resolve()),
        "TENSORBOARD_DIR": str((out / "tensorboard").resolve()),
        FAILURE_FILE: str((out / "failure.txt").resolve()),
        "PYTHONUNBUFFERED": "1",
        "WANDB_TAGS": ",".join(tags_of(facts | facts_at_start("verl", map(Path, config.run.train_files)))),
    }
    defaults = {
        "WANDB_DIR": str(out.resolve()),
        "WANDB_JOB_TYPE": "rl" if grpo else "sft",
        **({"WANDB_RUN_GROUP": facts["study"]} if "study" in facts else {}),
        "TOKENIZERS_PARALLELISM": "false",
        "RAY_USAGE_STATS_ENABLED": "0",
        "HYDRA_FULL_ERROR": "1",
    }
    if device == "cpu":
        fixed["VERL_PLATFORM"] = "cpu"
        defaults["OMP_NUM_THREADS"] = str(config.run.threads)
    if device == "cpu" and grpo:
        # Ray wants a visible GPU for each of its slots; no process can see a real one by the index -1
        fixed["CUDA_VISIBLE_DEVICES"] = ",".join(["-1"] * config.run.processes)
        defaults["VLLM_CPU_KVCACHE_SPACE"] = "1"
        defaults["TQ_NUM_THREADS"] = "1"  # of the store; it warns at every access if there are fewer cores
    inherited = {name: value for name, value in os.environ.items() if name != SERVICE}
    return {**defaults, **inherited, **fixed}


def shell_line(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the command as a person would type it, with the variables that differ from the present environment."""
    changed = {name: value for name, value in environment.items() if os.environ.get(name) != value}
    return shlex.join([*(f"{name}={value}" for name, value in sorted(changed.items())), *command])


def report_failure(message: str) -> None:
    """Leave the launcher the one line that it shows as the reason why training stopped."""
    path = os.environ.get(FAILURE_FILE)
    if path:
        write_text(Path(path), message)


def end_driver(message: str) -> NoReturn:
    """End this driver of a Ray cluster, and with it all that it has started there."""
    report_failure(message)
    os._exit(UserError.exit_code)  # the guard ends what is on this machine


def run_trainer(
    command: Sequence[str],
    variables: Mapping[str, str],
    *,
    name: str,
    log: Path,
    stall_minutes: float,
    steps: int | None = None,
) -> None:
    """Run the trainer to its end, showing a line a step (of ``steps``) and keeping its whole output in ``log``.

    UserError with one line when it fails, or when it prints nothing for ``stall_minutes``. Whatever ends this
    process, every process of the trainer ends with it (train/launch.py).
    """
    wandb = {"WANDB_QUIET": "true"}  # a resumed run goes on there as the same one, and ends without a block of its own
    if (path := log.parent / WANDB_ID).is_file():
        wandb |= {"WANDB_RUN_ID": path.read_text().strip(), "WANDB_RESUME": "allow"}
    variables = {**wandb, **variables}
    failure = Path(variables[FAILURE_FILE])
    remove(failure)
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"{name}: starting (a minute or two); full output in {log}", flush=True)
    guard = [sys.executable, "-m", "compositionality.train.launch", *command]
    process = subprocess.Popen(
        guard, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, text=True, errors="replace", bufsize=1,
    )  # fmt: skip
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    try:
        with log.open("a") as stream:
            alive = _forward(process, stream, tail, StepLines(steps), stall_minutes * 60)
    finally:
        _stop(process)
    if not alive:
        raise UserError(
            f"{name}: no sign of life for {stall_minutes:g} minutes, ended it; see {log}, then run it again"
        )
    if process.returncode != 0:
        reason = failure.read_text().strip() if failure.is_file() else ""
        raise UserError(f"{name}: {reason or _last_error(tail, process.returncode)}; full output in {log}")


def _forward(
    process: subprocess.Popen[str], log: IO[str], tail: deque[str], steps: StepLines, stall_seconds: float
) -> bool:
    """Copy the output to the log and its steps to the screen; False if nothing came for ``stall_seconds``."""
    lines: queue.Queue[str | None] = queue.Queue()

    def pump() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=pump, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=stall_seconds)
        except queue.Empty:
            return False
        if line is None:
            return True
        tail.append(line)
        log.write(line)
        log.flush()
        shown = steps.read(line)
        if shown:
            print(shown, flush=True)


def _stop(process: subprocess.Popen[str]) -> None:
    """Let the guard end all processes of the trainer, and wait for it."""
    if process.stdout is not None and process.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)  # the output has ended: so will the guard
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.wait()


def _last_error(tail: Sequence[str], code: int) -> str:
    """Return the exit code, and the last line that names an exception."""
    errors = [match[0].strip() for match in map(EXCEPTION.search, tail) if match and "ChildFailed" not in match[0]]
    return f"stopped with exit code {code}" + (f" ({errors[-1][:300]})" if errors else "")
