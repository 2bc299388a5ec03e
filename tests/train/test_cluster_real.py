"""A real Ray cluster of two `ray start`s on this machine, from other directories: rollouts, SFT and GRPO through it."""

import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from assets import write_strings
from base_models import make_reasoning
from own_rows import OWN, write_own_rows
from sft_assets import make_model, make_rows, overrides

from compositionality.data.artefact import verify
from compositionality.errors import UserError
from compositionality.rollout import cluster
from compositionality.rollout.store import read_rollouts
from compositionality.train.launch import descendants, free_port, is_alive
from compositionality.train.metrics import FLOPS, PAPER_FLOPS, read_metrics

ROOT = Path(__file__).resolve().parents[2]
SECRET = "not-for-anybodys-eyes"
pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(1800)]


class Cluster:
    """Two nodes with one made-up GPU each; a node's directory is its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temp = Path("/tmp") / f"ray-{os.getpid()}"  # a socket's path has at most 107 characters
        self.address = f"127.0.0.1:{free_port()}"
        foreign = ("VERL", "VLLM", "WANDB", "RAY", "NNODES", "COMPOSITIONALITY")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self.variables = {**kept, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 2}
        self.variables |= {"PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
        self.variables["RAY_health_check_timeout_ms"] = "60000"  # other tests may keep the cores
        head = ("--head", f"--port={self.address.partition(':')[2]}", "--include-dashboard=false")
        self.nodes = [self.start("head", *head, f"--temp-dir={self.temp}")]
        self.wait(1)
        self.start_worker()
        self.wait(2)

    def start(self, name: str, *words: str) -> "subprocess.Popen[bytes]":
        place = self.folder / name
        place.mkdir(exist_ok=True)
        guard = [sys.executable, "-m", "compositionality.train.launch"]
        ray = [str(Path(sys.executable).parent / "ray"), "start", "--block", "--num-cpus=8", "--num-gpus=1"]
        variables = {**self.variables, "CUDA_VISIBLE_DEVICES": "-1"}
        with (self.folder / f"{name}.log").open("w") as log:
            return subprocess.Popen([*guard, *ray, *words], cwd=place, env=variables, stdout=log, stderr=log)

    def wait(self, nodes: int) -> None:
        command = [sys.executable, "-m", "compositionality.study.cluster", "wait", self.address, f"--nodes={nodes}"]
        subprocess.run([*command, "--gpus-per-node=1", "--minutes=10"], env=self.variables, check=True)

    def run(self, entry_point: str, *words: str, **variables: str) -> "subprocess.Popen[str]":
        """An entry point with RAY_ADDRESS; relative paths are those of the folder."""
        command = [sys.executable, str(ROOT / "examples" / f"{entry_point}.py"), *words]
        environment = {**self.variables, "RAY_ADDRESS": self.address, "NNODES": "2", **variables}
        return subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def done(self, entry_point: str, *words: str, code: int = 0, **variables: str) -> str:
        """What an entry point prints to its end."""
        process = self.run(entry_point, *words, **variables)
        printed, _ = process.communicate(timeout=900)
        assert process.returncode == code, printed[-3000:]
        return printed

    def lose_a_node(self) -> None:
        """SIGKILL to everything on the second node."""
        worker = self.nodes.pop()
        tree = [psutil.Process(worker.pid), *descendants(worker.pid)]
        for member in tree:
            with suppress(psutil.NoSuchProcess):  # it dies with one before it
                member.send_signal(signal.SIGKILL)
        worker.wait()

    def start_worker(self) -> None:
        self.nodes.append(self.start("worker", f"--address={self.address}"))

    def close(self) -> None:
        for node in reversed(self.nodes):
            node.terminate()
            node.wait(300)
        shutil.rmtree(self.temp, ignore_errors=True)


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    make_model(folder / "model")
    make_rows(folder / "rows.parquet", 64)
    write_strings(folder / "problems.parquet", 64)
    make_reasoning(folder / "reasoning", "qwq")
    write_own_rows(folder / "problems.parquet", folder / "own.parquet")
    nodes = Cluster(folder)
    try:
        yield nodes
    finally:
        nodes.close()


def test_rollouts_take_a_relative_model_path(two_nodes: Cluster) -> None:
    two_nodes.done(
        "collect_rollouts", "engine=ray", "model=model", "problems=problems.parquet", "output=rollouts", "max_tokens=8",
        "rows_per_shard=32", f"ray_address={two_nodes.address}", VLLM_CPU_KVCACHE_SPACE="1",
    )  # fmt: skip
    assert sum(table.num_rows for table in read_rollouts(two_nodes.folder / "rollouts")) == 64


def test_sft_runs_a_torchrun_on_each_of_two_nodes_and_goes_on_after_one_has_left(two_nodes: Cluster) -> None:
    out = two_nodes.folder / "sft"
    words = overrides(Path("model"), Path("rows.parquet"), Path("sft"), "trainer.epochs=25", "trainer.save_every=25")
    tracked = {"WANDB_MODE": "offline", "WANDB_RUN_GROUP": "the-group"}
    printed = ended_with_a_node(two_nodes, two_nodes.run("train_sft", *words, **tracked), out, "train/loss")
    assert re.match(r"error: SFT: the node \S+ left the Ray cluster during the run; ", printed.splitlines()[-1])
    assert not (out / "final").exists()
    two_nodes.start_worker()
    two_nodes.wait(2)
    two_nodes.done("train_sft", *words, **tracked)
    assert verify(out / "final").facts["step"] == 100
    assert len(list((out / "steps/global_step_100").glob("model_world_size_2_rank_*.pt"))) == 2
    assert [row["step"] for row in read_metrics(out / "metrics.jsonl") if "train/loss" in row] == [*range(1, 101)]
    assert "the-group" in wandb_text(out)


def ended_with_a_node(nodes: Cluster, process: "subprocess.Popen[str]", out: Path, key: str, tracked: str = "") -> str:
    """What a training prints that loses a node after its second step: exit code 2, and no process is left.

    ``tracked``: what wandb has on disk by then, which it writes every 15 seconds.
    """
    deadline = time.monotonic() + 900
    while sum(key in row for row in read_metrics(out / "metrics.jsonl")) < 2 or tracked not in wandb_text(out):
        assert process.poll() is None, process.communicate()[0][-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.2)
    below = descendants(process.pid)
    nodes.lose_a_node()
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 2, printed[-3000:]
    assert not any(map(is_alive, below))
    while left := [
        one for one in descendants(nodes.nodes[0].pid) if re.search(r"TaskRunner|NodePart|vLLM|torchrun", title(one))
    ]:
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
    return printed


def title(process: psutil.Process) -> str:
    """Its command line; empty if it has just ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def wandb_text(out: Path) -> str:
    """The offline runs of a run folder, as far as they are text."""
    found = out.glob("wandb/offline-run-*/run-*.wandb")
    return " ".join(path.read_bytes().decode("utf-8", errors="replace") for path in found)


