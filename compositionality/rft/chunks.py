"""Problem files cut into chunks, one for each iteration of rejection fine-tuning."""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from compositionality.data.artefact import Recipe, check_target, exclusive, is_done, is_to_be_checked, new_artefact
from compositionality.data.parquet import write_table
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonEmptyStr, PositiveInt, Seed, check_ranges

STEP = "split_chunks"


@dataclass
class ChunkSettings:
    """Settings of ``split_chunks``; with ``rollout_budget`` the chunk size follows from it and ``n_samples``."""

    problems: NonEmptyStr = REQUIRED  # problem file (parquet)
    output: NonEmptyStr = REQUIRED  # folder for 0.parquet, 1.parquet …
    chunks: PositiveInt = 6  # how many
    rows_per_chunk: PositiveInt | None = None  # problems of a chunk; null: as many as there are
    rollout_budget: PositiveInt | None = None  # instead: completions of all chunks together, n_samples of a problem
    n_samples: PositiveInt = 2  # for rollout_budget
    seed: Seed = 42  # of the shuffle
    force: bool = False  # replace a result that was made from something else

    def size(self, n_problems: int) -> int:
        """Problems per chunk: given, or from the budget of rollouts, or as many as there are for all chunks."""
        if self.rollout_budget is None:
            return self.rows_per_chunk if self.rows_per_chunk is not None else n_problems // self.chunks
        if self.rows_per_chunk is not None:
            raise UserError("give rows_per_chunk or rollout_budget, not both")
        return matched_chunk_size(self.rollout_budget, self.chunks, self.n_samples)


def split_chunks(settings: ChunkSettings) -> Path:
    """Shuffle a problem file and write ``output``/0.parquet, 1.parquet …: consecutive slices, nothing shared."""
    check(settings)
    output = Path(settings.output)
    recipe = _recipe(settings)
    with exclusive(output):
        if is_done(output, recipe, force=settings.force):
            print(f"{output} is already there")
            return output
        problems = read_problems(Path(settings.problems))
        size = checked_size(settings, problems.num_rows)
        chunks = cut(problems, settings.chunks, size, settings.seed)
        left = problems.num_rows - settings.chunks * size
        with new_artefact(output, recipe, {"rows": [size] * settings.chunks, "rows_left": left}) as partial:
            for number, chunk in enumerate(chunks):
                write_table(chunk, partial / f"{number}.parquet")
    print(f"{output}: {settings.chunks} chunks of {size:,} problems, {left:,} left over")
    return output


def check(settings: ChunkSettings, *, dry: bool = False) -> None:
    """UserError for settings that no problem file fits; in a dry run also if the file is there and has too few rows."""
    check_ranges(settings)
    settings.size(settings.chunks)
    check_target(Path(settings.output), _recipe(settings), force=settings.force)
    if dry and is_to_be_checked(settings.problems, dry=True):
        checked_size(settings, read_problems(Path(settings.problems)).num_rows)


def checked_size(settings: ChunkSettings, n_problems: int) -> int:
    """Problems per chunk. UserError if a file of ``n_problems`` has too few."""
    size = settings.size(n_problems)
    needed = settings.chunks * size
    if size < 1 or needed > n_problems:
        raise UserError(
            f"{settings.problems}: {n_problems} rows are too few for {settings.chunks} chunks of {max(size, 1)}"
            f" (needs {max(needed, settings.chunks)}); make more problems or ask for fewer"
        )
    return size


def matched_chunk_size(rollouts: int, n_chunks: int, samples_per_prompt: int) -> int:
    """Problems per chunk with which ``n_chunks`` iterations sample at most ``rollouts`` responses.

    RL samples steps x prompts per step x group size responses, groups that dynamic sampling dropped included.
    """
    size = rollouts // (n_chunks * samples_per_prompt)
    if size < 1:
        raise UserError(
            f"a budget of {rollouts} rollouts is too small for {n_chunks} chunks x {samples_per_prompt} samples"
        )
    return size


def cut(problems: pa.Table, n_chunks: int, size: int, seed: int) -> list[pa.Table]:
    """``n_chunks`` slices of ``size`` rows of the shuffled table, which has so many."""
    order = np.random.default_rng(seed).permutation(problems.num_rows)
    return [problems.take(order[start : start + size]) for start in range(0, n_chunks * size, size)]


def _recipe(settings: ChunkSettings) -> Recipe:
    shown = {key: value for key, value in asdict(settings).items() if key not in ("problems", "output", "force")}
    if settings.rollout_budget is None:
        del shown["n_samples"]
    return Recipe(STEP, shown, {"problems": Path(settings.problems)})
