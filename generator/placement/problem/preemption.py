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

    def cheapest_victims(self, node: int, need: Mapping[str, int]) -> tuple[Victim, ...]:
        """Return the cheapest victims that free enough of a node; empty if enough is free."""
        free = self.free_by_node.get(node)
        if free is None:
            return ()
        missing = {
            name: quantity - free.get(name, 0)
            for name, quantity in need.items()
            if quantity and quantity > free.get(name, 0)
        }
        if not missing:
            return ()
        victims = self.victims_by_node[node]
        if len(victims) > MAX_EXACT_GANGS:
            return self._reprieve_victims(victims, missing)
        fitting = (
            chosen
            for num_victims in range(1, len(victims) + 1)
            for chosen in combinations(reversed(victims), num_victims)
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
        remaining = list(victims)
        for victim in sorted(victims, key=lambda other: (-other.priority, -other.pods, other.gang)):
            others = [other for other in remaining if other != victim]
            if _free_enough(others, missing):
                remaining = others
        return tuple(remaining)


def _free_enough(victims: Iterable[Victim], missing: Mapping[str, int]) -> bool:
    freed = Counter[str]()
    for victim in victims:
        freed.update(dict(victim.request))
    return all(freed[name] >= quantity for name, quantity in missing.items())


def find_evictable(snapshot: Snapshot, request: PlacementRequest) -> EvictablePods | None:
    """Return what a request may evict; None if nothing; O(running pods)."""
    if request.eviction is EvictionPolicy.NEVER:
        return None
    gangs = {
        name: gang
        for name, gang in snapshot.running.items()
        if gang.preemptible and gang.priority < request.priority and name != request.gang
    }
    victims_of: dict[int, list[Victim]] = {}
    for name in sorted(gangs):
        for node, victim in _victims_of_gang(snapshot, gangs[name]):
            victims_of.setdefault(node, []).append(victim)
    if not victims_of:
        return None
    resources = list(enumerate(snapshot.resources))
    return EvictablePods(
        policy=request.eviction,
        gangs=gangs,
        victims_by_node={node: tuple(victims) for node, victims in victims_of.items()},
        free_by_node={
            node: {name: int(snapshot.free[row, node]) for row, name in resources}
            for node in victims_of
        },
        priorities=tuple(sorted({gang.priority for gang in gangs.values()}, reverse=True)),
    )


def _victims_of_gang(snapshot: Snapshot, gang: RunningGang) -> Iterable[tuple[int, Victim]]:
    """Yield the pods of a gang on each of its nodes."""
    pods, requests = Counter[str](), dict[str, Counter[str]]()
    for entry in gang.pods:
        if entry.node in snapshot.position_of:
            pods[entry.node] += entry.count
            used = requests.setdefault(entry.node, Counter())
            used.update({name: need * entry.count for name, need in entry.request.items()})
    total = sum(entry.count for entry in gang.pods)
    for node, count in pods.items():
        is_whole_gang = 0 < total - count < (gang.min_pods or 0)
        request = tuple(sorted(requests[node].items()))
        yield (
            snapshot.position_of[node],
            Victim(gang.gang, gang.priority, total if is_whole_gang else count, request),
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
        names: list[str] = []
        for gang in sorted({gang for gang, _ in self.pairs}):
            nodes = {node for name, node in self.pairs if name == gang}
            is_whole = nodes == {row.node for row in evictable.gangs[gang].pods}
            names += [gang] if is_whole else sorted(f"{gang}@{node}" for node in nodes)
        return tuple(names)


def evict_for(
    snapshot: Snapshot, evictable: EvictablePods, needs: Mapping[int, Mapping[str, int]]
) -> EvictionResult:
    """Return the eviction for these resources per position; gangs below their minimum go whole."""
    nodes: dict[str, set[str]] = {}
    for position, need in needs.items():
        for victim in evictable.cheapest_victims(position, need):
            nodes.setdefault(victim.gang, set()).add(snapshot.specs[position].name)
    pods = Counter[int]()
    pairs: set[tuple[str, str]] = set()
    for name, chosen in nodes.items():
        gang = evictable.gangs[name]
        num_kept = sum(entry.count for entry in gang.pods if entry.node not in chosen)
        is_whole_gang = 0 < num_kept < (gang.min_pods or 0)
        evicted_nodes = {entry.node for entry in gang.pods} if is_whole_gang else chosen
        pods[gang.priority] += sum(
            entry.count for entry in gang.pods if entry.node in evicted_nodes
        )
        pairs |= {(name, node) for node in evicted_nodes}
    return EvictionResult(
        frozenset(pairs), tuple(pods[priority] for priority in evictable.priorities), len(nodes)
    )
