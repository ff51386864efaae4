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
from generator.placement.engine import place, running_gang
from generator.placement.request import PlacementRequest
from generator.reservations.expiry import Writer, due_of, forgotten_of
from generator.reservations.holds import (
    Left,
    Memo,
    View,
    left_of,
    nominations,
    occupied,
    outranked,
    views_of,
)
from generator.reservations.records import Census, Refusal, RefusalKind, Reservation, Reserved, Wish
from generator.reservations.rules import (
    MOST_HELD,
    MOST_KNOWN,
    Step,
    hash_of,
    placement_of,
    refused,
    reservation_of,
    settled,
    stepped,
)
from generator.reservations.store import ReservationStore, StoreFenced
from runtime.transition_log import TransitionLog
from topology.model.errors import KubeConflict, KubeError, KubeFenced, StoreError, show

log = logging.getLogger(__name__)

ATTEMPTS: Final = 3
"""To place a gang where others are quicker."""
MOST_AT_ONCE: Final = 100
"""Written in one go by `tick`, so that callers need not wait for all that is due."""
_LEAST_S: Final = 0.01


class Stand(NamedTuple):
    """A cluster, and the pods of gangs that its capacity was counted with."""

    snapshot: Snapshot
    pods: tuple[BoundPod, ...] = ()


_State = tuple[Stand, Sequence[Reservation], Mapping[str, Left]]
"""A cluster, what holds there, and what each of that still keeps."""


class _Seen(NamedTuple):
    """What is shown, and for how long it is true."""

    stand: Stand
    known: tuple[Reservation, ...]
    begins: datetime
    ends: datetime | None
    snapshot: Snapshot


def _nobody() -> None:
    """Tell nobody."""


