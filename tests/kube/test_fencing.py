"""Writes of a former leader, and writes that conflict with other clients."""

from collections.abc import Iterator
from time import monotonic

import pytest

from generator.kube.resources import HYPERNODES
from generator.kube.transport import KubeTransport
from generator.outputs.hypernode import HyperNode, Member, MemberType
from generator.store.cluster import ClusterStore
from runtime.retry import WaitContext
from tests.kube.conftest import WRITER
from tests.kube.followers import JITTER, HastyStop
from tests.kube.proxy import Fault, FaultProxy
from tests.lab.api_server import ApiServer
from topology.model.errors import KubeFenced, KubeUnavailable

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

LEAF = HyperNode("fenced-leaf", 1, "leaf", (Member(MemberType.NODE, "n1"),))
MORE = HyperNode("fenced-leaf", 1, "leaf", (*LEAF.members, Member(MemberType.NODE, "n2")))


class Fence:
    """How long writes may still arrive; set by the test."""

    left_s = 30.0

    def __call__(self) -> float:
        return self.left_s


@pytest.fixture
def fence() -> Fence:
    return Fence()


@pytest.fixture
def store(volcano: ApiServer, through: KubeTransport, fence: Fence) -> Iterator[ClusterStore]:
    made = ClusterStore(through, pace=WaitContext(HastyStop(), monotonic, JITTER), fence=fence)
    made.put(LEAF)
    yield made
    volcano.expect("DELETE", HYPERNODES.path(LEAF.name))


def members(api: ApiServer) -> int:
    return len(api.expect("GET", HYPERNODES.path(LEAF.name))["spec"]["members"])


def test_it_sends_nothing_after_losing_leadership(
    volcano: ApiServer, store: ClusterStore, fence: Fence
) -> None:
    fence.left_s = 0.0
    before = volcano.writes_by(WRITER)
    with pytest.raises(KubeFenced, match="another replica may lead"):
        store.put(MORE)
    with pytest.raises(KubeFenced):
        store.remove(LEAF.name)
    with pytest.raises(KubeFenced):
        store.write_status({"generation": 1}, None)
    assert volcano.writes_by(WRITER) == before


def test_it_waits_for_no_answer_beyond_its_leadership(
    volcano: ApiServer, store: ClusterStore, fence: Fence, proxy: FaultProxy
) -> None:
    fence.left_s = 0.3
    proxy.fail("^PATCH", *[Fault(is_silent=True)] * 9)
    started = monotonic()
    with pytest.raises(KubeUnavailable):
        store.put(MORE)
    assert monotonic() - started < 20, "a request may last 30 s otherwise"
    assert members(volcano) == 1


def test_it_rereads_an_object_that_another_client_changed(
    volcano: ApiServer, store: ClusterStore, through: KubeTransport, proxy: FaultProxy
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

    pace = WaitContext(HastyStop(), monotonic, JITTER)
    meddled = ClusterStore(through, pace=pace, fence=Meddling())
    before = proxy.count("^PATCH")
    assert meddled.put(MORE)
    assert proxy.count("^PATCH") == before + 2, "the first one was refused"
    assert members(volcano) == 2
    assert volcano.expect("GET", path)["metadata"]["annotations"] == {"seen": "yes"}
