"""A cluster with a server that follows it, and the failures of both."""

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

from generator.kube.transport import KubeRequest, Transport
from tests.generator.scenes import Scene
from tests.kube.proxy import FaultProxy
from tests.kube.servers import OFTEN, PORT_OPTIONS, Cluster, Generator, Ports, serving
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from tests.topology.synthetic.fabrics import swap
from topology.model.facts import Medium
from topology.synthetic import FabricKind, SyntheticSpec

DEADLINE_S = 150
HOSTS_EACH = 4
FABRIC = SyntheticSpec(FabricKind.DUAL_HOMED, 64, radix=8, medium=Medium.ETHERNET)
"""16 pairs of leaves with four hosts each, under 8 pairs of spines."""
BUDGET = {"windowSeconds": 0}
"""The tests of a module fall within one hour, and each counts alone."""


class Day:
    """The current cabling, and the server that follows it through a proxy."""

    def __init__(self, cluster: Cluster, proxy: FaultProxy, generator: Generator) -> None:
        """Start with a cluster whose HyperNodes match the cabling."""
        self.cluster = cluster
        self.proxy = proxy
        self.generator = generator
        self.scene = cluster.scene
        firsts = islice(self.scene.hosts, 0, None, HOSTS_EACH)
        self._pairs = cycle(zip(firsts, firsts, strict=True))
        self.ports = Ports(generator)

    def next_pair(self) -> tuple[str, str]:
        """Return two hosts on leaves that no test has changed lately.

        A HyperNode that was written lately is not written again so soon.
        """
        return next(self._pairs)

    def move(self, pair: tuple[str, str] | None = None) -> None:
        """Exchange the cables of two hosts: of the next pair, or of these."""
        one, other = pair or self.next_pair()
        now = self.scene.damaged
        for port in ("eth0", "eth1"):
            now = swap(now, (one, port), (other, port))
        self.scene = Scene(self.scene.root, now)
        self.cluster.report(self.scene)

    def await_tree(self) -> None:
        """Wait until the HyperNodes match the current cabling."""
        self.cluster.await_tree(self.scene)

    def await_that(self, condition: Callable[[], object], what: str) -> None:
        """Wait until a condition holds."""
        wait_until(
            lambda: None if condition() else self.cluster.state(), deadline_s=DEADLINE_S, what=what
        )

    def await_line(self, event: str, text: str, since: int) -> None:
        """Wait for a log event that contains a text, after a number of lines."""

        def missing() -> object:
            rows = self.generator.log[since:]
            found = [row for row in rows if row["event"] == event and text in json.dumps(row)]
            return None if found else [row["event"] for row in rows[-10:]] or "silence"

        wait_until(missing, deadline_s=DEADLINE_S, what=f"{event}: {text}")

    @property
    def num_lines(self) -> int:
        return len(self.generator.log)

    def findings(self) -> set[tuple[str, str]]:
        """Return the kind and the device of each current finding."""
        found: dict[tuple[str, str, str], bool] = {}
        for row in self.generator.log:
            if row["event"] in ("finding appeared", "finding gone"):
                key = (str(row["kind"]), str(row["device"]), str(row["port"]))
                found[key] = row["event"] == "finding appeared"
        return {key[:2] for key, stands in found.items() if stands}

    def home(self, node: str) -> str:
        """Return the HyperNode that a node is in."""
        found = self.cluster.hypernodes().values()
        return next(one.name for one in found if one.tier == 1 and node in one.nodes)


@contextmanager
def day_of(api: ApiServer, folder: Path) -> Iterator[Day]:
    """Yield a day that has started well."""
    cluster = Cluster(api, Scene.of(folder / "scene", FABRIC))
    cluster.want(changeBudget=BUDGET)
    try:
        with (
            FaultProxy(api) as proxy,
            serving(cluster, folder, *OFTEN, *PORT_OPTIONS, proxy=proxy) as generator,
        ):
            cluster.await_tree()
            yield Day(cluster, proxy, generator)
    finally:
        api.revive()
        cluster.clear()


def create_all(transport: Transport, path: str, objects: Iterable[object]) -> None:
    """Create many objects, several at once, over connections that stay open."""
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(
            lambda one: transport.ask(KubeRequest("POST", path, body=one), timeout_s=DEADLINE_S),
            objects,
        ):
            pass
