"""Reserve, Confirm and Release over a real loopback server: answers, codes, details, holders."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import grpc
import pytest
from google.rpc import (  # type: ignore[import-untyped]  # stubs, but no py.typed
    error_details_pb2,
)
from grpc_status import rpc_status

from generator.placement.answer import ReasonKind
from generator.reservations.phases import MAX_HELD
from generator.reservations.records import LOCAL_HOLDER, Refusal, RefusalKind
from generator.rpc.auth.tls import ServerCertificates
from generator.rpc.published_state import PublishedState
from generator.rpc.reservation_service import ReservationServicer
from generator.rpc.server import LOOPBACK_SECURITY, PlacementServer, ServerSecurity
from generator.rpc.status_errors import FailureKind, decode_failure
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc, topology_pb2, topology_pb2_grpc
from tests.generator.reservations.worlds import World, cluster, id_of
from tests.generator.rpc.credentials import ANY_PORT, SOON_S, Pki, Tokens
from topology.model.errors import InvariantError, StoreError

Stub = placement_pb2_grpc.PlacementServiceStub


class Service:
    """A server over a world, and its client."""

    def __init__(self, world: World, channel: grpc.Channel) -> None:
        self.world = world
        self.channel = channel
        self.stub = Stub(channel)

    def reserve(
        self,
        number: int = 1,
        count: int = 2,
        *,
        ttl_s: int = 0,
        validate_only: bool = False,
        request_id: str | None = None,
        **more: Any,  # noqa: ANN401 - fields of the spec
    ) -> pb.ReserveResponse:
        groups = [pb.Group(name="w", count=count)]
        asked = pb.ReserveRequest(
            request_id=id_of(number) if request_id is None else request_id,
            spec=pb.PlacementSpec(**({"gang": "ns/a", "groups": groups} | more)),
            ttl_s=ttl_s,
            validate_only=validate_only,
        )
        return self.stub.Reserve(asked, timeout=SOON_S)

    def confirm(self, number: int = 1, epoch: int = 0) -> pb.Reservation:
        asked = pb.ConfirmRequest(id=id_of(number), epoch=epoch)
        return self.stub.Confirm(asked, timeout=SOON_S).reservation

    def release(self, number: int = 1) -> pb.Reservation:
        return self.stub.Release(pb.ReleaseRequest(id=id_of(number)), timeout=SOON_S).reservation

    def fits(self, count: int, **more: Any) -> bool:  # noqa: ANN401 - fields
        spec = pb.PlacementSpec(groups=[pb.Group(name="w", count=count)], **more)
        answer = self.stub.Place(pb.PlaceRequest(spec=spec), timeout=SOON_S)
        return bool(answer.placement.feasible)


@contextmanager
def running(world: World, security: ServerSecurity = LOOPBACK_SECURITY) -> Iterator[str]:
    published = PublishedState(read_occupied=lambda: world.ledger.snapshot)
    world.on_change = published.notify_changed
    published.snapshot = world.base
    server = PlacementServer(
        ANY_PORT,
        published,
        security=security,
        call_reservation=ReservationServicer(world.ledger).answer,
    )
    try:
        yield server.address
    finally:
        server.stop(deadline_s=0)


@pytest.fixture
def service() -> Iterator[Service]:
    """Two nodes of four slots."""
    world = World(cluster(num_nodes=2, slots=4, per_leaf=2))
    with running(world) as address, grpc.insecure_channel(address) as channel:
        yield Service(world, channel)


def failing(call: Any, *words: Any, **more: Any) -> grpc.Call:  # noqa: ANN401 - any call
    with pytest.raises(grpc.RpcError) as caught:
        call(*words, **more)
    return cast("grpc.Call", caught.value)


def code_and_kind(call: grpc.Call) -> tuple[grpc.StatusCode, FailureKind]:
    failure = decode_failure(call)
    assert failure is not None
    return call.code(), failure.kind


def test_it_holds_nodes_until_they_are_released(service: Service) -> None:
    answer = service.reserve(count=6)
    made = answer.reservation
    assert (made.id, made.epoch, made.phase) == (id_of(1), 1, pb.RESERVATION_PHASE_RESERVED)
    assert made.expires_at.ToDatetime().isoformat() == "2026-07-01T12:01:00"
    assert [len(row.nodes) for row in answer.placement.assignment] == [6]
    assert (answer.placement.tier, answer.placement.proved) == ("leaf", True)
    assert service.reserve(count=6) == answer
    assert not service.fits(3, gang="ns/b")
    assert service.fits(8, gang="ns/a")
    assert service.fits(3, gang="ns/b", priority=1)
    confirmed = service.confirm()
    assert confirmed.phase == pb.RESERVATION_PHASE_CONFIRMED
    assert not confirmed.HasField("expires_at")
    assert not service.fits(3, gang="ns/b", priority=1)
    assert service.release().phase == pb.RESERVATION_PHASE_RELEASED
    assert service.release().phase == pb.RESERVATION_PHASE_RELEASED
    assert service.fits(8, gang="ns/b")


def test_it_counts_reserved_nodes_in_every_call(service: Service) -> None:
    service.reserve(count=6, gang="ns/a")
    group = pb.Group(name="w", count=3)
    mine, other = (pb.PlacementSpec(gang=gang, groups=[group]) for gang in ("ns/a", "ns/b"))
    batch = pb.PlaceBatchRequest(specs=[other, mine])
    (answer,) = service.stub.PlaceBatch(iter([batch]), timeout=SOON_S)
    assert [placement.feasible for placement in answer.placements] == [False, True]
    sets = service.stub.Candidates(pb.CandidatesRequest(spec=other), timeout=SOON_S)
    assert not sets.candidates
    assert service.stub.Candidates(pb.CandidatesRequest(spec=mine), timeout=SOON_S).candidates
    room = service.stub.Capacity(pb.CapacityRequest(), timeout=SOON_S)
    assert [tier.pods for tier in room.tiers][-1] == 2
    room = service.stub.Capacity(pb.CapacityRequest(priority=1), timeout=SOON_S)
    assert [tier.pods for tier in room.tiers][-1] == 8


def test_it_wakes_waiting_callers_when_reservations_change(service: Service) -> None:
    service.reserve(count=8, gang="ns/a")
    spec = pb.PlacementSpec(gang="ns/b", groups=[pb.Group(name="w", count=8)])
    watch = topology_pb2_grpc.TopologyServiceStub(service.channel).WatchFeasible(
        topology_pb2.WatchFeasibleRequest(spec=spec), timeout=SOON_S
    )
    answers = (row.placement.feasible for row in watch)
    assert not next(answers)
    service.release()
    assert next(answers)
    watch.cancel()


def test_it_holds_nodes_for_a_minute_by_default(service: Service) -> None:
    service.reserve(1, ttl_s=0)
    service.reserve(2, ttl_s=1)
    service.world.clock.pass_s(1)
    assert service.confirm(1).phase == pb.RESERVATION_PHASE_CONFIRMED
    call = failing(service.confirm, 2)
    assert code_and_kind(call) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        FailureKind.RESERVATION_ENDED,
    )


def test_it_answers_infeasible_requests_and_trials(service: Service) -> None:
    answer = service.reserve(count=9)
    assert not answer.HasField("reservation")
    assert answer.placement.reason.kind == ReasonKind.NO_FIT
    trial = service.reserve(count=8, validate_only=True)
    assert (trial.HasField("reservation"), trial.placement.feasible) == (False, True)
    assert service.world.store.rows == {}


def test_it_reserves_each_slot_once_for_concurrent_callers(service: Service) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda at: service.reserve(at, count=1), range(24)))
        repeated = list(pool.map(lambda _: service.reserve(0, count=1), range(8)))
    granted = [response for response in answers if response.HasField("reservation")]
    assert len(granted) == 8
    assert len({response.SerializeToString(deterministic=True) for response in repeated}) == 1
    taken = Counter(
        node for response in granted for row in response.placement.assignment for node in row.nodes
    )
    assert taken == {"n0": 4, "n1": 4}


FAULTS = [
    ("no id", {"request_id": ""}, "request_id"),
    ("an id that is none", {"request_id": "a; DROP TABLE reservations"}, "request_id"),
    ("no name of the gang", {"gang": ""}, "spec.gang"),
    ("a negative time", {"ttl_s": -5}, "ttl_s"),
    ("a long time", {"ttl_s": 10**6}, "ttl_s"),
    ("no groups", {"groups": []}, "spec.groups"),
    ("a size below 0", {"groups": [pb.Group(name="w", count=-1)]}, "spec.groups[0].count"),
    ("a huge priority", {"priority": 1 << 60}, "spec.priority"),
]


@pytest.mark.parametrize(("more", "field"), [row[1:] for row in FAULTS], ids=[r[0] for r in FAULTS])
def test_it_names_the_field_of(service: Service, more: dict[str, Any], field: str) -> None:
    call = failing(service.reserve, **more)
    assert call.code() is grpc.StatusCode.INVALID_ARGUMENT
    failure = decode_failure(call)
    assert failure is not None
    assert failure.field == field
    assert service.world.store.writes == []


def test_it_refuses_an_id_that_was_used_for_another_request(service: Service) -> None:
    service.reserve(count=2)
    call = failing(service.reserve, count=3)
    assert code_and_kind(call) == (grpc.StatusCode.ALREADY_EXISTS, FailureKind.REQUEST_ID_REUSED)


@pytest.mark.parametrize("name", ["confirm", "release"])
def test_it_names_an_unknown_reservation(service: Service, name: str) -> None:
    call = failing(getattr(service, name), 7)
    assert code_and_kind(call) == (grpc.StatusCode.NOT_FOUND, FailureKind.RESERVATION_UNKNOWN)
    status = rpc_status.from_call(call)
    assert status is not None
    about = error_details_pb2.ResourceInfo()
    assert any(detail.Unpack(about) for detail in status.details)
    assert about.resource_name == id_of(7)


def test_a_call_of_an_unknown_name_releases_nothing(service: Service) -> None:
    service.reserve()
    servicer = ReservationServicer(service.world.ledger)
    request = pb.ReleaseRequest(id=id_of(1))
    with pytest.raises(InvariantError, match="Relase is no call about reservations"):
        servicer.answer("Relase", request, cast("grpc.ServicerContext", None))
    assert service.confirm().phase == pb.RESERVATION_PHASE_CONFIRMED


def test_it_refuses_callers_of_a_later_epoch(service: Service) -> None:
    made = service.reserve().reservation
    call = failing(service.confirm, epoch=made.epoch + 1)
    assert code_and_kind(call) == (grpc.StatusCode.ABORTED, FailureKind.CHANGED_MEANWHILE)
    service.world.store.restart()
    assert service.confirm(epoch=made.epoch).epoch == 2


@pytest.mark.parametrize(
    ("refusal", "code", "kind", "leader"),
    [
        pytest.param(
            Refusal(RefusalKind.NOT_LEADER, "another replica leads", leader="h:1"),
            grpc.StatusCode.FAILED_PRECONDITION,
            FailureKind.NOT_LEADER,
            "h:1",
            id="another replica leads",
        ),
        pytest.param(
            Refusal(RefusalKind.NO_LEADER, "nobody"),
            grpc.StatusCode.UNAVAILABLE,
            FailureKind.NO_LEADER,
            "",
            id="no replica leads",
        ),
    ],
)
def test_it_names_the_leader_when(
    service: Service, refusal: Refusal, code: grpc.StatusCode, kind: FailureKind, leader: str
) -> None:
    service.world.store.refusal = refusal
    for name in ("reserve", "confirm", "release"):
        call = failing(getattr(service, name))
        assert code_and_kind(call) == (code, kind)
        failure = decode_failure(call)
        assert failure is not None
        assert failure.leader == leader


def test_it_reports_an_unavailable_store_and_when_to_retry(service: Service) -> None:
    service.world.store.error = StoreError("disk full")
    call = failing(service.reserve)
    assert code_and_kind(call) == (grpc.StatusCode.UNAVAILABLE, FailureKind.STORE_UNAVAILABLE)
    service.world.store.error = None
    row = service.world.made(5, count=1)
    service.world.store.rows |= {str(uuid4()): row for _ in range(MAX_HELD)}
    call = failing(service.reserve)
    assert code_and_kind(call) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        FailureKind.RESERVATIONS_FULL,
    )
    status = rpc_status.from_call(call)
    assert status is not None
    again = error_details_pb2.RetryInfo()
    assert any(detail.Unpack(again) for detail in status.details)


def test_it_identifies_holders_by_their_token(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    world = World(cluster(num_nodes=2, slots=4, per_leaf=2))
    security = ServerSecurity(ServerCertificates(pki.files), Tokens({"alice": None, "bob": None}))
    with (
        running(world, security) as address,
        grpc.secure_channel(address, grpc.ssl_channel_credentials(pki.ca.read_bytes())) as channel,
    ):
        stub = Stub(channel)

        def release(name: str) -> pb.Reservation:
            asked = pb.ReleaseRequest(id=id_of(1))
            proof = (("authorization", f"Bearer {name}"),)
            return stub.Release(asked, timeout=SOON_S, metadata=proof).reservation

        world.made(1, holder="alice")
        call = failing(release, "bob")
        assert code_and_kind(call) == (grpc.StatusCode.PERMISSION_DENIED, FailureKind.NOT_HOLDER)
        assert release("alice").phase == pb.RESERVATION_PHASE_RELEASED


def test_it_identifies_holders_by_their_certificate(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    world = World(cluster(num_nodes=2, slots=4, per_leaf=2))
    files = pki.files._replace(client_ca=pki.ca)
    cert, key = pki.client()
    proof = grpc.ssl_channel_credentials(
        pki.ca.read_bytes(), Path(key).read_bytes(), Path(cert).read_bytes()
    )
    with (
        running(world, ServerSecurity(ServerCertificates(files))) as address,
        grpc.secure_channel(address, proof) as channel,
    ):
        Service(world, channel).reserve()
    (row,) = world.store.rows.values()
    assert row.holder not in ("", LOCAL_HOLDER)
