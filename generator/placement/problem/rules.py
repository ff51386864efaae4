"""The rules of a request on the pods per domain: slices, multiples, spread, exclusive domains.

Pods have the indices 0, 1, 2 … in their group. New pods take the lowest indices that no running pod
has. Running pods with unknown index are in no slice. A unit of a tier is used by a group if one of
its pods is in it, running pods included.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import NamedTuple

from generator.placement.cluster.nodes import RunningPods
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.groups import GangGroup, SliceLayer
from generator.placement.presets import PRESETS
from generator.placement.request import PlacementRequest

IndexedPods = tuple[tuple[int, int], ...]
"""(index, position of its node) per running pod whose index is known."""


class SlicePods(NamedTuple):
    """The new pods of one slice, cut further by the inner layers."""

    size: int
    """Number of new pods."""
    tier: str | None
    """Tier that the indexed slice must stay within; None: no tier, or unit rules cover it."""
    running_positions: tuple[int, ...]
    """Positions of the running pods of the slice, sorted."""
    inner_slices: tuple[SlicePods, ...]
    """Slices of the next layer; empty in the last layer."""

    @property
    def running_span(self) -> tuple[int, int] | None:
        """First and last position of the running pods."""
        return (
            (self.running_positions[0], self.running_positions[-1])
            if self.running_positions
            else None
        )


def cut_slices(
    layers: Sequence[SliceLayer], indexed_pods: IndexedPods, num_pods: int
) -> tuple[SlicePods, ...]:
    """Cut this many new pods of a group into slices, in order of their indices.

    Layers that are not indexed do not cut, except the last one, which cuts the parts that the
    objective counts. Cost: O(layers × pods).
    """
    used_indices = {index for index, _ in indexed_pods}
    free_indices = (index for index in count() if index not in used_indices)
    indexed_layers = [layer for layer in layers[:-1] if layer.is_indexed]
    return _cut_layers(
        (*indexed_layers, layers[-1]), list(islice(free_indices, num_pods)), indexed_pods
    )


def innermost_slices(pieces: Sequence[SlicePods]) -> Iterator[SlicePods]:
    """Yield the slices of the last layer in order."""
    for piece in pieces:
        yield from innermost_slices(piece.inner_slices) if piece.inner_slices else (piece,)


def all_slices(pieces: Sequence[SlicePods]) -> Iterator[SlicePods]:
    """Yield the slices of every layer, outer slices first."""
    for piece in pieces:
        yield piece
        yield from all_slices(piece.inner_slices)


def slices_with_positions(
    pieces: Sequence[SlicePods], positions: Sequence[int]
) -> Iterator[tuple[SlicePods, list[int]]]:
    """Yield every slice with the positions of its new and its running pods."""
    start = 0
    for piece in pieces:
        inner_positions = positions[start : start + piece.size]
        yield piece, [*inner_positions, *piece.running_positions]
        yield from slices_with_positions(piece.inner_slices, inner_positions)
        start += piece.size


def _cut_layers(
    layers: Sequence[SliceLayer], indices: Sequence[int], indexed_pods: IndexedPods
) -> tuple[SlicePods, ...]:
    if not layers:
        return ()
    layer, *inner = layers
    slices = []
    for key, slice_indices in _indices_by_slice(layer, indices):
        running = tuple(
            row for row in indexed_pods if layer.is_indexed and row[0] // layer.size == key
        )
        slices.append(
            SlicePods(
                size=len(slice_indices),
                tier=layer.tier if layer.is_indexed else None,
                running_positions=tuple(sorted(node for _, node in running)),
                inner_slices=_cut_layers(inner, slice_indices, running),
            )
        )
    return tuple(slices)


def _indices_by_slice(layer: SliceLayer, indices: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return (number of the slice, its indices); without an index, pods are cut in order."""
    slices: dict[int, list[int]] = {}
    for offset, index in enumerate(indices):
        slices.setdefault((index if layer.is_indexed else offset) // layer.size, []).append(index)
    return list(slices.items())


class UnitRule(NamedTuple):
    """A rule on the pods of a group, running ones included, in each unit of a tier."""

    tier: int
    multiple: int
    max_pods: int | None
    group: int

    def allows(self, num_pods: int) -> bool:
        """Return whether a unit may hold this many pods of the group."""
        return num_pods % self.multiple == 0 and num_pods <= (self.max_pods or num_pods)


class ShortSliceRule(NamedTuple):
    """A layer of slices of which one may be short.

    Pods beyond whole slices, summed over the units of the tier, must not exceed those beyond whole
    slices of the group; running pods are included.
    """

    tier: int
    size: int
    group: int


def build_unit_rules(
    snapshot: Snapshot, request: PlacementRequest, *, is_growth: bool, are_slices_whole: bool = True
) -> tuple[UnitRule, ...]:
    """Return the rules on the pods of a group in each unit of a tier.

    Args:
        snapshot: the cluster.
        request: the request.
        is_growth: whether pods already run. New pods may then complete a running slice, and a rule
            replaces the tier of a part.
        are_slices_whole: False for new pods that need not make up whole slices.
    """
    rules: list[UnitRule] = []
    for index, group in enumerate(request.groups):
        rules += [
            UnitRule(snapshot.levels.height_of(tier), multiple_of, None, index)
            for tier, multiple_of in group.multiples
        ]
        for layer_index, layer in enumerate(group.slices):
            if layer.tier is None:
                continue
            is_part_tier = layer_index == len(group.slices) - 1 and not is_growth
            is_covered_by_index = layer.is_indexed and is_growth
            is_bound = are_slices_whole and not (layer.has_short or is_part_tier)
            multiple = layer.size if is_bound and not is_covered_by_index else 1
            max_pods = layer.size if layer.is_spread else None
            if multiple > 1 or max_pods is not None:
                rules.append(
                    UnitRule(snapshot.levels.height_of(layer.tier), multiple, max_pods, index)
                )
    return tuple(rules)


def _build_short_slice_rules(
    snapshot: Snapshot, request: PlacementRequest, *, is_growth: bool
) -> tuple[ShortSliceRule, ...]:
    """Return a rule for each layer with a short slice, unless the tiers of parts bound it."""
    return tuple(
        ShortSliceRule(snapshot.levels.height_of(layer.tier), layer.size, index)
        for index, group in enumerate(request.groups)
        for layer_index, layer in enumerate(group.slices)
        if layer.tier is not None and layer.has_short and not layer.is_indexed
        if is_growth or layer_index < len(group.slices) - 1
    )


class OwnPods(NamedTuple):
    """Where the pods of the gang run already."""

    positions: tuple[int, ...] = ()
    """Positions of their nodes, one entry per pod, sorted."""
    positions_of: tuple[tuple[int, ...], ...] = ()
    """The same per group."""
    indexed: tuple[IndexedPods, ...] = ()
    """Per group: the pods whose index is known."""
    stray_tier: str | None = None
    """A tier of slices that one of the pods has no domain of: then no slice can be completed."""


def find_own_pods(snapshot: Snapshot, request: PlacementRequest) -> OwnPods:
    """Return where pods of the gang run; none if the preset ignores them."""
    num_groups = len(request.groups)
    nothing: tuple[tuple[()], ...] = ((),) * num_groups
    ignores = PRESETS[request.preset].ignores_running_without_tiers and not request.uses_tiers
    gang = snapshot.running.get(request.gang)
    if gang is None or (ignores and request.across_islands):
        return OwnPods((), nothing, nothing)
    known = [
        (snapshot.position_of[pods.node], pods)
        for pods in gang.pods
        if pods.node in snapshot.position_of
    ]
    positions_of, indexed = [], []
    for group in request.groups:
        rows = [row for row in known if num_groups == 1 or row[1].group == group.name]
        positions_of.append(_list_positions(rows))
        indexed.append(
            tuple(sorted((index, node) for node, pods in rows for index in pods.indices))
        )
    stray_tier = _find_stray_tier(snapshot, request, positions_of)
    return OwnPods(_list_positions(known), tuple(positions_of), tuple(indexed), stray_tier)


def _list_positions(rows: Iterable[tuple[int, RunningPods]]) -> tuple[int, ...]:
    """Return the node of each pod, sorted, from the nodes and the pods on them."""
    return tuple(sorted(node for node, pods in rows for _ in range(pods.count)))


def _find_stray_tier(
    snapshot: Snapshot, request: PlacementRequest, positions_by_group: Sequence[Sequence[int]]
) -> str | None:
    """Return a tier of slices, if a running pod is outside of all domains of this tier."""
    levels = snapshot.levels
    for group, positions in zip(request.groups, positions_by_group, strict=True):
        for layer in group.slices:
            tier = 0 if layer.tier is None else snapshot.levels.height_of(layer.tier)
            if layer.is_indexed or not 0 < tier < levels.root:
                continue
            if any(
                levels.domain_of_unit[tier][levels.unit_of_node[tier][node]] < 0
                for node in positions
            ):
                return layer.tier
    return None


class SpreadRule(NamedTuple):
    """The number of units of a tier that a group uses, unless none of its pods is placed."""

    tier: int
    least: int
    most: int | None
    group: int

    def allows(self, units: Collection[int]) -> bool:
        """Return whether the group may use these distinct units."""
        return not units or self.least <= len(units) <= (self.most or len(units))


class ExclusiveRule(NamedTuple):
    """Groups whose units of a tier contain no other group of the gang."""

    tier: int
    groups: tuple[int, ...]
    """Sorted: one group, a leader and its workers, or all groups of a set."""


class DomainRules(NamedTuple):
    """All rules of a request on the pods in the domains of a tier."""

    unit_rules: tuple[UnitRule, ...]
    short_slice_rules: tuple[ShortSliceRule, ...]
    limits: tuple[tuple[int, int], ...]
    """(tier, maximum number of units used)."""
    spread_rules: tuple[SpreadRule, ...]
    exclusive_rules: tuple[ExclusiveRule, ...]


def build_rules(snapshot: Snapshot, request: PlacementRequest, *, is_growth: bool) -> DomainRules:
    """Return the rules of a request; `is_growth`: whether pods of the gang run already."""
    height_of = snapshot.levels.height_of
    return DomainRules(
        unit_rules=build_unit_rules(snapshot, request, is_growth=is_growth),
        short_slice_rules=_build_short_slice_rules(snapshot, request, is_growth=is_growth),
        limits=tuple((height_of(tier), max_units) for tier, max_units in request.limits),
        spread_rules=tuple(
            SpreadRule(height_of(bound.tier), bound.least, bound.most, index)
            for index, group in enumerate(request.groups)
            for bound in group.spread
        ),
        exclusive_rules=_build_exclusive_rules(snapshot, request),
    )


def _build_exclusive_rules(
    snapshot: Snapshot, request: PlacementRequest
) -> tuple[ExclusiveRule, ...]:
    """Return the groups that share no domain with other groups; none if there are no others."""
    num_groups = len(request.groups)
    rules = [
        ExclusiveRule(snapshot.levels.height_of(tier), groups)
        for tier, groups in _exclusive_groups(request)
        if len(groups) < num_groups
    ]
    return tuple(dict.fromkeys(rules))


def _exclusive_groups(request: PlacementRequest) -> Iterable[tuple[str, tuple[int, ...]]]:
    """Yield (tier, the groups that have its domains for themselves)."""
    for index, group in enumerate(request.groups):
        if group.exclusive is not None:
            yield group.exclusive, tuple(sorted({index, *_worker_indices(request.groups, group)}))
    for index, group_set in enumerate(request.sets):
        if group_set.exclusive is not None:
            yield group_set.exclusive, request.groups_in_set(index)


def _worker_indices(groups: Sequence[GangGroup], leader: GangGroup) -> Iterable[int]:
    return (index for index, group in enumerate(groups) if group.name == leader.leader_of)
