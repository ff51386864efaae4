"""What reservations keep of a cluster: nominations, what bound pods have used up of them. Pure.

A pod that is bound is taken off its node's capacity already, so what was reserved for it is not
kept any more: nothing is counted twice. Pods are told apart from those that ran before by when
they were bound.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple

from generator.objects.pods import BoundPod
from generator.objects.reservation import ReservationPhase
from generator.placement.cluster.snapshot import RunningGang, RunningPods, Snapshot, with_nominated
from generator.reservations.records import Reservation
from topology.model.errors import ParseError

BINDING_PRIORITY: Final = 1 << 62
"""Priority of nominations that bind every gang: those of what is confirmed."""
_NO_GANG: Final = ""
"""Gang of nominations that bind their own gang, too."""


@dataclass(frozen=True, slots=True)
class ReservationUsage:
    """What a reservation still keeps, or would if it had not ended."""

    unbound_pods: Mapping[tuple[str, int], int]
    """By node and index of the group: pods that are not bound yet."""
    num_bound: int
    """Pods that are bound for it, wherever that is."""
    is_used_up: bool
    """Whether these are all."""
    last_bound: datetime | None = None
    """When the last of them was."""


class ReservationView(NamedTuple):
    """What of all reservations binds a gang that asks for nodes of its own."""

    gang: str = ""
    """What it has already binds it, too: it asks for more. Empty: nothing of this counts."""
    max_yielding_priority: int | None = None
    """Priority up to which reservations give way; None: as priorities have it."""


_DEFAULT_VIEW: Final = ReservationView()


def build_views(gang: str, priority: int, held: Iterable[Reservation]) -> list[ReservationView]:
    """Return the views to place a gang in, in this order: who has nodes keeps them if it may be."""
    lower = {one.priority for one in held if one.priority < priority}
    return [
        ReservationView(gang, give) for give in sorted(lower | {min(lower, default=priority) - 1})
    ]


class ReservedNodes(NamedTuple):
    """What reservations keep of a cluster's nodes."""

    nominated: Mapping[str, RunningGang] = MappingProxyType({})
    """By reservation."""
    problems: tuple[ParseError, ...] = ()


NO_RESERVED_NODES: Final = ReservedNodes()


class ReservationCache:
    """What was worked out of reservations; looked at while they are the very same values."""

    def __init__(self) -> None:
        """Know nothing."""
        self.usages: dict[str, tuple[Reservation, ReservationUsage]] = {}
        """Of gangs without pods."""
        self.nominations: dict[tuple[str, str, int], tuple[ReservationUsage, RunningGang]] = {}
        """By id, gang and priority."""

    def retain_only(self, known: Collection[str]) -> None:
        """Forget all other reservations."""
        self.usages = {id_: row for id_, row in self.usages.items() if id_ in known}
        self.nominations = {key: row for key, row in self.nominations.items() if key[0] in known}


def compute_usage(
    known: Iterable[Reservation], pods: Iterable[BoundPod], *, cache: ReservationCache | None = None
) -> dict[str, ReservationUsage]:
    """Return by id what each reservation still keeps; O(reservations + pods × groups of a node).

    A pod uses up one place of its gang's oldest reservation that has one on its node. A pod on
    another node uses up none, but counts as bound: the scheduler has decided otherwise. Ended
    reservations take part: the pods that were bound for them are not those of a later one.
    """
    by_gang: dict[str, list[Reservation]] = defaultdict(list)
    for one in known:
        by_gang[one.gang].append(one)
    of_gang: dict[str, list[BoundPod]] = defaultdict(list)
    for pod in pods:
        if pod.gang in by_gang:
            of_gang[pod.gang].append(pod)
    found: dict[str, ReservationUsage] = {}
    for gang, several in by_gang.items():
        if gang in of_gang:
            ordered = sorted(several, key=lambda one: (one.created_at, one.id))
            found |= _compute_gang_usage(ordered, of_gang[gang])
        else:
            found |= {one.id: _build_unused(one, cache) for one in several}
    if cache is not None and len(cache.usages) > 2 * len(found):
        cache.retain_only(found.keys())
    return found


def _build_unused(one: Reservation, memo: ReservationCache | None) -> ReservationUsage:
    """Return all that a reservation was made for."""
    known = memo.usages.get(one.id) if memo else None
    if known is not None and known[0] is one:
        return known[1]
    found = ReservationUsage(MappingProxyType(dict(_count_places(one))), 0, is_used_up=False)
    if memo is not None:
        memo.usages[one.id] = (one, found)
    return found


def _compute_gang_usage(
    known: Sequence[Reservation], pods: Sequence[BoundPod]
) -> dict[str, ReservationUsage]:
    places = {one.id: _count_places(one) for one in known}
    wanted = {one.id: places[one.id].total() for one in known}
    bound: dict[str, list[datetime]] = defaultdict(list)
    elsewhere = []
    for pod in pods:
        user = next((one for one in known if _is_use_of(pod, one, places[one.id])), None)
        if user is None:
            elsewhere.append(pod)
            continue
        bound[user.id] += [pod.bound_at] if pod.bound_at else []
        places[user.id][pod.node, _find_used_group(pod, user, places[user.id])] -= 1
    for pod in elsewhere:
        lacking = (one for one in known if len(bound[one.id]) < wanted[one.id])
        user = next((one for one in lacking if _is_bound_during(pod, one)), None)
        if user is not None:
            bound[user.id] += [pod.bound_at] if pod.bound_at else []
    return {
        id_: ReservationUsage(
            unbound_pods=MappingProxyType(dict(+row)),
            num_bound=len(bound[id_]),
            is_used_up=len(bound[id_]) == wanted[id_],
            last_bound=max(bound[id_], default=None),
        )
        for id_, row in places.items()
    }


