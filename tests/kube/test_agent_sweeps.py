"""Sweeps in a cluster: elected by the Fabric object, published in parts, withdrawn in place.

And versions side by side: what an older reader makes of a newer agent's report, and a newer agent
of an older schema.
"""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from agent.publish.kube.report_writer import REPORTS_PATH
from generator.ingest.claims import ReportClaims, build_claims
from generator.store.fabric_store import FabricStore
from runtime.retry import MAX_PERIODS
from tests.agent.fakes import printed
from tests.agent.nodes import SWEEP
from tests.kube.agent_nodes import ClusterAgent, ClusterNode, account_in, events
from tests.kube.conftest import CRDS, WRITER, connecting
from tests.kube.followers import command_store
from tests.kube.proxy import Fault, FaultProxy
from tests.lab.api_server import APPLY, ApiServer, find_assets
from tests.lab.wait import wait_until
from topology.model.claims import expand_claims
from topology.model.errors import CommandTimeout, ParseError
from topology.reports.fabric_status import (
    CountedSweep,
    FabricStatus,
    Sweeper,
    SweepRole,
    render_fabric,
)
from topology.reports.packed_reports import PackedReport

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

SUBNET = "fe80000000000000"
FABRIC = "/apis/toponaut.io/v1alpha1/fabrics"
REPORTS_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/neighborreports.toponaut.io"
BUSY = Fault(status=503)
PASSED_ON = Fault()
RARELY = SWEEP._replace(max_output_bytes=64 << 20, interval_s=1e6)
NUM_SWITCHES = 8_000
"""Enough for a sweep in parts."""


