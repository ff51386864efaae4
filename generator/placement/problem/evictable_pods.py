"""The running pods that may be evicted for a gang, and the cheapest victims on one node.

The pods of one gang on one node are evicted together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from generator.placement.budget import Budget
from generator.placement.cluster.snapshot import (
    RunningGang,
    RunningPods,
    Snapshot,
    without_running,
)
from generator.placement.request import EvictionPolicy, PlacementRequest

MAX_COVER_STATES = 2000
"""Amounts of freed resources on a node that are compared; beyond it victims are a heuristic."""


class Victim(NamedTuple):
    """All pods of a gang on one node."""

    gang: str
    priority: int
    pods: int
    """Pods of the gang on the node."""
    request: tuple[tuple[str, int], ...]
    """Resources that become free on the node."""


class VictimCover(NamedTuple):
    """Victims on a node that free enough."""

    victims: tuple[Victim, ...]
    is_exact: bool
    """Whether no cheaper victims free enough."""


@dataclass(frozen=True, eq=False)
class EvictablePods:
    """What may be evicted from a snapshot for one request, and what is decided about it."""

    policy: EvictionPolicy
    gangs: Mapping[str, RunningGang]
    victims_by_node: Mapping[int, tuple[Victim, ...]]
    """By node position, in order of gang names."""
    free_by_node: Mapping[int, Mapping[str, int]]
    """Free quantities of those nodes before any eviction."""
    priorities: tuple[int, ...]
    """Priorities of all victims, the highest first."""
    is_bound: bool = False
    """Whether evictions are measured as a bound: per node, with the decisions below."""
    whole: frozenset[str] = frozenset()
    """Gangs that are evicted whole."""
    used: frozenset[str] = frozenset()
    """Gangs of which some pods are evicted."""
    kept: frozenset[tuple[str, int]] = frozenset()
    """(gang, node position) whose pods stay."""
    _covers: dict[tuple[int, tuple[tuple[str, int], ...]], VictimCover | None] = field(
        default_factory=dict, repr=False
    )
    """By node and missing quantities; a cache."""

    def as_bound(self) -> EvictablePods:
        """Return the same, measured as a bound; nothing is decided yet."""
        return replace(self, is_bound=True, _covers={})

    def narrowed(
        self,
        *,
        whole: Iterable[str] = (),
        used: Iterable[str] = (),
        kept: Iterable[tuple[str, int]] = (),
    ) -> EvictablePods:
        """Return the same with further decisions."""
        return replace(
            self,
            whole=self.whole.union(whole),
            used=self.used.union(used),
            kept=self.kept.union(kept),
            _covers={},
        )

    def find_cover(self, node: int, need: Mapping[str, int]) -> VictimCover | None:
        """Return the cheapest victims that free enough of a node; None if none do.

        Gangs that are evicted whole cost nothing more, and are not among the victims.
        """
        free = self.free_by_node.get(node)
        if free is None:
            return VictimCover((), is_exact=True)
        given = Counter(dict(free))
        for victim in self.victims_by_node[node]:
            if victim.gang in self.whole:
                given.update(dict(victim.request))
        missing = tuple(
            sorted(
                (name, quantity - given[name])
                for name, quantity in need.items()
                if quantity and quantity > given[name]
            )
        )
        if not missing:
            return VictimCover((), is_exact=True)
        if (node, missing) not in self._covers:
            self._covers[node, missing] = self._cover(node, dict(missing))
        return self._covers[node, missing]

    def _cover(self, node: int, missing: Mapping[str, int]) -> VictimCover | None:
        victims = [
            victim
            for victim in reversed(self.victims_by_node[node])
            if victim.gang not in self.whole and (victim.gang, node) not in self.kept
        ]
        if not _free_enough(victims, missing):
            return None
        chosen = _cheapest_cover(victims, missing, self._cost)
        if chosen is None:
            return VictimCover(self._reprieve_victims(victims, missing), is_exact=False)
        return VictimCover(chosen, is_exact=True)

    def _cost(self, victim: Victim) -> tuple[int, ...]:
        """Return the additive cost of a victim: its pods in all and per priority, by policy."""
        by_priority = tuple(
            victim.pods if priority == victim.priority else 0 for priority in self.priorities
        )
        is_fewest = self.policy is EvictionPolicy.FEWEST_VICTIMS
        return (victim.pods, *by_priority) if is_fewest else (*by_priority, victim.pods)

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


_Key = tuple[tuple[int, ...], int, tuple[int, ...]]
"""What makes a cover cheaper: its cost, its victims, and their places in the list."""


def _cheapest_cover(
    victims: Sequence[Victim],
    missing: Mapping[str, int],
    cost_of: Callable[[Victim], tuple[int, ...]],
) -> tuple[Victim, ...] | None:
    """Return the cheapest victims that free enough; None if there are too many amounts to compare.

    Amounts beyond what is missing count as what is missing. Cost: O(victims × amounts).
    """
    names = list(missing)
    goal = tuple(missing.values())
    best: dict[tuple[int, ...], _Key] = {(0,) * len(names): ((), 0, ())}
    for index, victim in enumerate(victims):
        freed, cost = dict(victim.request), cost_of(victim)
        for amounts, (before, num_victims, places) in list(best.items()):
            if amounts == goal:
                continue
            after = tuple(
                min(amount + freed.get(name, 0), limit)
                for name, amount, limit in zip(names, amounts, goal, strict=True)
            )
            total = tuple(map(sum, zip(before, cost, strict=True))) if before else cost
            key = (total, num_victims + 1, (*places, index))
            if after != amounts and (after not in best or key < best[after]):
                best[after] = key
        if len(best) > MAX_COVER_STATES:
            return None
    return tuple(victims[index] for index in best[goal][2])


def find_evictable(
    snapshot: Snapshot, request: PlacementRequest, budget: Budget
) -> EvictablePods | None:
    """Return what a request may evict; None if nothing; O(running pods).

    Raises:
        BudgetExhausted: the deadline has passed.
    """
    if request.eviction is EvictionPolicy.NEVER:
        return None
    gangs = {
        name: gang
        for name, gang in snapshot.running.items()
        if gang.preemptible and gang.priority < request.priority and name != request.gang
    }
    victims_of: dict[int, list[Victim]] = {}
    for name in sorted(gangs):
        budget.check()
        for node, victim in _victims_of_gang(snapshot, gangs[name]):
            victims_of.setdefault(node, []).append(victim)
    if not victims_of:
        return None
    quantities = snapshot.free[:, list(victims_of)].T.tolist()
    return EvictablePods(
        policy=request.eviction,
        gangs=gangs,
        victims_by_node={node: tuple(victims) for node, victims in victims_of.items()},
        free_by_node={
            node: dict(zip(snapshot.resources, row, strict=True))
            for node, row in zip(victims_of, quantities, strict=True)
        },
        priorities=tuple(sorted({gang.priority for gang in gangs.values()}, reverse=True)),
    )


def _victims_of_gang(snapshot: Snapshot, gang: RunningGang) -> Iterator[tuple[int, Victim]]:
    """Yield the pods of a gang on each of its nodes."""
    entries_by_node: dict[str, list[RunningPods]] = {}
    for entry in gang.pods:
        if entry.node in snapshot.position_of:
            entries_by_node.setdefault(entry.node, []).append(entry)
    for node, entries in entries_by_node.items():
        used: dict[str, int] = {}
        for entry in entries:
            for name, need in entry.request.items():
                used[name] = used.get(name, 0) + need * entry.count
        num_pods, request = sum(entry.count for entry in entries), tuple(sorted(used.items()))
        yield snapshot.position_of[node], Victim(gang.gang, gang.priority, num_pods, request)


def without_evictable(snapshot: Snapshot, evictable: EvictablePods) -> Snapshot:
    """Return the snapshot without any evictable gang."""
    return without_running(snapshot, *evictable.gangs)