def _count_places(one: Reservation) -> Counter[tuple[str, int]]:
    found = Counter[tuple[str, int]]()
    for at, group in enumerate(one.groups):
        for run in group.runs:
            if run.node is not None:
                found[run.node, at] += run.count
    return found


def _is_bound_during(pod: BoundPod, one: Reservation) -> bool:
    """Return whether a pod was bound while a reservation held: the server tells whole seconds."""
    if pod.bound_at is None or pod.bound_at < one.created_at.replace(microsecond=0):
        return False
    return one.ended_at is None or pod.bound_at <= one.ended_at


def _is_use_of(pod: BoundPod, one: Reservation, places: Counter[tuple[str, int]]) -> bool:
    is_there = any(places[pod.node, at] > 0 for at in range(len(one.groups)))
    return is_there and _is_bound_during(pod, one)


def _find_used_group(pod: BoundPod, one: Reservation, places: Counter[tuple[str, int]]) -> int:
    """Return the group whose place a pod takes: the largest that asks for no more than it takes.

    Where every place is larger it takes the smallest, so that rather too much stays reserved.
    """
    groups = [at for at in range(len(one.groups)) if places[pod.node, at] > 0]
    needs = {at: dict(one.groups[at].request) for at in groups}
    covered = [
        at for at in groups if all(pod.requests.get(name, 0) >= n for name, n in needs[at].items())
    ]
    if covered:
        return max(covered, key=lambda at: (sum(needs[at].values()), -at))
    return min(groups, key=lambda at: (sum(needs[at].values()), at))


def build_nominations(
    held: Iterable[Reservation],
    left: Mapping[str, ReservationUsage],
    *,
    view: ReservationView = _DEFAULT_VIEW,
    cache: ReservationCache | None = None,
) -> dict[str, RunningGang]:
    """Return by id what each reservation keeps of the nodes, as the engine counts it.

    Args:
        held: reservations that hold.
        left: of each by id.
        view: of the gang that is to be placed.
        memo: of what was worked out before.
    """
    found = {}
    for one in sorted(held, key=lambda one: one.id):
        is_own = bool(view.gang) and one.gang == view.gang
        is_kept = (
            view.max_yielding_priority is not None and one.priority > view.max_yielding_priority
        )
        is_firm = is_own or is_kept or one.phase is ReservationPhase.CONFIRMED
        gang = _NO_GANG if is_own else one.gang
        priority = BINDING_PRIORITY if is_firm else one.priority
        found[one.id] = _build_nomination(
            one, left[one.id], gang=gang, priority=priority, cache=cache
        )
    return found


def _build_nomination(
    one: Reservation,
    left: ReservationUsage,
    *,
    gang: str,
    priority: int,
    cache: ReservationCache | None,
) -> RunningGang:
    key = (one.id, gang, priority)
    known = cache.nominations.get(key) if cache else None
    if known is not None and known[0] is left:
        return known[1]
    requests = [dict(group.request) for group in one.groups]
    rows = tuple(
        RunningPods(node, requests[at], count, one.groups[at].name)
        for (node, at), count in sorted(left.unbound_pods.items())
    )
    found = RunningGang(gang, rows, priority)
    if cache is not None:
        cache.nominations[key] = (left, found)
    return found


def with_nominations(snapshot: Snapshot, nominated: Mapping[str, RunningGang]) -> Snapshot:
    """Return the snapshot with these nominations, by any key, in place of its own."""
    if not nominated and not snapshot.nominated:
        return snapshot
    return with_nominated(snapshot, nominated)


def find_preempted(
    snapshot: Snapshot, made: RunningGang, others: Mapping[str, RunningGang]
) -> tuple[str, ...] | None:
    """Return who must give way so that a new nomination fits beside the others, by id.

    Those of lower priority give way, the lowest first, and no more than are in the way. None:
    it does not fit, since somebody else was quicker.
    """
    if any(row.node not in snapshot.position_of for row in made.pods):
        return None
    staying, gone = dict(others), []
    while crowd := _find_overfull_nodes(snapshot, made, staying.values()):
        in_the_way = [
            (gang.priority, key)
            for key, gang in staying.items()
            if gang.priority < made.priority and any(row.node in crowd for row in gang.pods)
        ]
        if not in_the_way:
            return None
        _, least = min(in_the_way)
        del staying[least]
        gone.append(least)
    return tuple(gone)


def _find_overfull_nodes(
    snapshot: Snapshot, made: RunningGang, others: Iterable[RunningGang]
) -> frozenset[str]:
    """Return the nodes of a new nomination that cannot hold all that is nominated there."""
    nodes = {row.node for row in made.pods}
    needs: dict[str, Counter[str]] = {node: Counter() for node in nodes}
    for gang in (made, *others):
        for row in gang.pods:
            if row.node in nodes:
                for name, need in row.request.items():
                    needs[row.node][name] += need * row.count
    row_of = {name: row for row, name in enumerate(snapshot.resources)}
    return frozenset(
        node
        for node, need in needs.items()
        for name, n in need.items()
        if n > 0
        and (name not in row_of or snapshot.free[row_of[name], snapshot.position_of[node]] < n)
    )
