"""Writes of a former leader, and writes that conflict with other clients."""

from collections.abc import Iterator
from time import monotonic

import pytest

from generator.kube.resources import HYPERNODES, RECORDS
from generator.kube.transport import KubeTransport
from generator.objects.tree_record import (
    RECORD_NAME,
    RecentChanges,
    TreeRecord,
)
from generator.outputs.hypernode.model import OWN_LABELS, HyperNode, Member, MemberType
from generator.store.fabric_store import FabricStore
from generator.store.object_store import ForeignObject
from tests.generator.reconcile.cluster import tree_of
from tests.kube.conftest import WRITER
from tests.kube.followers import command_store, followed_store
from tests.kube.proxy import Fault, FaultProxy
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from topology.model.errors import KubeFenced, KubeUnavailable

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

LEAF = HyperNode("fenced-leaf", 1, "leaf", (Member(MemberType.NODE, "n1"),), OWN_LABELS)
MORE = HyperNode(
    "fenced-leaf", 1, "leaf", (*LEAF.members, Member(MemberType.NODE, "n2")), OWN_LABELS
)


class Fence:
    """How long writes may still arrive; set by the test."""

    left_s = 30.0

    def __call__(self) -> float:
        return self.left_s


@pytest.fixture
def fence() -> Fence:
    return Fence()


@pytest.fixture
def store(volcano: ApiServer, through: KubeTransport, fence: Fence) -> Iterator[FabricStore]:
    made = command_store(through, fence=fence)
    made.put(LEAF)
    yield made
    volcano.expect("DELETE", HYPERNODES.path(LEAF.name))


def members(api: ApiServer) -> int:
    return len(api.expect("GET", HYPERNODES.path(LEAF.name))["spec"]["members"])


def test_it_sends_nothing_after_losing_leadership(
    volcano: ApiServer, store: FabricStore, fence: Fence
) -> None:
    fence.left_s = 0.0
    before = volcano.writes_by(WRITER)
    with pytest.raises(KubeFenced, match="another replica may lead"):
        store.put(MORE)
    with pytest.raises(KubeFenced):
        store.remove(LEAF.name)
    with pytest.raises(KubeFenced):
        store.write_status({"generation": 1})
    assert volcano.writes_by(WRITER) == before


def test_it_waits_for_no_answer_beyond_its_leadership(
    volcano: ApiServer, store: FabricStore, fence: Fence, proxy: FaultProxy
) -> None:
    fence.left_s = 0.3
    proxy.fail("^PATCH", *[Fault(is_silent=True)] * 9)
    started = monotonic()
    with pytest.raises(KubeUnavailable):
        store.put(MORE)
    assert monotonic() - started < 20, "a request may last 30 s otherwise"
    assert members(volcano) == 1


def test_it_rereads_an_object_that_another_client_changed(
    volcano: ApiServer, store: FabricStore, through: KubeTransport, proxy: FaultProxy
) -> None:
    assert not store.put(LEAF)
    path = HYPERNODES.path(LEAF.name)
    told: list[int] = []

    class Meddling(Fence):
        """Change the object after it was read for a write, and before the write is sent."""

        def __call__(self) -> float:
            if not told:
                found = volcano.expect("GET", path)
                found["metadata"].setdefault("annotations", {})["seen"] = "yes"
                told.append(len(volcano.expect("PUT", path, found)))
            return self.left_s

    meddled = command_store(through, fence=Meddling())
    before = proxy.count("^PATCH")
    assert meddled.put(MORE)
    assert proxy.count("^PATCH") == before + 2, "the first one was refused"
    assert members(volcano) == 2
    assert volcano.expect("GET", path)["metadata"]["annotations"] == {"seen": "yes"}


@pytest.fixture
def no_record(volcano: ApiServer) -> Iterator[None]:
    volcano.request("DELETE", RECORDS.path(RECORD_NAME))
    yield
    volcano.request("DELETE", RECORDS.path(RECORD_NAME))


@pytest.mark.usefixtures("no_record")
def test_a_follower_that_lags_behind_decides_nothing(through: KubeTransport) -> None:
    """A new leader may not know yet what the last one decided a moment ago."""
    leader = command_store(through)
    leader.write_record(TreeRecord(tree_of([LEAF])))
    with followed_store(through) as follower:
        wait_until(lambda: not follower.objects.is_synced, deadline_s=30, what="a synced follower")
        stale = follower.read_record()
        assert stale.record == TreeRecord(tree_of([LEAF]))
        leader.read_record()
        leader.write_record(TreeRecord(tree_of([MORE]), RecentChanges({"n1": 1})))
        with pytest.raises(ForeignObject, match="another program decided"):
            follower.write_record(TreeRecord(tree_of([MORE])))
        wait_until(
            lambda: follower.read_record().record == stale.record,
            deadline_s=30,
            what="the decision of the leader",
        )
        assert follower.write_record(TreeRecord(tree_of([LEAF])))
        assert follower.write_record(TreeRecord(tree_of([MORE]))), "its own write is known at once"
