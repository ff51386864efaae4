"""`ReservationLedger`: places a gang, stores its reservation, and publishes the reserved nodes.

One request is placed at a time. Confirm and release run at the same time as a search, because
they only ever free nodes. Before a placement is written, the ledger checks that it still fits; if
it does not, the gang is placed again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import Final, NamedTuple

from generator.objects.pods import BoundPod
from generator.placement.answer import Placement
from generator.placement.budget import IsCancelled, never_cancelled
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.engine import as_running_gang, place
from generator.placement.request import PlacementRequest
from generator.reservations.nominations import (
    CachedSnapshot,
    CapacityState,
    ReservationCache,
    ReservationUsage,
    ReservationView,
    ReservationWriter,
    build_nominations,
    build_views,
    compute_usage,
    find_due,
    find_forgettable,
    find_preempted,
    with_nominations,
)
from generator.reservations.objects import ReservationObjects
from generator.reservations.phases import (
    MAX_HELD,
    MAX_RESERVATIONS,
    Step,
    apply_step,
    build_reservation,
    compute_room,
    expire_if_due,
    find_refusal,
    hash_request,
    restore_placement,
)
from generator.reservations.records import (
    Refusal,
    RefusalKind,
    Reservation,
    ReservationRequest,
    ReservationResult,
    ReservedTotals,
)
from generator.store.object_store import StoreConflict, StoreFenced
from runtime.fair_share import FairShare
from runtime.transition_log import TransitionLog
from topology.model.errors import KubeConflict, KubeError, KubeFenced, StoreError, show

log = logging.getLogger(__name__)

MAX_ATTEMPTS: Final = 3
"""Searches per request, when other reservations take the nodes first."""
MAX_WRITES_PER_TICK: Final = 100
"""Writes of one `tick`, and deletions; callers do not wait for all that is due."""
_MIN_BUDGET_S: Final = 0.01
MAX_TURN_S: Final = 2.0
"""Seconds for all searches of one request, at most; the others wait until it is placed."""
CROWDED_TURN_S: Final = 0.25
"""The same if others wait."""
_MAX_WAITING: Final = 256
"""Requests that wait for their turn; a server limits its calls more than this."""


_ReservedState = tuple[CapacityState, Sequence[Reservation], Mapping[str, ReservationUsage]]
"""Capacity of a cluster, the reservations that hold nodes there, and the usage of each by id."""


class SearchLimit(NamedTuple):
    """When the search for a gang ends."""

    ends_at_s: float
    """On the monotonic clock."""
    is_cancelled: IsCancelled = never_cancelled


def _ignore_change() -> None:
    """Notify no caller."""


class ReservationLedger:
    """All reservations of one fabric; any thread may call."""

    def __init__(
        self,
        store: ReservationObjects,
        *,
        now: Callable[[], datetime],
        clock: Callable[[], float],
        on_change: Callable[[], None] = _ignore_change,
    ) -> None:
        """Start without a snapshot.

        Args:
            store: keeps the reservations.
            now: the wall clock, with a time zone: reservations outlive this process.
            clock: seconds of a monotonic clock, for deadlines.
            on_change: called when nodes become reserved or free; must return soon.
        """
        self._store = store
        self._on_change = on_change
        self._notified: Snapshot | None = None
        self._unusable_log = TransitionLog(log, "unusable reservation", level=logging.WARNING)
        self._problem = ""
        """Error of the last tick; logged once."""
        self._now = now
        self._clock = clock
        self._capacity: CapacityState | None = None
        self._cached: CachedSnapshot | None = None
        self._cache = ReservationCache()
        self._turns = FairShare(
            1, per_caller=1, max_waiting=_MAX_WAITING, waiting_per_caller=_MAX_WAITING
        )
        self._write_lock = Lock()

    @property
    def snapshot(self) -> Snapshot | None:
        """The cluster with its reserved nodes nominated; None until both are known."""
        capacity = self._capacity
        if capacity is None or not self._store.is_known:
            return None
        return self._read_cached(capacity).snapshot

    def find_leader(self) -> str:
        """Return the address of the replica that can write; empty if it is this one, or unknown."""
        refusal = self._store.find_write_refusal()
        return refusal.leader if refusal is not None else ""

    def publish(self, snapshot: Snapshot, pods: Sequence[BoundPod] = ()) -> None:
        """Publish a new state of the cluster.

        Args:
            snapshot: free capacity of the nodes after the running pods.
            pods: the bound pods of gangs that the snapshot counts.
        """
        self._capacity = CapacityState(snapshot, tuple(pods))

    def read_current(self) -> tuple[Reservation, ...]:
        """Return all stored reservations in their present phase."""
        now = self._now()
        return tuple(
            expire_if_due(row, now=now, epoch=row.epoch) for row in self._store.read_reservations()
        )

    def count_reserved(self) -> ReservedTotals:
        """Return the reservations per phase, and the amounts that they reserve, at present."""
        phases = Counter(row.phase for row in self.read_current())
        snapshot = self.snapshot
        amounts = Counter[str]()
        for gang in snapshot.nominated.values() if snapshot else ():
            for row in gang.pods:
                amounts.update({name: amount * row.count for name, amount in row.request.items()})
        return ReservedTotals(phases, amounts)

    def reserve(
        self,
        request: ReservationRequest,
        *,
        budget_s: float,
        caller: str = "",
        is_cancelled: IsCancelled = never_cancelled,
    ) -> ReservationResult | Refusal:
        """Place a gang and reserve its nodes.

        Args:
            request: the gang and the time for which to hold its nodes.
            budget_s: time that the wait for a turn and the search may take.
            caller: callers have their turns one after the other, however many requests each has.
            is_cancelled: asked at each step of the search.

        Raises:
            SearchCancelledError: the request was cancelled; nothing is reserved.
        """
        ends_at_s = self._clock() + budget_s

        def begin_search() -> SearchLimit:
            max_s = CROWDED_TURN_S if self._turns.num_waiting else MAX_TURN_S
            return SearchLimit(min(ends_at_s, self._clock() + max_s), is_cancelled)

        refusal = find_refusal(request)
        if refusal is not None:
            return refusal
        if request.is_trial:
            return self._place_and_store(request, begin_search())
        refusal = self._store.find_write_refusal()
        if refusal is not None:
            return refusal
        with self._turns.hold(caller, timeout_s=budget_s, is_over=is_cancelled) as has_turn:
            if not has_turn:
                return Refusal(RefusalKind.CHANGED, "other requests are being placed; try again")
            try:
                return self._reserve_and_store(request, begin_search())
            except (KubeError, StoreError) as error:
                return _build_refusal(error)

    def confirm(self, id_: str, *, holder: str, min_epoch: int = 0) -> Reservation | Refusal:
        """Hold a reservation until it is released.

        Args:
            id_: the id of the reservation.
            holder: authenticated name of the caller.
            min_epoch: last epoch that the caller received; a server of an older epoch refuses.
        """
        return self._apply_step(id_, Step.CONFIRM, holder=holder, min_epoch=min_epoch)

    def release(self, id_: str, *, holder: str, min_epoch: int = 0) -> Reservation | Refusal:
        """Release the nodes of a reservation; arguments as for `confirm`."""
        return self._apply_step(id_, Step.RELEASE, holder=holder, min_epoch=min_epoch)

    def tick(self) -> None:
        """Notify of changes; write due reservations if writes are possible; log an error once.

        A reservation is due if it is expired or used up, or has the epoch of a former writer.
        """
        self._notify()
        self._unusable_log.update({text: {"problem": text} for text in self._store.problems})
        if self._store.find_write_refusal() is not None:
            return
        try:
            with self._write_lock:
                self._store.refresh()
                now = self._now()
                writer = ReservationWriter(
                    self._store.epoch, frozenset(self._store.read_inherited_ids())
                )
                reservations = self._store.read_reservations()
                usages = self._compute_usage(reservations, self._capacity, now)
                due = find_due(reservations, usages, now=now, writer=writer)
                if due:
                    self._put(due[:MAX_WRITES_PER_TICK])
                self._forget(find_forgettable(reservations, usages, now=now), now)
            self._problem = ""
        except (KubeError, StoreError) as error:
            if str(error) != self._problem:
                log.warning("reservations not updated", extra={"error": str(error)})
            self._problem = str(error)

    def _notify(self) -> None:
        """Report a changed snapshot once: writes of others, own writes and expired reservations."""
        snapshot = self.snapshot
        if snapshot is not self._notified:
            self._notified = snapshot
            self._on_change()

    def _make_room(self) -> None:
        """Delete ended reservations if there is no room: they must not block a new request."""
        with self._write_lock:
            stored, now = self._store.read_reservations(), self._now()
            if len(stored) >= MAX_RESERVATIONS:
                usages = self._compute_usage(stored, self._capacity, now)
                limit = MAX_RESERVATIONS - 1
                self._forget(find_forgettable(stored, usages, now=now, limit=limit), now)

    def _forget(self, rows: Sequence[Reservation], now: datetime) -> None:
        rows, epoch = rows[:MAX_WRITES_PER_TICK], self._store.epoch
        # The API server lets ended reservations be deleted alone, and the end may not be written.
        unwritten = [expire_if_due(row, now=now, epoch=epoch) for row in rows if not row.is_ended]
        if unwritten:
            self._put(unwritten)
        if rows:
            self._store.delete([row.id for row in rows])

    def _put(self, changed: Sequence[Reservation]) -> None:
        self._store.put(changed)
        self._notify()

    def _reserve_and_store(
        self, request: ReservationRequest, limit: SearchLimit
    ) -> ReservationResult | Refusal:
        self._store.refresh()
        earlier = self._find(request.id)
        if earlier is not None:
            return self._answer_repeat(earlier, request)
        refusal = self._find_full_table(request.holder, room=1)
        if refusal is not None:
            return refusal
        self._make_room()
        return self._place_and_store(request, limit)

    def _place_and_store(
        self, request: ReservationRequest, limit: SearchLimit
    ) -> ReservationResult | Refusal:
        for _ in range(MAX_ATTEMPTS):
            capacity = self._capacity
            if capacity is None:
                return Refusal(RefusalKind.NO_TREE, "the tree is not known yet; try again")
            placement, view = self._place(capacity, request.placement_request, limit)
            if request.is_trial or not placement.is_feasible:
                return ReservationResult(placement, None)
            with self._write_lock:
                self._store.refresh()  # leadership may have moved away and back during the search
                result = self._store_if_fits(self._capacity or capacity, request, placement, view)
                if result is not None:
                    return result
        return Refusal(RefusalKind.CHANGED, "other reservations took the nodes first; try again")

    def _place(
        self, capacity: CapacityState, request: PlacementRequest, limit: SearchLimit
    ) -> tuple[Placement, ReservationView]:
        """Place beside all reservations; preempt, from the lowest priority, only if that fails."""
        active, usages = self._read_held(capacity)
        views = build_views(request.gang, request.priority, active)
        for view in views[:-1]:
            placement = self._place_in_view(view, (capacity, active, usages), request, limit)
            if placement.is_feasible:
                return placement, view
        state = (capacity, active, usages)
        return self._place_in_view(views[-1], state, request, limit), views[-1]

    def _place_in_view(
        self,
        view: ReservationView,
        state: _ReservedState,
        request: PlacementRequest,
        limit: SearchLimit,
    ) -> Placement:
        capacity, active, usages = state
        snapshot = with_nominations(
            capacity.snapshot, build_nominations(active, usages, view=view, cache=self._cache)
        )
        left_s = max(_MIN_BUDGET_S, limit.ends_at_s - self._clock())
        bounded = request.with_deadline(left_s)
        return place(snapshot, bounded, clock=self._clock, is_cancelled=limit.is_cancelled)

    def _store_if_fits(
        self,
        capacity: CapacityState,
        request: ReservationRequest,
        placement: Placement,
        view: ReservationView,
    ) -> ReservationResult | Refusal | None:
        """Write a reservation if its placement still fits; None if it does not."""
        now, epoch = self._now(), self._store.epoch
        reservation = build_reservation(request, placement, now=now, epoch=epoch)
        if isinstance(reservation, Refusal):
            return reservation
        refusal = self._find_full_table(request.holder, room=compute_room(reservation))
        if refusal is not None:
            return refusal
        active, usages = self._read_held(capacity)
        others = build_nominations(active, usages, view=view, cache=self._cache)
        preempted = find_preempted(
            capacity.snapshot, as_running_gang(request.placement_request, placement), others
        )
        if preempted is None:
            return None
        message = f"preempted by {request.id} of priority {request.placement_request.priority}"
        ends = [
            apply_step(other, Step.RELEASE, now=now, epoch=epoch, message=message)
            for other in active
            if other.id in preempted
        ]
        # Write the preempted first: an interruption in between reserves too little, not too much.
        self._put([*(other for other in ends if isinstance(other, Reservation)), reservation])
        stored = self._find(reservation.id) or reservation  # its creation time may differ
        return ReservationResult(restore_placement(stored), stored)

    def _answer_repeat(
        self, earlier: Reservation, request: ReservationRequest
    ) -> ReservationResult | Refusal:
        if earlier.request_hash != hash_request(request):
            problem = f"the id {request.id} was used for another request: use a new id"
            return Refusal(RefusalKind.REUSED, problem, "request_id")
        current = expire_if_due(earlier, now=self._now(), epoch=earlier.epoch)
        return ReservationResult(restore_placement(earlier), current)

    def _apply_step(
        self, id_: str, step: Step, *, holder: str, min_epoch: int
    ) -> Reservation | Refusal:
        refusal = self._store.find_write_refusal()
        if refusal is not None:
            return refusal
        try:
            with self._write_lock:
                self._store.refresh()
                current = self._find_owned(id_, holder, min_epoch)
                if isinstance(current, Refusal):
                    return current
                after = apply_step(current, step, now=self._now(), epoch=self._store.epoch)
                if isinstance(after, Reservation) and after is not current:
                    self._put([after])
                return after
        except (KubeError, StoreError) as error:
            return _build_refusal(error)

    def _find_owned(self, id_: str, holder: str, min_epoch: int) -> Reservation | Refusal:
        """Return the reservation of an id if the caller holds it."""
        if min_epoch > self._store.epoch:
            problem = f"another server has begun epoch {min_epoch}; the epoch here is older"
            return Refusal(RefusalKind.CHANGED, problem)
        reservation = self._find(id_)
        if reservation is None:
            problem = f"no reservation has the id '{show(id_, 64)}'"
            return Refusal(RefusalKind.UNKNOWN, problem)
        if reservation.holder != holder:
            return Refusal(RefusalKind.NOT_HOLDER, f"reservation {id_} belongs to another holder")
        return reservation

    def _read_cached(self, capacity: CapacityState) -> CachedSnapshot:
        now, stored, cached = self._now(), self._store.read_reservations(), self._cached
        if cached is not None and cached.capacity is capacity and cached.reservations is stored:
            until = cached.valid_until
            if cached.valid_from <= now and (until is None or now < until):
                return cached
        active = [row for row in stored if row.is_held_at(now)]
        ends = min((row.expires_at for row in active if row.expires_at), default=None)
        usages = self._compute_usage(stored, capacity, now)
        snapshot = with_nominations(
            capacity.snapshot, build_nominations(active, usages, cache=self._cache)
        )
        self._cached = cached = CachedSnapshot(capacity, stored, now, ends, snapshot)
        return cached

    def _read_held(
        self, capacity: CapacityState
    ) -> tuple[list[Reservation], dict[str, ReservationUsage]]:
        stored, now = self._store.read_reservations(), self._now()
        active = [row for row in stored if row.is_held_at(now)]
        return active, self._compute_usage(stored, capacity, now)

    def _compute_usage(
        self, stored: Sequence[Reservation], capacity: CapacityState | None, now: datetime
    ) -> dict[str, ReservationUsage]:
        current = (expire_if_due(row, now=now, epoch=0) for row in stored)
        return compute_usage(current, capacity.pods if capacity else (), cache=self._cache)

    def _find(self, id_: str) -> Reservation | None:
        return next((row for row in self._store.read_reservations() if row.id == id_), None)

    def _find_full_table(self, holder: str, *, room: int) -> Refusal | None:
        """Return why a holder gets no further reservation of some room; None if it gets one.

        A holder has at most as much room as is left, so that every other holder gets some too.
        """
        now = self._now()
        held = [row for row in self._store.read_reservations() if row.is_held_at(now)]
        own = sum(compute_room(row) for row in held if row.holder == holder)
        free = MAX_HELD - sum(map(compute_room, held))
        if own + room <= free:
            return None
        problem = (
            f"your reservations take {own} places and this one {room} or more, and {free} of "
            f"{MAX_HELD} are left: a caller takes at most as many as are left, and a large "
            "reservation takes several; release those that are not needed"
        )
        return Refusal(RefusalKind.FULL, problem)


def _build_refusal(error: KubeError | StoreError) -> Refusal:
    is_lost = isinstance(error, KubeConflict | KubeFenced | StoreConflict | StoreFenced)
    return Refusal(RefusalKind.CHANGED if is_lost else RefusalKind.STORE, str(error))
