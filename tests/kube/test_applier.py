"""Server-side apply on a real server: writes only changes, and takes no foreign fields."""

import threading
from collections.abc import Mapping
from time import monotonic
from typing import Any

import pytest

from generator.kube.applier import FIELD_MANAGER, Applier, RetryPolicy
from generator.kube.ownership import is_applied
from generator.kube.resources import HYPERNODES, REPORTS, RESERVATIONS
from generator.kube.transport import Transport
from generator.outputs.hypernode.model import HyperNode, Member, MemberType, render_manifest
from runtime.retry import TokenBucket, WaitContext
from tests.kube.conftest import WRITER, connecting
from tests.kube.examples import made
from tests.kube.followers import CONFIGMAPS, JITTER, HastyStop
from tests.kube.proxy import Fault, FaultProxy
from tests.lab.api_server import ApiServer
from tests.lab.audit import Write
from topology.model.errors import KubeConflict, KubeError, KubeUnavailable

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

Object = Mapping[str, Any]


class Writing:
    """An applier, and its recorded waits."""

    def __init__(self, transport: Transport, *, attempts: int = 5) -> None:
        self.stop = HastyStop()
        pace = WaitContext(self.stop, monotonic, JITTER)
        bucket = TokenBucket(per_second=1e6, burst=1000, clock=monotonic, pause=self.stop.wait)
        patience = RetryPolicy(max_attempts=attempts, request_timeout_s=5)
        self.applier = Applier(transport, bucket=bucket, pace=pace, retry_policy=patience)


@pytest.fixture
def writing(through: Transport) -> Writing:
    return Writing(through)


def word(namespace: str, **words: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": "one", "labels": {"test": namespace}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": words}


def writes_to(api: ApiServer, name: str) -> list[Write]:
    return [one for one in api.writes_by(WRITER) if one.name == name]


def test_it_writes_what_changed_and_nothing_else(
    namespace: str, writing: Writing, proxy: FaultProxy
) -> None:
    applier = writing.applier
    first = applier.apply(CONFIGMAPS, word(namespace, a="1", b="2"))
    assert first["data"] == {"a": "1", "b": "2"}
    assert applier.apply(CONFIGMAPS, word(namespace, b="2", a="1"), first) is first
    second = applier.apply(CONFIGMAPS, word(namespace, a="1"), first)
    assert second["data"] == {"a": "1"}, "a field that is no longer wanted goes"
    third = applier.apply(CONFIGMAPS, word(namespace, a="3"), second)
    assert third["data"] == {"a": "3"}
    assert proxy.count("PATCH") == 3


def test_it_counts_no_write_at_rest(volcano: ApiServer, writing: Writing, namespace: str) -> None:
    nodes = tuple(Member(MemberType.NODE, f"n{at}") for at in range(3))
    wanted = render_manifest(HyperNode(f"{namespace}-leaf", 1, "leaf", nodes))
    observed = writing.applier.apply(HYPERNODES, wanted)
    assert writes_to(volcano, f"{namespace}-leaf") == [
        Write("patch", "hypernodes", f"{namespace}-leaf", 201)
    ]
    for _ in range(3):
        fresh = volcano.expect("GET", HYPERNODES.path(f"{namespace}-leaf"))
        assert writing.applier.apply(HYPERNODES, wanted, fresh) == observed
    assert len(writes_to(volcano, f"{namespace}-leaf")) == 1


def test_it_leaves_the_fields_of_others_alone(
    api: ApiServer, namespace: str, writing: Writing
) -> None:
    observed = writing.applier.apply(CONFIGMAPS, word(namespace, a="1"))
    path = CONFIGMAPS.path("one", namespace=namespace)
    api.expect("PUT", path, {**observed, "data": {"a": "1", "theirs": "x"}})
    seen = api.expect("GET", path)
    assert writing.applier.apply(CONFIGMAPS, word(namespace, a="1"), seen) is seen
    changed = writing.applier.apply(CONFIGMAPS, word(namespace, a="2"), seen, is_ours=True)
    assert changed["data"] == {"a": "2", "theirs": "x"}


