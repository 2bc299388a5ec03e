"""Which environment variables reach Ray workers, and the checks of a cluster before a run starts."""

import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from compositionality.errors import UserError
from compositionality.rollout import cluster
from compositionality.rollout.cluster import (
    ClusterNode,
    check_answers,
    check_capacity,
    tracker_variables,
    worker_variables,
)
from compositionality.rollout.engines.vllm import RayEngine, VllmOptions
from compositionality.study.cluster import own_address


def test_keys_go_to_the_process_that_logs_alone() -> None:
    environment = {
        "WANDB_API_KEY": "k", "WANDB_RUN_GROUP": "g", "WANDB_SERVICE": "of another process", "https_proxy": "p",
        "HF_TOKEN": "t", "HF_HOME": "h", "VLLM_API_KEY": "v", "VLLM_USE_V1": "1", "NCCL_SOCKET_IFNAME": "ib0",
    }  # fmt: skip
    assert worker_variables(environment) == {"HF_HOME": "h", "VLLM_USE_V1": "1", "NCCL_SOCKET_IFNAME": "ib0"}
    assert tracker_variables(environment) == {"WANDB_API_KEY": "k", "WANDB_RUN_GROUP": "g", "https_proxy": "p"}


def test_p18_too_few_free_gpus_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    living = [ClusterNode("1", "a", 8, 8), ClusterNode("2", "b", 8, 4), ClusterNode("3", "c", 4, 4)]
    monkeypatch.setattr(cluster, "nodes", lambda: living)
    monkeypatch.setattr(cluster, "RELEASE_SECONDS", 0.0)
    check_capacity("head:1", 3, 4)
    for nodes, gpus in ((2, 8), (3, 8), (4, 1)):
        told = rf"run.nodes={nodes} × run.processes={gpus}: .*a 8 of 8, b 4 of 8, c 4 of"
        with pytest.raises(UserError, match=told):
            check_capacity("head:1", nodes, gpus)


def test_gpus_of_a_job_that_has_just_ended_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([[ClusterNode("1", "a", 8, 0)], [ClusterNode("1", "a", 8, 8)]])
    monkeypatch.setattr(cluster, "nodes", lambda: next(answers))
    check_capacity("head:1", 1, 8)


NO_NAMES = ("node..1:1", "a" * 64 + ":1")


@pytest.mark.parametrize("address", ["head", "head:port", ":1", *NO_NAMES])
def test_p18_an_address_without_a_cluster_is_one_line(address: str) -> None:
    told = "no Ray cluster answers at" if address in NO_NAMES else "is not HOST:PORT"
    with pytest.raises(UserError, match=told):
        check_answers(address)


@pytest.mark.parametrize("brackets", ["{}", "[{}]"])
def test_a_head_may_have_an_address_of_version_6(brackets: str) -> None:
    with socket.socket(socket.AF_INET6) as head:
        head.bind(("::1", 0))
        head.listen()
        check_answers(f"{brackets.format('::1')}:{head.getsockname()[1]}")


def test_the_address_of_a_head_is_the_one_that_others_can_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a name that nobody knows nor the loopback."""

    class Probe(socket.socket):
        def connect(self, target: tuple[str, int]) -> None:
            self.target = target[0]

        def getsockname(self) -> tuple[str, int]:
            return {"127.0.1.1": "127.0.1.1", "10.0.0.2": "10.0.0.1"}[self.target], 9

    def known(host: str, port: int, **_: object) -> list[object]:
        names = {"node2": "127.0.1.1", "node3": "10.0.0.2"}
        if host not in names:
            raise socket.gaierror(host)
        return [(socket.AF_INET, socket.SOCK_DGRAM, 0, "", (names[host], port))]

    monkeypatch.setattr(socket, "socket", Probe)
    monkeypatch.setattr(socket, "getaddrinfo", known)
    assert own_address(["node1", "node2", "node3"]) == "10.0.0.1"
    assert own_address([]) == "127.0.0.1"
    with pytest.raises(UserError, match="node1, node2: cannot be reached from this node"):
        own_address(["node1", "node2"])


def test_a_replica_gets_an_absolute_model_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's directory is that of ``ray start``."""
    ray = MagicMock(cluster_resources=dict)
    monkeypatch.setitem(sys.modules, "ray", ray)
    RayEngine(Path("models/base"), VllmOptions(max_model_len=8))
    start = ray.remote.return_value.options.return_value.remote
    assert start.call_args.args[0] == Path("models/base").absolute()


def test_p18_another_version_of_ray_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(*_: object, **__: object) -> None:
        raise RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.12.1")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    with pytest.raises(UserError) as error:
        cluster.join("auto")
    assert "Ray: 2.60.0 Python: 3.12.1; use the same .venv" in str(error.value)
