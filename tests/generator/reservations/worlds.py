"""A small cluster, a clock set by the test, and a reservation store in memory."""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.request import PlacementRequest, parse_request
from generator.reservations.ledger import ReservationLedger
from generator.reservations.objects import ReservationObjects
from generator.reservations.records import (
    LOCAL_HOLDER,
    Refusal,
    Reservation,
    ReservationRequest,
    ReservationResult,
)
from tests.generator.placement.scenes import Paths, tree_of
from topology.model.errors import StoreError

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
PLENTY_S = 60.0


def cluster(num_nodes: int = 8, slots: int = 4, per_leaf: int = 4) -> Snapshot:
    """Return equal nodes in leaves under one spine."""
    paths: Paths = {f"n{at}": (at // per_leaf, 0) for at in range(num_nodes)}
    tree = tree_of(paths, ("leaf", "spine"))
    return build_snapshot(tree, {name: NodeSpec(name, {"slots": slots}) for name in tree.nodes})


def request_of(
    gang: str = "ns/a",
    count: int = 4,
    priority: int = 0,
    **more: Any,  # noqa: ANN401 - fields of a request
) -> PlacementRequest:
    """Return a gang of equal pods that take a slot each."""
    groups = more.pop("groups", [{"name": "w", "count": count}])
    spec = {"gang": gang, "priority": priority, "groups": groups, **more}
    return parse_request(
        {"apiVersion": "toponaut.io/v1alpha1", "kind": "PlacementRequest", "spec": spec}
    )


def id_of(number: int) -> str:
    """Return the n-th id, a valid UUID."""
    return str(UUID(int=number, version=4))


def reservation_request(
    number: int = 1,
    *,
    ttl_s: int = 60,
    holder: str = LOCAL_HOLDER,
    is_trial: bool = False,
    **more: Any,  # noqa: ANN401 - of a request
) -> ReservationRequest:
    """Return the n-th reservation request."""
    return ReservationRequest(id_of(number), holder, request_of(**more), ttl_s, is_trial)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> datetime:
        return self.at

    def seconds(self) -> float:
        return 0.0

    def pass_s(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


class MemoryStore:
    """Reservations in memory that survive their writers, and fail on demand."""

    def __init__(self) -> None:
        self.rows: dict[str, Reservation] = {}
        self.epoch = 1
        self.is_known = True
        self.problems: tuple[str, ...] = ()
        self.refusal: Refusal | None = None
        self.error: StoreError | None = None
        self.writes: list[tuple[str, ...]] = []
        self._known: tuple[Reservation, ...] = ()
        self._taken: frozenset[str] = frozenset()

    def restart(self) -> None:
        """Start another writer."""
        self.epoch += 1
        self._taken = frozenset(self.rows)

    def find_write_refusal(self) -> Refusal | None:
        return self.refusal

    def read_reservations(self) -> tuple[Reservation, ...]:
        rows = tuple(self.rows[id_] for id_ in sorted(self.rows))
        if rows != self._known:
            self._known = rows
        return self._known

    def refresh(self) -> None:
        if self.error is not None:
            raise self.error

    def read_inherited_ids(self) -> Collection[str]:
        return self._taken

    def put(self, changed: Sequence[Reservation]) -> None:
        if self.error is not None:
            raise self.error
        self.writes.append(tuple(reservation.id for reservation in changed))
        self.rows |= {reservation.id: reservation for reservation in changed}

    def delete(self, ids: Collection[str]) -> None:
        assert all(self.rows[id_].is_ended for id_ in ids), "the API server refuses others"
        self.rows = {id_: reservation for id_, reservation in self.rows.items() if id_ not in ids}


class World:
    """Reservations of a cluster with a store in memory."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.store = MemoryStore()
        self.clock = Clock()
        self.base = cluster() if snapshot is None else snapshot
        self.on_change: Callable[[], None] | None = None
        self.ledger = self.open()

    def open(self) -> ReservationLedger:
        """Return a fresh writer over the same store."""
        made = ReservationLedger(
            cast("ReservationObjects", self.store),
            now=self.clock.now,
            clock=self.clock.seconds,
            on_change=self._notify,
        )
        made.publish(self.base)
        return made

    def _notify(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def reserve(self, number: int = 1, **more: Any) -> ReservationResult | Refusal:  # noqa: ANN401 - of a request
        return self.ledger.reserve(reservation_request(number, **more), budget_s=PLENTY_S)

    def made(self, number: int = 1, **more: Any) -> Reservation:  # noqa: ANN401 - of a request
        """Return a reservation that must be granted."""
        answer = self.reserve(number, **more)
        assert isinstance(answer, ReservationResult), answer
        assert answer.reservation is not None, answer.placement
        return answer.reservation

    def confirm(self, number: int = 1, **more: Any) -> Reservation | Refusal:  # noqa: ANN401 - options
        return self.ledger.confirm(id_of(number), **({"holder": LOCAL_HOLDER} | more))

    def release(self, number: int = 1, **more: Any) -> Reservation | Refusal:  # noqa: ANN401 - options
        return self.ledger.release(id_of(number), **({"holder": LOCAL_HOLDER} | more))
