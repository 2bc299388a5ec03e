"""The judge model: what it is asked, what it may say, and that a killed run asks nothing twice."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failure_runs import evaluation, first_line_only, problem_file, rows_of, settings, wrong_at_the_end
from played_server import Asked, Reply, playing

from compositionality.errors import UserError
from compositionality.evaluate.failures import find_failures
from compositionality.evaluate.llm_judge import NAMES, SCHEMA, agreement, judged_class, kappa_with_interval
from compositionality.tasks.diagnosis import FAILURES
from compositionality.train.launch import free_port

ROOT = Path(__file__).parents[2]
DISTINCT = 24
"""Questions about 32 responses: both answers of the lazy model to a problem are the same."""


class Judge:
    """Says of one line of trace "ignores_composition", of a doubled b what is no JSON, of all else "atomic_error"."""

    broken_after, held_after, delay, url = 10**9, 10**9, 0.0, ""
    seen: list[Asked]

    def __init__(self) -> None:
        self.released = threading.Event()

    def say(self, asked: Asked) -> Reply:
        time.sleep(self.delay)
        if len(self.seen) > self.held_after:
            self.released.wait()
        response = asked.body["messages"][1]["content"].split("-----")[1].strip("\n")
        named = json.dumps({"class": "atomic_error" if "\n" in response else "ignores_composition"})
        message = {"role": "assistant", "content": "atomic_error" if response.endswith("bb") else named}
        if len(self.seen) > self.broken_after:
            return Reply({"error": {"message": "no more"}}, 400)
        return Reply({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    for name in ("JUDGE_BASE_URL", "JUDGE_MODEL", "JUDGE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    judge = Judge()
    with playing(judge.say) as server:
        judge.seen, judge.url = server.seen, f"{server.url}/v1"
        yield judge


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("failures")
    models = {"lazy": first_line_only, "slip": wrong_at_the_end}
    evaluation(home / "run", problem_file(home / "heldout.parquet"), models)
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


def asked(home: Path, judge: Judge, **changes: Any) -> dict[str, Any]:
    options = {"judge": True, "judge_base_url": judge.url, "judge_model": "j", "judge_responses": 0, **changes}
    output = find_failures(settings(home, **options))
    return agreement(output / "judge.parquet")


def test_agreement_of_judge_and_program(home: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "secret")
    found = asked(home, judge)
    rows = rows_of(home / "out/judge.parquet")
    assert len(rows) == 32  # level 3: 8 problems, 2 samples, 2 models
    malformed = [row for row in rows if row["judge"] == "malformed"]
    assert found["malformed"] == len(malformed)
    assert found["n"] == 32 - len(malformed)
    same = [row["judge"] == row["program"] for row in rows if row not in malformed]
    assert found["agreement"] == sum(same) / len(same)
    assert found["low"] <= found["kappa"] <= found["high"]
    _, body, headers = judge.seen[0]
    assert headers["Authorization"] == "Bearer secret"
    assert (body["model"], body["temperature"]) == ("j", 0)
    assert body["response_format"]["json_schema"]["schema"] == json.loads(json.dumps(SCHEMA))
    question = body["messages"][1]["content"]
    assert "def func_" in question
    assert "True steps, in order:\n1. func_" in question


def test_what_was_asked_once_is_not_asked_again(home: Path, judge: Judge) -> None:
    judge.broken_after = 10
    with pytest.raises(UserError, match=r"http://127\.0\.0\.1:\d+/v1: .*no more"):
        asked(home, judge, judge_concurrency=1)
    assert not (home / "out/judge.parquet").exists()
    before = len(judge.seen)
    with (home / "out/judge_answers.jsonl").open("a") as stream:
        stream.write('{"key": "torn')
    judge.broken_after = 10**9
    first = asked(home, judge)
    assert len(judge.seen) == before + DISTINCT - 10
    assert asked(home, judge) == first
    assert asked(home, judge, force=True) == first
    assert len(judge.seen) == before + DISTINCT - 10


def test_p07_killed_and_run_again_it_asks_only_what_is_missing(home: Path, judge: Judge) -> None:
    judge.delay, judge.held_after = 0.05, 12  # so long it may take to see that there were eight
    words = [
        f"evaluation={home / 'run'}", f"problems=[heldout:{home / 'heldout.parquet'}]", f"output={home / 'out'}",
        "judge=true", f"judge_base_url={judge.url}", "judge_model=j", "judge_responses=0", "judge_concurrency=1",
    ]  # fmt: skip
    process = subprocess.Popen([sys.executable, "examples/failure_modes.py", *words], cwd=ROOT)
    while len(judge.seen) < 8 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    judge.released.set()
    assert len(judge.seen) < DISTINCT
    asked(home, judge)
    assert len(judge.seen) <= 1 + DISTINCT  # the one that was under way is asked twice
    kept = (home / "out/judge.parquet").read_bytes()
    (home / "out/judge_answers.jsonl").unlink()
    asked(home, judge, force=True)
    assert (home / "out/judge.parquet").read_bytes() == kept


def test_a_part_of_the_responses_is_always_the_same_part(home: Path, judge: Judge) -> None:
    assert asked(home, judge, judge_responses=5)["n"] <= 10
    part = {(row["arm"], row["problem"], row["sample"]) for row in rows_of(home / "out/judge.parquet")}
    assert len(part) == 10
    asked(home, judge)
    assert len(judge.seen) == DISTINCT
    assert part <= {(row["arm"], row["problem"], row["sample"]) for row in rows_of(home / "out/judge.parquet")}


def test_without_the_judge_its_findings_stay_as_long_as_they_fit(
    home: Path, judge: Judge, capsys: pytest.CaptureFixture[str]
) -> None:
    first = asked(home, judge)
    for changes, shown in (({}, True), ({"models": ["lazy"]}, False)):
        capsys.readouterr()
        find_failures(settings(home, **changes))
        assert (f"judge j: {first['n']} responses, agreement" in capsys.readouterr().out) == shown


@pytest.mark.parametrize(
    "answer",
    ["", "atomic_error", '{"class": null}', '{"class": ["atomic_error"]}', '["atomic_error"]', '{"class": "overlong"}',
     '{"class": "atomic_error", "why": 1}', '{"class": "atomic_err', "[" * 100_000],
)  # fmt: skip
def test_a_malformed_answer_is_never_a_class(answer: str) -> None:
    assert judged_class(answer) == "malformed"
    assert [judged_class(json.dumps({"class": name})) for name in NAMES] == NAMES
    assert set(FAILURES) - set(NAMES) == {"overlong", "unparsed"}


def test_p18_a_judge_without_address_is_one_line(home: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"set JUDGE_BASE_URL=.* and JUDGE_MODEL"):
        asked(home, judge, judge_base_url="")
    with pytest.raises(UserError, match="judge_concurrency=0: must be at least 1"):
        asked(home, judge, judge_concurrency=0)
    monkeypatch.setenv("JUDGE_BASE_URL", judge.url)
    monkeypatch.setenv("JUDGE_MODEL", "j")
    assert asked(home, judge, judge_base_url="", judge_model="")["n"]


def test_kappa_by_hand() -> None:
    # 20 both say a, 15 both say b, 5 + 10 disagree: 0.7 observed, 0.5 by chance
    assert kappa_with_interval(np.array([[[20, 5], [10, 15]]]))[0] == pytest.approx(0.4)
    assert kappa_with_interval(np.array([np.diag([3, 4])])) == (1, 1, 1)
    assert kappa_with_interval(np.array([[[5, 0], [0, 0]]])) == (None, None, None)  # chance alone agrees
    assert kappa_with_interval(np.zeros((0, 2, 2), np.int64)) == (None, None, None)


def test_its_interval_takes_problems_as_clusters() -> None:
    rng = np.random.default_rng(1)
    tables = np.stack([rng.multinomial(1, [0.4, 0.1, 0.1, 0.4]).reshape(2, 2) for _ in range(200)])
    _, low, high = kappa_with_interval(tables)
    assert low < 0.6 < high  # type: ignore[operator]
    _, wider, _ = kappa_with_interval(tables * 4)  # four answers to each problem that all agree: no more is known
    assert wider == low


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_real_vllm_server_keeps_to_the_classes(home: Path, tmp_path: Path, judge: Judge) -> None:
    from random_models import make_tiny_model

    model = make_tiny_model(tmp_path / "model")
    with served(model) as url:
        found = asked(home, judge, judge_base_url=f"{url}/v1", judge_model=str(model), judge_responses=8)
    assert found["n"] + found["malformed"] == 16
    assert found["n"] >= 8  # a random model may still run out of tokens in front of the key
    assert {row["judge"] for row in rows_of(home / "out/judge.parquet")} <= {*NAMES, "malformed"}


def served(model: Path) -> contextlib.AbstractContextManager[str]:
    """A vLLM server on a free port of this machine."""
    from vllm_server import serving

    port = free_port()
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--port", str(port)]
    options = ["--host", "127.0.0.1", "--enforce-eager", "--dtype", "float32", "--max-model-len", "8192"]
    environment = os.environ | {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}
    return serving([*command, *options], port, env=environment)  # type: ignore[no-any-return]