def test_it_names_the_owner_of_a_field_and_forces_only_its_own(
    api: ApiServer, namespace: str, writing: Writing
) -> None:
    body = word(namespace, a="theirs")
    api.expect("POST", f"{CONFIGMAPS.path(namespace=namespace)}?fieldManager=somebody", body)
    with pytest.raises(KubeConflict, match=r"somebody.*\.data\.a"):
        writing.applier.apply(CONFIGMAPS, word(namespace, a="ours"))
    seen = api.expect("GET", CONFIGMAPS.path("one", namespace=namespace))
    assert seen["data"] == {"a": "theirs"}
    taken = writing.applier.apply(CONFIGMAPS, word(namespace, a="ours"), seen, is_ours=True)
    assert taken["data"] == {"a": "ours"}


def test_it_writes_a_status_separately(api: ApiServer, writing: Writing) -> None:
    wanted = made(RESERVATIONS)
    status = {key: wanted[key] for key in ("apiVersion", "kind", "metadata", "status")}
    spec = {key: wanted[key] for key in ("apiVersion", "kind", "metadata", "spec")}
    writing.applier.apply(RESERVATIONS, spec)
    told = writing.applier.apply(RESERVATIONS, status, subresource="status")
    assert told["status"] == wanted["status"]
    found = api.expect("GET", RESERVATIONS.path(wanted["metadata"]["name"]))
    assert writing.applier.apply(RESERVATIONS, status, found, subresource="status") is found
    assert writing.applier.apply(RESERVATIONS, spec, found) is found
    shorter = {**status, "status": {"phase": "confirmed", "epoch": 3}}
    told = writing.applier.apply(RESERVATIONS, shorter, found, subresource="status")
    assert told["status"] == {"phase": "confirmed", "epoch": 3}


@pytest.mark.parametrize(
    ("fault", "least_s"),
    [
        pytest.param(Fault(429, {"Retry-After": "3"}), 3.0, id="too many requests"),
        pytest.param(Fault(500), 0.05, id="a broken server"),
        pytest.param(Fault(cut_after=0), 0.05, id="a cut"),
        pytest.param(Fault(is_lost=True), 0.05, id="a lost answer"),
    ],
)
def test_it_retries_after(
    namespace: str, writing: Writing, proxy: FaultProxy, fault: Fault, least_s: float
) -> None:
    proxy.fail("PATCH", fault, fault)
    observed = writing.applier.apply(CONFIGMAPS, word(namespace, a="1"))
    assert observed["data"] == {"a": "1"}
    assert proxy.count("PATCH") == 3
    assert [pause >= least_s for pause in writing.stop.waits] == [True, True]


def test_it_gives_up_in_the_end(namespace: str, writing: Writing, proxy: FaultProxy) -> None:
    proxy.fail("PATCH", *[Fault(503)] * 10)
    with pytest.raises(KubeUnavailable, match="503"):
        writing.applier.apply(CONFIGMAPS, word(namespace, a="1"))
    assert proxy.count("PATCH") == 5


def test_it_leaves_a_long_wait_to_the_caller(
    namespace: str, writing: Writing, proxy: FaultProxy
) -> None:
    proxy.fail("PATCH", Fault(429, {"Retry-After": "1"}), Fault(429, {"Retry-After": "300"}))
    with pytest.raises(KubeUnavailable, match="429") as refused:
        writing.applier.apply(CONFIGMAPS, word(namespace, a="1"))
    assert refused.value.retry_after_s == 300.0
    assert proxy.count("PATCH") == 2
    assert sum(writing.stop.waits) < 2.0


def test_it_does_not_retry_a_wrong_request(writing: Writing, proxy: FaultProxy) -> None:
    with pytest.raises(KubeError) as refused:
        writing.applier.apply(REPORTS, made(REPORTS, change={"spec.device.kind": "toaster"}))
    assert refused.value.status == 422
    assert proxy.count("PATCH") == 1