def content_of(path: Path) -> bytes:
    """The bytes of a file; none if Ray has just deleted it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def grpo_words(*more: str) -> list[str]:
    return [
        "engine=verl", "run.device=cpu", "run.processes=1", "model.path=reasoning", "data.train_files=[own.parquet]",
        "data.val_files=[]", "trainer.output=grpo", "data.max_prompt_tokens=64", "rollout.max_tokens=64",
        "data.prompts_per_step=8", "rollout.n=4", "algorithm=dr_grpo", "algorithm.dynamic_sampling=false",
        "algorithm.drop_equal_groups=false", "algorithm.kl=k3", "algorithm.kl_coef=0.1", "optim.lr=1e-3",
        f"verl.reward.custom_reward_function.path={OWN}", "verl.reward.custom_reward_function.name=as_dict",
        "trainer.micro_batch_tokens=4096", "trainer.steps=500", "verl.trainer.total_epochs=99", *more,
    ]  # fmt: skip


def test_p18_what_a_cluster_cannot_give_is_said_before_the_start(
    two_nodes: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = two_nodes.done("train_grpo", *grpo_words("data.prompts_per_step=9"), code=2, NNODES="3").splitlines()[-1]
    assert re.search(r"error: run.nodes=3 × run.processes=1: .* has .*1 of 1, .*1 of 1; lower NNODES", last)
    assert not (two_nodes.folder / "grpo").exists()
    for name, value in two_nodes.variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=r"absent: the node .* does not see it; put the run folder"):
        cluster.check_cluster(two_nodes.address, 2, 1, two_nodes.folder, [two_nodes.folder / "absent"])
    monkeypatch.setenv("RAY_AUTH_TOKEN", "f" * 32)
    with pytest.raises(UserError, match="cannot be joined"):
        cluster.check_cluster(two_nodes.address, 1, 1, two_nodes.folder, [])


def test_dr_grpo_takes_rows_and_a_reward_of_ones_own_is_a_run_of_its_group_in_wandb_and_ends_with_a_node(
    two_nodes: Cluster,
) -> None:
    """Of a model whose template opens a thought in the prompt. The last test: it takes a node away."""
    out = two_nodes.folder / "grpo"
    tracked = {"WANDB_RUN_GROUP": "the-group", "WANDB_TAGS": "seed7", "WANDB_API_KEY": SECRET}
    process = two_nodes.run("train_grpo", *grpo_words(), WANDB_MODE="offline", **tracked)
    printed = ended_with_a_node(two_nodes, process, out, "actor/grad_norm", tracked["WANDB_RUN_GROUP"])
    assert re.match(r"error: GRPO: the node \S+ left the Ray cluster during the run; ", printed.splitlines()[-1])
    text = wandb_text(out)
    assert all(word in text for word in ("the-group", "seed7", (out / "wandb.id").read_text().strip()))
    written = {path: content_of(path) for path in (*out.rglob("*"), *two_nodes.temp.rglob("*")) if path.is_file()}
    assert len(written) > 10
    assert not [path for path, content in written.items() if SECRET.encode() in content]
    rows = read_metrics(out / "metrics.jsonl")[:2]
    assert [row["step"] for row in rows] == [1, 2]  # no validation
    for row in rows:  # 0.01 of a completion without "=", 0.02 of one with
        assert [row[f"critic/score/{name}"] for name in ("min", "max")] == pytest.approx([0.01, 0.02])
        assert 0.01 < row["critic/score/mean"] < 0.02
        assert math.isfinite(row["actor/grad_norm"])
    assert "actor/kl_loss" in rows[0]
    assert "critic/vf_loss" not in rows[0]
    assert rows[1]["actor/rollout_gap_mean"] < 1e-3  # vLLM got what the first update made
    forward, update, reference = 2, 6, 2
    assert rows[0][FLOPS] / rows[0][PAPER_FLOPS] == pytest.approx((forward + update + reference) / 6)
    assert rows[1][FLOPS] > rows[0][FLOPS]
