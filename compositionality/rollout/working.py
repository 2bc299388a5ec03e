"""The persistent folder in which a collection grows, so that a killed run can go on."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.data.artefact import publish, remove, write_text
from compositionality.errors import UserError
from compositionality.rollout.shards import ShardPlan, shard_name, write_shard

Identity = tuple[str, str, dict[str, str]]


class WorkingFolder:
    """``.OUT.working`` beside OUT: ``recipe.json`` says what is being made, ``shards/`` holds what is finished."""

    def __init__(self, output: Path, identity: Identity, plan: ShardPlan, *, force: bool = False) -> None:
        self._output, self._identity, self._plan = output, identity, plan
        self.path = working_path(output)
        self.shards = self.path / "shards"
        self._claim(force)
        self._drop_strays()

    def missing(self) -> list[int]:
        """Numbers of the shards that are still to be made; a damaged one is deleted and made again."""
        lost = [shard for shard in range(self._plan.n_shards) if not self._is_whole(shard)]
        for shard in lost:
            remove(self.shards / shard_name(shard))
        return lost

    def write(self, shard: int, table: pa.Table) -> None:
        """Add one finished shard."""
        write_shard(table, self.shards / shard_name(shard))

    def read(self, shard: int) -> pa.Table:
        """One finished shard."""
        return pq.read_table(self.shards / shard_name(shard))

    def publish(self, facts: dict[str, object]) -> None:
        """All shards are there: give them their manifest and put them in the output's place."""
        publish(self.shards, self._output, self._identity, facts)
        remove(self.path)

    def _claim(self, force: bool) -> None:
        recipe = json.dumps(self._identity, indent=1)
        note = self.path / "recipe.json"
        if note.is_file() and note.read_text() != recipe:
            if not force:
                raise UserError(
                    f"{self.path}: holds half-finished rollouts of other settings or inputs; "
                    f"run those again to finish them, or pass --force to drop them"
                )
            remove(self.path)
        self.shards.mkdir(parents=True, exist_ok=True)
        write_text(note, recipe)

    def _drop_strays(self) -> None:
        """Whatever a killed run left in the shards' folder that is no shard (an unfinished manifest)."""
        expected = {shard_name(shard) for shard in range(self._plan.n_shards)}
        for path in self.shards.iterdir():
            if path.name not in expected:
                remove(path)

    def _is_whole(self, shard: int) -> bool:
        path = self.shards / shard_name(shard)
        if not path.is_file():
            return False
        try:
            table = self.read(shard)
        except (pa.ArrowInvalid, OSError):
            return False
        found = zip(table["problem"].to_pylist(), table["sample"].to_pylist(), strict=True)
        return list(found) == self._plan.units(shard)


def working_path(output: Path) -> Path:
    """Where the half-finished rollouts of ``output`` lie."""
    return output.with_name(f".{output.name}.working")
