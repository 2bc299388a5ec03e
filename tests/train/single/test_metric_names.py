"""The README's lists of metrics, verl's names and ours, against those that a run writes."""

import re
from pathlib import Path

from runs import settings

from compositionality.train.engines import train_on_rank as train
from compositionality.train.metrics import read_metrics

README = Path(__file__).parents[3] / "compositionality/train/README.md"
ELSEWHERE = {  # of a GPU, of a reward function, of the other engine
    *("perf/mfu/actor", "perf/max_memory_allocated_gb", "perf/max_memory_reserved_gb", "reward/NAME/mean")
}


def expanded(pattern: str) -> list[str]:
    """Names of a pattern such as ``a/{b,c}``."""
    if not (braces := re.search(r"\{([^{}]*)\}", pattern)):
        return [pattern]
    parts = braces[1].split(",")
    return [name for part in parts for name in expanded(pattern[: braces.start()] + part + pattern[braces.end() :])]


def matches(pattern: str, name: str) -> bool:
    """Whether a name is meant by a pattern; SOURCE, REASON, NAME stand for any word, n and k for a number."""
    pattern = re.sub(r"\b[A-Z]{4,}\b", "[^/]+", pattern)
    return re.fullmatch(re.sub(r"(?<=@)[nk]\b", r"\\d+", pattern), name) is not None


def listed() -> tuple[list[str], list[str]]:
    """The names of verl, and of ours: the first column of the table."""
    section = re.search(r"\*\*Metrics\*\* have.*?\n\n(.*?)\n\n", README.read_text(), re.DOTALL)
    assert section
    words = section[0].partition("What does not exist")[0]
    columns = [line.split("|")[1] for line in section[1].splitlines()[2:]]
    verls, ours = (re.findall(r"`([^`]+)`", text) for text in (words, " ".join(columns)))
    return [name for one in verls for name in expanded(one)], [name for one in ours for name in expanded(one)]


def test_every_metric_of_a_run_is_listed_once_and_every_listed_one_is_written(small: Path, tmp_path: Path) -> None:
    words = ["algorithm.dynamic_sampling=true", "algorithm.max_generation_batches=20", "algorithm.updates_per_step=2"]
    words += ["algorithm.kl=k3", "algorithm.kl_coef=0.1", "trainer.steps=2", "trainer.eval_samples=2"]
    out = train(settings(small, tmp_path / "run", *words))
    written = {name for row in read_metrics(out / "metrics.jsonl") for name in row} - {"step"}
    verls, ours = listed()
    for name in written:
        assert sum(matches(pattern, name) for pattern in [*verls, *ours]) == 1, name
    unwritten = {pattern for pattern in [*verls, *ours] if not any(matches(pattern, name) for name in written)}
    assert unwritten == ELSEWHERE
