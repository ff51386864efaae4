"""An independent judge for small clusters: it measures every placement by the key definitions.

It judges the kinds of requests that `tests/random_cases` does not draw: slices of several layers,
short slices, slices by index, slices of gangs that partly run, islands, and missing levels. It does
not use the engine's arrays. A cluster
is a mapping from nodes to paths, and a job is a list of groups. All ways to assign pods to nodes
are tried, and the best vector wins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, count, islice
from typing import NamedTuple

from generator.placement.presets import PRESETS, Direction, ObjectiveKey, Preset

Unit = tuple[object, ...]
Pods = list[list[tuple[str, ...]]]
"""Per group the nodes of every part."""


class Layer(NamedTuple):
    """One layer of slices."""

    size: int
    tier: int | None
    has_short: bool = False
    is_indexed: bool = False


class Own(NamedTuple):
    """A running pod of the job."""

    group: str
    node: str
    rank: int | None = None
    """Its index in the group, if it is known."""


@dataclass(frozen=True)
class Leaf:
    """One group of equal pods."""

    name: str
    count: int
    least: int
    layers: tuple[Layer, ...] = ()
    """Coarse to fine; empty: the group is one part."""
    required: int | None = None

    @property
    def floor(self) -> int:
        return (self.layers[-1].tier or 0) if self.layers else 0


@dataclass(frozen=True)
class Scene:
    """A cluster and a job."""

    nodes: tuple[str, ...]
    """In tree order."""
    paths: dict[str, tuple[int | None, ...]]
    """Per node one label per tier, bottom-up; None for a missing level."""
    slots: dict[str, int]
    """Free slots per node, after the gang's running pods are subtracted."""
    groups: tuple[Leaf, ...]
    own: tuple[Own, ...] = ()
    required: int | None = None
    strategies: tuple[tuple[int, int], ...] = ()
    has_cluster: bool = True
    spares_islands: bool = False

    @property
    def root(self) -> int:
        return len(next(iter(self.paths.values()))) + 1

    def domain(self, node: str, tier: int) -> Unit | None:
        if tier == 0:
            return (node,)
        if tier == self.root:
            return ()
        path = self.paths[node]
        return None if path[tier - 1] is None else (tier, *path[tier - 1 :])

    def unit(self, node: str, tier: int) -> Unit:
        for lower in range(tier, -1, -1):
            found = self.domain(node, lower)
            if found is not None:
                return found
        raise AssertionError(node)

    def common(self, nodes: Sequence[str]) -> int:
        return next(
            tier
            for tier in range(self.root + 1)
            if len({self.unit(node, tier) for node in nodes}) == 1
        )

    def pods_of(self, group: Leaf) -> list[Own]:
        return [pod for pod in self.own if pod.group == group.name or len(self.groups) == 1]

    def own_of(self, group: Leaf) -> list[str]:
        return [pod.node for pod in self.pods_of(group)]

    def slices_of(self, group: Leaf, pods: int) -> list[tuple[int, ...]]:
        """Per new pod the numbers of its slices: by index, or else in order."""
        taken = {pod.rank for pod in self.pods_of(group)}
        indices = islice((index for index in count() if index not in taken), pods)
        found: list[tuple[int, ...]] = []
        for index in indices:
            key: tuple[int, ...] = ()
            for layer in group.layers:
                if layer.is_indexed:
                    key = (*key, index // layer.size)
            last = group.layers[-1]
            if not last.is_indexed:
                before = sum(row[: len(key)] == key for row in found)
                key = (*key, before // last.size)
            found.append(key)
        return found


def best_vector(scene: Scene, preset: Preset) -> tuple[int, ...] | None:
    """Return the best vector over all placements; None if none satisfies the rules."""
    vectors = (
        vector(scene, preset, pods, strategy)
        for pods in placements(scene)
        for strategy in holding(scene, pods)
    )
    return min(vectors, default=None)


def placements(scene: Scene) -> Iterator[Pods]:
    """Yield all placements within capacity, selectors and minimums."""
    yield from _extended(scene, [], dict(scene.slots))


def _extended(scene: Scene, pods: Pods, left: dict[str, int]) -> Iterator[Pods]:
    if len(pods) == len(scene.groups):
        if any(pods):
            yield pods
        return
    group = scene.groups[len(pods)]
    for num in range(group.least, group.count + 1):
        sizes = part_sizes(scene, group, num)
        whole = (layer.has_short or num % layer.size == 0 for layer in group.layers)
        if scene.own or all(whole):
            for parts, rest in _parts(scene, group, sizes, left):
                yield from _extended(scene, [*pods, parts], rest)


def part_sizes(scene: Scene, group: Leaf, num: int) -> list[int]:
    if not group.layers:
        return [num] if num else []
    return list(Counter(scene.slices_of(group, num)).values())


def _parts(
    scene: Scene, group: Leaf, sizes: list[int], left: dict[str, int]
) -> Iterator[tuple[list[tuple[str, ...]], dict[str, int]]]:
    """Yield nodes per part; parts of one size in one order only, unless they are indexed."""
    is_told = any(layer.is_indexed for layer in group.layers)
    open_nodes = [node for node in scene.nodes if left[node]]

    def extend(
        done: list[tuple[str, ...]], left: dict[str, int]
    ) -> Iterator[tuple[list[tuple[str, ...]], dict[str, int]]]:
        if len(done) == len(sizes):
            yield done, left
            return
        size = sizes[len(done)]
        for part in combinations_with_replacement(open_nodes, size):
            if not is_told and done and len(done[-1]) == size and part < done[-1]:
                continue
            rest = dict(left)
            for node in part:
                rest[node] -= 1
            if min(rest.values()) >= 0:
                yield from extend([*done, part], rest)

    yield from extend([], left)


def holding(scene: Scene, pods: Pods) -> list[int]:
    """Return the first feasible strategy as a list; empty if a rule is violated."""
    placed = [node for parts in pods for part in parts for node in part]
    job = scene.common(placed + [pod.node for pod in scene.own])
    tiers = [tier for tier, _ in _part_tiers(scene, pods)]
    named = scene.required == scene.root or any(a == scene.root for a, _ in scene.strategies)
    if job == scene.root and not (scene.has_cluster or named):
        return []
    if scene.required is not None and job > scene.required:
        return []
    if not all(
        _keeps(scene, group, parts) for group, parts in zip(scene.groups, pods, strict=True)
    ):
        return []
    strategies = scene.strategies or ((scene.root, scene.root),)
    return [
        index for index, (a, b) in enumerate(strategies) if job <= a and max(tiers, default=0) <= b
    ][:1]


def _keeps(scene: Scene, group: Leaf, parts: list[tuple[str, ...]]) -> bool:
    held = [node for part in parts for node in part] + scene.own_of(group)
    if group.required is not None and held and scene.common(held) > group.required:
        return False
    return all(
        _keeps_index(scene, group, parts, index)
        if layer.is_indexed
        else _keeps_layer(scene, layer, held)
        for index, layer in enumerate(group.layers)
        if layer.tier is not None
    )


def _keeps_layer(scene: Scene, layer: Layer, held: list[str]) -> bool:
    counts = Counter(scene.domain(node, layer.tier or 0) for node in held)
    over = sum(num % layer.size for num in counts.values())
    return None not in counts and over <= (len(held) % layer.size if layer.has_short else 0)


def _keeps_index(scene: Scene, group: Leaf, parts: list[tuple[str, ...]], index: int) -> bool:
    """Whether each slice with new pods lies in one domain together with its running pods."""
    placed = [node for part in parts for node in part]
    rank = sum(layer.is_indexed for layer in group.layers[:index])
    layer = group.layers[index]
    domains: dict[int, set[Unit | None]] = {}
    for node, key in zip(placed, scene.slices_of(group, len(placed)), strict=True):
        domains.setdefault(key[rank], set()).add(scene.domain(node, layer.tier or 0))
    for pod in scene.pods_of(group):
        if pod.rank is not None and pod.rank // layer.size in domains:
            domains[pod.rank // layer.size].add(scene.domain(pod.node, layer.tier or 0))
    return all(len(row) == 1 and None not in row for row in domains.values())


def _part_tiers(scene: Scene, pods: Pods) -> list[tuple[int, int]]:
    """Return (tier, tier that counts) per part."""
    found = []
    for group, parts in zip(scene.groups, pods, strict=True):
        for part, own in zip(parts, _own_parts(scene, group, parts), strict=True):
            tier = scene.common([*part, *own])
            found.append((tier, max(tier, group.floor)))
    return found


def _own_parts(scene: Scene, group: Leaf, parts: list[tuple[str, ...]]) -> list[list[str]]:
    """Per part the nodes of its running pods: those of a whole group, or of a slice by index."""
    if not group.layers:
        return [scene.own_of(group)] * len(parts)
    last = group.layers[-1]
    keys = list(dict.fromkeys(scene.slices_of(group, sum(map(len, parts)))))
    return [
        [
            pod.node
            for pod in scene.pods_of(group)
            if last.is_indexed and pod.rank is not None and pod.rank // last.size == key[-1]
        ]
        for key in keys
    ]


def vector(scene: Scene, preset: Preset, pods: Pods, strategy: int) -> tuple[int, ...]:
    """Return the numbers that a preset compares, by the definitions of the keys."""
    values = keys(scene, pods, strategy)
    return tuple(
        -value if term.direction is Direction.MORE else value
        for term in PRESETS[preset].order
        for value in values[term.key]
    )


def keys(scene: Scene, pods: Pods, strategy: int) -> dict[ObjectiveKey, tuple[int, ...]]:
    placed = [node for parts in pods for part in parts for node in part]
    own = [pod.node for pod in scene.own]
    job = scene.common(placed + own)
    counted = [tier for _, tier in _part_tiers(scene, pods)]
    down = range(scene.root - 1, -1, -1)
    largest = _largest(scene)
    left = {
        node: _left(scene, pods, node) if _fits(scene, largest, node) else 0 for node in scene.nodes
    }

    def room(tier: int, units: set[Unit]) -> int:
        return sum(left[node] for node in scene.nodes if scene.unit(node, tier) in units)

    def around(tier: int) -> set[Unit]:
        return {scene.unit(placed[0], tier)}

    used = {tier: {scene.unit(node, tier) for node in placed} for tier in range(scene.root)}
    own_units = {tier: {scene.unit(node, tier) for node in own} for tier in range(scene.root)}
    domain = scene.unit(placed[0], job)
    return {
        ObjectiveKey.PLACED: (len(placed),),
        ObjectiveKey.STRATEGY: (strategy,),
        ObjectiveKey.EXISTING: tuple(
            sum(scene.unit(node, tier) in own_units[tier] for node in placed) for tier in down
        ),
        ObjectiveKey.JOB_TIER: (job,),
        ObjectiveKey.GROUP_TIER: (max(counted, default=0),),
        ObjectiveKey.HISTOGRAM: tuple(counted.count(tier) for tier in range(scene.root, -1, -1)),
        ObjectiveKey.PREFERRED_MISSES: (0,),
        ObjectiveKey.NODE_WEIGHTS: (),
        ObjectiveKey.NODE_MISSES: (0,),
        ObjectiveKey.SORT: (),
        ObjectiveKey.TRAFFIC: (0,),
        ObjectiveKey.ISLANDS: _islands(scene, job, used[scene.root - 1]),
        ObjectiveKey.DOMAINS: tuple(len(used[tier]) for tier in down),
        ObjectiveKey.SURPLUS: (room(job, {domain}),),
        ObjectiveKey.PARENT_SURPLUS: tuple(
            room(tier, around(tier)) for tier in range(job + 1, scene.root)
        ),
        ObjectiveKey.FRAGMENTATION: tuple(room(tier, used[tier]) for tier in range(scene.root)),
        ObjectiveKey.NAMES: (
            next(
                position
                for position, node in enumerate(scene.nodes)
                if scene.unit(node, job) == domain
            ),
        ),
    }


def _islands(scene: Scene, job: int, used: set[Unit]) -> tuple[int, int]:
    """Return the islands that a job uses and should spare; without tiers there are none."""
    largest, top = _largest(scene), scene.root - 1
    if job < top or top == 0 or not scene.spares_islands:
        return 0, 0
    rooms = [
        scene.slots[node]
        for node in scene.nodes
        if scene.unit(node, top) in used and _fits(scene, largest, node)
    ]
    return len(used), sum(rooms)


def _left(scene: Scene, pods: Pods, node: str) -> int:
    return scene.slots[node] - sum(part.count(node) for parts in pods for part in parts)


def _fits(scene: Scene, group: Leaf, node: str) -> bool:
    tiers = [layer.tier for layer in group.layers if layer.tier is not None]
    return all(scene.domain(node, tier) is not None for tier in tiers)


def _largest(scene: Scene) -> Leaf:
    """Return the group of whose pods the cluster holds the fewest."""
    return min(
        scene.groups,
        key=lambda group: sum(
            scene.slots[node] for node in scene.nodes if _fits(scene, group, node)
        ),
    )
