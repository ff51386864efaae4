"""What a gang may evict, and what a placement evicts: a gang below its minimum goes whole, once.

The pods of one gang on one node are evicted together. A search cannot add up whole gangs node by
node, so it counts only the pods on the nodes that it uses: a bound, never too high. Decisions about
single gangs follow until the bound is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from generator.placement.budget import Budget
from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, without_running
from generator.placement.request import EvictionPolicy, PlacementRequest
from topology.model.errors import InvariantError

MAX_COVER_STATES = 2000
"""Amounts of freed resources on a node that are compared; beyond it victims are a heuristic."""
MAX_DECISIONS = 500
"""Decisions about gangs that are tried for the fewest victims of one placement."""


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
        """Return the same pods with their decisions, measured as a bound."""
        return replace(self, is_bound=True, _covers={})

    def narrowed(
        self,
        *,
        whole: Iterable[str] = (),
        used: Iterable[str] = (),
        kept: Iterable[tuple[str, int]] = (),
    ) -> EvictablePods:
        """Return the same pods with further decisions."""
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
        by_priority = self.per_priority({victim.priority: victim.pods})
        is_fewest = self.policy is EvictionPolicy.FEWEST_VICTIMS
        return (victim.pods, *by_priority) if is_fewest else (*by_priority, victim.pods)

    def per_priority(self, pods: Mapping[int, int]) -> tuple[int, ...]:
        """Return the pods per priority, the highest first."""
        return tuple(pods.get(priority, 0) for priority in self.priorities)

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
    """Return the pods that a request may evict; None if there are none. Cost: O(running pods).

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
            for name, need in snapshot.pod_needs(entry.request).items():
                used[name] = used.get(name, 0) + need * entry.count
        num_pods, request = sum(entry.count for entry in entries), tuple(sorted(used.items()))
        yield snapshot.position_of[node], Victim(gang.gang, gang.priority, num_pods, request)


def without_evictable(snapshot: Snapshot, evictable: EvictablePods) -> Snapshot:
    """Return the snapshot without any evictable gang."""
    return without_running(snapshot, *evictable.gangs)


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
        InvariantError: the pods do not fit even if everything is evicted.
    """
    best: EvictionResult | None = None
    is_exact, policy = True, evictable.policy
    waiting = [evictable if evictable.is_bound else evictable.as_bound()]
    for _ in range(MAX_DECISIONS):
        if not waiting:
            break
        relaxed = _Relaxation.of(snapshot, waiting.pop(), needs)
        if relaxed is None:
            continue
        if evictable.is_bound:
            return relaxed.bound
        is_exact &= relaxed.bound.is_exact
        if best is not None and relaxed.bound.cost(policy) >= best.cost(policy):
            continue
        if best is None or relaxed.outcome.cost(policy) < best.cost(policy):
            best = relaxed.outcome
        waiting += reversed(relaxed.branches())
    if best is None:
        raise InvariantError("a placement needs more than all evictions free")
    return best._replace(is_exact=is_exact and not waiting)


def eviction_branches(
    snapshot: Snapshot, evictable: EvictablePods, needs: Needs
) -> list[EvictablePods]:
    """Return further decisions, each of which rules out the bound of these needs.

    Empty if the bound is exact: the pods then evict what it counts. Every eviction that the
    decisions so far allow is allowed by one of the branches.
    """
    relaxed = _Relaxation.of(snapshot, evictable, needs)
    return [] if relaxed is None else relaxed.branches()


class _Relaxation(NamedTuple):
    """Victims of each node by itself, what they cost at least, and what they really evict."""

    evictable: EvictablePods
    nodes: Mapping[str, frozenset[int]]
    """By gang: the node positions where its pods are evicted, without gangs evicted whole."""
    broken: tuple[str, ...]
    """The gangs in `nodes` that keep fewer pods than their minimum, sorted."""
    bound: EvictionResult
    outcome: EvictionResult

    @classmethod
    def of(cls, snapshot: Snapshot, evictable: EvictablePods, needs: Needs) -> _Relaxation | None:
        """Choose the victims of each node; None if a node cannot free enough."""
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
        outcome_pods, broken = Counter[int](), list[str]()
        for name in sorted({*nodes, *evictable.whole}):
            gang = evictable.gangs[name]
            chosen = {snapshot.specs[position].name for position in nodes.get(name, ())}
            num_kept = sum(entry.count for entry in gang.pods if entry.node not in chosen)
            if name not in evictable.whole and 0 < num_kept < (gang.min_pods or 0):
                broken.append(name)
            is_whole = name in evictable.whole or broken[-1:] == [name]
            gone = [entry for entry in gang.pods if is_whole or entry.node in chosen]
            pairs |= {(name, entry.node) for entry in gone}
            num_pods = sum(entry.count for entry in gone)
            outcome_pods[gang.priority] += num_pods
            bound_pods[gang.priority] += num_pods if name in evictable.whole else 0
        # Another placement may need none but the gangs that are decided about.
        num_least = len(evictable.whole | evictable.used) or min(len(nodes), 1)
        bound = EvictionResult(
            frozenset(pairs), evictable.per_priority(bound_pods), num_least, is_exact
        )
        outcome = bound._replace(
            pods_by_priority=evictable.per_priority(outcome_pods),
            num_gangs=len({*nodes, *evictable.whole}),
        )
        frozen = {name: frozenset(chosen) for name, chosen in nodes.items()}
        return cls(evictable, frozen, tuple(broken), bound, outcome)

    def branches(self) -> list[EvictablePods]:
        """Return further decisions about one gang; empty if the bound is exact."""
        evictable = self.evictable
        if self.broken:
            name = max(self.broken, key=lambda gang: len(evictable.gangs[gang].pods))
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

    def _may_lose_one(self, name: str) -> bool:
        """Return whether the pods of any one node may go while the gang keeps its minimum."""
        gang = self.evictable.gangs[name]
        per_node = Counter[str]()
        for entry in gang.pods:
            per_node[entry.node] += entry.count
        return per_node.total() - min(per_node.values()) >= (gang.min_pods or 0)
