"""NVIDIA GPUs: which ones a process may use, and the reason if it can use none.

``python -m compositionality.gpus driver`` fails if the driver is too old for the locked packages; it needs only the
standard library. ``… cuda`` tests the installed torch. bash/setup.sh runs both.
"""

import ctypes
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compositionality.errors import UserError

VISIBLE = "CUDA_VISIBLE_DEVICES"
LANES_PER_GPU = "LANES_PER_GPU"
"""Number of jobs that share this process's GPU; set for the lanes of a study."""
LOCKED_CUDA = 13
"""Major version of CUDA that the packages of requirements-gpu*.lock are built for."""
OLDEST_DRIVER = {12: "525.60", 13: "580.65"}
"""By major version of CUDA, on Linux."""
PEAKS = {"B200": 2250e12, "H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12}
"""FLOP/s of dense bfloat16, by a word in the GPU's name."""
OTHER_PEAKS = {"PCIe", "NVL", "Laptop", "D", "MIG"}
"""Words in the names of variants of these GPUs, which have other peaks."""


@dataclass(frozen=True)
class Gpu:
    """One GPU as nvidia-smi lists it. ``instances``: UUIDs of its MIG devices."""

    name: str
    uuid: str
    instances: tuple[str, ...] = ()


def installed_gpus() -> list[Gpu]:
    """Return the GPUs of this machine in order; empty without a driver."""
    gpus: list[Gpu] = []
    for line in _nvidia_smi("-L").splitlines():
        if match := re.match(r"GPU \d+: (.+) \(UUID: (\S+)\)", line):
            gpus.append(Gpu(match[1], match[2]))
        elif (match := re.match(r"\s+MIG .*\(UUID: (\S+)\)", line)) and gpus:
            gpus[-1] = replace(gpus[-1], instances=(*gpus[-1].instances, match[1]))
    return gpus


def visible_gpus(environ: Mapping[str, str]) -> list[str]:
    """Return ids (index, GPU-… or MIG-…) of the GPUs in ``environ["CUDA_VISIBLE_DEVICES"]``, in its order.

    Read as CUDA does: the first unknown word ends the list, a GPU named twice empties it.
    """
    words = environ.get(VISIBLE)
    if words is not None and words.strip() in ("", "-1"):
        return []
    installed = installed_gpus()
    if words is None:
        return [word for index, gpu in enumerate(installed) for word in gpu.instances or (str(index),)]
    ids: dict[str, str] = {}
    for word in (word.strip() for word in words.split(",")):
        device = _named(word, installed)
        if device is None:
            break
        if device in ids.values():
            return []
        ids[word] = device
    return list(ids)


def count_gpus() -> int:
    """Return how many GPUs this process can use: visible ones, if the driver fits the installed torch."""
    if os.environ.get(VISIBLE) == "":
        return 0  # without the seconds that torch takes to load
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # why_no_gpu gives the reason
        usable = torch.cuda.is_available()  # device_count alone would accept a driver that is too old
    return int(torch.cuda.device_count()) if usable else 0


def why_no_gpu(environ: Mapping[str, str]) -> str:
    """Return why ``count_gpus`` is 0, and what to do about it."""
    installed = installed_gpus()
    if not installed:
        try:
            listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False, timeout=60)
        except (OSError, subprocess.SubprocessError):
            return "no GPU is visible: there is no NVIDIA driver (nvidia-smi cannot be run)"
        output = " ".join((listing.stdout + listing.stderr).split())[:200] or "nothing"
        return f"no GPU is visible: nvidia-smi says: {output}"
    if not visible_gpus(environ):
        return (
            f"{VISIBLE}={environ[VISIBLE]} hides every GPU of this machine; unset it, or name some of "
            f"{', '.join(map(str, range(len(installed))))} (each once) or their UUIDs"
        )
    import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} is a build for CPUs; run: bash bash/setup.sh --gpu"
    if too_old := _driver_fault(int(torch.version.cuda.partition(".")[0])):
        return too_old
    try:
        torch.cuda.init()
    except (AssertionError, RuntimeError) as error:
        return f"torch {torch.__version__} cannot start CUDA with driver {driver()}: {' '.join(str(error).split())}"
    return f"torch {torch.__version__} finds no GPU with driver {driver()}"


