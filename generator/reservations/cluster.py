"""Reservations as objects of the API server: every replica follows them, the leader writes.

A reservation is made in two writes, the object and its status; before the second it counts for
nobody. Each write is sent only while we lead, by our own clock, and changes an object only from
the version that is known; its status carries our epoch, and the server refuses a smaller one.
Before a new leader writes at all it lists what there is: its watch may be behind. The same goes
for a leader whose write had no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from threading import Thread
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from generator.kube.applier import Applier, RetryPolicy
from generator.kube.cache import Cache
from generator.kube.listing import list_into_cache
from generator.kube.reflector import Reflector
from generator.kube.resources import RESERVATIONS
from generator.kube.transport import Transport
from generator.reservations.documents import parse_stored_reservation, render_spec, render_status
from generator.reservations.records import Refusal, RefusalKind, Reservation
from generator.store.cluster import build_listing
from generator.store.own_writes import OwnWrites
from runtime.retry import Backoff, WaitContext, TokenBucket
from topology.model.errors import ConfigError, KubeConflict, KubeError, KubeFenced, show

WRITES_PER_SECOND: Final = 50
BURST: Final = 200
_UNPROCESSABLE: Final = 422
_RETRY_POLICY: Final = RetryPolicy(max_attempts=2, request_timeout_s=5.0, backoff=Backoff(0.2, 1.0))


class StoredReservation(NamedTuple):
    """An object, as it is known."""

    name: str
    uid: str
    version: str
    reservation: Reservation | None
    """None while it has no status."""


class Leadership(NamedTuple):
    """What is known of who leads; each is asked for at every use."""

    left_s: Callable[[], float]
    """For how long we may still write, 0 or less where we may not."""
    epoch: Callable[[], int]
    """Of the lease."""
    leader_address: Callable[[], str]
    """Where the leader answers, empty where nobody knows."""


class _LeaderTerm(NamedTuple):
    """What a leader has found out before its first write."""

    transitions: int
    epoch: int
    inherited_ids: frozenset[str]


class ClusterReservations:
    """A `ReservationStore` of one cluster. Follows it within its context; any thread may call."""

    def __init__(
        self,
        transport: Transport,
        *,
        pace: WaitContext,
        leadership: Leadership,
        on_change: Callable[[], None],
    ) -> None:
        """Ask nothing yet.

        Args:
            transport: to the API server.
            pace: how to wait, and until when: the context wishes its end.
            leadership: who writes.
            on_change: called after something changed, in a thread of ours; must return soon.
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
        """Begin to follow."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it, within moments."""
        self._stop.set()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether the objects are still followed, be it with success or not."""
        return self._thread.is_alive()

    @property
    def num_watches(self) -> int:
        """Lists made and watches begun so far."""
        return self._reflector.num_lists + self._reflector.num_watches

    @property
    def problems(self) -> tuple[str, ...]:
        """Which objects cannot be used, so that they hold nothing, and why."""
        return tuple(
            str(one) for one in build_listing(self._reflector.cache, RESERVATIONS).problems
        )

    @property
    def epoch(self) -> int:
        """That of the lease; larger where an object tells of a lease that was there before it."""
        transitions = self._leadership.epoch()
        reign = self._term
        return reign.epoch if reign and reign.transitions == transitions else transitions

    @property
    def is_known(self) -> bool:
        """Whether they were listed once, or cannot be, such as where the kind is not installed."""
        return self._reflector.is_synced or bool(self._reflector.problem)

    def find_write_refusal(self) -> Refusal | None:
        """Return why nothing can be written here: another one leads, or the kind is missing."""
        if self._leadership.left_s() <= 0:
            leader = self._leadership.leader_address()
            if leader:
                problem = f"another replica leads: ask {leader}"
                return Refusal(RefusalKind.NOT_LEADER, problem, leader=leader)
            return Refusal(RefusalKind.NO_LEADER, "no replica is known to lead; try again")
        if not self._reflector.is_synced:
            why = self._reflector.problem or "they are not listed yet"
            return Refusal(RefusalKind.STORE, f"reservations are not known: {why}")
        return None

    def read_reservations(self) -> tuple[Reservation, ...]:
        """Return what is known, with what we wrote and the watch has not told yet."""
        stored = self._read_stored()
        if stored is not self._last_read[0]:
            rows = tuple(one.reservation for one in stored if one.reservation is not None)
            self._last_read = (stored, rows)
        return self._last_read[1]

    def refresh(self) -> None:
        """List all, where a reign begins or a write had no answer.

        Raises:
            KubeError: they cannot be listed.
        """
        transitions = self._leadership.epoch()
        reign = self._term
        is_new = reign is None or reign.transitions != transitions
        if self._is_refreshed and not is_new:
            return
        self._merge_list()
        if is_new:
            known = self.read_reservations()
            highest = max((one.epoch for one in known), default=0)
            # A lease that was deleted counts from 0 again, but the server knows what we wrote.
            epoch = transitions if highest <= transitions else highest + 1
            self._term = _LeaderTerm(transitions, epoch, frozenset(one.id for one in known))
        self._delete_incomplete()
        self._is_refreshed = True

    def read_inherited_ids(self) -> Collection[str]:
        """Return the ids of all that stood when our reign began."""
        return self._term.inherited_ids if self._term else ()

    def put(self, changed: Sequence[Reservation]) -> None:
        """Write these, one after the other.

        Raises:
            KubeFenced: we lead no more.
            KubeConflict: somebody else wrote it meanwhile, or the server knows a later epoch.
            KubeError: it is refused, or there is no answer.
        """
        for one in changed:
            self._write_checked(partial(self._put_one, one))

    def delete(self, ids: Collection[str]) -> None:
        """Delete these, one after the other; raises as `put` does."""
        known = {one.name: one for one in self._read_stored()}
        for id_ in ids:
            if id_ in known:
                self._write_checked(partial(self._delete_one, known[id_]))

    def _write_checked(self, write: Callable[[], None]) -> None:
        """Write; where it fails, what there is has to be listed before the next time."""
        try:
            write()
        except KubeFenced:
            raise
        except KubeError:
            self._is_refreshed = False
            raise

    def _put_one(self, one: Reservation) -> None:
        known = next((row for row in self._read_stored() if row.name == one.id), None)
        if known is None:
            document = self._applier.create(RESERVATIONS, render_spec(one))
            known = parse_stored(document)
            self._own_writes.record(one.id, known.version, known)
        metadata = {"name": known.name, "uid": known.uid, "resourceVersion": known.version}
        head = {"apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind}
        desired = head | {"metadata": {"name": one.id}, "status": render_status(one)}
        try:
            told = self._applier.apply(
                RESERVATIONS, desired, {"metadata": metadata}, subresource="status", is_ours=True
            )
        except KubeError as error:
            if (
                error.status == _UNPROCESSABLE
            ):  # by the rules of the kind: a later epoch stands there
                raise KubeConflict(str(error), status=error.status, reason=error.reason) from error
            raise
        after = parse_stored(told)
        self._own_writes.record(one.id, after.version, after)

    def _delete_one(self, one: StoredReservation) -> None:
        metadata = {"name": one.name, "uid": one.uid, "resourceVersion": one.version}
        self._applier.delete(RESERVATIONS, {"metadata": metadata})
        self._own_writes.record(one.name, one.version, None)

    def _delete_incomplete(self) -> None:
        """Delete objects that never got a status: whoever made them was not answered."""
        for one in self._read_stored():
            if one.reservation is None:
                self._delete_one(one)

    def _read_stored(self) -> tuple[StoredReservation, ...]:
        values = self._reflector.cache.values
        pending = self._own_writes.pending()
        if not pending:
            return values
        known: dict[str, StoredReservation | None] = {one.name: one for one in values}
        known |= pending
        laid = tuple(one for _, one in sorted(known.items()) if one is not None)
        return self._last_read[0] if laid == self._last_read[0] else laid

    def _merge_list(self) -> None:
        """Lay what the server has over what the watch has told."""
        fresh: Cache[StoredReservation] = Cache(parse_stored)
        version, _ = list_into_cache(fresh, self._transport, RESERVATIONS)
        listed = {one.name: one for one in fresh.values}
        for one in listed.values():
            self._own_writes.record(one.name, one.version, one)
        for gone in {one.name for one in self._read_stored()}.difference(listed):
            self._own_writes.record(gone, version, None)


def parse_stored(document: Mapping[str, Any]) -> StoredReservation:
    """Return what counts of an object, which of a list says no kind.

    Raises:
        ConfigError: it makes no sense, so that it holds nothing.
    """
    kind = {"apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind}
    found = parse_stored_reservation({**document, **kind})
    metadata = document["metadata"]
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if not isinstance(uid, str) or not isinstance(version, str):
        raise ConfigError(f"{show(str(metadata.get('name')))}: expected uid and version")
    return StoredReservation(str(metadata["name"]), uid, version, found)
