"""Reservations as objects of a folder or a cluster: every server reads them, the leader writes.

A reservation is created in two writes, the object and then its status; it holds nothing before the
second. Each write is sent only while this server leads, and changes an object only from the known
version; the status carries the epoch of the leader. In a cluster, the API server refuses a smaller
epoch; a folder refuses every write of a server that is not the last one that began. A new leader
reads the objects before its first write, because its watch may be behind, and again after a write
without an answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from generator.kube.cache import Listing, StoredObject
from generator.kube.lease_record import Leader
from generator.kube.resources import RESERVATIONS as RESOURCE
from generator.objects.reservation import RESERVATION_KIND
from generator.reservations.records import (
    Refusal,
    RefusalKind,
    Reservation,
    parse_stored_reservation,
    render_spec,
    render_status,
)
from generator.store.kinds import URGENT, Kind
from generator.store.object_store import ObjectStore, StoreFenced
from topology.model.errors import KubeConflict, KubeError, KubeFenced, StoreError, show
from topology.reports.neighbor_report import API_VERSION

_UNPROCESSABLE: Final = 422


class HeldReservation(NamedTuple):
    """The content of an object."""

    reservation: Reservation | None
    """None while the object has no status."""


def _parse_held(document: Mapping[str, Any]) -> HeldReservation:
    return HeldReservation(parse_stored_reservation(document))


RESERVATIONS: Final[Kind[HeldReservation]] = Kind(
    RESOURCE, _parse_held, pace=URGENT, is_private=True, has_status=True
)


class Leadership(NamedTuple):
    """The state of leader election; every use calls these functions again."""

    left_s: Callable[[], float]
    """Seconds for which this server may still write, 0 or less if it may not."""
    epoch: Callable[[], int]
    """How often the leader changed."""
    find_leader: Callable[[], Leader | None] = lambda: None
    """The replica that leads, None if none is known to lead."""


def always_leading(epoch: int) -> Leadership:
    """Return the leadership of the only server of a folder."""
    return Leadership(lambda: math.inf, lambda: epoch)


class _LeaderTerm(NamedTuple):
    """What a leader reads before its first write."""

    transitions: int
    epoch: int
    inherited_ids: frozenset[str]


class ReservationObjects:
    """The reservations of one store; a write is durable once it returns. Any thread may call."""

    def __init__(self, objects: ObjectStore, leadership: Leadership) -> None:
        """Read nothing yet.

        Args:
            objects: the store.
            leadership: whether this server may write.
        """
        self._objects = objects
        self._leadership = leadership
        self._last_read: tuple[Listing[HeldReservation] | None, tuple[Reservation, ...]] = None, ()
        self._term: _LeaderTerm | None = None
        self._is_refreshed = False

    @property
    def problems(self) -> tuple[str, ...]:
        """The objects that cannot be used and hold nothing, with the reason."""
        return tuple(map(str, self._read().all_problems))

    @property
    def epoch(self) -> int:
        """Signature of this writer: larger than the epoch of any earlier one."""
        transitions = self._leadership.epoch()
        term = self._term
        return term.epoch if term and term.transitions == transitions else transitions

    @property
    def is_known(self) -> bool:
        """Whether the objects were read once or cannot be: placement goes on without them."""
        progress = self._objects.find_progress(RESERVATIONS)
        return progress.is_synced or bool(progress.problem)

    def find_write_refusal(self) -> Refusal | None:
        """Return why no write is possible here: another replica leads, or the CRD is missing."""
        if self._leadership.left_s() <= 0:
            return _refuse_follower(self._leadership.find_leader())
        progress = self._objects.find_progress(RESERVATIONS)
        if not progress.is_synced:
            reason = progress.problem or "they are not listed yet"
            return Refusal(RefusalKind.STORE, f"reservations are not known: {reason}")
        return None

    def read_reservations(self) -> tuple[Reservation, ...]:
        """Return the known reservations; the identical tuple if nothing changed. Never raises."""
        listing = self._read()
        if listing is not self._last_read[0]:
            rows = tuple(row.reservation for row in listing.values if row.reservation is not None)
            last = self._last_read[1]
            self._last_read = listing, last if rows == last else rows
        return self._last_read[1]

    def read_inherited_ids(self) -> Collection[str]:
        """Return the ids of all reservations that existed when the leader's term began."""
        return self._term.inherited_ids if self._term else ()

    def refresh(self) -> None:
        """Read the writes of others when a term begins, or after a write without an answer.

        Raises:
            KubeError: the objects cannot be listed.
            StoreError: they cannot be read.
        """
        transitions = self._leadership.epoch()
        is_new = self._term is None or self._term.transitions != transitions
        if self._is_refreshed and not is_new:
            return
        self._objects.refresh(RESERVATIONS)
        if is_new:
            reservations = self.read_reservations()
            highest = max((reservation.epoch for reservation in reservations), default=0)
            # A deleted lease counts from 0 again, but the objects still have the old epochs.
            epoch = transitions if highest <= transitions else highest + 1
            self._term = _LeaderTerm(
                transitions, epoch, frozenset(reservation.id for reservation in reservations)
            )
        for row in self._read().objects:  # no caller got an answer for an object without a status
            if row.value.reservation is None:
                self._objects.delete(RESERVATIONS, row)
        self._is_refreshed = True

    def put(self, changed: Sequence[Reservation]) -> None:
        """Write reservations, one after another.

        Raises:
            KubeFenced: this replica no longer leads.
            KubeConflict: another writer changed the object, or the server has a later epoch.
            KubeError: the write is refused or gets no answer.
            StoreFenced: another server has begun to write the folder.
            StoreError: the folder cannot be written.
        """
        for reservation in changed:
            self._write_checked(partial(self._put_one, reservation))

    def delete(self, ids: Collection[str]) -> None:
        """Delete ended reservations, one after another; raises the same errors as `put`."""
        objects = {row.name: row for row in self._read().objects}
        for id_ in ids:
            if id_ in objects:
                self._write_checked(partial(self._objects.delete, RESERVATIONS, objects[id_]))

    def _write_checked(self, write: Callable[[], object]) -> None:
        """Write; after a failure the objects must be read before the next write."""
        try:
            write()
        except (KubeFenced, StoreFenced):
            raise
        except (KubeError, StoreError):
            self._is_refreshed = False
            raise

    def _put_one(self, reservation: Reservation) -> None:
        seen: StoredObject[Any] | None = self._read().find(reservation.id)
        if seen is None:
            seen = self._objects.create(RESERVATIONS, render_spec(reservation))
        document = {
            "apiVersion": API_VERSION,
            "kind": RESERVATION_KIND,
            "metadata": {"name": reservation.id},
            "status": render_status(reservation),
        }
        try:
            self._objects.apply(RESERVATIONS, document, seen=seen)
        except KubeError as error:
            if error.status == _UNPROCESSABLE:  # a rule of the CRD: a later epoch is stored
                raise KubeConflict(str(error), status=error.status, reason=error.reason) from error
            raise

    def _read(self) -> Listing[HeldReservation]:
        """Return the objects; if they cannot be read now, those of the last successful read."""
        try:
            return self._objects.read(RESERVATIONS)
        except (KubeError, StoreError):
            return self._last_read[0] or Listing()


def _refuse_follower(leader: Leader | None) -> Refusal:
    """Return why a replica that does not lead writes nothing, and which replica leads."""
    if leader is None or not leader.address:
        return Refusal(RefusalKind.NO_LEADER, "no replica is known to lead; try again")
    name, address = show(leader.name, 253), show(leader.address, 300)
    if leader.is_remote:
        problem = f"replica {name} leads: send the request to {address}"
        return Refusal(RefusalKind.NOT_LEADER, problem, leader=leader.address)
    problem = (
        f"replica {name} leads, and answers only on its own machine, at {address}: send the "
        f"request there; to a pod, through kubectl port-forward pod/{name}"
    )
    return Refusal(RefusalKind.NOT_LEADER, problem)
