"""Commands for Ray clusters, used by bash/slurm and launchers: ``python -m compositionality.study.cluster COMMAND``.

``address --hosts HOST…`` prints the address of this machine that these hosts can reach; ``wait ADDRESS --nodes N
--gpus-per-node G --minutes M --hosts HOST…`` returns when that many nodes have joined; ``check ADDRESS --nodes N
--gpus-per-node G --folder OUT --paths PATH…`` checks whether a run can start there. A failure is one line, exit code 2.
"""

import argparse
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from compositionality.config.cli import exit_after
from compositionality.errors import UserError
from compositionality.rollout.cluster import check_answers, check_capacity, check_shared, join, nodes

POLL_SECONDS = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m compositionality.study.cluster", description=__doc__)
    questions = parser.add_subparsers(dest="question", required=True)
    for name in ("address", "wait", "check"):
        question = questions.add_parser(name)
        question.add_argument("--hosts", nargs="*", default=[])
        if name != "address":
            question.add_argument("address", help="HOST:PORT of ray start --head")
            question.add_argument("--nodes", type=int, default=1)
            question.add_argument("--gpus-per-node", type=int, default=0)
            question.add_argument("--minutes", type=float, default=10.0)
            question.add_argument("--folder", default=".", type=Path)
            question.add_argument("--paths", nargs="*", default=[], type=Path)
    arguments = parser.parse_args()
    if arguments.question == "address":
        print(own_address(arguments.hosts))
    elif arguments.question == "wait":
        wait(arguments)
    else:
        join(arguments.address)
        if arguments.gpus_per_node:
            check_capacity(arguments.address, arguments.nodes, arguments.gpus_per_node)
        check_shared(arguments.folder, arguments.paths)


def own_address(hosts: Sequence[str]) -> str:
    """Return the address of this machine in the network of ``hosts``. UserError if none of them can be reached.

    A machine often resolves its own name to 127.0.1.1, or has several networks. Without hosts: 127.0.0.1.
    """
    for host in hosts:
        with suppress(OSError, UnicodeError):
            family, kind, protocol, _, target = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(target)  # sends nothing
                address: str = probe.getsockname()[0]
            if not address.startswith("127."):
                return f"[{address}]" if ":" in address else address
    if hosts:
        raise UserError(f"{', '.join(hosts)}: cannot be reached from this node; check its name service")
    return "127.0.0.1"


def wait(arguments: argparse.Namespace) -> None:
    """Wait until ``nodes`` nodes with ``gpus_per_node`` GPUs each have joined. UserError after the given minutes."""
    deadline, joined = time.monotonic() + arguments.minutes * 60, False
    while True:
        with suppress(UserError):
            if not joined:
                check_answers(arguments.address)
                join(arguments.address)
                joined = True
        members = nodes() if joined else []
        ready = [node for node in members if node.gpus >= arguments.gpus_per_node]
        if len(ready) >= arguments.nodes:
            return
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_SECONDS)
    hosts = {node.host.partition(".")[0] for node in members}
    absent = [host for host in arguments.hosts if host.partition(".")[0] not in hosts]
    few = [f"{node.host} has {node.gpus} GPUs" for node in members if node not in ready]
    why = "; ".join([*([f"missing: {', '.join(absent)}"] if absent else []), *few])
    raise UserError(
        f"Ray cluster at {arguments.address}: {len(ready)} of {arguments.nodes} nodes with {arguments.gpus_per_node} "
        f"GPUs came up in {arguments.minutes:g} minutes{f' ({why})' if why else ''}; raise RAY_MINUTES, or check why "
        "ray start fails there"
    )


if __name__ == "__main__":
    exit_after(main)
