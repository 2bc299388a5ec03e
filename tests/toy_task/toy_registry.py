"""Registering a task as an installed package would: metadata with an entry point, in a folder on the path."""

from pathlib import Path

from compositionality.tasks.registry import GROUP

HERE = Path(__file__).parent


def register(site: Path, name: str = "digit_sorting", place: str = "digit_sorting:TASK") -> Path:
    """``site``, which registers the task ``name`` at ``place`` for every process that has it on its path."""
    metadata = site / f"{name}_{len(list(site.glob('*')))}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {metadata.name[:-13]}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {place}\n")
    return site