def test_it_stops_on_a_stop_request(namespace: str, api: ApiServer) -> None:
    with connecting(api) as transport:
        writing = Writing(transport)
        slow = TokenBucket(per_second=0.001, burst=1, clock=monotonic, pause=writing.stop.wait)
        pace = WaitContext(writing.stop, monotonic, JITTER)
        applier = Applier(transport, bucket=slow, pace=pace)
        applier.apply(CONFIGMAPS, word(namespace, a="1"))
        writing.stop.set()
        with pytest.raises(KubeError, match="stopped"):
            applier.apply(CONFIGMAPS, word(namespace, a="2"))


def test_it_deletes_only_the_observed_version(
    api: ApiServer, namespace: str, writing: Writing
) -> None:
    old = writing.applier.apply(CONFIGMAPS, word(namespace, a="1"))
    new = writing.applier.apply(CONFIGMAPS, word(namespace, a="2"), old)
    with pytest.raises(KubeConflict):
        writing.applier.delete(CONFIGMAPS, old)
    assert writing.applier.delete(CONFIGMAPS, new)
    assert not writing.applier.delete(CONFIGMAPS, new)
    again = writing.applier.apply(CONFIGMAPS, word(namespace, a="1"))
    with pytest.raises(KubeConflict):
        writing.applier.delete(CONFIGMAPS, new)
    with pytest.raises(KubeConflict):
        writing.applier.apply(CONFIGMAPS, word(namespace, a="5"), new, is_ours=True)
    path = CONFIGMAPS.path("one", namespace=namespace)
    assert api.expect("GET", path)["metadata"]["uid"] == again["metadata"]["uid"]


def test_it_is_applied_exactly_when_an_apply_changes_nothing(
    api: ApiServer, writing: Writing
) -> None:
    """The server decides: it keeps the version of an object that an apply does not change."""
    name = made(RESERVATIONS)["metadata"]["name"]
    group = made(RESERVATIONS)["spec"]["groups"][0]
    steps: list[dict[str, Any]] = [
        {"labels": {"a": "1", "b": "2"}},
        {"labels": {"a": "1"}},
        {"labels": {"a": "1"}},
        {"labels": {"a": "2"}, "annotations": {"x": "y"}},
        {"annotations": {"x": "y"}},
        {},
    ]
    observed: Object = {}
    outcomes = []
    for metadata in steps:
        wanted = made(RESERVATIONS, name=name, change={"spec.groups": [group], "status": {}})
        del wanted["status"]
        wanted["metadata"] |= metadata
        settled = is_applied(wanted, observed, field_manager=FIELD_MANAGER)
        before = observed.get("metadata", {}).get("resourceVersion")
        query = f"{RESERVATIONS.path(name)}?fieldManager={FIELD_MANAGER}&force=true"
        observed = api.apply(query, wanted)
        assert settled is (observed["metadata"]["resourceVersion"] == before)
        outcomes.append(settled)
    assert outcomes == [False, False, True, False, False, False]
    assert writing.stop.waits == []


def test_it_writes_no_faster_than_its_limit() -> None:
    times = [100.0]

    def pause(timeout: float) -> bool:
        times[0] += timeout
        return False

    bucket = TokenBucket(per_second=10, burst=5, clock=lambda: times[0], pause=pause)
    for _ in range(25):
        assert bucket.take()
    assert times[0] == pytest.approx(102.0)
    times[0] += 1000
    for _ in range(6):
        assert bucket.take()
    assert times[0] == pytest.approx(1102.1), "rest earns no more than a burst"


def test_it_shares_its_tokens_between_threads() -> None:
    stop = HastyStop()
    bucket = TokenBucket(per_second=1e9, burst=1, clock=monotonic, pause=stop.wait)
    taken: list[bool] = []
    threads = [
        threading.Thread(target=lambda: taken.extend(bucket.take() for _ in range(200)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == [True] * 800
