"""Choose which running pods to evict for a gang that does not fit otherwise.

Pods are evicted node by node. If a gang would keep fewer pods than its minimum, the whole gang is
evicted. The cheapest victims of a node are exact for up to `MAX_EXACT_GANGS` gangs, and so is their
sum. A gang that is evicted as a whole from several nodes is counted once at the end only, so such
answers are not proved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from generator.placement.cluster.snapshot import RunningGang, Snapshot, without_running
from generator.placement.request import EvictionPolicy, PlacementRequest

MAX_EXACT_GANGS = 10
"""Gangs on one node up to which every combination is tried."""


class Victim(NamedTuple):
    """All pods of a gang on one node."""

    gang: str
    priority: int
    pods: int
    """Pods evicted: the whole gang if it would fall below its minimum."""
    request: tuple[tuple[str, int], ...]
    """Resources that become free on the node."""


@dataclass(frozen=True, eq=False)
class EvictablePods:
    """What may be evicted from a snapshot for one request."""

    policy: EvictionPolicy
    gangs: Mapping[str, RunningGang]
    victims_by_node: Mapping[int, tuple[Victim, ...]]
    """By node position, in order of gang names."""
    free_by_node: Mapping[int, Mapping[str, int]]
    """Free quantities of those nodes before any eviction."""
    priorities: tuple[int, ...]
    """Priorities of all victims, the highest first."""

    def cheapest_victims(self, at: int, need: Mapping[str, int]) -> tuple[Victim, ...]:
        """Return the cheapest victims that free enough of a node; empty if enough is free."""
        idle = self.free_by_node.get(at)
        if idle is None:
            return ()
        missing = {
            name: n - idle.get(name, 0) for name, n in need.items() if n and n > idle.get(name, 0)
        }
        if not missing:
            return ()
        victims = self.victims_by_node[at]
        if len(victims) > MAX_EXACT_GANGS:
            return self._reprieve_victims(victims, missing)
        fitting = (
            chosen
            for many in range(1, len(victims) + 1)
            for chosen in combinations(reversed(victims), many)
            if _free_enough(chosen, missing)
        )
        return min(fitting, key=self.victim_cost)

    def victim_cost(self, victims: Iterable[Victim]) -> tuple[int, ...]:
        """Return the sort key of victims: fewer pods, or pods of lower priority, come first."""
        pods = Counter[int]()
        for victim in victims:
            pods[victim.priority] += victim.pods
        by_priority = tuple(pods[priority] for priority in self.priorities)
        is_fewest = self.policy is EvictionPolicy.FEWEST_VICTIMS
        return (pods.total(), *by_priority) if is_fewest else (*by_priority, pods.total())

    def _reprieve_victims(
        self, victims: Sequence[Victim], missing: Mapping[str, int]
    ) -> tuple[Victim, ...]:
        """Return a minimal set of victims; gangs of the highest priority are spared first."""
        left = list(victims)
        for victim in sorted(victims, key=lambda row: (-row.priority, -row.pods, row.gang)):
            others = [row for row in left if row != victim]
            if _free_enough(others, missing):
                left = others
        return tuple(left)


def _free_enough(victims: Iterable[Victim], missing: Mapping[str, int]) -> bool:
    freed = Counter[str]()
    for victim in victims:
        freed.update(dict(victim.request))
    return all(freed[name] >= n for name, n in missing.items())


def find_evictable(snapshot: Snapshot, request: PlacementRequest) -> EvictablePods | None:
    """Return what a request may evict; None if nothing; O(running pods)."""
    if request.eviction is EvictionPolicy.NEVER:
        return None
    gangs = {
        name: gang
        for name, gang in snapshot.running.items()
        if gang.preemptible and gang.priority < request.priority and name != request.gang
    }
    of_node: dict[int, list[Victim]] = {}
    for name in sorted(gangs):
        for at, victim in _victims_of_gang(snapshot, gangs[name]):
            of_node.setdefault(at, []).append(victim)
    if not of_node:
        return None
    resources = list(enumerate(snapshot.resources))
    return EvictablePods(
        policy=request.eviction,
        gangs=gangs,
        victims_by_node={at: tuple(rows) for at, rows in of_node.items()},
        free_by_node={
            at: {name: int(snapshot.free[row, at]) for row, name in resources} for at in of_node
        },
        priorities=tuple(sorted({gang.priority for gang in gangs.values()}, reverse=True)),
    )


def _victims_of_gang(snapshot: Snapshot, gang: RunningGang) -> Iterable[tuple[int, Victim]]:
    """Yield the pods of a gang on each of its nodes."""
    pods, held = Counter[str](), dict[str, Counter[str]]()
    for row in gang.pods:
        if row.node in snapshot.position_of:
            pods[row.node] += row.count
            used = held.setdefault(row.node, Counter())
            used.update({name: need * row.count for name, need in row.request.items()})
    total = sum(row.count for row in gang.pods)
    for node, count in pods.items():
        is_broken = 0 < total - count < (gang.min_pods or 0)
        request = tuple(sorted(held[node].items()))
        yield (
            snapshot.position_of[node],
            Victim(gang.gang, gang.priority, total if is_broken else count, request),
        )


def without_evictable(snapshot: Snapshot, evictable: EvictablePods) -> Snapshot:
    """Return the snapshot without any evictable gang."""
    for gang in evictable.gangs:
        snapshot = without_running(snapshot, gang)
    return snapshot


class EvictionResult(NamedTuple):
    """What a placement evicts."""

    pairs: frozenset[tuple[str, str]]
    """(gang, node)."""
    pods_by_priority: tuple[int, ...]
    """Per priority of all evictable gangs, the highest first."""
    num_gangs: int

    def victim_names(self, evictable: EvictablePods) -> tuple[str, ...]:
        """Return `gang` if all its pods are evicted, else `gang@node`; sorted."""
        found: list[str] = []
        for gang in sorted({gang for gang, _ in self.pairs}):
            nodes = {node for name, node in self.pairs if name == gang}
            is_whole = nodes == {row.node for row in evictable.gangs[gang].pods}
            found += [gang] if is_whole else sorted(f"{gang}@{node}" for node in nodes)
        return tuple(found)


def evict_for(
    snapshot: Snapshot, evictable: EvictablePods, needs: Mapping[int, Mapping[str, int]]
) -> EvictionResult:
    """Return the eviction for these resources per position; gangs below their minimum go whole."""
    nodes: dict[str, set[str]] = {}
    for at, need in needs.items():
        for victim in evictable.cheapest_victims(at, need):
            nodes.setdefault(victim.gang, set()).add(snapshot.specs[at].name)
    pods = Counter[int]()
    pairs: set[tuple[str, str]] = set()
    for name, chosen in nodes.items():
        gang = evictable.gangs[name]
        kept = sum(row.count for row in gang.pods if row.node not in chosen)
        is_broken = 0 < kept < (gang.min_pods or 0)
        gone = {row.node for row in gang.pods} if is_broken else chosen
        pods[gang.priority] += sum(row.count for row in gang.pods if row.node in gone)
        pairs |= {(name, node) for node in gone}
    return EvictionResult(
        frozenset(pairs), tuple(pods[priority] for priority in evictable.priorities), len(nodes)
    )
