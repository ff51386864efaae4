"""Orders of `toponaut ranks` in a real launcher, and what they bring on links with a limit.

Hosts and leaves are network namespaces; the links between the leaves and the spine have a limit.
Open MPI starts its daemons by a script that enters the namespace of a host instead of by ssh.
"""

import json
import logging
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TextIO

import pytest

from generator.simulation.replay.replay import build_tree_of_shape
from tests.generator.scenes import run
from tests.lab.ring_member import TIMEOUT_S, address_of
from tests.lab.sandbox import Sandbox
from tests.lab.tools import require_tools
from tests.repository import ROOT
from topology.model.tree import render_tree

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

TREE = build_tree_of_shape("1x4x4")
"""Nodes node-1-1-1 to node-1-4-4: spine, leaves, nodes."""
CREATED = tuple(Random(1).sample(TREE.nodes, len(TREE.nodes)))  # noqa: S311 - no secret
"""Pods get ranks in the order in which they were created, on whatever node had room."""
UPLINK = ("tbf", "rate", "40mbit", "burst", "32kbit", "latency", "50ms")
SYSTEM_PYTHON = "/usr/bin/python3"
"""It may have the PyTorch of the distribution, which is too large to be a dependency."""
NUM_FLOATS = 1 << 19
ENTER = """#!/bin/sh
host=$1; shift
exec ip netns exec "$host" unshare -u sh -c "hostname $host; $*"
"""


