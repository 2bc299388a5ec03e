"""The code of compositionality/adapters/README.md on problems made here: right completions score 1, wrong ones 0."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from compositionality.config.problem_sets import create_problem_set
from compositionality.data.artefact import verify
from compositionality.data.create_problems import create_problems, settings_for
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.reward.judge import row_score
from compositionality.rft.solutions import SolutionSettings, write_solutions
from compositionality.types import Problem

ROOT = Path(__file__).parents[1]
README = (
    (ROOT / "compositionality/adapters/README.md").read_text().split("## Use it with other tools")[1].split("\n## ")[0]
)
PROBLEMS = [
    Problem("string-trained-level2", 2, "trained", "func_1func_2:abc", json.dumps({"ref_output": "cba"}), 0),
    Problem("countdown-clean-level2", 2, "countdown", "3, 4 → 12", json.dumps({"target": 12, "numbers": [3, 4]}), 1),
]
RIGHT = ['{"output": "cba"}', "<answer>3 * 4</answer>"]
WRONG = ['{"output": "abc"}', "<answer>3 + 4</answer>"]
TRUTHS = [problem.ground_truth for problem in PROBLEMS]
SOURCES = [problem.data_source for problem in PROBLEMS]


def code(tool: str, language: str = "python") -> str:
    """The code block of ``tool`` in ``language``."""
    section = README.split(f"**{tool}**")[1].split("\n**")[0]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found
    return found.group(1)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Files of the names that the README uses, in the current folder; their rows."""
    table = to_table(PROBLEMS, "test")
    for name in ("train", "validation", "test"):
        write_table(table, tmp_path / f"{name}.parquet")
    monkeypatch.chdir(tmp_path)
    return pd.read_parquet(tmp_path / "test.parquet")


@pytest.mark.full
def test_p12_verl_alone_loads_our_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    from hydra import compose, initialize_config_module
    from verl.trainer.ppo.reward import get_custom_reward_fn

    words = [word for word in code("verl", "bash").replace("\\\n", " ").split() if "=" in word]
    monkeypatch.chdir(ROOT)
    with initialize_config_module("verl.trainer.config", version_base=None):
        reward = get_custom_reward_fn(compose("ppo_trainer", words))
    assert reward is not None
    for answers, score in ((RIGHT, 1.0), (WRONG, 0.0)):
        rows = zip(SOURCES, answers, TRUTHS, strict=True)
        given = [reward(data_source=s, solution_str=a, ground_truth=t, extra_info={}) for s, a, t in rows]
        assert [row["score"] for row in given] == [score, score]


def test_row_scores(files: pd.DataFrame) -> None:
    """What the tasks of lm-eval and LightEval call; a judge that fails is no wrong answer."""
    for answers, value in ((RIGHT, 1.0), (WRONG, 0.0)):
        rows = zip(files.to_dict("records"), answers, strict=True)
        assert [row_score(row, text) for row, text in rows] == [value] * 2
    with pytest.raises(RuntimeError, match="the judge of countdown-clean-level2 failed"):
        row_score({"data_source": SOURCES[1], "reward_model": {"ground_truth": "no JSON"}}, RIGHT[1])


@pytest.mark.full
def test_a_folder_of_problem_files_is_a_dataset_of_hugging_face(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its manifests are hidden: ``load_dataset`` would take them for data."""
    datasets = pytest.importorskip("datasets")
    for split in ("train", "test"):
        output = str(tmp_path / "stage2_level2" / f"{split}.parquet")
        create_problems(settings_for("string", output=output, split=split, levels=[2], count=20))
    found = datasets.load_dataset(str(tmp_path / "stage2_level2"), cache_dir=str(tmp_path / "cache"))
    assert {split: rows.num_rows for split, rows in found.items()} == {"train": 20, "test": 20}


@pytest.mark.full
@pytest.mark.parametrize("name", ["string", "countdown", "igsm", "scaling"])
def test_the_folder_of_a_problem_set_is_one_too_with_the_rows_that_steps_write_below_it(
    name: str, tmp_path: Path
) -> None:
    """By the card that is written with it; one of others stays."""
    datasets = pytest.importorskip("datasets")
    folder, words = tmp_path / "d", [f"set={name}", "profile=smoke", f"output={tmp_path / 'd'}"]
    paths = create_problem_set(words)
    write_solutions(SolutionSettings(str(paths[0]), str(folder / "first_rft/data")))
    found = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    places = {path: path.relative_to(folder).with_suffix("").as_posix().removesuffix("/train") for path in paths}
    rows = {re.sub(r"\W", "_", place): verify(path).facts["rows"] for path, place in places.items()}
    assert {split: table.num_rows for split, table in found.items()} == rows
    sft = datasets.load_dataset(str(folder), "sft", split="train", cache_dir=str(tmp_path / "cache"))
    assert sft.num_rows == next(iter(rows.values()))
    (folder / "README.md").write_text("mine")
    create_problem_set(words)
    assert (folder / "README.md").read_text() == "mine"
