"""Commands that write a cluster: one at a time, never beside a server, and never out of date."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.lease_record import LEASE_NAME
from generator.kube.resources import HYPERNODES, LEASES, RECORDS
from generator.kube.transport import KubeTransport
from generator.objects.tree_record import RECORD_NAME
from generator.outputs.hypernode.model import OWN_LABELS, HyperNode, Member, MemberType
from generator.store.cluster_store import ClusterStore
from generator.store.fabric_store import FabricStore
from generator.store.object_store import Fence
from runtime.retry import WaitContext
from tests.generator.scenes import PAIRS, Scene
from tests.kube.conftest import connecting
from tests.kube.followers import JITTER, HastyStop
from tests.kube.servers import Cluster, serving
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from topology.model.errors import ConfigError, KubeFenced

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

LEAF = HyperNode("command-leaf", 1, "leaf", (Member(MemberType.NODE, "n1"),), OWN_LABELS)
MORE = HyperNode(
    "command-leaf", 1, "leaf", (*LEAF.members, Member(MemberType.NODE, "n2")), OWN_LABELS
)
Open = Callable[[], FabricStore]
OpenFenced = Callable[[Fence], FabricStore]


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def open_store(volcano: ApiServer, notes: list[str]) -> Iterator[Open]:
    """Opens stores of their own connection, as two commands have."""
    with ExitStack() as stack:

        def opened() -> FabricStore:
            transport: KubeTransport = stack.enter_context(connecting(volcano))
            pace = WaitContext(HastyStop(), monotonic, JITTER)
            objects = ClusterStore(transport, pace=pace, on_note=notes.append)
            return FabricStore(objects, is_shared=True)

        yield opened
    volcano.request("DELETE", HYPERNODES.path(LEAF.name))
    volcano.request("DELETE", RECORDS.path(RECORD_NAME))


@pytest.fixture
def open_fenced(volcano: ApiServer) -> Iterator[OpenFenced]:
    """Opens stores that write for as long as a fence says."""
    with ExitStack() as stack:

        def opened(fence: Fence) -> FabricStore:
            transport: KubeTransport = stack.enter_context(connecting(volcano))
            pace = WaitContext(HastyStop(), monotonic, JITTER)
            return FabricStore(ClusterStore(transport, pace=pace, fence=fence))

        yield opened


def members(api: ApiServer) -> int:
    return len(api.expect("GET", HYPERNODES.path(LEAF.name))["spec"]["members"])


def give_lease(api: ApiServer, namespace: str, holder: str) -> None:
    path = f"{LEASES.path(LEASE_NAME, namespace=namespace)}?fieldManager=person&force=true"
    head = {"apiVersion": LEASES.api_version, "kind": LEASES.kind}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    api.apply(path, {**head, "metadata": {"name": LEASE_NAME}, "spec": spec})


def test_two_commands_never_write_at_once(open_store: Open, namespace: str) -> None:
    first, second = open_store(), open_store()
    with first.objects.hold_writes(namespace):
        with (
            pytest.raises(ConfigError, match="alone writes"),
            second.objects.hold_writes(namespace),
        ):
            pytest.fail("both write")
        first.put(LEAF)
    with second.objects.hold_writes(namespace):
        second.put(MORE)


def test_it_writes_nothing_after_the_lease_is_lost(
    volcano: ApiServer, open_store: Open, namespace: str
) -> None:
    store = open_store()

    def is_written() -> bool:
        try:
            return store.put(MORE) or store.put(LEAF)
        except KubeFenced:
            return False

    with store.objects.hold_writes(namespace):
        assert store.put(LEAF)
        give_lease(volcano, namespace, "somebody")
        wait_until(is_written, deadline_s=30, what="no write is sent")
    lease = volcano.expect("GET", LEASES.path(LEASE_NAME, namespace=namespace))
    assert lease["spec"]["holderIdentity"] == "somebody", "only a held lease is released"


def test_another_store_of_the_command_writes_within_the_same_lease(
    open_store: Open, open_fenced: OpenFenced, namespace: str
) -> None:
    with open_store().objects.hold_writes(namespace) as fence:
        outputs = open_fenced(fence)
        assert outputs.put(LEAF)
    with pytest.raises(KubeFenced):
        outputs.put(MORE)


def test_it_waits_for_the_lease_of_a_killed_program(
    volcano: ApiServer, open_store: Open, namespace: str, notes: list[str]
) -> None:
    give_lease(volcano, namespace, "killed")
    store = open_store()
    with store.objects.hold_writes(namespace):
        store.put(LEAF)
    assert notes == [f"waiting for the Lease {namespace}/{LEASE_NAME} of killed to expire"]
    assert members(volcano) == 1


def test_without_a_namespace_no_server_is_expected(
    volcano: ApiServer, open_store: Open, notes: list[str]
) -> None:
    store = open_store()
    with store.objects.hold_writes("absent"):
        store.put(LEAF)
    (note,) = notes
    assert "there is no namespace absent" in note
    assert members(volcano) == 1


@pytest.mark.xdist_group("kube serving")
def test_a_dry_run_reports_its_plan_and_apply_writes_nothing_beside_it(
    other_api: ApiServer, tmp_path: Path
) -> None:
    cluster = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    try:
        with serving(cluster, tmp_path, "--dry-run") as running:
            running.await_event("leadership gained")
            cluster.await_that(
                lambda: cluster.conditions().get("Ready") == "-DryRun", "the dry run is told"
            )
            planned = [row for row in running.log if row["event"] == "planned change appeared"]
            document = cluster.toponaut("plan", "-o", "json").document
            assert [row["hypernode"] for row in planned] == [row["name"] for row in document]
            ran = cluster.toponaut("apply", "--namespace", cluster.namespace)
            assert ran.code == ExitCode.USAGE, ran.err
            assert f"{running.name}_" in ran.err
            assert "alone writes" in ran.err
            assert cluster.hypernodes() == {}
        assert cluster.items(RECORDS) == []
    finally:
        cluster.clear()
