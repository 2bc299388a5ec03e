"""Checkpoints of a GRPO run: sealed when complete, the last few and the best kept, a half-written one never used."""

import json
from pathlib import Path

from compositionality.data.artefact import file_hash, remove, write_text
from compositionality.errors import UserError
from compositionality.train.common.run_folder import TRACKER, saved_steps

SEAL = "sealed.json"
SCORES = "validation.json"
HASHED_BYTES = 256 << 20  # larger files are checked by their size alone: hashing 100 GB would take minutes


def folder(steps: Path, step: int) -> Path:
    """Where verl keeps the checkpoint of ``step``."""
    return steps / f"global_step_{step}"


def seal(steps: Path, step: int) -> None:
    """Record what the checkpoint consists of, and name it as the latest."""
    path = folder(steps, step)
    files = {file.relative_to(path).as_posix(): fingerprint(file) for file in contents(path)}
    write_text(path / SEAL, json.dumps(files, indent=1, sort_keys=True) + "\n")
    write_text(steps / TRACKER, str(step))


def contents(path: Path) -> list[Path]:
    """The files of a checkpoint without its seal."""
    return sorted(file for file in path.rglob("*") if file.is_file() and file.name != SEAL)


def fingerprint(file: Path) -> str:
    """Hash of a file, or its size if it is large."""
    size = file.stat().st_size
    return f"{size} bytes" if size > HASHED_BYTES else file_hash(file)


def verify_seal(path: Path) -> None:
    """UserError that names the first file of a checkpoint which is missing or altered."""
    for name, expected in json.loads((path / SEAL).read_text()).items():
        file = path / name
        if not file.is_file() or fingerprint(file) != expected:
            raise UserError(f"{file}: missing or altered; delete {path} to go on from an earlier step")


def mend(steps: Path) -> None:
    """After a crash: delete checkpoints without a seal and let the tracker name the last sealed one."""
    sealed = sealed_steps(steps)
    for step in saved_steps(steps):
        if step not in sealed:
            remove(folder(steps, step))
    if sealed:
        verify_seal(folder(steps, sealed[-1]))
        write_text(steps / TRACKER, str(sealed[-1]))
    else:
        remove(steps / TRACKER)


def sealed_steps(steps: Path) -> list[int]:
    """Steps of the complete checkpoints, in order."""
    return [step for step in saved_steps(steps) if (folder(steps, step) / SEAL).is_file()]


def scores(steps: Path) -> dict[int, float]:
    """Validation score by step."""
    path = steps / SCORES
    return {int(step): score for step, score in json.loads(path.read_text()).items()} if path.is_file() else {}


def record_score(steps: Path, step: int, score: float) -> None:
    """Keep the validation score of ``step``."""
    steps.mkdir(parents=True, exist_ok=True)
    write_text(steps / SCORES, json.dumps(dict(sorted({**scores(steps), step: score}.items()))) + "\n")


def best_step(steps: Path) -> int | None:
    """The complete checkpoint with the highest validation score (the earliest of equals); None without one."""
    known = scores(steps)
    validated = [step for step in sealed_steps(steps) if step in known]
    return max(validated, key=lambda step: (known[step], -step), default=None)
