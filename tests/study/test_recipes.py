"""Seeds of one study were made by one recipe: they may differ in seeds, and in nothing else."""

from pathlib import Path

import pytest

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.errors import UserError
from compositionality.study.arms import runs_of_seeds
from compositionality.study.recipes import check_recipes


def made(folder: Path, name: str, settings: dict[str, object]) -> None:
    """A model folder, and a problem file, with these settings."""
    with new_artefact(folder / name / "final", Recipe("train", settings)) as partial:
        partial.mkdir()
    with new_artefact(
        folder / f"{name}.parquet", Recipe("problems", {"count": 7, "seed": len(folder.name)})
    ) as partial:
        partial.write_text("rows")


def test_seeds_that_differ_in_more_than_their_seed_are_refused(tmp_path: Path) -> None:
    variables = {"DATA_DIR": f"{tmp_path}/d", "CKPT_DIR": f"{tmp_path}/c", "SEED": "0", "SEEDS": "2"}
    for end, seed in (("", 0), ("-seed1", 1)):
        made(tmp_path / f"c{end}", "rl", {"optim.lr": 1e-3, "data.seed": seed, "trainer.steps": 100})
    check_recipes(variables)
    for end, n in (("", 1), ("-seed1", 2)):  # what follows from RL's run
        made(tmp_path / f"c{end}", "stage2-rl-level2-random", {"entropies": [n], "rollout_budget": n})
        made(tmp_path / f"c{end}", "stage2-rft-updates-iteration1", {"trainer.steps": n, "trainer.tokens": n})
    made(tmp_path / "c-seed1", "rft", {"optim.lr": 2e-3})
    check_recipes(variables)
    made(tmp_path / "c", "rft", {"optim.lr": 1e-3})
    with pytest.raises(UserError, match=r"c-seed1/rft/final: made with optim.lr=0.002, but .*c/rft/final with 0.001: "):
        check_recipes(variables)


def test_test_problems_have_one_seed(tmp_path: Path) -> None:
    variables = {"DATA_DIR": f"{tmp_path}/d", "CKPT_DIR": f"{tmp_path}/c", "REPLICATES": "20:61 21:62"}
    for seed in (20, 21):
        made(tmp_path / f"d-seed{seed}-split{seed + 41}", "validation", {"split": "validation", "seed": seed})
    check_recipes(variables)
    for seed in (20, 21):
        made(tmp_path / f"d-seed{seed}-split{seed + 41}", "test", {"split": "test", "seed": seed})
    with pytest.raises(UserError, match=r"test/final: made with seed=21, but .* with 20"):
        check_recipes(variables)


def test_replicates_are_compared_with_what_their_splits_share(tmp_path: Path) -> None:
    variables = {"DATA_DIR": f"{tmp_path}/d", "CKPT_DIR": f"{tmp_path}/c", "REPLICATES": "20:61 21:62"}
    made(tmp_path / "c-seed20", "base", {"steps": 10, "seed": 20})
    made(tmp_path / "c-seed21", "base", {"steps": 11, "seed": 21})
    with pytest.raises(UserError, match=r"c-seed21/base/final: made with steps=11"):
        check_recipes(variables)
    (tmp_path / "c-seed20" / "base" / "metrics.jsonl").write_text("")
    assert runs_of_seeds(variables) == [f"c-seed20-base:{tmp_path}/c-seed20/base"]
