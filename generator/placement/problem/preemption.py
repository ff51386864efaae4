"""Find out what a placement evicts: a gang that falls below its minimum is evicted whole, once.

A search cannot add up whole gangs node by node, so it counts only the pods on the nodes that it
uses: a bound, never too high. Decisions about single gangs follow until the bound is the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from generator.placement.cluster.snapshot import Snapshot
from generator.placement.problem.evictable_pods import EvictablePods
from generator.placement.request import EvictionPolicy

MAX_DECISIONS = 500
"""Decisions about gangs that are tried for the fewest victims of one placement."""


class EvictionResult(NamedTuple):
    """What a placement evicts."""

    pairs: frozenset[tuple[str, str]]
    """(gang, node)."""
    pods_by_priority: tuple[int, ...]
    """Per priority of all evictable gangs, the highest first."""
    num_gangs: int
    is_exact: bool
    """Whether the placement needs no fewer victims."""

    def victim_names(self, evictable: EvictablePods) -> tuple[str, ...]:
        """Return `gang` if all its pods are evicted, else `gang@node`; sorted."""
        names: list[str] = []
        for gang in sorted({gang for gang, _ in self.pairs}):
            nodes = {node for name, node in self.pairs if name == gang}
            is_whole = nodes == {row.node for row in evictable.gangs[gang].pods}
            names += [gang] if is_whole else sorted(f"{gang}@{node}" for node in nodes)
        return tuple(names)

    def cost(self, policy: EvictionPolicy) -> tuple[int, ...]:
        """Return the sort key of evictions: in the order in which objectives compare them."""
        num_pods = sum(self.pods_by_priority)
        if policy is EvictionPolicy.FEWEST_VICTIMS:
            return (num_pods, *self.pods_by_priority, self.num_gangs)
        return (*self.pods_by_priority, self.num_gangs, num_pods)


Needs = Mapping[int, Mapping[str, int]]
"""Resources that new pods take, by node position."""


def evict_for(snapshot: Snapshot, evictable: EvictablePods, needs: Needs) -> EvictionResult:
    """Return the cheapest eviction for these resources, or its bound if a bound is asked for.

    Raises:
        ValueError: the pods do not fit even if everything is evicted.
    """
    if evictable.is_bound:
        bound = _Relaxation.of(snapshot, evictable, needs)
        if bound is None:
            message = "expected pods that fit after all evictions"
            raise ValueError(message)
        return bound.bound
    best: EvictionResult | None = None
    is_exact = True
    waiting = [evictable.as_bound()]
    for _ in range(MAX_DECISIONS):
        if not waiting:
            break
        relaxed = _Relaxation.of(snapshot, waiting.pop(), needs)
        if relaxed is None:
            continue
        policy = evictable.policy
        is_exact &= relaxed.bound.is_exact
        if best is not None and relaxed.bound.cost(policy) >= best.cost(policy):
            continue
        if best is None or relaxed.outcome.cost(policy) < best.cost(policy):
            best = relaxed.outcome
        waiting += reversed(relaxed.branches())
    if best is None:
        message = "expected pods that fit after all evictions"
        raise ValueError(message)
    return best._replace(is_exact=is_exact and not waiting)


def eviction_branches(
    snapshot: Snapshot, evictable: EvictablePods, needs: Needs
) -> list[EvictablePods]:
    """Return decisions of which each allows an eviction that the bound of these needs is not.

    Empty if the bound is what the pods really evict. Every eviction that the decisions so far
    allow is allowed by one of the branches.
    """
    relaxed = _Relaxation.of(snapshot, evictable, needs)
    return [] if relaxed is None else relaxed.branches()


class _Relaxation(NamedTuple):
    """Victims of each node by itself, what they cost at least, and what they really evict."""

    evictable: EvictablePods
    nodes: Mapping[str, frozenset[int]]
    """By gang: the node positions where its pods are evicted, without gangs evicted whole."""
    bound: EvictionResult
    outcome: EvictionResult

    @classmethod
    def of(cls, snapshot: Snapshot, evictable: EvictablePods, needs: Needs) -> _Relaxation | None:
        """Choose the victims of each node; None if some node cannot free enough."""
        nodes: dict[str, set[int]] = {}
        bound_pods, is_exact = Counter[int](), True
        for position, need in needs.items():
            cover = evictable.find_cover(position, need)
            if cover is None:
                return None
            is_exact &= cover.is_exact
            for victim in cover.victims:
                nodes.setdefault(victim.gang, set()).add(position)
                bound_pods[victim.priority] += victim.pods
        pairs: set[tuple[str, str]] = set()
        outcome_pods = Counter[int]()
        for name in {*nodes, *evictable.whole}:
            gang = evictable.gangs[name]
            chosen = {snapshot.specs[position].name for position in nodes.get(name, ())}
            num_kept = sum(entry.count for entry in gang.pods if entry.node not in chosen)
            is_whole = name in evictable.whole or 0 < num_kept < (gang.min_pods or 0)
            gone = [entry for entry in gang.pods if is_whole or entry.node in chosen]
            pairs |= {(name, entry.node) for entry in gone}
            num_pods = sum(entry.count for entry in gone)
            outcome_pods[gang.priority] += num_pods
            bound_pods[gang.priority] += num_pods if name in evictable.whole else 0
        decided = evictable.whole | evictable.used
        # Another placement may need none but the gangs that are decided about.
        num_least = len(decided) or min(len(nodes), 1)
        frozen = frozenset(pairs)
        return cls(
            evictable,
            {name: frozenset(chosen) for name, chosen in nodes.items()},
            EvictionResult(frozen, _per_priority(evictable, bound_pods), num_least, is_exact),
            EvictionResult(
                frozen,
                _per_priority(evictable, outcome_pods),
                len({*nodes, *evictable.whole}),
                is_exact,
            ),
        )

    def branches(self) -> list[EvictablePods]:
        """Return further decisions about one gang; empty if the bound is the truth."""
        evictable = self.evictable
        broken = [name for name in sorted(self.nodes) if self._is_broken(name)]
        if broken:
            name = max(broken, key=lambda gang: len(evictable.gangs[gang].pods))
            spared = [evictable.narrowed(kept=[(name, node)]) for node in sorted(self.nodes[name])]
            if not self._may_lose_one(name):
                everywhere = [(name, node) for node in evictable.victims_by_node]
                spared = [evictable.narrowed(kept=everywhere)]
            return [evictable.narrowed(whole=[name]), *spared]
        undecided = sorted(set(self.nodes) - evictable.used)
        if len(undecided) <= (0 if evictable.whole | evictable.used else 1):
            return []
        name = undecided[0]
        everywhere = [(name, node) for node in evictable.victims_by_node]
        return [evictable.narrowed(kept=everywhere), evictable.narrowed(used=[name])]

    def _is_broken(self, name: str) -> bool:
        gang = self.evictable.gangs[name]
        num_lost = sum(
            victim.pods
            for node in self.nodes[name]
            for victim in self.evictable.victims_by_node[node]
            if victim.gang == name
        )
        total = sum(entry.count for entry in gang.pods)
        return 0 < total - num_lost < (gang.min_pods or 0)

    def _may_lose_one(self, name: str) -> bool:
        """Return whether the pods of some node may go while the gang keeps its minimum."""
        gang = self.evictable.gangs[name]
        per_node = Counter[str]()
        for entry in gang.pods:
            per_node[entry.node] += entry.count
        return per_node.total() - min(per_node.values()) >= (gang.min_pods or 0)


def _per_priority(evictable: EvictablePods, pods: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(pods.get(priority, 0) for priority in evictable.priorities)
