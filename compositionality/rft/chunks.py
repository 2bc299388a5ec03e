"""Problem files cut into chunks, one for each iteration of rejection fine-tuning."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compositionality.data.artefact import (
    Recipe,
    check_target,
    exclusive,
    file_hash,
    is_done,
    is_to_be_checked,
    new_artefact,
    read_manifest,
)
from compositionality.data.json_files import read_text
from compositionality.data.parquet import write_table
from compositionality.data.problems import read_problems, row_at
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonEmptyStr, PositiveInt, Seed, check_ranges

STEP = "split_chunks"
SAMPLED = "training/sampled_completions"
"""Key of a row of metrics.jsonl: completions that a step of RL has sampled."""


@dataclass
class ChunkSettings:
    """Settings of ``split_chunks``; with a budget of completions the chunk size follows from it and ``n_samples``."""

    problems: NonEmptyStr = REQUIRED  # problem file (parquet)
    output: NonEmptyStr = REQUIRED  # folder for 0.parquet, 1.parquet …
    chunks: PositiveInt = 6  # how many
    rows_per_chunk: PositiveInt | None = None  # problems of a chunk; null: as many as there are
    rollout_budget: PositiveInt | None = None  # instead: completions of all chunks together, n_samples of a problem
    completions_of: str = ""  # instead: as many as this finished run of RL has sampled; rollout_budget overrides it
    n_samples: PositiveInt = 2  # for a budget: completions of a problem
    prompts_of: str = ""  # instead of all problems: those that this finished run of RL was asked, in its order
    seed: Seed = 42  # of the shuffle
    force: bool = False  # replace a result that was made from something else

    def size(self, n_problems: int) -> int:
        """Problems per chunk: given, or from the budget of rollouts, or as many as there are for all chunks."""
        if self.rows_per_chunk is not None and (self.rollout_budget or self.completions_of):
            raise UserError("give rows_per_chunk or rollout_budget, not both")
        rollouts = budget(self)
        if rollouts is not None:
            return matched_chunk_size(rollouts, self.chunks, self.n_samples)
        return self.rows_per_chunk if self.rows_per_chunk is not None else n_problems // self.chunks


def budget(settings: ChunkSettings) -> int | None:
    """Completions of all chunks together; None without a budget, or where the run that gives it is not finished.

    UserError for a run that does not say how many it has sampled.
    """
    run = Path(settings.completions_of)
    if settings.rollout_budget or not settings.completions_of or not (run / "final").is_dir():
        return settings.rollout_budget
    rows = map(json.loads, read_text(run / "metrics.jsonl", "run RL again").splitlines())
    counts = [row.get(SAMPLED) for row in rows if any(key.endswith("/grad_norm") for key in row)]
    if not counts or None in counts:
        raise UserError(f"{run}/metrics.jsonl: has no {SAMPLED} for every step; give rollout_budget=COMPLETIONS")
    return int(sum(counts))


def stream_of(settings: ChunkSettings) -> dict[str, Any] | None:
    """``seed`` and ``shuffle`` of the stream of prompts of the run prompts_of, and its first so many ``groups``.

    None without such a run, or where it is not finished. UserError for a run on other problems.
    """
    manifest = read_manifest(Path(settings.prompts_of, "final")) if settings.prompts_of else None
    if manifest is None:
        return None
    files = [digest for name, digest in manifest.inputs.items() if name.startswith("train_files")]
    if files != [file_hash(Path(settings.problems))] or manifest.settings.get("data.train_limit"):
        raise UserError(f"{settings.prompts_of}: was not trained on all of {settings.problems}, and on no other file")
    stream = {key: manifest.settings[f"data.{key}"] for key in ("seed", "shuffle")}
    return {**stream, "groups": manifest.facts["training"]["groups"]}


def order(settings: ChunkSettings, n_problems: int) -> list[int]:
    """Numbers of the rows that are cut into chunks, each once."""
    if (stream := stream_of(settings)) is None:
        return list(np.random.default_rng(settings.seed).permutation(n_problems))
    places = (row_at(place, n_problems, stream["seed"], shuffle=stream["shuffle"]) for place in range(stream["groups"]))
    return list(dict.fromkeys(places))


def split_chunks(settings: ChunkSettings) -> Path:
    """Order a problem file anew and write ``output``/0.parquet, 1.parquet …: consecutive slices, nothing shared."""
    check(settings)
    if settings.completions_of and budget(settings) is None:
        raise UserError(
            f"{settings.completions_of}: no finished run, and as many completions are to be sampled as it has; run it "
            "first, or give rollout_budget=COMPLETIONS"
        )
    if settings.prompts_of and stream_of(settings) is None:
        raise UserError(f"{settings.prompts_of}: no finished run, and the problems are to be its own; run it first")
    output = Path(settings.output)
    recipe = _recipe(settings)
    with exclusive(output):
        if is_done(output, recipe, force=settings.force):
            print(f"{output} is already there")
            return output
        problems = read_problems(Path(settings.problems))
        rows = order(settings, problems.num_rows)
        size = checked_size(settings, len(rows))
        chunks = [problems.take(rows[start : start + size]) for start in range(0, settings.chunks * size, size)]
        left = len(rows) - settings.chunks * size
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
    if dry and not settings.prompts_of and is_to_be_checked(settings.problems, dry=True):
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


def _recipe(settings: ChunkSettings) -> Recipe:
    shown = {key: value for key, value in asdict(settings).items() if key not in ("problems", "output", "force")}
    del shown["completions_of"], shown["prompts_of"]
    shown["rollout_budget"] = budget(settings)
    shown |= stream_of(settings) or {}
    if not settings.rollout_budget and not settings.completions_of:
        del shown["n_samples"]
    return Recipe(STEP, shown, {"problems": Path(settings.problems)})
