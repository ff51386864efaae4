"""How a replica does in a large cluster: python -m tests.bench.cluster.

etcd, the API server and `toponaut serve` are real programs and share this machine's cores. Nodes
and reports are there before the replica starts. A change is a port of one node that goes down:
one report, a finding, and no HyperNode.
"""

from __future__ import annotations

import http.client
import itertools
import json
import math
import re
import subprocess  # noqa: TID251 - the process is measured
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import click
from msgspec import structs

from generator.kube.resources import HYPERNODES
from generator.outputs.hypernode.forest import build_hypernode_tree
from generator.outputs.hypernode.model import parse_manifest
from generator.rpc.client import PlacementClient
from tests.bench.cluster_load import (
    list_sweeper,
    reports_of,
    sweeper_of,
    write_nodes,
    write_reports,
)
from tests.bench.measurement import whole_nodes
from tests.bench.process_status import PEAK, read_bytes
from tests.kube.conftest import CRDS
from tests.lab.api_server import ApiServer, find_assets, free_ports
from tests.lab.wait import wait_until
from topology.model.facts import Medium, PortState
from topology.model.tree import host_partitions
from topology.reports.neighbor_report import NeighborReport
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    derive_truth,
)

NUM_NODES: Final = 1000
"""Of every run of all benchmarks, within minutes. The bars are for 10,000 nodes."""
RAILS: Final = 8
RADIX: Final = 128
"""Ports of a switch at the rate of a host's: 51.2 Tb/s at 400 Gb/s. Of 64 ports three tiers join
65,536 HCAs, so 10,000 nodes of eight would be given a fourth tier and three times the switches."""
MAX_COLD_S: Final = 180.0
MAX_RSS_BYTES: Final = 300 << 20
MAX_REBUILD_S: Final = 1.0
MAX_SLOWER: Final = 3.0
"""A placement during a rebuild, to one at rest, at the 99th percentile."""
_DEADLINE_S: Final = 300.0


class Effort(NamedTuple):
    """How much is done to measure."""

    calls: int = 1000
    """For placements, at rest."""
    changes: int = 10
    """One after the other; even, so that in the end all is as it was."""


WHOLE: Final = Effort()


class Figures(NamedTuple):
    """One measurement."""

    num_nodes: int
    num_switches: int
    num_reports: int
    num_hypernodes: int
    cold_s: float
    """From the start of the program to the last HyperNode; nothing was known before."""
    peak_rss_bytes: int
    """Of the replica, in all that is measured here."""
    rebuild_s: float
    """Mean round after one report changed, without the wait for further changes."""
    rest_p99_s: float
    """A placement by gRPC while nothing changes."""
    busy_p99_s: float
    """The same while a report changes after every round."""

    @property
    def is_within(self) -> bool:
        """Whether everything is as quick and small as it is meant to be."""
        return (
            self.cold_s <= MAX_COLD_S
            and self.peak_rss_bytes <= MAX_RSS_BYTES
            and self.rebuild_s <= MAX_REBUILD_S
            and self.busy_p99_s <= MAX_SLOWER * self.rest_p99_s
        )