class MpiHosts:
    """The hosts of `TREE`, on which mpirun starts programs."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        """Build the namespaces and their links."""
        self._sandbox = sandbox
        self.folder = folder
        self._enter = folder / "enter"
        self._enter.write_text(ENTER)
        self._enter.chmod(0o755)
        self._add_bridge("spine")
        for leaf in (row for row in TREE.domains if row.tier == 1):
            self._add_bridge(leaf.name)
            self._link("uplink", leaf.name, f"to-{leaf.name}", "spine")
            for end, namespace in (("uplink", leaf.name), (f"to-{leaf.name}", "spine")):
                self._run("tc", "qdisc", "add", "dev", end, "root", *UPLINK, namespace=namespace)
            for host in TREE.nodes_of(leaf):
                self._run("ip", "netns", "add", host)
                self._link("eth0", host, host, leaf.name)
                address = f"{address_of(host)}/16"
                self._run("ip", "address", "add", address, "dev", "eth0", namespace=host)
                for port in ("eth0", "lo"):
                    self._run("ip", "link", "set", port, "up", namespace=host)

    def mpirun(self, *words: object) -> str:
        """Run mpirun on the first host; return what all ranks print."""
        launch = ("mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", str(self._enter))
        first = TREE.nodes[0]
        inside = ("sh", str(self._enter), first, "exec", *launch, *map(str, words))
        return self._sandbox.run(*inside, timeout_s=2 * TIMEOUT_S)

    def _add_bridge(self, name: str) -> None:
        self._run("ip", "netns", "add", name)
        self._run("ip", "link", "add", "name", "br0", "type", "bridge", namespace=name)
        self._run("ip", "link", "set", "br0", "up", namespace=name)

    def _link(self, port: str, name: str, upper: str, bridge: str) -> None:
        """Connect a port of a namespace to the bridge of another one."""
        pair = ("type", "veth", "peer", "name", upper, "netns", bridge)
        self._run("ip", "link", "add", "name", port, "netns", name, *pair)
        self._run("ip", "link", "set", upper, "master", "br0", "up", namespace=bridge)
        if port != "eth0":
            self._run("ip", "link", "set", port, "master", "br0", "up", namespace=name)

    def _run(self, *argv: str, namespace: str = "") -> None:
        self._sandbox.run(*argv, namespace=namespace)


@pytest.fixture(scope="module")
def hosts() -> Iterator[MpiHosts]:
    """Sixteen hosts on four leaves."""
    require_tools("unshare", "nsenter", "ip", "tc", "mpirun", is_root_needed=True)
    # Below /tmp directly: a socket's path holds about a hundred characters.
    with TemporaryDirectory(prefix="ring-") as folder, Sandbox() as sandbox:
        yield MpiHosts(sandbox, Path(folder))


def write_best(folder: Path, form: str, nodes: Sequence[str]) -> Path:
    """Write the best order of nodes, as `toponaut ranks` prints it."""
    tree, file = folder / "tree.json", folder / form
    tree.write_text(json.dumps(render_tree(TREE)))
    file.write_text(run("ranks", "--hosts", ",".join(nodes), "--tree", tree, "-o", form).out)
    return file


def write_given(folder: Path, nodes: Sequence[str]) -> Path:
    """Write a rankfile with nodes as they are given."""
    file = folder / "given"
    file.write_text("".join(f"rank {rank}={node} slot=0\n" for rank, node in enumerate(nodes)))
    return file


SHOW = ("sh", "-c", "'echo $OMPI_COMM_WORLD_RANK $(hostname)'")


def read_ranks(printed: str) -> list[str]:
    """Return the hosts by rank."""
    rows = [line.split() for line in printed.splitlines()]
    return [host for _, host in sorted((int(rank), host) for rank, host in rows)]


def test_mpirun_starts_each_rank_where_the_rankfile_says(hosts: MpiHosts) -> None:
    file = write_best(hosts.folder, "rankfile", CREATED)
    printed = hosts.mpirun("-np", len(CREATED), "--rankfile", file, *SHOW)
    assert read_ranks(printed) == list(TREE.nodes)


def test_mpirun_numbers_ranks_in_the_order_of_the_hostfile(hosts: MpiHosts) -> None:
    chosen = [TREE.nodes[at] for at in (13, 2, 6, 3)]
    file = write_best(hosts.folder, "hostfile", chosen)
    printed = hosts.mpirun("-np", len(chosen), "--hostfile", file, *SHOW)
    assert read_ranks(printed) == [TREE.nodes[at] for at in (2, 3, 6, 13)]


def test_a_ring_is_faster_in_the_order_of_the_tree_than_in_that_of_creation(
    hosts: MpiHosts, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert compare_orders(hosts, time_ring) > 1.5


@pytest.mark.long
def test_gloo_is_faster_in_the_order_of_the_tree_than_in_that_of_creation(
    hosts: MpiHosts, caplog: pytest.LogCaptureFixture
) -> None:
    tried = subprocess.run([SYSTEM_PYTHON, "-c", "import torch"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("needs PyTorch: run apt-get install --no-install-recommends python3-torch")
    caplog.set_level(logging.INFO)
    assert compare_orders(hosts, time_gloo) > 1.5


def compare_orders(hosts: MpiHosts, time_order: Callable[[MpiHosts, Path], float]) -> float:
    """Return how many times as long the order of creation takes as that of the tree."""
    orders = (
        write_best(hosts.folder, "rankfile", CREATED),
        write_given(hosts.folder, CREATED),
    )
    ordered_s, created_s = (time_order(hosts, order) for order in orders)
    ratio = created_s / ordered_s
    log.info("%s: %.1f times as long in the order of creation", time_order.__name__, ratio)
    return ratio


def time_gloo(hosts: MpiHosts, rankfile: Path) -> float:
    """Return the seconds in which the slowest rank of gloo has the sum of all ranks."""
    path = hosts.folder / "gloo"
    path.unlink(missing_ok=True)
    member = (SYSTEM_PYTHON, "-m", "tests.lab.gloo_member", path, NUM_FLOATS)
    size = len(CREATED)
    settings = ("-x", "GLOO_SOCKET_IFNAME=eth0", "-x", f"PYTHONPATH={ROOT}")
    printed = hosts.mpirun("-np", size, "--rankfile", rankfile, *settings, *member)
    durations = [float(line) for line in printed.splitlines()]
    assert len(durations) == size
    return max(durations)


def time_ring(hosts: MpiHosts, rankfile: Path) -> float:
    """Return the seconds in which the slowest rank has the sum of all ranks."""
    size, durations = len(CREATED), list[float]()
    path = hosts.folder / "meeting"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as meeting:
        meeting.bind(str(path))
        meeting.listen(size)
        meeting.settimeout(TIMEOUT_S)
        host = Thread(target=hold_meeting, args=(meeting, size, durations), daemon=True)
        host.start()
        member = (sys.executable, "-m", "tests.lab.ring_member", path, NUM_FLOATS)
        hosts.mpirun("-np", size, "--rankfile", rankfile, *member)
        host.join(TIMEOUT_S)
    assert len(durations) == size
    return max(durations)


def hold_meeting(meeting: socket.socket, size: int, durations: list[float]) -> None:
    """Give all members the addresses of all ranks, let them start at once, collect their times."""
    members = [meeting.accept()[0] for _ in range(size)]
    files = [member.makefile("rw") for member in members]
    rows = sorted(json.loads(file.readline()) for file in files)
    _answer(files, [address for _, *address in rows])
    for file in files:
        file.readline()
    _answer(files, "start")
    durations += [float(file.readline()) for file in files]
    for member in members:
        member.close()


def _answer(files: Sequence[TextIO], message: object) -> None:
    for file in files:
        file.write(json.dumps(message) + "\n")
        file.flush()