def check_gpus_are_used() -> None:
    """Raise UserError if GPUs are visible but torch can use none; for work that uses a GPU if there is one.

    With torch's CPU build, which was a choice, print one line on stderr instead.
    """
    if count_gpus() or not visible_gpus(os.environ):
        return
    import torch

    reason = why_no_gpu(os.environ)
    if torch.version.cuda is not None:
        raise UserError(f"{reason}; {VISIBLE}= (empty) computes on the CPU")
    if "RANK" not in os.environ:
        print(f"this computes on the CPU: {reason}", file=sys.stderr, flush=True)


def peak_of(name: str) -> float | None:
    """Return the FLOP/s of a GPU in dense bfloat16, by its name; None if unknown."""
    words = set(name.replace("-", " ").split())
    models = [] if words & OTHER_PEAKS else sorted(words & PEAKS.keys())
    return PEAKS[models[0]] if models else None


def gpu_share() -> float:
    """Return the fraction of the GPU's memory for this process: an equal one for each lane on the GPU."""
    return 1 / max(1, int(os.environ.get(LANES_PER_GPU) or 1))


def driver() -> str:
    """Return the version of the NVIDIA driver, such as 580.82.07; empty without one."""
    shown = _nvidia_smi("--query-gpu=driver_version", "--format=csv,noheader")
    return next(iter(shown.split()), "")


def check_driver() -> None:
    """Raise UserError if the driver is too old for the locked packages; a machine without a driver passes."""
    if installed_gpus() and (fault := _driver_fault(LOCKED_CUDA)):
        raise UserError(
            f"{fault}; or use a torch for CUDA 12, with engine=single: TORCH_INDEX_URL=https://download.pytorch.org/whl/"
            "cu126 bash bash/setup.sh --gpu; or the CPU: bash bash/setup.sh --cpu"
        )


def check_cuda() -> str:
    """Return a line on the GPUs that the installed torch finds. UserError if there are GPUs that it cannot use."""
    if count := count_gpus():
        import torch

        return f"CUDA {torch.version.cuda} works: {count} × {torch.cuda.get_device_name(0)}, driver {driver()}"
    reason = why_no_gpu(os.environ)
    if not installed_gpus():
        return f"CUDA was not tested ({reason}); it needs driver {OLDEST_DRIVER[LOCKED_CUDA]} or newer"
    raise UserError(reason)


def _driver_fault(cuda: int) -> str:
    """Return why the driver cannot run CUDA's major version ``cuda``; empty if it can, or if that is unknown."""
    oldest, version = OLDEST_DRIVER.get(cuda, "0"), driver()
    numbers = _numbers(version)  # empty if nvidia-smi does not say
    if not numbers or numbers >= _numbers(oldest)[: len(numbers)] or _cuda_of_driver() >= cuda:
        return ""
    return (
        f"the NVIDIA driver is {version}, and CUDA {cuda} (torch and vLLM of requirements-gpu.lock) needs {oldest} or "
        f"newer: update the driver, or put NVIDIA's package cuda-compat-{cuda}-0 on LD_LIBRARY_PATH"
    )


def _cuda_of_driver() -> int:
    """Return the major version of CUDA in libcuda, which a compatibility package may raise; 0 without libcuda."""
    version = ctypes.c_int()
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return 0
    return version.value // 1000


def _named(word: str, installed: Sequence[Gpu]) -> str | None:
    """Return the UUID of the GPU or MIG device for a word of CUDA_VISIBLE_DEVICES; None if it is unknown."""
    if word.isdecimal():
        return installed[int(word)].uuid if int(word) < len(installed) else None
    uuids = [uuid for gpu in installed for uuid in (gpu.uuid, *gpu.instances) if word[:4] in ("GPU-", "MIG-")]
    matching = [uuid for uuid in uuids if uuid.startswith(word)]
    return matching[0] if len(matching) == 1 else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _nvidia_smi(*words: str) -> str:
    """Return the output of nvidia-smi; empty if it is missing or fails."""
    try:
        return subprocess.run(["nvidia-smi", *words], capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def main(words: Sequence[str]) -> int:
    """Run a command of the module's docstring; return 0, or 2 after one line on stderr."""
    try:
        if list(words) == ["cuda"]:
            print(f"set-up: {check_cuda()}")
        else:
            check_driver()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return UserError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
