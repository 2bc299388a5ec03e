"""What every step promises, whatever it makes: run, again, changed, forced, killed at any write.

A start makes its result; the same start leaves it; a start with another setting is refused, names the setting and
changes nothing; ``--force`` replaces it. A start that is killed, at any of its writes, is finished by the same start,
with the bytes of one that was not. Dry runs and what lies in the way: test_refusals.py.
"""

import hashlib
import inspect
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from assets import taught
from steps import BASES, make_inputs, typed

from compositionality.config.verbs import MADE_BY, RESULTS, VERBS
from compositionality.data.artefact import read_manifest
from compositionality.train.metrics import read_metrics

PRETRAINING = "steps=4 packing.rows=2 packing.length=96 model.layers=1 save_every=1 warmup=1"
STEPS = {  # words beside those of a dry run; words that change the result, and the setting that a refusal names
    "train_grpo": ("rollout.max_tokens=16 trainer.steps=2 trainer.save_every=1", "optim.lr=1e-3", "optim.lr"),
    "train_sft": ("trainer.steps=3 trainer.save_every=1", "optim.lr=1e-3", "optim.lr"),
    "pretrain_tiny": (PRETRAINING, "learning_rate=1e-3", "learning_rate"),
    "collect_rollouts": ("n_samples=2", "n_samples=3", "n_samples"),
    "evaluate": ("", "max_tokens=6", "max_tokens"),
    "passk": ("", "n_samples=3", "n_samples"),
    "create_problems": ("", "count=16", "count"),
    "filter_rollouts": ("", "val_prompts=3", "val_prompts"),
    "filter_problems": ("", "min_correct_ratio=0.6 max_correct_ratio=1", "min_correct_ratio"),
    "split_chunks": ("", "chunks=3", "chunks"),
    "merge_data": ("", "allow_shared_prompts=true", "allow_shared_prompts"),
    "write_solutions": ("", "parts=2", "parts"),
    "make_domain_sample": ("", "count=72", "count"),
    "prepare_guru": ("", "holdout=2", "holdout"),
    "set_chat_template": ("", "", ""),
    "influence": ("", "projection.kind=sketch", "projection"),
}
FOLLOWS = {  # what is made anew when its inputs or settings are others, without being asked
    "audit_data": ("", "files=[TRAIN,OTHER]"),
    "failure_modes": ("", "levels=[2]"),
}
ELSEWHERE = {
    "claims": "tests/evaluate/test_claims_file.py",
    "draw_figure": "tests/report/test_figures.py",
    "export_checkpoint": "tests/train/test_export.py",
    "fit_scaling": "tests/analysis/test_scaling.py",
    "publish": "tests/report/test_publish.py",
    "report": "tests/report/test_page.py",
    "summarise_seeds": "tests/evaluate/test_seeds.py",
    "write_record": "tests/report/test_record.py",
}
NO_STEPS = {"gpu_check", "preflight", "run_study", "wandb"}
OF_TIMES = re.compile(r"metrics\.json|wandb\.id|sealed\.json|\.metadata|run\.json")
"""Files whose bytes hold times or a name drawn for the run; of metrics.jsonl rows are compared, but for their times."""
TIMES = ("perf/", "timing", "training/time")
KILLS = (0.3, 0.6, 0.9, 1.0)
"""Where a start is killed, as a share of its writes."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model that solves some of the problems, and its rollouts."""
    folder = tmp_path_factory.mktemp("contract")
    found = make_inputs(folder)
    (folder / "small").mkdir()
    taught(folder / "small", {"train": 60}, steps=150, feed_forward=64)
    found |= {"MODEL": folder / "small/model", "TRAIN": folder / "small/train.parquet", "ROLLOUTS": folder / "SOLVED"}
    collected = "model=MODEL problems=TRAIN output=ROLLOUTS n_samples=4 max_tokens=24"
    assert typed("collect_rollouts", collected, found) == 0
    return found


