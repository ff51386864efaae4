"""Reservations as objects of the API server: every replica follows them, the leader writes.

A reservation is created in two writes, the object and then its status; it holds nothing before the
second. Each write is sent only while this replica leads, by its own clock, and changes an object
only from the known resource version; the status carries the epoch of the leader, and the API server
refuses a smaller epoch. A new leader lists the objects before its first write, because its watch
may be behind. A leader lists them again after a write without an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from threading import Thread
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from generator.kube.applier import Applier, RetryPolicy
from generator.kube.cache import Cache
from generator.kube.lease import Leader
from generator.kube.paged_list import list_into_cache
from generator.kube.reflector import Reflector
from generator.kube.resources import RESERVATIONS
from generator.kube.transport import Transport
from generator.reservations.documents import parse_stored_reservation, render_spec, render_status
from generator.reservations.records import Refusal, RefusalKind, Reservation
from generator.store.listed_objects import build_listing
from generator.store.own_writes import OwnWrites
from runtime.retry import Backoff, TokenBucket, WaitContext
from topology.model.errors import ConfigError, KubeConflict, KubeError, KubeFenced, show

WRITES_PER_SECOND: Final = 50
BURST: Final = 200
_UNPROCESSABLE: Final = 422
_RETRY_POLICY: Final = RetryPolicy(max_attempts=2, request_timeout_s=5.0, backoff=Backoff(0.2, 1.0))


class StoredReservation(NamedTuple):
    """An object in its last known version."""

    name: str
    uid: str
    version: str
    reservation: Reservation | None
    """None while the object has no status."""


class Leadership(NamedTuple):
    """The state of leader election; every use calls these functions again."""

    left_s: Callable[[], float]
    """Seconds for which this replica may still write, 0 or less if it may not."""
    epoch: Callable[[], int]
    """Transitions of the lease."""
    find_leader: Callable[[], Leader | None]
    """The replica that leads, None if none is known to lead."""


class _LeaderTerm(NamedTuple):
    """What a leader reads before its first write."""

    transitions: int
    epoch: int
    inherited_ids: frozenset[str]


class ClusterReservations:
    """A `ReservationStore` of one cluster; follows it while in its context; thread-safe."""

    def __init__(
        self,
        transport: Transport,
        *,
        pace: WaitContext,
        leadership: Leadership,
        on_change: Callable[[], None],
    ) -> None:
        """Send no request yet.

        Args:
            transport: to the API server.
            pace: clock, backoff and stop signal; leaving the context sets the stop signal.
            leadership: whether this replica may write.
            on_change: called after a change, in the thread of the reflector; must return soon.
        """
        self._transport = transport
        self._leadership = leadership
        self._stop = pace.stop
        bucket = TokenBucket(
            per_second=WRITES_PER_SECOND, burst=BURST, clock=pace.clock, pause=pace.stop.wait
        )
        self._applier = Applier(
            transport, bucket=bucket, pace=pace, retry_policy=_RETRY_POLICY, fence=leadership.left_s
        )
        self._reflector = Reflector(
            transport,
            RESERVATIONS,
            parse=parse_stored,
            on_change=lambda _: on_change(),
            pace=pace,
        )
        cache = self._reflector.cache
        self._own_writes: OwnWrites[StoredReservation] = OwnWrites(
            cache.version_of, lambda: self._reflector.version
        )
        self._last_read: tuple[tuple[StoredReservation, ...], tuple[Reservation, ...]] = ((), ())
        self._term: _LeaderTerm | None = None
        self._is_refreshed = False
        self._thread = Thread(target=self._reflector.run, name=f"follow {RESERVATIONS.plural}")

    def __enter__(self) -> Self:
        """Start to follow the objects."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, within moments."""
        self._stop.set()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether the thread that follows the objects runs, even if its requests fail."""
        return self._thread.is_alive()

    @property
    def num_watches(self) -> int:
        """Number of lists and watches started so far."""
        return self._reflector.num_lists + self._reflector.num_watches

    @property
    def problems(self) -> tuple[str, ...]:
        """The objects that cannot be used and hold nothing, with the reason."""
        return tuple(
            str(problem) for problem in build_listing(self._reflector.cache, RESERVATIONS).problems
        )

    @property
    def epoch(self) -> int:
        """Epoch of the lease; larger if an object carries a later epoch of a deleted lease."""
        transitions = self._leadership.epoch()
        term = self._term
        return term.epoch if term and term.transitions == transitions else transitions

    @property
    def is_known(self) -> bool:
        """Whether the objects were listed once or cannot be, for example without their CRD."""
        return self._reflector.is_synced or bool(self._reflector.problem)

    def find_write_refusal(self) -> Refusal | None:
        """Return why no write is possible here: another replica leads, or the CRD is missing."""
        if self._leadership.left_s() <= 0:
            return _refuse_follower(self._leadership.find_leader())
        if not self._reflector.is_synced:
            reason = self._reflector.problem or "they are not listed yet"
            return Refusal(RefusalKind.STORE, f"reservations are not known: {reason}")
        return None

    def read_reservations(self) -> tuple[Reservation, ...]:
        """Return the known reservations, with own writes that the watch has not delivered yet."""
        stored = self._read_stored()
        if stored is not self._last_read[0]:
            reservations = tuple(
                object_.reservation for object_ in stored if object_.reservation is not None
            )
            self._last_read = (stored, reservations)
        return self._last_read[1]

    def refresh(self) -> None:
        """List all objects when a term begins, or after a write without an answer.

        Raises:
            KubeError: the objects cannot be listed.
        """
        transitions = self._leadership.epoch()
        term = self._term
        is_new = term is None or term.transitions != transitions
        if self._is_refreshed and not is_new:
            return
        self._merge_list()
        if is_new:
            reservations = self.read_reservations()
            highest = max((reservation.epoch for reservation in reservations), default=0)
            # A deleted lease counts from 0 again, but the API server still has the old epochs.
            epoch = transitions if highest <= transitions else highest + 1
            self._term = _LeaderTerm(
                transitions, epoch, frozenset(reservation.id for reservation in reservations)
            )
        self._delete_incomplete()
        self._is_refreshed = True

    def read_inherited_ids(self) -> Collection[str]:
        """Return the ids of all reservations that existed when the leader's term began."""
        return self._term.inherited_ids if self._term else ()

    def put(self, changed: Sequence[Reservation]) -> None:
        """Write these reservations one after another.

        Raises:
            KubeFenced: this replica no longer leads.
            KubeConflict: another writer changed the object, or the server has a later epoch.
            KubeError: the write is refused or gets no answer.
        """
        for reservation in changed:
            self._write_checked(partial(self._put_one, reservation))

    def delete(self, ids: Collection[str]) -> None:
        """Delete these reservations one after another; raises as `put` does."""
        objects = {object_.name: object_ for object_ in self._read_stored()}
        for id_ in ids:
            if id_ in objects:
                self._write_checked(partial(self._delete_one, objects[id_]))

    def _write_checked(self, write: Callable[[], None]) -> None:
        """Write; after a failure the objects must be listed before the next write."""
        try:
            write()
        except KubeFenced:
            raise
        except KubeError:
            self._is_refreshed = False
            raise

    def _put_one(self, reservation: Reservation) -> None:
        object_ = next(
            (stored for stored in self._read_stored() if stored.name == reservation.id), None
        )
        if object_ is None:
            document = self._applier.create(RESERVATIONS, render_spec(reservation))
            object_ = parse_stored(document)
            self._own_writes.record(reservation.id, object_.version, object_)
        metadata = {"name": object_.name, "uid": object_.uid, "resourceVersion": object_.version}
        head = {"apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind}
        desired = head | {
            "metadata": {"name": reservation.id},
            "status": render_status(reservation),
        }
        try:
            answer = self._applier.apply(
                RESERVATIONS, desired, {"metadata": metadata}, subresource="status", is_ours=True
            )
        except KubeError as error:
            if (
                error.status == _UNPROCESSABLE
            ):  # validation rule of the CRD: a later epoch is stored
                raise KubeConflict(str(error), status=error.status, reason=error.reason) from error
            raise
        written = parse_stored(answer)
        self._own_writes.record(reservation.id, written.version, written)

    def _delete_one(self, object_: StoredReservation) -> None:
        metadata = {"name": object_.name, "uid": object_.uid, "resourceVersion": object_.version}
        self._applier.delete(RESERVATIONS, {"metadata": metadata})
        self._own_writes.record(object_.name, object_.version, None)

    def _delete_incomplete(self) -> None:
        """Delete objects that never got a status; no caller got an answer for them."""
        for object_ in self._read_stored():
            if object_.reservation is None:
                self._delete_one(object_)

    def _read_stored(self) -> tuple[StoredReservation, ...]:
        values = self._reflector.cache.values
        pending = self._own_writes.pending()
        if not pending:
            return values
        objects: dict[str, StoredReservation | None] = {object_.name: object_ for object_ in values}
        objects |= pending
        merged = tuple(object_ for _, object_ in sorted(objects.items()) if object_ is not None)
        return self._last_read[0] if merged == self._last_read[0] else merged

    def _merge_list(self) -> None:
        """Merge a new list from the server over the objects of the watch."""
        fresh: Cache[StoredReservation] = Cache(parse_stored)
        version, _ = list_into_cache(fresh, self._transport, RESERVATIONS)
        listed = {object_.name: object_ for object_ in fresh.values}
        for object_ in listed.values():
            self._own_writes.record(object_.name, object_.version, object_)
        for deleted in {object_.name for object_ in self._read_stored()}.difference(listed):
            self._own_writes.record(deleted, version, None)


def _refuse_follower(leader: Leader | None) -> Refusal:
    """Return why a replica that does not lead writes nothing, and where a caller can turn."""
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


def parse_stored(document: Mapping[str, Any]) -> StoredReservation:
    """Return the reservation of an object; items of a list carry no kind, so it is added.

    Raises:
        ConfigError: the object is malformed and holds nothing.
    """
    kind = {"apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind}
    reservation = parse_stored_reservation({**document, **kind})
    metadata = document["metadata"]
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if not isinstance(uid, str) or not isinstance(version, str):
        raise ConfigError(
            f"{show(str(metadata.get('name')))}: expected metadata.uid and resourceVersion"
        )
    return StoredReservation(str(metadata["name"]), uid, version, reservation)
