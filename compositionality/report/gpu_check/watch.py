"""The most memory that a command and its children hold while it runs, and the GPUs with it."""

import subprocess
import threading
from typing import Self

import psutil

EVERY = 0.5  # seconds


class MemoryWatch:
    """While it is open, looks at a process tree (resident memory) and, with ``gpus``, at every GPU's used memory."""

    def __init__(self, process: int, *, gpus: bool) -> None:
        self.host_bytes = 0
        self.gpu_mib = 0
        self._tree, self._gpus = psutil.Process(process), gpus
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def figures(self) -> dict[str, float]:
        """The peaks in GB (10⁹ bytes): of the process tree, of the fullest GPU."""
        found = {"peak_host_gb": round(self.host_bytes / 1e9, 3)}
        return found | ({"peak_gpu_gb": round(self.gpu_mib * 2**20 / 1e9, 2)} if self._gpus else {})

    def _watch(self) -> None:
        while not self._stop.wait(EVERY):
            self.host_bytes = max(self.host_bytes, tree_bytes(self._tree))
            if self._gpus:
                self.gpu_mib = max(self.gpu_mib, fullest_gpu())


def tree_bytes(process: psutil.Process) -> int:
    """Resident memory of a process and its descendants; what they share counts for each."""
    total = 0
    try:
        for one in [process, *process.children(recursive=True)]:
            total += one.memory_info().rss
    except psutil.Error:  # one of them has just ended
        pass
    return total


def fullest_gpu() -> int:
    """MiB in use on the fullest GPU, by whomever."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    return max((int(word) for word in shown.split() if word.isdecimal()), default=0)