class Replica:
    """A running `toponaut serve --kube`."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        """Start it."""
        self._ready_file = folder / "ready"
        (self._metrics_port,) = free_ports(1)
        self._log = folder / "serve.log"
        words = ["--kubeconfig", str(api.kubeconfig()), "--namespace", "default"]
        words += ["--listen", "127.0.0.1:0", "--insecure-loopback"]
        words += ["--ready-file", str(self._ready_file)]
        words += ["--metrics-listen", f"127.0.0.1:{self._metrics_port}"]
        with self._log.open("wb") as stream:
            self._program = subprocess.Popen(
                [sys.executable, "-m", "generator", "serve", "--kube", *words],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )

    @property
    def address(self) -> str:
        """Where it answers calls."""
        return self._ready_file.read_text().strip()

    @property
    def peak_rss_bytes(self) -> int:
        """The most that it ever had in memory."""
        return read_bytes(PEAK, self._program.pid)

    def check(self) -> None:
        """Raise AssertionError where it has ended; says what it said last."""
        assert self._program.poll() is None, self._log.read_text()[-2000:]

    def rounds(self) -> tuple[int, float]:
        """Return how many rounds there were, and how long they took together.

        Raises:
            AssertionError: it has ended.
        """
        self.check()
        connection = http.client.HTTPConnection("127.0.0.1", self._metrics_port, timeout=30)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        name = "toponaut_generator_reconcile_duration_seconds"
        found = dict(re.findall(rf"^{name}_(count|sum) (\S+)$", page, re.MULTILINE))
        return int(float(found["count"])), float(found["sum"])

    def turns(self, until: int) -> Iterator[int]:
        """Yield numbers until there were so many rounds."""
        return itertools.takewhile(lambda _: self.rounds()[0] < until, itertools.count())

    def end(self) -> None:
        """End it."""
        self._program.kill()
        self._program.wait()


def measure_cluster(
    num_nodes: int, medium: Medium, *, say: Callable[[str], None], effort: Effort = WHOLE
) -> Figures:
    """Fill a server, start a replica, and change reports.

    Raises:
        AssertionError: the HyperNodes do not match the cables.
    """
    spec = SyntheticSpec(FabricKind.RAIL, num_nodes, rails=RAILS, radix=RADIX, medium=medium)
    damaged = build_undamaged(build_wiring(spec))
    with _filled_server(damaged, say) as (api, reports, folder):
        say("starting the replica")
        began = time.monotonic()
        replica = Replica(api, folder)
        try:
            num_hypernodes = _await_hypernodes(api, replica, damaged)
            cold_s = time.monotonic() - began
            say(f"{num_hypernodes} HyperNodes after {cold_s:.1f} s; calling at rest")
            with PlacementClient(replica.address, 30) as client:
                rest = _call(client, iter(range(effort.calls)))
                say("changing reports, and calling meanwhile")
                rebuild_s, busy = _change(api, replica, client, reports[:1] * effort.changes)
            return Figures(
                num_nodes,
                len(damaged.wiring.switches),
                len(reports),
                num_hypernodes,
                cold_s,
                replica.peak_rss_bytes,
                rebuild_s,
                _p99(rest),
                _p99(busy),
            )
        finally:
            replica.end()


@contextmanager
def _filled_server(
    damaged: DamagedFabric, say: Callable[[str], None]
) -> Iterator[tuple[ApiServer, list[NeighborReport], Path]]:
    with tempfile.TemporaryDirectory(prefix="toponaut-bench-") as place:
        folder = Path(place)
        with ApiServer(find_assets("programs"), folder) as api:
            for folder in (CRDS, find_assets("crds")):
                api.install_all(folder)
            reports = list(reports_of(damaged))
            say(f"writing {len(damaged.wiring.hosts)} nodes and {len(reports)} reports")
            write_nodes(api, [host.name for host in damaged.wiring.hosts])
            list_sweeper(api, sweeper_of(damaged))
            write_reports(api, reports)
            yield api, reports, folder


def _await_hypernodes(api: ApiServer, replica: Replica, damaged: DamagedFabric) -> int:
    """Wait until all HyperNodes are there, hold them against the truth, and count them."""
    truth = derive_truth(damaged)
    wanted = len(truth.domains)
    path = f"{HYPERNODES.path()}?limit=1"

    def missing() -> int:
        replica.check()
        page = api.expect("GET", path)
        listed = page["metadata"].get("remainingItemCount", 0) + len(page["items"])
        return int(wanted - listed)

    wait_until(missing, deadline_s=_DEADLINE_S, what="HyperNodes")
    items = api.expect("GET", HYPERNODES.path())["items"]
    head = {"apiVersion": HYPERNODES.api_version, "kind": HYPERNODES.kind}
    found = build_hypernode_tree([parse_manifest({**one, **head}) for one in items]).tree
    assert host_partitions(found) == host_partitions(truth), "the HyperNodes are not as cabled"
    return wanted


def _change(
    api: ApiServer,
    replica: Replica,
    client: PlacementClient,
    reports: Sequence[NeighborReport],
) -> tuple[float, list[float]]:
    """Return the mean of the rounds after changes, and the seconds of calls meanwhile."""
    num_before, spent_s = replica.rounds()
    seconds: list[float] = []
    for number, report in enumerate(reports):
        write_reports(api, [_altered(report, is_down=number % 2 == 0)])
        seconds += _call(client, replica.turns(until=num_before + number + 1))
    num_after, after_s = replica.rounds()
    return (after_s - spent_s) / (num_after - num_before), seconds


def _altered(report: NeighborReport, *, is_down: bool) -> NeighborReport:
    """Return a report whose first port is down and has no neighbor, or the original report."""
    if not is_down:
        return report
    first, *others = report.spec.ports
    down = structs.replace(first, state=PortState.DOWN, neighbors=())
    spec = structs.replace(report.spec, ports=(down, *others))
    return structs.replace(report, spec=spec)


def _call(client: PlacementClient, turns: Iterator[int]) -> list[float]:
    """Ask for places, a small gang and a large one in turn; return the seconds of each call."""
    asked = [whole_nodes(count, unit="nvidia.com/gpu") for count in (4, 64)]
    seconds = []
    for turn in turns:
        began = time.perf_counter()
        placement = client.place(asked[turn % len(asked)])
        seconds.append(time.perf_counter() - began)
        assert placement.is_feasible, placement
    return seconds


def _p99(seconds: list[float]) -> float:
    return sorted(seconds)[math.ceil(len(seconds) * 0.99) - 1]


def text(found: Figures) -> str:
    """Return the figures as lines."""
    slower = found.busy_p99_s / found.rest_p99_s
    return (
        f"{found.num_nodes} nodes, {found.num_switches} switches, {found.num_reports} reports, "
        f"{found.num_hypernodes} HyperNodes in a cluster:\n"
        f"  all HyperNodes {found.cold_s:.1f} s after the start (at most {MAX_COLD_S:g} s)\n"
        f"  {found.peak_rss_bytes / 2**20:.0f} MiB at most (bar {MAX_RSS_BYTES >> 20} MiB)\n"
        f"  {found.rebuild_s:.2f} s a round after a change (at most {MAX_REBUILD_S:g} s)\n"
        f"  placement p99 {found.rest_p99_s * 1e3:.1f} ms at rest, {found.busy_p99_s * 1e3:.1f} ms "
        f"during changes: {slower:.1f} x (at most {MAX_SLOWER:g} x)"
    )


@click.command()
@click.option("--nodes", default=NUM_NODES, show_default=True)
@click.option(
    "--medium",
    type=click.Choice([Medium.INFINIBAND.value, Medium.ETHERNET.value]),
    default=Medium.ETHERNET.value,
    show_default=True,
    help="Ethernet: switches report too. InfiniBand: one node sweeps.",
)
@click.option("--check", is_flag=True, help="Fail where a bar is missed.")
@click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def main(nodes: int, medium: str, output: str, *, check: bool) -> None:
    """Print how a replica does in a cluster of many nodes, on the real API server."""

    def say(what: str) -> None:
        click.echo(what, err=True)

    found = measure_cluster(nodes, Medium(medium), say=say)
    click.echo(json.dumps(found._asdict(), indent=2) if output == "json" else text(found))
    if check and not found.is_within:
        raise click.ClickException("a bar is missed")


if __name__ == "__main__":
    main()
