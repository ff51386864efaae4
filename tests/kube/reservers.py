"""Replicas that reserve on a real API server; a test says which one believes that it leads."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from uuid import uuid4

from generator.kube.lease_record import Leader
from generator.kube.resources import RESERVATIONS as RESOURCE
from generator.kube.transport import Transport
from generator.objects.reservation import ReservationPhase
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.engine import place
from generator.reservations.ledger import ReservationLedger
from generator.reservations.objects import RESERVATIONS, Leadership, ReservationObjects
from generator.reservations.records import (
    LOCAL_HOLDER,
    Refusal,
    Reservation,
    ReservationRequest,
    ReservationResult,
)
from generator.store.cluster_store import ClusterStore
from runtime.clock import utc_now
from runtime.retry import WaitContext
from tests.generator.reservations.worlds import PLENTY_S, cluster, request_of
from tests.kube.followers import JITTER, HastyStop
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until

DEADLINE_S = 60


@dataclass
class Seat:
    """What a replica believes about leadership."""

    epoch: int = 1
    left_s: float = 30.0
    leader: Leader | None = None


@dataclass
class WallClock:
    """The time, or later."""

    ahead_s: float = 0.0

    def now(self) -> datetime:
        return utc_now() + timedelta(seconds=self.ahead_s)


@dataclass
class Replica:
    """One replica; follows within `reserving`."""

    store: ReservationObjects
    ledger: ReservationLedger
    seat: Seat
    clock: WallClock
    gang: str = field(default_factory=lambda: f"ns/{secrets.token_hex(4)}")

    def reserve(
        self, count: int, *, id_: str = "", gang: str = "", ttl_s: int = 600
    ) -> ReservationResult | Refusal:
        asked = ReservationRequest(
            id_ or str(uuid4()), LOCAL_HOLDER, request_of(gang or self.gang, count), ttl_s
        )
        return self.ledger.reserve(asked, budget_s=PLENTY_S)

    def made(self, count: int, **more: str) -> Reservation:
        """Make a reservation that must succeed."""
        answer = self.reserve(count, **more)  # type: ignore[arg-type]  # texts only
        assert isinstance(answer, ReservationResult), answer
        assert answer.reservation is not None, answer.placement
        return answer.reservation

    def confirm(self, id_: str) -> Reservation | Refusal:
        return self.ledger.confirm(id_, holder=LOCAL_HOLDER)

    def release(self, id_: str) -> Reservation | Refusal:
        return self.ledger.release(id_, holder=LOCAL_HOLDER)

    def phase(self, id_: str) -> ReservationPhase | None:
        return next((one.phase for one in self.ledger.read_current() if one.id == id_), None)

    def room(self) -> int:
        """Return how many pods of another gang fit."""
        snapshot = self.ledger.snapshot
        assert snapshot is not None
        sizes = (n for n in range(8, 0, -1) if place(snapshot, request_of("ns/x", n)).is_feasible)
        return next(sizes, 0)

    def await_phase(self, id_: str, phase: ReservationPhase | None) -> None:
        """Wait until the watch has reported all."""
        wait_until(
            lambda: None if self.phase(id_) is phase else str(self.phase(id_)),
            deadline_s=DEADLINE_S,
            what=f"{id_} is {phase}",
        )


@contextmanager
def reserving(
    transport: Transport, seat: Seat, *, base: Snapshot | None = None, awaits: bool = True
) -> Iterator[Replica]:
    """Run a replica on two nodes with four slots each; yield it after its first lists."""
    objects = ClusterStore(
        transport,
        pace=WaitContext(HastyStop(), monotonic, JITTER),
        fence=lambda: seat.left_s,
        on_change=lambda: None,
        served=(RESERVATIONS,),
    )
    store = ReservationObjects(
        objects, Leadership(lambda: seat.left_s, lambda: seat.epoch, lambda: seat.leader)
    )
    clock = WallClock()
    ledger = ReservationLedger(store, now=clock.now, clock=time.monotonic)
    ledger.publish(base or cluster(num_nodes=2, slots=4, per_leaf=2))
    with objects:
        if awaits:
            wait_until(
                lambda: None if objects.watches[RESOURCE.plural] > 1 else "not listed",
                deadline_s=DEADLINE_S,
                what="reservations are followed",
            )
        yield Replica(store, ledger, seat, clock)


def stored(api: ApiServer) -> list[dict[str, object]]:
    """Return all objects."""
    found: list[dict[str, object]] = api.expect("GET", RESOURCE.path())["items"]
    return found


def clear(api: ApiServer) -> None:
    """Delete all objects."""
    api.expect("DELETE", RESOURCE.path())