def written(folder: Path) -> dict[str, Any]:
    """The files of a folder with what identifies their bytes; of those with times their names alone."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix not in (".lock", ".owner")]
    return {str(path.relative_to(folder)): content(path) for path in files}


def content(path: Path) -> Any:
    if path.name == "metrics.jsonl":
        rows = read_metrics(path)
        return [{key: value for key, value in row.items() if not key.startswith(TIMES)} for row in rows]
    return "" if OF_TIMES.search(path.name) else hashlib.sha256(path.read_bytes()).hexdigest()


class Start:
    """One step with its output in a folder of the test."""

    def __init__(self, entry: str, words: str, places: Mapping[str, Path], folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.entry, self.folder = entry, folder
        self.words, self.places = f"{BASES[entry]} {words}", {**places, "OUT": folder / "new"}

    def __call__(self, *more: str) -> object:
        return typed(self.entry, self.words, self.places, *more)

    def in_a_child(self, kill_at: int | None) -> tuple[int, int]:
        """Start in a fork that is killed before its write ``kill_at``; its exit code, and how many writes it made."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            count = Writes(self.folder, kill_at, lambda number: os.write(write, number.to_bytes(4, "big")))
            sys.addaudithook(count)
            code = self()
            count.on = False
            os._exit(code if isinstance(code, int) else 0)
        os.close(write)
        ends, made = time.monotonic() + 300, 0
        while not (status := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > ends:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise AssertionError(f"{self.entry} hangs in a fork")
            time.sleep(0.01)
        while number := os.read(read, 4):
            made = int.from_bytes(number, "big")
        os.close(read)
        return os.waitstatus_to_exitcode(status[1]), made


class Writes:
    """Counts the writes below a folder, as Python's audit events tell of them; ends the process before one of them."""

    def __init__(self, folder: Path, kill_at: int | None, tell: Callable[[int], object]) -> None:
        self.folder, self.kill_at, self.tell = str(folder), kill_at, tell
        self.number, self.on, self.process = 0, True, os.getpid()

    def __call__(self, event: str, words: tuple[object, ...]) -> None:
        if not self.on or event not in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"):
            return
        if event == "open" and not (isinstance(words[2], int) and words[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        if os.getpid() != self.process or not str(words[0]).startswith(self.folder):
            return
        if self.number == self.kill_at:
            os.kill(self.process, signal.SIGKILL)
        self.number += 1
        self.tell(self.number)


def steps() -> Iterator[tuple[str, str]]:
    yield from ((entry, words) for entry, (words, *_) in (STEPS | FOLLOWS).items())


def test_every_verb_is_here_or_named() -> None:
    assert {*STEPS, *FOLLOWS, *ELSEWHERE, *NO_STEPS} == {*VERBS}
    assert not {*STEPS, *FOLLOWS} & {*ELSEWHERE}
    assert all((Path(__file__).parents[1] / path).is_file() for path in ELSEWHERE.values())


@pytest.mark.parametrize("entry", sorted(ELSEWHERE))
def test_a_verb_names_the_step_in_its_manifests(entry: str) -> None:
    """Of the other verbs the results themselves show it, below."""
    module = import_module(f"compositionality.{VERBS[entry].step.rpartition('.')[0]}")
    assert MADE_BY.get(entry, entry) == getattr(module, "STEP", entry)


def test_a_verb_is_declared_to_follow_its_inputs_where_its_step_does() -> None:
    """The dry run of a study goes by the declaration, a start by the call."""
    modules = {name: import_module(f"compositionality.{verb.step.rpartition('.')[0]}") for name, verb in VERBS.items()}
    calls = {name for name, module in modules.items() if "follows=True)" in inspect.getsource(module)}
    assert calls == {name for name, verb in VERBS.items() if verb.follows}


@pytest.mark.parametrize("entry", [*STEPS, *FOLLOWS])
def test_a_step_is_made_once_refused_if_changed_and_replaced_if_forced(
    entry: str, places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, change, *named = (STEPS | FOLLOWS)[entry]
    start, changed = (Start(entry, text, places, tmp_path) for text in (words, f"{words} {change}"))
    assert start() in (0, None)
    made = written(tmp_path)
    output = start.words.split("output=OUT")[1].partition(" ")[0]
    for ending in RESULTS.get(entry, [""]):
        manifest = read_manifest(tmp_path / f"new{output}{ending}")
        assert manifest
        assert manifest.step == MADE_BY.get(entry, entry)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.suffix not in (".lock", ".owner")}
    assert made
    assert start() in (0, None)
    assert {path: path.stat().st_mtime_ns for path in times} == times, "the same start writes nothing"
    assert written(tmp_path) == made
    if not change:
        return
    capsys.readouterr()
    if named:
        for more in ((), ("--dry-run",)):
            assert changed(*more) == 2
            assert named[0] in capsys.readouterr().err.strip().splitlines()[-1]
        assert written(tmp_path) == made
        assert changed("--force") in (0, None)
    else:
        assert changed() in (0, None)
    assert written(tmp_path) != made
    alone = Start(entry, f"{words} {change}", places, tmp_path / "alone")
    assert alone() in (0, None)
    forced = {name: text for name, text in written(tmp_path).items() if not name.startswith("alone/")}
    assert forced == written(tmp_path / "alone"), "nothing of the first is left"


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "words"), list(steps()), ids=lambda word: word.split(" ")[0] if word else "")
def test_p07_killed_at_any_write_the_same_start_finishes_it(
    entry: str, words: str, places: dict[str, Path], tmp_path: Path
) -> None:
    whole = Start(entry, words, places, tmp_path / "whole")
    code, count = whole.in_a_child(None)
    assert code == 0
    assert count, "its writes are seen"
    expected = written(whole.folder)
    for kill_at in sorted({round(share * (count - 1)) for share in KILLS}):
        start = Start(entry, words, places, tmp_path / f"killed{kill_at}")
        assert start.in_a_child(kill_at)[0] == -signal.SIGKILL, kill_at
        assert start() in (0, None), kill_at
        assert written(start.folder) == expected, kill_at
