"""What a training run sends to wandb, read back from the files of real offline runs."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from offline_wandb import config, history, records

from compositionality.data.artefact import Recipe
from compositionality.errors import MissingPackageError, UserError
from compositionality.report.send_runs import SendSettings, check
from compositionality.train.boards import facts_of, markdown, tags_of
from compositionality.train.checks import check_loggers
from compositionality.train.log import TABLE, Completions, RunLog
from compositionality.train.run_folder import run_path, take_run_folder

ROOT = Path(__file__).parents[2]
TWO_STEPS = """
import sys
from pathlib import Path
from compositionality.train.log import RunLog
out, first = Path(sys.argv[1]), int(sys.argv[2])
out.mkdir(parents=True, exist_ok=True)
(out / "wandb.id").write_text("abc")
log = RunLog(out, [], "rl", {"optim": {"lr": 0.1}, "rollout": {"url": "http://me:hidden@host"}})
for step in (first, first + 1):
    log.keep_generations(step, [{"prompt": "f:a", "completion": f"a{step}", "reward": 1.0, "right": True}])
    log.write({"step": step, "actor/lr": step / 10, "val-core/string/acc/mean@1": 0.5, "actor/pg_loss": float("nan")})
log.close()
"""


OF_VERL = """
import sys
from verl.utils.tracking import Tracking, ValidationGenerationsLogger
from compositionality.train.verl.metrics import log_completions
tracking = Tracking("ours", "rl", ["wandb", "tensorboard", "file"], {"trainer": {}})
for step in map(int, sys.argv[1:]):
    ValidationGenerationsLogger("ours", "rl").log(["wandb", "tensorboard"], [("f:a", "of verl", 1.0)], step)
    log_completions(tracking, step, [{"prompt": "f:a", "completion": f"a{step}", "right": True}])
    tracking.log({"actor/lr": step / 10}, step)
