"""Reserving: places a gang, keeps its nodes in a store, and shows placement what is kept.

One wish is placed at a time. Confirming and releasing go on meanwhile, since they only ever free
nodes; what was placed is judged once more before it is written, and placed anew where it does not
fit any longer.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import Lock
from typing import Final, NamedTuple

from generator.objects.pods import BoundPod
from generator.placement.answer import Placement
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.engine import place, as_running_gang
from generator.placement.request import PlacementRequest
from generator.reservations.expiry import ReservationWriter, find_due, find_forgettable
from generator.reservations.holds import (
    ReservationUsage,
    ReservationCache,
    ReservationView,
    compute_usage,
    build_nominations,
    with_nominations,
    find_preempted,
    build_views,
)
from generator.reservations.records import (
    ReservedTotals,
    Refusal,
    RefusalKind,
    Reservation,
    ReservationResult,
    ReservationRequest,
)
from generator.reservations.rules import (
    MAX_HELD,
    MAX_RESERVATIONS,
    Step,
    hash_request,
    restore_placement,
    find_refusal,
    build_reservation,
    expire_if_due,
    apply_step,
)
from generator.reservations.store import ReservationStore, StoreFenced
from runtime.transition_log import TransitionLog
from topology.model.errors import KubeConflict, KubeError, KubeFenced, StoreError, show

log = logging.getLogger(__name__)

MAX_ATTEMPTS: Final = 3
"""To place a gang where others are quicker."""
MAX_WRITES_PER_TICK: Final = 100
"""Written in one go by `tick`, so that callers need not wait for all that is due."""
_MIN_BUDGET_S: Final = 0.01


class CapacityState(NamedTuple):
    """A cluster, and the pods of gangs that its capacity was counted with."""

    snapshot: Snapshot
    pods: tuple[BoundPod, ...] = ()


_ReservedState = tuple[CapacityState, Sequence[Reservation], Mapping[str, ReservationUsage]]
"""A cluster, what holds there, and what each of that still keeps."""


class _CachedSnapshot(NamedTuple):
    """What is shown, and for how long it is true."""

    capacity: CapacityState
    reservations: tuple[Reservation, ...]
    valid_from: datetime
    valid_until: datetime | None
    snapshot: Snapshot


def _ignore_change() -> None:
    """Tell nobody."""


class ReservationLedger:
    """All reservations of one fabric; any thread may call."""

    def __init__(
        self,
        store: ReservationStore,
        *,
        now: Callable[[], datetime],
        clock: Callable[[], float],
        on_change: Callable[[], None] = _ignore_change,
    ) -> None:
        """Show nothing yet.

        Args:
            store: keeps them.
            now: the wall clock, with a time zone: reservations outlive this process.
            clock: seconds of a monotonic clock, for deadlines.
            on_change: called when something is reserved or free that was not; must return soon.
        """
        self._store = store
        self._on_change = on_change
        self._notified: Snapshot | None = None
        self._unusable_log = TransitionLog(log, "unusable reservation", level=logging.WARNING)
        self._problem = ""
        """Of the last tick, which is told once."""
        self._now = now
        self._clock = clock
        self._capacity: CapacityState | None = None
        self._cached: _CachedSnapshot | None = None
        self._cache = ReservationCache()
        self._placement_lock = Lock()
        self._write_lock = Lock()

    @property
    def snapshot(self) -> Snapshot | None:
        """The cluster with what is reserved at this moment, None until both are known."""
        stand = self._capacity
        if stand is None or not self._store.is_known:
            return None
        return self._read_cached(stand).snapshot

    def publish(self, snapshot: Snapshot, pods: Sequence[BoundPod] = ()) -> None:
        """Take a new state of the cluster.

        Args:
            snapshot: what pods leave of the nodes.
            pods: of gangs, no more than were counted in the snapshot.
        """
        self._capacity = CapacityState(snapshot, tuple(pods))

    def read_current(self) -> tuple[Reservation, ...]:
        """Return all reservations that are remembered, as they are now."""
        now = self._now()
        return tuple(
            expire_if_due(one, now=now, epoch=one.epoch) for one in self._store.read_reservations()
        )

    def count_reserved(self) -> ReservedTotals:
        """Return how much is reserved at this moment."""
        phases = Counter(one.phase for one in self.read_current())
        snapshot = self.snapshot
        amounts = Counter[str]()
        for gang in snapshot.nominated.values() if snapshot else ():
            for row in gang.pods:
                amounts.update({name: need * row.count for name, need in row.request.items()})
        return ReservedTotals(phases, amounts)

    def reserve(self, wish: ReservationRequest, *, budget_s: float) -> ReservationResult | Refusal:
        """Place a gang and keep its nodes.

        Args:
            wish: what is asked for.
            budget_s: that the search may take.
        """
        ends_at = self._clock() + budget_s
        refusal = find_refusal(wish)
        if refusal is not None:
            return refusal
        if wish.is_trial:
            return self._place_and_store(wish, ends_at)
        refusal = self._store.find_write_refusal()
        if refusal is not None:
            return refusal
        with self._wait_for_turn(ends_at) as is_ours:
            if not is_ours:
                return Refusal(RefusalKind.CHANGED, "others reserve at this moment; try again")
            try:
                return self._reserve_and_store(wish, ends_at)
            except (KubeError, StoreError) as error:
                return _build_refusal(error)

    def confirm(self, id_: str, *, holder: str, least_epoch: int = 0) -> Reservation | Refusal:
        """Make a reservation last until it is released.

        Args:
            id_: of the reservation.
            holder: who asks.
            least_epoch: that the caller has seen; a writer of before that changes nothing.
        """
        return self._apply_step(id_, Step.CONFIRM, holder=holder, least_epoch=least_epoch)

    def release(self, id_: str, *, holder: str, least_epoch: int = 0) -> Reservation | Refusal:
        """Give the nodes of a reservation back; arguments as for `confirm`."""
        return self._apply_step(id_, Step.RELEASE, holder=holder, least_epoch=least_epoch)

    def tick(self) -> None:
        """Tell of changes, and write what is due where we may; what fails is logged, once.

        Due are ends, and our epoch on what was taken over.
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
                known = self._store.read_reservations()
                left = self._compute_usage(known, self._capacity, now)
                due = find_due(known, left, now=now, writer=writer)
                if due:
                    self._put(due[:MAX_WRITES_PER_TICK])
                forgotten = find_forgettable(known, left, now=now)
                if forgotten:
                    self._store.delete(forgotten[:MAX_WRITES_PER_TICK])
            self._problem = ""
        except (KubeError, StoreError) as error:
            if str(error) != self._problem:
                log.warning("reservations not kept up", extra={"error": str(error)})
            self._problem = str(error)

    def _notify(self) -> None:
        """Tell once of what others wrote, of what we did, and of time that is up."""
        snapshot = self.snapshot
        if snapshot is not self._notified:
            self._notified = snapshot
            self._on_change()

    def _put(self, changed: Sequence[Reservation]) -> None:
        self._store.put(changed)
        self._notify()

    def _reserve_and_store(
        self, wish: ReservationRequest, ends_at: float
    ) -> ReservationResult | Refusal:
        self._store.refresh()
        earlier = self._find(wish.id)
        if earlier is not None:
            return self._answer_repeat(earlier, wish)
        if self._is_full():
            problem = "too many reservations; release those that are not needed"
            return Refusal(RefusalKind.FULL, problem)
        return self._place_and_store(wish, ends_at)

    def _place_and_store(
        self, wish: ReservationRequest, ends_at: float
    ) -> ReservationResult | Refusal:
        for _ in range(MAX_ATTEMPTS):
            stand = self._capacity
            if stand is None:
                return Refusal(RefusalKind.NO_TREE, "the tree is not known yet; try again")
            placement, view = self._place(stand, wish.placement_request, ends_at)
            if wish.is_trial or not placement.is_feasible:
                return ReservationResult(placement, None)
            with self._write_lock:
                self._store.refresh()  # the lead may have passed on, and back, during the search
                made = self._store_if_fits(self._capacity or stand, wish, placement, view)
                if made is not None:
                    return made
        return Refusal(RefusalKind.CHANGED, "others were quicker; try again")

    def _place(
        self, stand: CapacityState, request: PlacementRequest, ends_at: float
    ) -> tuple[Placement, ReservationView]:
        """Place beside all that is reserved; only where that fails, let the least give way."""
        held, left = self._read_held(stand)
        views = build_views(request.gang, request.priority, held)
        for view in views[:-1]:
            placement = self._place_in_view(view, (stand, held, left), request, ends_at)
            if placement.is_feasible:
                return placement, view
        return self._place_in_view(views[-1], (stand, held, left), request, ends_at), views[-1]

    def _place_in_view(
        self,
        view: ReservationView,
        state: _ReservedState,
        request: PlacementRequest,
        ends_at: float,
    ) -> Placement:
        stand, held, left = state
        snapshot = with_nominations(
            stand.snapshot, build_nominations(held, left, view=view, cache=self._cache)
        )
        left_s = max(_MIN_BUDGET_S, ends_at - self._clock())
        return place(snapshot, request.with_deadline(left_s), clock=self._clock)

    def _store_if_fits(
        self,
        stand: CapacityState,
        wish: ReservationRequest,
        placement: Placement,
        view: ReservationView,
    ) -> ReservationResult | Refusal | None:
        """Write a reservation where its placement still fits; None where it does not."""
        now, epoch = self._now(), self._store.epoch
        made = build_reservation(wish, placement, now=now, epoch=epoch)
        if isinstance(made, Refusal):
            return made
        held, left = self._read_held(stand)
        others = build_nominations(held, left, view=view, cache=self._cache)
        gone = find_preempted(
            stand.snapshot, as_running_gang(wish.placement_request, placement), others
        )
        if gone is None:
            return None
        message = f"gave way to {wish.id} of priority {wish.placement_request.priority}"
        ends = [
            apply_step(one, Step.RELEASE, now=now, epoch=epoch, message=message)
            for one in held
            if one.id in gone
        ]
        # First they give way: what is cut off in between keeps too little rather than too much.
        self._put([*(one for one in ends if isinstance(one, Reservation)), made])
        kept = self._find(made.id) or made  # the store may tell another time than our clock
        return ReservationResult(restore_placement(kept), kept)

    def _answer_repeat(
        self, earlier: Reservation, wish: ReservationRequest
    ) -> ReservationResult | Refusal:
        if earlier.request_hash != hash_request(wish):
            problem = f"the id {wish.id} was used for another request: draw a new one"
            return Refusal(RefusalKind.REUSED, problem, "request_id")
        now = expire_if_due(earlier, now=self._now(), epoch=earlier.epoch)
        return ReservationResult(restore_placement(earlier), now)

    def _apply_step(
        self, id_: str, step: Step, *, holder: str, least_epoch: int
    ) -> Reservation | Refusal:
        refusal = self._store.find_write_refusal()
        if refusal is not None:
            return refusal
        try:
            with self._write_lock:
                self._store.refresh()
                found = self._find_owned(id_, holder, least_epoch)
                if isinstance(found, Refusal):
                    return found
                after = apply_step(found, step, now=self._now(), epoch=self._store.epoch)
                if isinstance(after, Reservation) and after is not found:
                    self._put([after])
                return after
        except (KubeError, StoreError) as error:
            return _build_refusal(error)

    def _find_owned(self, id_: str, holder: str, least_epoch: int) -> Reservation | Refusal:
        """Return the reservation that a caller means, where it is theirs."""
        if least_epoch > self._store.epoch:
            problem = f"epoch {least_epoch} has begun elsewhere, this one is older"
            return Refusal(RefusalKind.CHANGED, problem)
        found = self._find(id_)
        if found is None:
            problem = f"no reservation is known by the id '{show(id_, 64)}'"
            return Refusal(RefusalKind.UNKNOWN, problem)
        if found.holder != holder:
            return Refusal(RefusalKind.NOT_HOLDER, f"reservation {id_} is somebody else's")
        return found

    def _read_cached(self, stand: CapacityState) -> _CachedSnapshot:
        now, known, seen = self._now(), self._store.read_reservations(), self._cached
        if seen is not None and seen.capacity is stand and seen.reservations is known:
            is_same = seen.valid_from <= now and (
                seen.valid_until is None or now < seen.valid_until
            )
            if is_same:
                return seen
        held = [one for one in known if one.is_held_at(now)]
        ends = min((one.expires_at for one in held if one.expires_at), default=None)
        left = self._compute_usage(known, stand, now)
        snapshot = with_nominations(
            stand.snapshot, build_nominations(held, left, cache=self._cache)
        )
        self._cached = seen = _CachedSnapshot(stand, known, now, ends, snapshot)
        return seen

    def _read_held(
        self, stand: CapacityState
    ) -> tuple[list[Reservation], dict[str, ReservationUsage]]:
        known, now = self._store.read_reservations(), self._now()
        return [one for one in known if one.is_held_at(now)], self._compute_usage(known, stand, now)

    def _compute_usage(
        self, known: Sequence[Reservation], stand: CapacityState | None, now: datetime
    ) -> dict[str, ReservationUsage]:
        rows = (expire_if_due(one, now=now, epoch=0) for one in known)
        return compute_usage(rows, stand.pods if stand else (), cache=self._cache)

    def _find(self, id_: str) -> Reservation | None:
        return next((one for one in self._store.read_reservations() if one.id == id_), None)

    def _is_full(self) -> bool:
        known, now = self._store.read_reservations(), self._now()
        return (
            len(known) >= MAX_RESERVATIONS or sum(one.is_held_at(now) for one in known) >= MAX_HELD
        )

    @contextmanager
    def _wait_for_turn(self, ends_at: float) -> Iterator[bool]:
        """Place alone within the context, if our turn comes in time."""
        is_ours = self._placement_lock.acquire(timeout=max(0.0, ends_at - self._clock()))
        try:
            yield is_ours
        finally:
            if is_ours:
                self._placement_lock.release()


def _build_refusal(error: KubeError | StoreError) -> Refusal:
    is_lost = isinstance(error, KubeConflict | KubeFenced | StoreFenced)
    return Refusal(RefusalKind.CHANGED if is_lost else RefusalKind.STORE, str(error))
