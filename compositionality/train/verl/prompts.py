"""verl's training data loader, replaced by the prompt stream of both engines: one number is its whole state."""

from collections.abc import Sequence
from typing import Any

from compositionality.data.problems import row_at


class PromptStream:
    """Endless passes over a data set, each in an order of its own. Takes the place of verl's training data loader,
    whose state cannot tell where in a partly used pass it stands when an epoch ends.
    """

    def __init__(self, rows: Sequence[dict[str, Any]], *, seed: int, shuffle: bool = True) -> None:
        self.rows = rows
        self.seed = seed
        self.shuffle = shuffle
        self.position = 0
        self.last_step: int | None = None  # of the run, once it is known

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, count: int) -> list[dict[str, Any]]:
        """The next ``count`` rows; each gets the key ``uid``, which sorts as the rows were taken."""
        taken = []
        for _ in range(count):
            row = dict(self.rows[row_at(self.position, len(self.rows), self.seed, shuffle=self.shuffle)])
            taken.append({**row, "uid": uid(self.position)})
            self.position += 1
        return taken

    def left(self, epochs: int) -> int:
        """Prompts that ``epochs`` passes still hold."""
        return epochs * len(self.rows) - self.position

    def state_dict(self) -> dict[str, int | None]:
        """The state to save."""
        return {"position": self.position, "last_step": self.last_step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Counterpart of ``state_dict``."""
        self.position = state["position"]
        self.last_step = state["last_step"]


def uid(position: int) -> str:
    """Name of a prompt of the stream: digits alone, of equal length, since verl splits names at ``_`` and we sort."""
    return f"{position:012d}"