log_completions(tracking, step + 1, [{"prompt": "f:a", "completion": "of a step that is not logged", "right": True}])
"""
VALIDATION_METRICS = dict.fromkeys(("val-core/*", "val-aux/*"), ("compute/flops", True, True))


def validation_metrics(run: Path) -> dict[str, tuple[str, bool, bool]]:
    """Return by pattern of names the x-axis, and whether last and largest value are the summary."""
    defined = [record.metric for record in records(run) if record.metric.glob_name]
    return {one.glob_name: (one.step_metric, one.summary.last, one.summary.max) for one in defined}


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs in one folder: steps 1 and 2, then, as after a kill, steps 3 and 4."""
    out = tmp_path_factory.mktemp("runs") / "study" / "seed3-split1" / "stage2-rl-level2"
    variables = {"WANDB_MODE": "offline", "WANDB_RUN_GROUP": "mine", "WANDB_TAGS": "own,seed3", "PROFILE": "tiny"}
    for first in (1, 3):
        subprocess.run(
            [sys.executable, "-c", TWO_STEPS, str(out), str(first)], cwd=ROOT, check=True, capture_output=True,
            env={**os.environ, **variables, "WANDB_PROJECT": "ours", "WANDB_ENTITY": "us", "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    return sorted(out.glob("wandb/offline-run-*"), key=lambda run: len(history(run)))


def test_a_run_says_what_it_is(offline: list[Path]) -> None:
    for run in offline:
        (found,) = [record.run for record in records(run) if record.HasField("run")]
        assert (found.entity, found.project, found.run_group, found.job_type) == ("us", "ours", "mine", "rl")
        assert (found.display_name, found.run_id) == ("rl-level2/seed3-split1", "abc")
        assert set(found.tags) == {"tiny", "rl-level2", "seed3", "split1", "own"}
        config = {item.key: json.loads(item.value_json) for item in found.config.update}
        assert config["optim"] == {"lr": 0.1}
        assert config["rollout"] == {"url": "http://***@host"}
        about = {"profile": "tiny", "study": "study", "seed": "3", "split": "1", "arm": "rl-level2"}
        assert about.items() <= config["facts"].items()
        assert config["facts"]["code"]


def test_a_run_folder_keeps_what_it_is_a_run_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it is sent as that later, by whomever: not as a run of the sender's profile and seed."""
    rows, out = tmp_path / "train.parquet", tmp_path / "composition" / "seed4" / "stage2-rl-level2"
    pq.write_table(pa.table({"data_source": ["string-trained-level2"]}), rows)
    monkeypatch.setenv("PROFILE", "smoke")
    take_run_folder(out, Recipe("train_grpo", {}, {"train": rows}), force=False)
    monkeypatch.setenv("PROFILE", "paper")
    monkeypatch.setenv("SEED", "9")
    facts = facts_of(out)
    known = {"profile": "smoke", "engine": "verl", "task": "string", "arm": "rl-level2", "seed": "4", "split": "0"}
    assert known.items() <= facts.items()
    assert tags_of(facts) == ["smoke", "verl", "string", "rl-level2", "seed4", "split0"]
    base = out.with_name("base")  # a pretrained model: what its run, beside it, kept of its start
    run_path(base).mkdir()
    (run_path(base) / "run.json").write_text('{"profile": "tiny", "engine": "single"}')
    assert tags_of(facts_of(base)) == ["tiny", "single", "base", "seed4", "split0"]


def test_a_resumed_run_sends_what_an_earlier_process_wrote(offline: list[Path]) -> None:
    before, after = ([row["_step"] for row in history(run) if "actor/lr" in row] for run in offline)
    assert (before, after) == ([1, 2], [1, 2, 3, 4])
    rows = [row for row in history(offline[1]) if "actor/lr" in row]
    assert [row["actor/lr"] for row in rows] == [0.1, 0.2, 0.3, 0.4]
    assert "step" not in rows[0], "wandb has its own"
    assert "actor/pg_loss" not in rows[0], "not a number: no value"


def test_completions_are_a_growing_table(offline: list[Path]) -> None:
    tables = [json.loads(path.read_text()) for path in sorted(offline[1].glob("files/media/table/val/*.json"))]
    assert tables[0]["columns"] == ["step", "prompt", "completion", "reward", "right"]
    assert [row for table in tables for row in table["data"]] == [  # those of the process that was killed, too
        [step, "f:a", f"a{step}", 1.0, True] for step in (1, 2, 3, 4)
    ]


def test_completions_with_other_keys_stand_below_their_own_columns(tmp_path: Path) -> None:
    """As after a restart with another version: cells were written by place, and of another number ended wandb."""
    completions = Completions(tmp_path)
    completions.grown(1, [{"prompt": "f:a", "right": True}])
    table = completions.grown(2, [{"right": False, "prompt": "f:b", "reward": 0.0}, {"prompt": "f:c"}])[TABLE]
    assert (table.columns, table.data) == (
        ["step", "prompt", "right"], [[1, "f:a", True], [2, "f:b", False], [2, "f:c", None]]
    )  # fmt: skip
    lines = markdown([{"prompt": "f:a"}, {"right": False, "prompt": "f:b"}]).splitlines()
    assert lines == ["| prompt | right |", "| --- | --- |", "| f:a |  |", "| f:b | False |"]


@pytest.mark.full
def test_completions_of_verl_are_the_same_growing_table(tmp_path: Path) -> None:
    """After a kill, and sent afterwards, by its own loggers in place of its own table."""
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

    run = tmp_path / "study" / "seed0" / "rl"
    run.mkdir(parents=True)
    for name, text in {
        "wandb.id": "abc",
        "recipe.json": '{"step": "train_grpo", "settings": {}, "inputs": {}}',
    }.items():
        (run / name).write_text(text)
    variables = {
        "WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(run), "PYTHONPATH": str(ROOT),
        "VERL_USE_EXTERNAL_MODULES": "compositionality.train.verl.metrics", "TENSORBOARD_DIR": str(run / "tensorboard"),
        "VERL_FILE_LOGGER_PATH": str(run / "metrics.jsonl"),
    }  # fmt: skip
    environment = {**os.environ, **variables}
    for steps in (("1", "2"), ("3", "4")):
        subprocess.run([sys.executable, "-c", OF_VERL, *steps], cwd=run, check=True, env=environment)
    subprocess.run([sys.executable, "-m", "compositionality", "wandb", str(run)], check=True, env=environment)
    killed, resumed, afterwards = sorted(run.glob("wandb/offline-run-*"))
    assert rows_of_tables(killed)[:2] == [[step, "f:a", f"a{step}", True] for step in (1, 2)]
    for sent in (rows_of_tables(resumed)[:4], rows_of_tables(afterwards)):
        assert sent == [[step, "f:a", f"a{step}", True] for step in (1, 2, 3, 4)]
    texts = EventAccumulator(str(run / "tensorboard")).Reload().Tensors("val/generations/text_summary")
    assert [event.tensor_proto.string_val[0].decode().splitlines()[2] for event in texts][:2] == [
        f"| f:a | a{step} | True |" for step in (1, 2)
    ]


def rows_of_tables(run: Path) -> list[list[Any]]:
    """The rows of the table of completions of one offline run, in the order in which it grew."""
    parts = sorted(run.glob("files/media/table/val/*.json"), key=lambda path: path.stat().st_mtime_ns)
    return [row for path in parts for row in json.loads(path.read_text())["data"]]


def test_completions_after_the_step_that_a_run_goes_on_from_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are sampled again: of the process that was killed the rows of metrics.jsonl are cut there, too."""
    monkeypatch.delenv("WANDB_MODE", raising=False)
    for name in ("metrics", "samples/generations"):
        (tmp_path / "samples").mkdir(exist_ok=True)
        steps = (1, 2) if name == "metrics" else (1, 2, 3)
        (tmp_path / f"{name}.jsonl").write_text("".join(f'{{"step": {step}, "x": {step}}}\n' for step in steps))
    run = RunLog(tmp_path, [], "rl", {})
    run.keep_generations(3, [{"x": 4}])
    run.close()
    kept = [json.loads(line) for line in (tmp_path / "samples/generations.jsonl").read_text().splitlines()]
    assert kept == [{"step": 1, "x": 1}, {"step": 2, "x": 2}, {"step": 3, "x": 4}]


def test_a_run_is_sent_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "composition" / "seed4" / "stage2-rl-level2"
    (run / "final").mkdir(parents=True)
    (run / "wandb.id").write_text("def")
    (run / "recipe.json").write_text(
        json.dumps({"step": "train_grpo_single", "settings": {"rollout.n": 4}, "inputs": {}})
    )
    rows = [{"step": step, "critic/score/mean": step / 4} for step in (1, 2, 3)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    with pytest.raises(UserError, match="wandb cannot be used: set WANDB_API_KEY, or WANDB_MODE=offline"):
        check(SendSettings([str(tmp_path)]))
    monkeypatch.setenv("WANDB_MODE", "offline")
    with pytest.raises(UserError, match="holds no training run"):
        check(SendSettings([str(run / "final")]))
    with monkeypatch.context() as patch:
        patch.setattr("compositionality.report.send_runs.find_spec", lambda _: None)
        with pytest.raises(UserError, match="wandb is not installed; run: pip install wandb"):
            check(SendSettings([str(tmp_path)]))
    (run / "run.json").write_text(json.dumps({"profile": "tiny", "seed": "4"}))
    done = subprocess.run(
        [sys.executable, "-m", "compositionality", "wandb", str(tmp_path)], cwd=ROOT, check=True, text=True,
        env={**os.environ, "PROFILE": "paper", "SEED": "9", "STUDY": "other", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert "sent as rl-level2/seed4" in done.stdout
    (sent,) = run.glob("wandb/offline-run-*")
    assert validation_metrics(sent) == VALIDATION_METRICS
    (found,) = [record.run for record in records(sent) if record.HasField("run")]
    assert (found.run_group, found.job_type, [*found.tags]) == (
        "composition", "rl", ["tiny", "rl-level2", "seed4", "split0"],
    )  # fmt: skip
    assert config(sent)["rollout"] == {"n": 4}
    about = {"profile": "tiny", "study": "composition", "seed": "4", "split": "0", "arm": "rl-level2"}
    assert about.items() <= config(sent)["facts"].items(), "its own, not the sender's"
    assert [row["critic/score/mean"] for row in history(sent) if "critic/score/mean" in row] == [0.25, 0.5, 0.75]


def test_wandb_that_cannot_start_is_left_out(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWO_STEPS, str(tmp_path / "run"), "1"], cwd=ROOT, check=True, text=True,
        env={**os.environ, "WANDB_MODE": "offline", "WANDB_BASE_URL": "notaurl", "PYTHONPATH": str(ROOT)},
        capture_output=True,
    )  # fmt: skip
    assert done.stdout.startswith("wandb is left out: ")
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 2


@pytest.fixture
def in_wandb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], RunLog]:
    """Open a run of RL in a folder, for wandb offline, in this process."""
    monkeypatch.setenv("WANDB_MODE", "offline")

    def start(folder: Path) -> RunLog:
        folder.mkdir(exist_ok=True)
        (folder / "wandb.id").write_text(folder.name)
        return RunLog(folder, [], "rl", {})

    return start


def test_two_runs_of_one_process_are_two_in_wandb(tmp_path: Path, in_wandb: Callable[[Path], RunLog]) -> None:
    runs = [in_wandb(tmp_path / name) for name in ("one", "two", "three")]
    assert [run.wandb.run.id for run in runs] == ["one", "two", "three"]
    for value, run in enumerate(runs):
        for step in (1, 2):
            run.write({"step": step, "actor/lr": float(value)})
    for run in runs:
        run.close()
    for value, name in enumerate(("one", "two", "three")):
        (sent,) = (tmp_path / name).glob("wandb/offline-run-*")
        assert [row["actor/lr"] for row in history(sent) if "actor/lr" in row] == [value, value]


@pytest.mark.parametrize("content", ["{", "[]", "", "1"])
def test_p18_damaged_facts_of_a_run_are_one_line(
    tmp_path: Path, in_wandb: Callable[[Path], RunLog], content: str
) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(UserError, match=r"run\.json: damaged .*; delete it"):
        in_wandb(tmp_path)


def test_wandb_that_fails_later_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def log(*_: object, **__: object) -> None:
        raise ConnectionError("its process has died")

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setattr("compositionality.train.boards.open_wandb", lambda *_, **__: SimpleNamespace(step=0, log=log))
    (tmp_path / "wandb.id").write_text("abc")
    run = RunLog(tmp_path, [], "rl", {})
    for step in (1, 2):
        run.write({"step": step, "actor/lr": 0.1})
    run.close()
    assert run.wandb.run is None
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A run of two steps with these loggers, in this process."""

    def run(*loggers: str) -> Path:
        monkeypatch.delenv("WANDB_API_KEY", raising=False)
        monkeypatch.delenv("WANDB_MODE", raising=False)
        settings = {"optim": {"lr": 0.1, "betas": [0.9]}, "rollout": {"url": "http://me:hidden@host", "limit": None}}
        log = RunLog(tmp_path / "seed3" / "rl", loggers, "rl", settings)
        for step in (1, 2):
            log.keep_generations(step, [{"prompt": "a|b", "completion": f"line\n{step}", "right": True}])
            log.write({"step": step, "actor/lr": step / 10, "actor/pg_loss": float("nan")})
        log.close()
        return tmp_path / "seed3" / "rl"

    return run


@pytest.mark.full
def test_tensorboard_has_curves_completions_and_settings(logged: Callable[..., Path]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator as Plugins
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    board = str(logged("tensorboard") / "tensorboard")
    curves = EventAccumulator(board).Reload()
    assert curves.Tags()["scalars"] == ["actor/lr"]
    assert [(point.step, round(point.value, 6)) for point in curves.Scalars("actor/lr")] == [(1, 0.1), (2, 0.2)]
    found = Plugins(board).Reload()
    texts = [event.tensor_proto.string_val[0].decode() for event in found.Tensors("val/generations/text_summary")]
    table = ["| prompt | completion | right |", "| --- | --- | --- |", "| a\\|b | line<br>2 | True |"]
    assert texts[1].splitlines() == table
    content = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    settings = HParamsPluginData.FromString(content).session_start_info.hparams
    assert settings["optim.lr"].number_value == 0.1
    assert settings["rollout.url"].string_value == "http://***@host"


@pytest.mark.full
def test_tensorboard_has_a_step_once_after_a_kill(tmp_path: Path) -> None:
    """What the killed process wrote beyond its last checkpoint goes, as it does from metrics.jsonl."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def go_on(rate: float, *steps: int) -> None:
        log = RunLog(tmp_path, ["tensorboard"], "rl", {})
        for step in steps:
            log.write({"step": step, "actor/lr": rate})
        log.close()

    go_on(0.1, 1, 2, 3, 4)
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:2]))
    go_on(0.2, 3, 4, 5)
    points = EventAccumulator(str(tmp_path / "tensorboard")).Reload().Scalars("actor/lr")
    found = [(point.step, round(point.value, 6)) for point in points]
    assert found == [(1, 0.1), (2, 0.1), (3, 0.2), (4, 0.2), (5, 0.2)]


@pytest.mark.full
def test_verls_loggers_serve_the_single_engine(
    logged: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its console for real; trackio, which is not installed here, by what verl calls of it."""
    began: list[dict[str, Any]] = []
    sent: list[tuple[dict[str, float], int]] = []
    none = SimpleNamespace(current_run=SimpleNamespace(get=lambda: None))
    trackio = SimpleNamespace(
        init=lambda **run: began.append(run), log=lambda values, step: sent.append((values, step)), finish=lambda: None,
        context_vars=none,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "trackio", trackio)
    logged("console", "trackio")
    assert "step:2 - actor/lr:0.2" in capsys.readouterr().out
    assert (began[0]["project"], began[0]["name"]) == ("compositionality", "rl/seed3")
    assert began[0]["config"]["optim.lr"] == 0.1
    assert sent == [({"actor/lr": 0.1}, 1), ({"actor/lr": 0.2}, 2)]


@pytest.mark.parametrize(
    ("name", "engine", "missing", "fix"),
    [
        ("tensorboard", "single", "tensorboard", "bash bash/setup.sh --tensorboard, or pip install tensorboard"),
        ("console", "single", "verl", "pip install -e '.[verl]' -c requirements-cpu.lock (or -gpu.lock)"),
        ("mlflow", "verl", "mlflow", "pip install mlflow"),
    ],
)
def test_p18_a_logger_that_is_not_installed_is_one_line(
    monkeypatch: pytest.MonkeyPatch, name: str, engine: str, missing: str, fix: str
) -> None:
    monkeypatch.setattr("compositionality.train.checks.find_spec", lambda package: package != missing or None)
    with pytest.raises(MissingPackageError, match=f"^trainer.logger={name}: .*{re.escape(fix)}$"):
        check_loggers(["file", "wandb", name], engine)