class Reservations:
    """All reservations of one fabric; any thread may call."""

    def __init__(
        self,
        store: ReservationStore,
        *,
        now: Callable[[], datetime],
        clock: Callable[[], float],
        on_change: Callable[[], None] = _nobody,
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
        self._told: Snapshot | None = None
        self._unusable = TransitionLog(log, "unusable reservation", level=logging.WARNING)
        self._problem = ""
        """Of the last tick, which is told once."""
        self._now = now
        self._clock = clock
        self._stand: Stand | None = None
        self._seen: _Seen | None = None
        self._memo = Memo()
        self._placing = Lock()
        self._writing = Lock()

    @property
    def snapshot(self) -> Snapshot | None:
        """The cluster with what is reserved at this moment, None until both are known."""
        stand = self._stand
        if stand is None or not self._store.is_known:
            return None
        return self._occupied(stand).snapshot

    def publish(self, snapshot: Snapshot, pods: Sequence[BoundPod] = ()) -> None:
        """Take a new state of the cluster.

        Args:
            snapshot: what pods leave of the nodes.
            pods: of gangs, no more than were counted in the snapshot.
        """
        self._stand = Stand(snapshot, tuple(pods))

    def known(self) -> tuple[Reservation, ...]:
        """Return all reservations that are remembered, as they are now."""
        now = self._now()
        return tuple(settled(one, now=now, epoch=one.epoch) for one in self._store.read())

    def census(self) -> Census:
        """Return how much is reserved at this moment."""
        phases = Counter(one.phase for one in self.known())
        snapshot = self.snapshot
        amounts = Counter[str]()
        for gang in snapshot.nominated.values() if snapshot else ():
            for row in gang.pods:
                amounts.update({name: need * row.count for name, need in row.request.items()})
        return Census(phases, amounts)

    def reserve(self, wish: Wish, *, budget_s: float) -> Reserved | Refusal:
        """Place a gang and keep its nodes.

        Args:
            wish: what is asked for.
            budget_s: that the search may take.
        """
        ends_at = self._clock() + budget_s
        refusal = refused(wish)
        if refusal is not None:
            return refusal
        if wish.is_trial:
            return self._reserved(wish, ends_at)
        refusal = self._store.why_not()
        if refusal is not None:
            return refusal
        with self._turn(ends_at) as is_ours:
            if not is_ours:
                return Refusal(RefusalKind.CHANGED, "others reserve at this moment; try again")
            try:
                return self._kept(wish, ends_at)
            except (KubeError, StoreError) as error:
                return _refusal_of(error)

    def confirm(self, id_: str, *, holder: str, least_epoch: int = 0) -> Reservation | Refusal:
        """Make a reservation last until it is released.

        Args:
            id_: of the reservation.
            holder: who asks.
            least_epoch: that the caller has seen; a writer of before that changes nothing.
        """
        return self._step(id_, Step.CONFIRM, holder=holder, least_epoch=least_epoch)

    def release(self, id_: str, *, holder: str, least_epoch: int = 0) -> Reservation | Refusal:
        """Give the nodes of a reservation back; arguments as for `confirm`."""
        return self._step(id_, Step.RELEASE, holder=holder, least_epoch=least_epoch)

    def tick(self) -> None:
        """Tell of changes, and write what is due where we may; what fails is logged, once.

        Due are ends, and our epoch on what was taken over.
        """
        self._notice()
        self._unusable.update({text: {"problem": text} for text in self._store.problems})
        if self._store.why_not() is not None:
            return
        try:
            with self._writing:
                self._store.refresh()
                now = self._now()
                writer = Writer(self._store.epoch, frozenset(self._store.taken_over()))
                known = self._store.read()
                left = self._left(known, self._stand, now)
                due = due_of(known, left, now=now, writer=writer)
                if due:
                    self._put(due[:MOST_AT_ONCE])
                forgotten = forgotten_of(known, left, now=now)
                if forgotten:
                    self._store.forget(forgotten[:MOST_AT_ONCE])
            self._problem = ""
        except (KubeError, StoreError) as error:
            if str(error) != self._problem:
                log.warning("reservations not kept up", extra={"error": str(error)})
            self._problem = str(error)

    def _notice(self) -> None:
        """Tell once of what others wrote, of what we did, and of time that is up."""
        snapshot = self.snapshot
        if snapshot is not self._told:
            self._told = snapshot
            self._on_change()

    def _put(self, changed: Sequence[Reservation]) -> None:
        self._store.put(changed)
        self._notice()

    def _kept(self, wish: Wish, ends_at: float) -> Reserved | Refusal:
        self._store.refresh()
        earlier = self._find(wish.id)
        if earlier is not None:
            return self._replayed(earlier, wish)
        if self._is_full():
            problem = "too many reservations; release those that are not needed"
            return Refusal(RefusalKind.FULL, problem)
        return self._reserved(wish, ends_at)

    def _reserved(self, wish: Wish, ends_at: float) -> Reserved | Refusal:
        for _ in range(ATTEMPTS):
            stand = self._stand
            if stand is None:
                return Refusal(RefusalKind.NO_TREE, "the tree is not known yet; try again")
            placement, view = self._placed(stand, wish.request, ends_at)
            if wish.is_trial or not placement.is_feasible:
                return Reserved(placement, None)
            with self._writing:
                self._store.refresh()  # the lead may have passed on, and back, during the search
                made = self._admitted(self._stand or stand, wish, placement, view)
                if made is not None:
                    return made
        return Refusal(RefusalKind.CHANGED, "others were quicker; try again")

    def _placed(
        self, stand: Stand, request: PlacementRequest, ends_at: float
    ) -> tuple[Placement, View]:
        """Place beside all that is reserved; only where that fails, let the least give way."""
        held, left = self._held(stand)
        views = views_of(request.gang, request.priority, held)
        for view in views[:-1]:
            placement = self._placed_in(view, (stand, held, left), request, ends_at)
            if placement.is_feasible:
                return placement, view
        return self._placed_in(views[-1], (stand, held, left), request, ends_at), views[-1]

    def _placed_in(
        self, view: View, state: _State, request: PlacementRequest, ends_at: float
    ) -> Placement:
        stand, held, left = state
        snapshot = occupied(stand.snapshot, nominations(held, left, view=view, memo=self._memo))
        left_s = max(_LEAST_S, ends_at - self._clock())
        return place(snapshot, request.within(left_s), clock=self._clock)

    def _admitted(
        self, stand: Stand, wish: Wish, placement: Placement, view: View
    ) -> Reserved | Refusal | None:
        """Write a reservation where its placement still fits; None where it does not."""
        now, epoch = self._now(), self._store.epoch
        made = reservation_of(wish, placement, now=now, epoch=epoch)
        if isinstance(made, Refusal):
            return made
        held, left = self._held(stand)
        others = nominations(held, left, view=view, memo=self._memo)
        gone = outranked(stand.snapshot, running_gang(wish.request, placement), others)
        if gone is None:
            return None
        message = f"gave way to {wish.id} of priority {wish.request.priority}"
        ends = [
            stepped(one, Step.RELEASE, now=now, epoch=epoch, message=message)
            for one in held
            if one.id in gone
        ]
        # First they give way: what is cut off in between keeps too little rather than too much.
        self._put([*(one for one in ends if isinstance(one, Reservation)), made])
        kept = self._find(made.id) or made  # the store may tell another time than our clock
        return Reserved(placement_of(kept), kept)

    def _replayed(self, earlier: Reservation, wish: Wish) -> Reserved | Refusal:
        if earlier.request_hash != hash_of(wish):
            problem = f"the id {wish.id} was used for another request: draw a new one"
            return Refusal(RefusalKind.REUSED, problem, "request_id")
        now = settled(earlier, now=self._now(), epoch=earlier.epoch)
        return Reserved(placement_of(earlier), now)

    def _step(
        self, id_: str, step: Step, *, holder: str, least_epoch: int
    ) -> Reservation | Refusal:
        refusal = self._store.why_not()
        if refusal is not None:
            return refusal
        try:
            with self._writing:
                self._store.refresh()
                found = self._of(id_, holder, least_epoch)
                if isinstance(found, Refusal):
                    return found
                after = stepped(found, step, now=self._now(), epoch=self._store.epoch)
                if isinstance(after, Reservation) and after is not found:
                    self._put([after])
                return after
        except (KubeError, StoreError) as error:
            return _refusal_of(error)

    def _of(self, id_: str, holder: str, least_epoch: int) -> Reservation | Refusal:
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

    def _occupied(self, stand: Stand) -> _Seen:
        now, known, seen = self._now(), self._store.read(), self._seen
        if seen is not None and seen.stand is stand and seen.known is known:
            is_same = seen.begins <= now and (seen.ends is None or now < seen.ends)
            if is_same:
                return seen
        held = [one for one in known if one.holds(now)]
        ends = min((one.expires_at for one in held if one.expires_at), default=None)
        left = self._left(known, stand, now)
        snapshot = occupied(stand.snapshot, nominations(held, left, memo=self._memo))
        self._seen = seen = _Seen(stand, known, now, ends, snapshot)
        return seen

    def _held(self, stand: Stand) -> tuple[list[Reservation], dict[str, Left]]:
        known, now = self._store.read(), self._now()
        return [one for one in known if one.holds(now)], self._left(known, stand, now)

    def _left(
        self, known: Sequence[Reservation], stand: Stand | None, now: datetime
    ) -> dict[str, Left]:
        rows = (settled(one, now=now, epoch=0) for one in known)
        return left_of(rows, stand.pods if stand else (), memo=self._memo)

    def _find(self, id_: str) -> Reservation | None:
        return next((one for one in self._store.read() if one.id == id_), None)

    def _is_full(self) -> bool:
        known, now = self._store.read(), self._now()
        return len(known) >= MOST_KNOWN or sum(one.holds(now) for one in known) >= MOST_HELD

    @contextmanager
    def _turn(self, ends_at: float) -> Iterator[bool]:
        """Place alone within the context, if our turn comes in time."""
        is_ours = self._placing.acquire(timeout=max(0.0, ends_at - self._clock()))
        try:
            yield is_ours
        finally:
            if is_ours:
                self._placing.release()


def _refusal_of(error: KubeError | StoreError) -> Refusal:
    is_lost = isinstance(error, KubeConflict | KubeFenced | StoreFenced)
    return Refusal(RefusalKind.CHANGED if is_lost else RefusalKind.STORE, str(error))
