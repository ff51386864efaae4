"""Reservations as objects of a real API server: leaders, successors, users, lost answers."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import yaml

from generator.kube.lease_record import Leader
from generator.kube.resources import RESERVATIONS
from generator.kube.transport import KubeTransport
from generator.objects.reservation import ReservationPhase as Phase
from generator.reservations.phases import RETENTION_S
from generator.reservations.records import Refusal, RefusalKind, Reservation, ReservationResult
from tests.kube.conftest import CRDS, connecting
from tests.kube.examples import made
from tests.kube.proxy import Fault, FaultProxy
from tests.kube.reservers import DEADLINE_S, Replica, Seat, clear, reserving, stored
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

WRITES = "^(POST|PATCH|DELETE) .*/placementreservations"
LATE = Fault(delay_s=4.0)
"""Watches report nothing for a while; a silent watch could not be ended."""
WATCHES = "^GET .*/placementreservations.*watch=1"


@pytest.fixture(autouse=True)
def nothing(api: ApiServer) -> None:
    """Delete all reservations."""
    clear(api)


@pytest.fixture
def leader(through: KubeTransport) -> Iterator[Replica]:
    """A replica that leads, behind the proxy."""
    with reserving(through, Seat()) as made:
        yield made


def refusal(answer: object) -> Refusal:
    assert isinstance(answer, Refusal), answer
    return answer


def test_it_keeps_reservations_that_kubectl_and_every_replica_see(
    api: ApiServer, leader: Replica, transport: KubeTransport
) -> None:
    seat = Seat(left_s=0.0, leader=Leader("generator-0", "10.0.0.1:9810"))
    with reserving(transport, seat) as follower:
        made = leader.made(6)
        follower.await_phase(made.id, Phase.RESERVED)
        assert (leader.room(), follower.room()) == (2, 2)
        told = refusal(follower.reserve(1))
        assert (told.kind, told.leader) == (RefusalKind.NOT_LEADER, "10.0.0.1:9810")
        assert refusal(follower.release(made.id)).kind is RefusalKind.NOT_LEADER
        assert isinstance(leader.confirm(made.id), Reservation)
        follower.await_phase(made.id, Phase.CONFIRMED)
        assert isinstance(leader.release(made.id), Reservation)
        follower.await_phase(made.id, Phase.RELEASED)
        assert (leader.room(), follower.room()) == (8, 8)
    found = api.expect("GET", RESERVATIONS.path(made.id))
    namespace, name = leader.gang.split("/")
    assert found["spec"]["gang"] == {"namespace": namespace, "name": name}
    assert found["status"]["phase"] == "released"
    told_at = datetime.fromisoformat(found["status"]["endedAt"])
    assert abs((datetime.now(UTC) - told_at).total_seconds()) < DEADLINE_S


def test_it_reads_back_at_once_what_it_wrote(leader: Replica, proxy: FaultProxy) -> None:
    proxy.plague(WATCHES, LATE)
    proxy.cut()
    first = leader.made(4)
    assert leader.room() == 4
    assert leader.made(4).id != first.id
    assert leader.room() == 0
    leader.release(first.id)
    assert leader.room() == 4
    assert refusal(leader.confirm(first.id)).kind is RefusalKind.ENDED


def test_it_gives_a_successor_all_reservations_even_if_its_watch_lags(
    leader: Replica, api: ApiServer
) -> None:
    with FaultProxy(api) as late, connecting(api, late.url) as behind:
        seat = Seat(left_s=0.0)
        with reserving(behind, seat) as successor:
            late.plague(WATCHES, LATE)
            late.cut()
            first, second = leader.made(4), leader.made(2)
            leader.confirm(first.id)
            leader.seat.left_s = 0.0
            assert refusal(leader.reserve(1)).kind is RefusalKind.NO_LEADER
            seat.left_s, seat.epoch = 30.0, 2
            answer = successor.reserve(3, gang=leader.gang)
            assert isinstance(answer, ReservationResult)
            assert answer.reservation is None, "the nodes are not given away twice"
            phases = [successor.phase(one.id) for one in (first, second)]
            assert phases == [Phase.CONFIRMED, Phase.RESERVED]
            assert isinstance(successor.confirm(second.id), Reservation)
    assert len(stored(api)) == 2


def test_it_refuses_the_writes_of_a_leader_that_was_replaced(
    leader: Replica, transport: KubeTransport
) -> None:
    """For a moment two replicas believe that they lead."""
    made = leader.made(4)
    with reserving(transport, Seat(epoch=2)) as successor:
        successor.ledger.tick()
        assert successor.store.read_reservations()[0].epoch == 2
        late = refusal(leader.release(made.id))
        assert late.kind is RefusalKind.CHANGED
        assert successor.phase(made.id) is Phase.RESERVED
        leader.await_phase(made.id, Phase.RESERVED)
        assert "replaced" in refusal(leader.release(made.id)).problem


def test_it_ends_what_a_replaced_leader_made_after_its_end(
    leader: Replica, transport: KubeTransport
) -> None:
    leader.made(1)
    with reserving(transport, Seat(epoch=2)) as successor:
        successor.made(1)
        late = leader.made(4)
        successor.await_phase(late.id, Phase.RESERVED)
        successor.ledger.tick()
        assert successor.phase(late.id) is Phase.RELEASED


def test_it_treats_a_deleted_object_as_a_released_reservation(
    api: ApiServer, leader: Replica
) -> None:
    made = leader.made(8)
    leader.confirm(made.id)
    api.expect("DELETE", RESERVATIONS.path(made.id))
    leader.await_phase(made.id, None)
    assert leader.room() == 8
    assert refusal(leader.confirm(made.id)).kind is RefusalKind.UNKNOWN
    leader.made(8)


def test_it_completes_a_reservation_cut_off_between_object_and_status(
    api: ApiServer, leader: Replica, proxy: FaultProxy
) -> None:
    proxy.fail("^PATCH .*/status", *[Fault(status=500)] * 9)
    id_ = "3b241101-e2bb-4255-8caf-4136c566a962"
    assert refusal(leader.reserve(4, id_=id_)).kind is RefusalKind.STORE
    (half,) = stored(api)
    assert "status" not in half
    proxy.relent()
    assert leader.room() == 8, "it counts for nobody"
    made = leader.made(5, id_=id_)
    (whole,) = stored(api)
    assert whole["status"]["phase"] == "reserved"  # type: ignore[index]  # it is an object
    assert leader.room() == 3
    assert made.id == id_


@pytest.mark.parametrize("write", ["^POST", "^PATCH .*/status"], ids=["object", "status"])
def test_it_repeats_an_answer_that_was_lost(
    leader: Replica, proxy: FaultProxy, api: ApiServer, write: str
) -> None:
    proxy.fail(write, *[Fault(is_lost=True)] * 9)
    id_ = "4b241101-e2bb-4255-8caf-4136c566a962"
    assert isinstance(leader.reserve(4, id_=id_), Refusal)
    proxy.relent()
    answer = leader.reserve(4, id_=id_)
    assert isinstance(answer, ReservationResult)
    assert answer == leader.reserve(4, id_=id_)
    assert leader.room() == 4
    assert len(stored(api)) == 1


def test_it_writes_after_the_lease_was_deleted_and_epochs_restarted(
    leader: Replica, transport: KubeTransport
) -> None:
    leader.seat.epoch = 41
    made = leader.made(2)
    with reserving(transport, Seat(epoch=0)) as successor:
        assert isinstance(successor.confirm(made.id), Reservation)
        assert successor.store.epoch == 42
        assert successor.store.epoch == 42, "and stays so"
        successor.made(1)
        successor.ledger.tick()
        assert {one.epoch for one in successor.store.read_reservations()} == {42}


def test_it_writes_ends_and_deletes_what_ended_long_ago(
    api: ApiServer, leader: Replica, proxy: FaultProxy
) -> None:
    made = leader.made(3)
    leader.clock.ahead_s = 601
    leader.ledger.tick()
    assert api.expect("GET", RESERVATIONS.path(made.id))["status"]["phase"] == "expired"
    before = proxy.count(WRITES)
    leader.ledger.tick()
    assert proxy.count(WRITES) == before, "at rest nothing is written"
    leader.clock.ahead_s = 700 + RETENTION_S
    leader.ledger.tick()
    assert stored(api) == []


def test_it_reports_a_missing_kind_and_continues_once_it_is_installed(
    other_api: ApiServer,
) -> None:
    crd = yaml.safe_load((CRDS / "placementreservations.yaml").read_text())
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
    other_api.expect("DELETE", path)
    wait_until(
        lambda: None if other_api.request("GET", path).status == 404 else "there",
        deadline_s=DEADLINE_S,
        what="the kind is gone",
    )
    try:
        with (
            connecting(other_api) as transport,
            reserving(transport, Seat(), awaits=False) as replica,
        ):
            wait_until(
                lambda: None if replica.ledger.snapshot else "nothing is known",
                deadline_s=DEADLINE_S,
                what="placement goes on",
            )
            assert replica.room() == 8
            wait_until(
                lambda: (
                    None
                    if "CRD is not installed" in refusal(replica.reserve(1)).problem
                    else replica.reserve(1)
                ),
                deadline_s=DEADLINE_S,
                what="it says why",
            )
            other_api.install(crd)
            wait_until(
                lambda: (
                    None
                    if isinstance(replica.reserve(1), ReservationResult)
                    else replica.reserve(1)
                ),
                deadline_s=DEADLINE_S,
                what="it reserves",
            )
    finally:
        if other_api.request("GET", path).status == 404:
            other_api.install(crd)


def test_it_ignores_unusable_objects(api: ApiServer, leader: Replica) -> None:
    odd = made(RESERVATIONS)
    api.expect("POST", RESERVATIONS.path(), odd)
    path = f"{RESERVATIONS.path(odd['metadata']['name'])}/status?fieldManager=person"
    api.apply(path, odd)
    wait_until(
        lambda: None if leader.store.problems else "not told",
        deadline_s=DEADLINE_S,
        what="it is told",
    )
    (problem,) = leader.store.problems
    assert "expected the value of spec.requestId" in problem
    assert leader.made(8).is_held_at(datetime.now(UTC))