@pytest.fixture(scope="module")
def own_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server whose only Fabric object belongs to these tests."""
    folder = tmp_path_factory.mktemp("sweeps-api")
    with ApiServer(find_assets("programs"), folder, users=[WRITER]) as server:
        server.install_all(CRDS)
        allowed = {
            "metadata": {"name": WRITER},
            "rules": [{"apiGroups": ["toponaut.io"], "resources": ["*"], "verbs": ["get", "list"]}],
        }
        bound = {
            "metadata": {"name": WRITER},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": WRITER,
            },
            "subjects": [{"kind": "User", "name": WRITER}],
        }
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        server.expect("POST", f"{rbac}/clusterroles", allowed)
        server.expect("POST", f"{rbac}/clusterrolebindings", bound)
        yield server


class Reader:
    """The fabric that a generator derives from the reports of some nodes."""

    def __init__(self, store: FabricStore, *names: str) -> None:
        self._store = store
        self._names = names

    def read(self) -> tuple[PackedReport, ...]:
        found = self._store.read_reports().values
        return tuple(one for one in found if one.name.startswith(self._names))

    def problems(self) -> tuple[ParseError, ...]:
        """Return why reports cannot be used, also those of other nodes."""
        return self._store.read_reports().all_problems

    def take(self) -> ReportClaims:
        return build_claims(self.read())

    def switches(self) -> frozenset[str]:
        """Return the switches of the sweeps that count."""
        claims = expand_claims(self.take().claims)
        return frozenset(one.device.name for one in claims if one.device.name.startswith("sw"))


@pytest.fixture
def proxy(own_api: ApiServer) -> Iterator[FaultProxy]:
    with FaultProxy(own_api) as between:
        yield between


@pytest.fixture
def node(own_api: ApiServer) -> ClusterNode:
    namespace = account_in(own_api)
    return ClusterNode(own_api, namespace, f"n-{namespace}")


@pytest.fixture
def agent(node: ClusterNode, proxy: FaultProxy, tmp_path: Path) -> ClusterAgent:
    agent = ClusterAgent(node, tmp_path, url=proxy.url)
    agent.start(sweep=SWEEP)
    return agent


@pytest.fixture
def reader(own_api: ApiServer, node: ClusterNode) -> Iterator[Reader]:
    with connecting(own_api) as transport:
        store = command_store(transport)
        yield Reader(store, node.name)


def elect(api: ApiServer, node: str, *, counted: str | None = None) -> None:
    """Write the election of a node, and the node whose sweep counts."""
    sweeper = Sweeper(subnet=SUBNET, node=node, device="mlx5_0", port=1, role=SweepRole.ELECTED)
    sweeps = (CountedSweep(subnet=SUBNET, node=counted),) if counted else ()
    wanted = render_fabric(FabricStatus(sweepers=(sweeper,), sweeps=sweeps))
    api.request("POST", FABRIC, wanted)
    found = api.expect("GET", f"{FABRIC}/default")
    api.expect("PUT", f"{FABRIC}/default/status", found | {"status": wanted["status"]})


def fabric(seed: int, num_switches: int) -> tuple[bytes, frozenset[str]]:
    """Return a sweep of pairs of switches that hardly compresses, and their names."""
    drawn = Random(seed)  # noqa: S311 - made up
    names = [f"sw{drawn.getrandbits(192):048x}" for _ in range(num_switches)]
    guids = [
        f"{number:x}{drawn.getrandbits(44):011x}"
        for number in range(0x10000, 0x10000 + num_switches)
    ]
    records = [
        f'Switch 40 "S-{guids[at]}" # "{name}"\n[1] "S-{guids[at ^ 1]}"[1]\n'
        for at, name in enumerate(names)
    ]
    return "\n".join(records).encode(), frozenset(names)


def test_it_sweeps_if_elected_and_withdraws_once_another_sweep_counts(
    agent: ClusterAgent, node: ClusterNode, reader: Reader
) -> None:
    text, names = fabric(1, 2)
    agent.answers["ibnetdiscover"] = printed(text)
    elect(node.api, "another")
    agent.run(2)
    assert reader.switches() == frozenset()
    elect(node.api, node.name)
    agent.run(3)
    assert reader.switches() == names
    part = node.report(0)
    assert part["metadata"]["ownerReferences"][0]["uid"] == node.uid
    assert len(agent.writes()) == 5, "its report, and once more its status, and the part"
    elect(node.api, "another", counted=node.name)
    agent.run(2)
    assert reader.switches() == names, "until the other's counts"
    elect(node.api, "another", counted="another")
    agent.run(2)
    assert reader.take().unknown_subnets == ()
    assert (reader.switches(), reader.problems()) == (frozenset(), ())
    assert node.report(0)["spec"]["sweep"]["facts"] == ""
    before = len(agent.writes())
    agent.start(sweep=SWEEP)
    agent.run(5)
    assert len(agent.writes()) == before
    elect(node.api, node.name)
    agent.run(2)
    assert reader.switches() == names, "in the place that it had emptied"


def test_it_stays_elected_while_the_election_is_unreadable(
    agent: ClusterAgent, node: ClusterNode, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    agent.answers["ibnetdiscover"] = printed(fabric(1, 2)[0])
    elect(node.api, node.name)
    agent.run(2)
    before = len(agent.writes())
    proxy.fail("GET .*fabrics", *[BUSY] * 1000)
    agent.run(10)
    assert (len(agent.writes()), agent.outcomes["ib_sweep"]) == (before, "ok")
    assert events(caplog.records) == ["fabric unreadable"]


@pytest.mark.long
def test_a_reader_finds_a_whole_sweep_after_every_single_write(
    agent: ClusterAgent, node: ClusterNode, proxy: FaultProxy, reader: Reader
) -> None:
    (old, old_names), (new, new_names) = fabric(1, NUM_SWITCHES), fabric(2, NUM_SWITCHES)
    elect(node.api, node.name)
    agent.answers["ibnetdiscover"] = printed(old)
    agent.start(sweep=RARELY)
    agent.run(MAX_PERIODS)
    assert reader.switches() == old_names
    num_parts = node.report(0)["spec"]["sweep"]["of"]
    assert num_parts >= 2
    # One write of a part for each try: what is seen after it is seen by any reader.
    proxy.fail("PATCH .*sweep.*force", *[PASSED_ON, BUSY] * 100)
    agent.answers["ibnetdiscover"] = printed(new)
    agent.start(sweep=RARELY)
    seen, num_writes = [reader.switches()], len(agent.writes())
    while new_names not in seen[:-1] and len(seen) < 40:
        agent.run()
        if len(agent.writes()) != num_writes or seen[-1] == new_names:
            num_writes = len(agent.writes())
            seen.append(reader.switches())
    assert set(seen) == {old_names, new_names}
    assert seen.index(new_names) >= num_parts
    assert max(one for one in range(20) if _is_there(node, one)) < 2 * num_parts


def _is_there(node: ClusterNode, part: int) -> bool:
    return node.api.request("GET", f"{REPORTS_PATH}/{node.name}.sweep.{part}").status == 200


def newer_crd() -> dict[str, Any]:
    """Return the CRD of a possible next version, with one more field for each device."""
    crd: dict[str, Any] = yaml.safe_load((CRDS / "neighborreports.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    device = schema["properties"]["spec"]["properties"]["device"]
    device["properties"]["rackNumber"] = {"type": "integer"}
    return crd


def install(api: ApiServer, crd: dict[str, Any]) -> None:
    """Replace the kind's schema, and wait until the server uses it."""
    wanted = deepcopy(crd)
    found = api.expect("GET", REPORTS_CRD)
    wanted["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
    api.expect("PUT", REPORTS_CRD, wanted)


def newer_report(name: str) -> dict[str, Any]:
    """Return a report of a possible next version of the agent."""
    return {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "NeighborReport",
        "metadata": {"name": name},
        "spec": {"device": {"kind": "host", "name": name, "rackNumber": 7}},
    }


def test_an_older_generator_and_agent_take_a_newer_agents_report_without_its_new_field(
    agent: ClusterAgent, node: ClusterNode, reader: Reader
) -> None:
    path = f"{REPORTS_PATH}/{node.name}?fieldManager=toponaut-agent"
    install(node.api, newer_crd())
    try:
        wait_until(
            lambda: _refusal(node.api, path, newer_report(node.name)),
            deadline_s=60,
            what="the newer schema",
        )
        found = reader.read()
        assert ([one.name for one in found], reader.problems()) == ([node.name], ())
        assert len(reader.take().claims) == 1
        agent.answers["neighbors"] = CommandTimeout("late")
        agent.start()
        agent.run(3)
        assert agent.report.status.collectors
    finally:
        install(node.api, yaml.safe_load((CRDS / "neighborreports.yaml").read_text()))


def test_an_older_schema_refuses_a_newer_agent_so_that_kinds_are_upgraded_first(
    node: ClusterNode,
) -> None:
    path = f"{REPORTS_PATH}/{node.name}?fieldManager=toponaut-agent"
    wait_until(
        lambda: (
            "field not declared in schema" not in _refusal(node.api, path, newer_report(node.name))
        ),
        deadline_s=60,
        what="a refusal",
    )


def _refusal(api: ApiServer, path: str, body: object) -> str:
    return api.request("PATCH", path, body, content_type=APPLY).message
