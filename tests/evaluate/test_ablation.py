"""The ablation's table: what the bases were made of, beside what came of them."""

import json
from pathlib import Path

import pytest
from studies import evaluation, problem_file, right

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.errors import UserError
from compositionality.evaluate.ablation import AblationSettings, summarise_ablation

SOURCES = ("string-trained-level3", "string-heldout-level3")


def base(path: Path, step: str = "pretrain_tiny", **changes: float) -> Path:
    made = {
        "steps": 1000, "packing.rows": 8, "packing.length": 192, "mix.prior_chain": 0.2, "mix.visible_chain": 0.05,
        "mix.prior_functions": 34,
    }  # fmt: skip
    with new_artefact(path, Recipe(step, {**made, **changes}), {"parameters": 180288}) as partial:
        partial.mkdir()
        (partial / "config.json").write_text("{}")
    return path


def study(folder: Path, trained: int, heldout: int) -> Path:
    files = {name: folder.parent / f"{name}.parquet" for name in SOURCES}
    for name, path in files.items():
        if not path.exists():
            problem_file(path, {name: 100})
    outcomes = {
        model: {SOURCES[0]: right(share * trained // 10, 100), SOURCES[1]: right(share * heldout // 10, 100)}
        for model, share in (("stage1", 5), ("rl-level2", 10))
    }
    return evaluation(folder, files, outcomes)


@pytest.fixture
def settings(tmp_path: Path) -> AblationSettings:
    bases = [f"whole:{base(tmp_path / 'a')}", f"half:{base(tmp_path / 'b', steps=500)}"]
    whole = [f"whole/seed{seed}:{study(tmp_path / f'whole{seed}', 60 + 2 * seed, 40)}" for seed in (0, 1)]
    inputs = [*whole, f"half/seed0:{study(tmp_path / 'half', 50, 10)}"]
    return AblationSettings(bases, inputs, tmp_path / "ablation.json")


def test_rows_hold_what_was_changed_and_what_came_of_it(
    settings: AblationSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = json.loads(summarise_ablation(settings).read_text())["rows"]
    assert [(row["variant"], row["tokens"]) for row in rows] == [("whole", 1_536_000), ("half", 768_000)]
    found = {(one["group"], one["model"]): one["accuracy"] for one in rows[0]["accuracy"]}
    assert found == {
        ("trained", "stage1"): 0.305,
        ("trained", "rl-level2"): 0.61,
        ("heldout", "stage1"): 0.2,
        ("heldout", "rl-level2"): 0.4,
    }
    assert (rows[0]["seeds"], rows[1]["seeds"]) == (["seed0", "seed1"], ["seed0"])
    assert rows[0]["accuracy"][1]["values"] == [0.6, 0.62]
    assert ["half", "0.8", "25", "34", "180,288", "25"] in [
        line.split()[:6] for line in capsys.readouterr().out.splitlines()
    ]


def test_other_names_a_missing_level_and_a_base_from_elsewhere_are_refused(
    settings: AblationSettings, tmp_path: Path
) -> None:
    for change, message in (
        ({"bases": settings.bases[::-1]}, "the same names"),
        ({"inputs": [f"whole:{tmp_path}"]}, "is not VARIANT/SEED:PATH"),
        ({"level": 4}, "level 4"),
        ({"bases": [f"whole:{base(tmp_path / 'c', 'train_sft')}", settings.bases[1]]}, "made by train_sft"),
    ):
        with pytest.raises(UserError, match=message):
            summarise_ablation(AblationSettings(**{**settings.__dict__, **change}))


def test_p18_a_base_without_its_sizes_is_named(settings: AblationSettings, tmp_path: Path) -> None:
    made = tmp_path / "old"
    with new_artefact(made, Recipe("pretrain_tiny", {"steps": 4})) as partial:
        partial.mkdir()
    settings.bases[0] = f"whole:{made}"
    with pytest.raises(UserError, match=r"manifest\.json: settings: has no key 'packing\.rows'; run examples/pretrain"):
        summarise_ablation(settings)
