"""A cluster with a server that follows it, and the failures of both."""

import http.client
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

from prometheus_client.parser import text_string_to_metric_families

from generator.kube.resources import NODES, REPORTS
from generator.kube.transport import KubeRequest, Transport
from generator.telemetry.metrics import PREFIX
from tests.generator.scenes import Scene
from tests.kube.proxy import FaultProxy
from tests.kube.servers import Cluster, Generator, serving
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from tests.topology.synthetic.fabrics import swap
from topology.model.facts import Medium
from topology.synthetic import FabricKind, SyntheticSpec

DEADLINE_S = 150
HOSTS_EACH = 4
FABRIC = SyntheticSpec(FabricKind.DUAL_HOMED, 64, radix=8, medium=Medium.ETHERNET)
"""16 pairs of leaves with four hosts each, under 8 pairs of spines."""
Change = Callable[[dict[str, Any]], None]


class Day:
    """The current cabling, and the server that follows it through a proxy."""

    def __init__(self, cluster: Cluster, proxy: FaultProxy, generator: Generator) -> None:
        """Start with a cluster whose HyperNodes match the cabling."""
        self.cluster = cluster
        self.proxy = proxy
        self.generator = generator
        self.scene = cluster.scene
        self._pairs = self._untouched()
        opened = [row for row in generator.log if row["event"] == "port open"]
        self._metrics = str(opened[0]["address"])

    def move(self) -> None:
        """Exchange the cables of two hosts on leaves that no test has changed yet.

        A HyperNode that was written lately is not written again so soon, so each test gets its
        own.
        """
        one, other = next(self._pairs, ("", ""))
        assert one, "more tests than pairs of leaves: make the fabric larger"
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

    def metric(self, name: str, *labels: str) -> float:
        """Return a sample by the values of its labels."""
        connection = http.client.HTTPConnection(self._metrics, timeout=30)
        with closing(connection):
            connection.request("GET", "/metrics")
            page = connection.getresponse().read().decode()
        return next(
            sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
            if sample.name == PREFIX + name and tuple(sample.labels.values()) == labels
        )

    def findings(self) -> set[tuple[str, str]]:
        """Return the kind and the device of each current finding."""
        found: dict[tuple[str, str, str], bool] = {}
        for row in self.generator.log:
            if row["event"] in ("finding appeared", "finding gone"):
                key = (str(row["kind"]), str(row["device"]), str(row["port"]))
                found[key] = row["event"] == "finding appeared"
        return {key[:2] for key, stands in found.items() if stands}

    def rewrite(self, change: Change, names: Iterable[str] | None = None) -> None:
        """Change reports, as agents would."""
        wanted = None if names is None else set(names)
        for report in self.cluster.items(REPORTS):
            name = report["metadata"]["name"]
            if wanted is None or name in wanted:
                change(report)
                self.cluster.api.expect("PUT", REPORTS.path(name), report)

    def restore(self) -> None:
        """Write the reports of the current cabling for all present nodes, and delete others."""
        known = {one["metadata"]["name"] for one in self.cluster.items(NODES)}
        for name in sorted(set(self.scene.hosts) - known):
            self.cluster.add_node(name)
        for name in sorted(known - set(self.scene.hosts)):
            self.cluster.api.expect("DELETE", NODES.path(name))
        for report in self.cluster.items(REPORTS):
            self.cluster.api.expect("DELETE", REPORTS.path(report["metadata"]["name"]))
        self.cluster.report(self.scene)

    def home(self, node: str) -> str:
        """Return the HyperNode that a node is in."""
        return next(
            (one.name for one in self.cluster.hypernodes().values() if node in one.nodes), ""
        )

    def _untouched(self) -> Iterator[tuple[str, str]]:
        firsts = islice(self.scene.hosts, 0, None, HOSTS_EACH)
        return zip(firsts, firsts, strict=True)


@contextmanager
def day_of(api: ApiServer, folder: Path) -> Iterator[Day]:
    """Yield a day that has started well."""
    cluster = Cluster(api, Scene.of(folder / "scene", FABRIC))
    cluster.want(changeBudget={"windowSeconds": 0})  # the days of a module fall within one hour
    words = ("--metrics-listen", "127.0.0.1:0", "--period", "5s")
    try:
        with FaultProxy(api) as proxy, serving(cluster, folder, *words, proxy=proxy) as generator:
            cluster.await_tree()
            yield Day(cluster, proxy, generator)
    finally:
        api.revive()
        cluster.clear()


class Cutting:
    """Breaks every connection repeatedly within its context."""

    def __init__(self, proxy: FaultProxy, every_s: float) -> None:
        self._proxy = proxy
        self._every_s = every_s
        self._ended = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            self._proxy.cut()


def create_all(transport: Transport, path: str, objects: Iterable[object]) -> None:
    """Create many objects, several at once, over connections that stay open."""
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(
            lambda one: transport.ask(KubeRequest("POST", path, body=one), timeout_s=DEADLINE_S),
            objects,
        ):
            pass
