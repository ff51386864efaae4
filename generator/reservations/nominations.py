"""Nominations for reserved nodes, and the part of them that bound pods have used up. Pure.

Free capacity already excludes bound pods. So a reservation stops holding the place of each pod
that is bound, and no pod is counted twice. The time of binding separates the pods of a
reservation from pods that ran before it.

A reservation is due to be written if it is expired or used up, or if a former leader wrote it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple

from generator.objects.pods import BoundPod
from generator.objects.reservation import ReservationPhase
from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, with_nominated
from generator.reservations.phases import (
    MAX_RESERVATIONS,
    Step,
    apply_step,
    compute_room,
    expire_if_due,
    is_forgettable,
)
from generator.reservations.records import Refusal, Reservation
from topology.model.errors import ParseError
from topology.model.surplus_rows import find_surplus

BINDING_PRIORITY: Final = 1 << 62
"""Priority of nominations that every gang must respect: those of confirmed reservations."""
_NO_GANG: Final = ""
"""Gang of a nomination that even the gang that made the reservation must respect."""


@dataclass(frozen=True, slots=True)
class ReservationUsage:
    """The places that a reservation still holds, or would still hold if it had not ended."""

    unbound_pods: Mapping[tuple[str, int], int]
    """By node and index of the group: pods that are not bound yet."""
    num_bound: int
    """Pods bound for the reservation, on any node."""
    is_used_up: bool
    """Whether all pods of the reservation are bound."""
    last_bound: datetime | None = None
    """Time at which the last of them was bound."""


class ReservationView(NamedTuple):
    """Which reservations a gang must respect when it requests nodes."""

    gang: str = ""
    """The gang that requests more nodes: its own reservations bind it, too. Empty: no gang."""
    max_yielding_priority: int | None = None
    """Reservations up to this priority give way; None: the engine compares priorities."""


_DEFAULT_VIEW: Final = ReservationView()


def build_views(gang: str, priority: int, held: Iterable[Reservation]) -> list[ReservationView]:
    """Return the views in which to place a gang; views that preempt fewer come first."""
    lower = {reservation.priority for reservation in held if reservation.priority < priority}
    return [
        ReservationView(gang, max_priority)
        for max_priority in sorted(lower | {min(lower, default=priority) - 1})
    ]


class ReservedNodes(NamedTuple):
    """The nodes that reservations hold in a cluster."""

    nominated: Mapping[str, RunningGang] = MappingProxyType({})
    """By id of the reservation."""
    problems: tuple[ParseError, ...] = ()


class ReservationCache:
    """Computed usages and nominations; valid while the reservation is the identical object."""

    def __init__(self) -> None:
        """Start empty."""
        self.usages: dict[str, tuple[Reservation, ReservationUsage]] = {}
        """By id; only of gangs without pods."""
        self.nominations: dict[tuple[str, str, int], tuple[ReservationUsage, RunningGang]] = {}
        """By id, gang and priority."""

    def retain_only(self, ids: Collection[str]) -> None:
        """Drop the entries of all other reservations."""
        self.usages = {id_: row for id_, row in self.usages.items() if id_ in ids}
        self.nominations = {key: row for key, row in self.nominations.items() if key[0] in ids}


def compute_usage(
    reservations: Iterable[Reservation],
    pods: Iterable[BoundPod],
    *,
    cache: ReservationCache | None = None,
) -> dict[str, ReservationUsage]:
    """Return the usage of each reservation by id; O(reservations + pods × groups on a node).

    A pod uses up one place of its gang's oldest reservation that has a place on its node. A pod
    on another node uses up no place but counts as bound: the scheduler decided otherwise. Ended
    reservations take part, because pods bound for them do not belong to a later reservation.
    """
    by_gang: dict[str, list[Reservation]] = defaultdict(list)
    for reservation in reservations:
        by_gang[reservation.gang].append(reservation)
    pods_by_gang: dict[str, list[BoundPod]] = defaultdict(list)
    for pod in pods:
        if pod.gang in by_gang:
            pods_by_gang[pod.gang].append(pod)
    usages: dict[str, ReservationUsage] = {}
    for gang, gang_reservations in by_gang.items():
        if gang in pods_by_gang:
            ordered = sorted(
                gang_reservations, key=lambda reservation: (reservation.created_at, reservation.id)
            )
            usages |= _compute_gang_usage(ordered, pods_by_gang[gang])
        else:
            usages |= {
                reservation.id: _build_unused(reservation, cache)
                for reservation in gang_reservations
            }
    if cache is not None and len(cache.usages) > 2 * len(usages):
        cache.retain_only(usages.keys())
    return usages


def _build_unused(reservation: Reservation, cache: ReservationCache | None) -> ReservationUsage:
    """Return the usage of a reservation without bound pods: all of its places."""
    cached = cache.usages.get(reservation.id) if cache else None
    if cached is not None and cached[0] is reservation:
        return cached[1]
    usage = ReservationUsage(
        MappingProxyType(dict(_count_places(reservation))), 0, is_used_up=False
    )
    if cache is not None:
        cache.usages[reservation.id] = (reservation, usage)
    return usage


def _compute_gang_usage(
    reservations: Sequence[Reservation], pods: Sequence[BoundPod]
) -> dict[str, ReservationUsage]:
    places = {reservation.id: _count_places(reservation) for reservation in reservations}
    num_pods = {reservation.id: places[reservation.id].total() for reservation in reservations}
    bound: dict[str, list[datetime]] = defaultdict(list)
    elsewhere = []
    for pod in pods:
        users = (row for row in reservations if _is_use_of(pod, row, places[row.id]))
        owner = next(users, None)
        if owner is None:
            elsewhere.append(pod)
            continue
        if pod.bound_at:
            bound[owner.id].append(pod.bound_at)
        places[owner.id][pod.node, _find_used_group(pod, owner, places[owner.id])] -= 1
    for pod in elsewhere:
        lacking = (row for row in reservations if len(bound[row.id]) < num_pods[row.id])
        owner = next((row for row in lacking if _is_bound_during(pod, row)), None)
        if owner is not None and pod.bound_at:
            bound[owner.id].append(pod.bound_at)
    return {
        id_: ReservationUsage(
            unbound_pods=MappingProxyType(dict(+counts)),
            num_bound=len(bound[id_]),
            is_used_up=len(bound[id_]) == num_pods[id_],
            last_bound=max(bound[id_], default=None),
        )
        for id_, counts in places.items()
    }


def _count_places(reservation: Reservation) -> Counter[tuple[str, int]]:
    places = Counter[tuple[str, int]]()
    for group_index, group in enumerate(reservation.groups):
        for run in group.runs:
            if run.node is not None:
                places[run.node, group_index] += run.count
    return places


def _is_bound_during(pod: BoundPod, reservation: Reservation) -> bool:
    """Return whether a pod was bound while a reservation held; pod times are in whole seconds."""
    if pod.bound_at is None or pod.bound_at < reservation.created_at.replace(microsecond=0):
        return False
    return reservation.ended_at is None or pod.bound_at <= reservation.ended_at


def _is_use_of(pod: BoundPod, reservation: Reservation, places: Counter[tuple[str, int]]) -> bool:
    is_there = any(
        places[pod.node, group_index] > 0 for group_index in range(len(reservation.groups))
    )
    return is_there and _is_bound_during(pod, reservation)


def _find_used_group(
    pod: BoundPod, reservation: Reservation, places: Counter[tuple[str, int]]
) -> int:
    """Return the index of the group whose place a pod takes: the largest group that fits the pod.

    If every group requests more than the pod, return the smallest: too much stays reserved.
    """
    groups = [
        group_index
        for group_index in range(len(reservation.groups))
        if places[pod.node, group_index] > 0
    ]
    needs = {group_index: dict(reservation.groups[group_index].request) for group_index in groups}
    covered = [
        group_index
        for group_index in groups
        if all(pod.requests.get(name, 0) >= need for name, need in needs[group_index].items())
    ]
    if covered:
        return max(
            covered, key=lambda group_index: (sum(needs[group_index].values()), -group_index)
        )
    return min(groups, key=lambda group_index: (sum(needs[group_index].values()), group_index))


def build_nominations(
    held: Iterable[Reservation],
    usages: Mapping[str, ReservationUsage],
    *,
    view: ReservationView = _DEFAULT_VIEW,
    cache: ReservationCache | None = None,
) -> dict[str, RunningGang]:
    """Return by id the nomination of each reservation, in the form that the engine counts.

    Args:
        held: reservations that hold nodes.
        usages: usage of each reservation by id.
        view: the view of the gang to place.
        cache: the results of earlier calls.
    """
    nominations = {}
    for reservation in sorted(held, key=lambda reservation: reservation.id):
        is_own = bool(view.gang) and reservation.gang == view.gang
        is_kept = (
            view.max_yielding_priority is not None
            and reservation.priority > view.max_yielding_priority
        )
        is_firm = is_own or is_kept or reservation.phase is ReservationPhase.CONFIRMED
        gang = _NO_GANG if is_own else reservation.gang
        priority = BINDING_PRIORITY if is_firm else reservation.priority
        nominations[reservation.id] = _build_nomination(
            reservation, usages[reservation.id], gang=gang, priority=priority, cache=cache
        )
    return nominations


def _build_nomination(
    reservation: Reservation,
    usage: ReservationUsage,
    *,
    gang: str,
    priority: int,
    cache: ReservationCache | None,
) -> RunningGang:
    """Return the unbound pods of a reservation as a running gang."""
    key = (reservation.id, gang, priority)
    cached = cache.nominations.get(key) if cache else None
    if cached is not None and cached[0] is usage:
        return cached[1]
    requests = [dict(group.request) for group in reservation.groups]
    rows = tuple(
        RunningPods(node, requests[group_index], count, reservation.groups[group_index].name)
        for (node, group_index), count in sorted(usage.unbound_pods.items())
    )
    if reservation.exclusive is not None:  # its domains stay closed after its pods are bound
        reserved_nodes = sorted({node for node, _ in _count_places(reservation)})
        rows = (*rows, *(RunningPods(node, {}, 0) for node in reserved_nodes))
    # The gang's own reservation closes no domain to it.
    exclusive = None if gang == _NO_GANG else reservation.exclusive
    nomination = RunningGang(gang, rows, priority, exclusive=exclusive)
    if cache is not None:
        cache.nominations[key] = (usage, nomination)
    return nomination


def with_nominations(snapshot: Snapshot, nominated: Mapping[str, RunningGang]) -> Snapshot:
    """Return the snapshot with its nominations replaced by these; the keys are free."""
    if not nominated and not snapshot.nominated:
        return snapshot
    return with_nominated(snapshot, nominated)


def find_preempted(
    snapshot: Snapshot, nomination: RunningGang, others: Mapping[str, RunningGang]
) -> tuple[str, ...] | None:
    """Return the ids of the nominations that must be preempted for a new nomination to fit.

    Only nominations of lower priority are preempted, the lowest first, and only those on overfull
    nodes. None: it does not fit, because another reservation was first.
    """
    if any(row.node not in snapshot.position_of for row in nomination.pods):
        return None
    remaining, preempted = dict(others), []
    while overfull := _find_overfull_nodes(snapshot, nomination, remaining.values()):
        preemptible = [
            (gang.priority, key)
            for key, gang in remaining.items()
            if gang.priority < nomination.priority
            and any(row.node in overfull for row in gang.pods)
        ]
        if not preemptible:
            return None
        _, lowest = min(preemptible)
        del remaining[lowest]
        preempted.append(lowest)
    return tuple(preempted)


def _find_overfull_nodes(
    snapshot: Snapshot, nomination: RunningGang, others: Iterable[RunningGang]
) -> frozenset[str]:
    """Return the nodes of a new nomination that cannot hold all their nominations."""
    nodes = {row.node for row in nomination.pods}
    needs: dict[str, Counter[str]] = {node: Counter() for node in nodes}
    for gang in (nomination, *others):
        for row in gang.pods:
            if row.node in nodes:
                for name, need in snapshot.pod_needs(row.request).items():
                    needs[row.node][name] += need * row.count
    row_of = {name: row for row, name in enumerate(snapshot.resources)}

    def count_free(name: str, node: str) -> int:
        row = row_of.get(name)
        return 0 if row is None else int(snapshot.free[row, snapshot.position_of[node]])

    return frozenset(
        node
        for node, need in needs.items()
        if any(
            quantity > 0 and quantity > count_free(name, node) for name, quantity in need.items()
        )
    )


class CapacityState(NamedTuple):
    """A snapshot, and the gang pods that its free capacity already excludes."""

    snapshot: Snapshot
    pods: tuple[BoundPod, ...] = ()


class CachedSnapshot(NamedTuple):
    """The published snapshot, and the period for which it is valid."""

    capacity: CapacityState
    reservations: tuple[Reservation, ...]
    valid_from: datetime
    valid_until: datetime | None
    snapshot: Snapshot


_PODS_BOUND: Final = "its pods are bound"
_STALE_WRITE: Final = "written by a leader that was replaced"


class ReservationWriter(NamedTuple):
    """The present writer of the store."""

    epoch: int
    inherited_ids: frozenset[str]
    """Ids of all reservations that existed when its epoch began."""


def find_due(
    reservations: Sequence[Reservation],
    usages: Mapping[str, ReservationUsage],
    *,
    now: datetime,
    writer: ReservationWriter,
) -> list[Reservation]:
    """Return the changed reservations, in the state to write.

    Args:
        reservations: all reservations, as last written.
        usages: usage of each reservation by id.
        now: the current time, with a time zone.
        writer: its epoch replaces the epoch of a former writer.
    """
    after = (
        (reservation, _update_if_due(reservation, usages[reservation.id], now, writer))
        for reservation in reservations
    )
    return [new for old, new in after if new is not old]


def _update_if_due(
    reservation: Reservation, usage: ReservationUsage, now: datetime, writer: ReservationWriter
) -> Reservation:
    epoch = writer.epoch
    if not reservation.is_held_at(now):
        return expire_if_due(reservation, now=now, epoch=epoch)
    is_former = reservation.epoch < epoch
    if usage.is_used_up and reservation.exclusive is None:
        # Its pods stay assigned to it, even if the API server's clock is ahead of this one.
        ended = max(now, usage.last_bound or now)
        after = apply_step(reservation, Step.RELEASE, now=ended, epoch=epoch, message=_PODS_BOUND)
    elif is_former and reservation.id not in writer.inherited_ids:
        after = apply_step(reservation, Step.RELEASE, now=now, epoch=epoch, message=_STALE_WRITE)
    else:
        after = replace(reservation, epoch=epoch) if is_former else reservation
    return reservation if isinstance(after, Refusal) else after


def find_forgettable(
    reservations: Sequence[Reservation],
    usages: Mapping[str, ReservationUsage],
    *,
    now: datetime,
    limit: int = MAX_RESERVATIONS,
) -> list[Reservation]:
    """Return the reservations to delete: those that ended long ago, and those above the limit.

    To make room, the holder with the most ended reservations loses those that ended first. A
    reservation to which bound pods of a held gang belong is never deleted; there are no more such
    reservations than such pods.
    """
    gangs = {reservation.gang for reservation in reservations if reservation.is_held_at(now)}
    ended = [
        reservation
        for reservation in reservations
        if not reservation.is_held_at(now)
        and not (reservation.gang in gangs and usages[reservation.id].num_bound)
    ]
    old = [reservation for reservation in ended if is_forgettable(reservation, now)]
    rest = [reservation for reservation in ended if not is_forgettable(reservation, now)]
    rest.sort(key=_find_end, reverse=True)
    room = max(0, limit - (len(reservations) - len(old) - len(rest)))
    holders = [(reservation.holder,) for reservation in rest]
    return old + find_surplus(rest, holders, room, sizes=[*map(compute_room, rest)])


def _find_end(reservation: Reservation) -> datetime:
    return reservation.ended_at or reservation.expires_at or reservation.created_at
