"""Flatten the nested groups of a request into leaf groups and sets of groups.

A set is several groups that share a bound: a parent group, or a leader with its workers. Inner sets
come before outer sets, so that a list of sets can be processed bottom-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from generator.placement import wire
from generator.placement.node_selection import NAME_FIELD, NodeRequirement, NodeTerms, Toleration
from topology.model.errors import PlacementRequestError, show

MAX_DEPTH = 16
"""Levels of nested groups; a deeper request is refused before it is followed."""


@dataclass(frozen=True, slots=True)
class SliceLayer:
    """Consecutive pods of a group that stay together."""

    size: int
    tier: str | None
    """Each slice lies in one domain of this tier; None: slices only count in the objective."""
    has_short: bool
    """Whether the last slice may be incomplete."""
    is_spread: bool
    """Whether a domain of `tier` holds at most one slice."""
    is_indexed: bool
    """Whether slice k is exactly the pods with index k × size and following."""
    least: int = 0
    """The fewest whole slices; with fewer the gang is not placed."""


class DomainSpread(NamedTuple):
    """The fewest and the most domains of a tier that the pods of a group may use.

    It binds only a group with placed pods.
    """

    tier: str
    least: int
    most: int | None
    """None: any number."""


@dataclass(frozen=True, slots=True)
class GangGroup:
    """Equal pods."""

    name: str
    count: int
    """Pods to place; 0 if all of the group run already."""
    least: int
    """The fewest pods; with fewer the gang is not placed."""
    request: tuple[tuple[str, int], ...]
    """Per pod: (resource, quantity), sorted."""
    selector: tuple[tuple[str, tuple[str, ...]], ...]
    """(label, allowed values), sorted; a node must carry one of the values."""
    tolerations: frozenset[Toleration]
    required: str | None
    preferred: tuple[str, ...]
    slices: tuple[SliceLayer, ...]
    """Coarse to fine; the last layer cuts the parts that the objective counts."""
    multiples: tuple[tuple[str, int], ...]
    """(tier, multiple of pods per domain of it), sorted."""
    preferred_labels: tuple[tuple[str, str], ...] = ()
    """(label, value) that nodes should carry, sorted."""
    leader_of: str | None = None
    """Name of the group of its workers."""
    is_optional: bool = False
    """Whether the whole group may be left out, because its parent needs only some members."""
    spread: tuple[DomainSpread, ...] = ()
    """Sorted by tier."""
    exclusive: str | None = None
    """A tier: the group's domains contain no other group. A leader shares them with its workers."""
    affinity: NodeTerms = ()
    """Sorted. Requirements on nodes, in addition to the selector."""
    max_per_node: int | None = None
    """The most pods on one node, running pods included; None: any number."""


@dataclass(frozen=True, slots=True)
class GroupSet:
    """Groups, and sets of groups, that share a bound."""

    name: str
    groups: tuple[int, ...]
    """Indices of the leaf groups directly in it."""
    sets: tuple[int, ...]
    """Indices of the sets directly in it."""
    least: int
    """Members that must be complete."""
    required: str | None
    preferred: tuple[str, ...]
    exclusive: str | None = None
    """A tier: the set's domains contain no group outside the set."""


@dataclass
class FlatGroups:
    """All leaf groups in order, and all sets, inner sets first."""

    groups: list[GangGroup] = field(default_factory=list)
    sets: list[GroupSet] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """The names of all groups and sets."""


def flatten_groups(rows: Sequence[wire.GroupRow]) -> FlatGroups:
    """Flatten a tree of groups.

    Raises:
        PlacementRequestError: names repeat, counts and minimums contradict each other, groups are
            nested too deeply, or a leader has no workers.
    """
    builder = FlatGroups()
    _add_members(builder, rows, "groups", is_optional=False)
    if len(builder.groups) > wire.MAX_GROUPS:
        message = f"expected at most {wire.MAX_GROUPS} groups, got {len(builder.groups)}"
        raise PlacementRequestError("groups", message)
    return builder


def _add_members(
    builder: FlatGroups, rows: Sequence[wire.GroupRow], path: str, *, is_optional: bool
) -> tuple[list[int], list[int]]:
    """Add the groups of one list; return the leaf groups and sets directly in it."""
    groups: list[int] = []
    sets: list[int] = []
    for index, row in enumerate(rows):
        row_path = f"{path}[{index}]"
        _check_row(builder, row, row_path)
        if row.children:
            sets.append(_add_parent(builder, row, row_path, is_optional=is_optional))
        else:
            groups.append(len(builder.groups))
            builder.groups.append(_build_group(row, is_optional=is_optional))
    for leader in tuple(groups):
        _add_leader_set(
            builder, leader, groups, sets, f"{path}[{_row_index(rows, builder, leader)}]"
        )
    return groups, sets


def _check_row(builder: FlatGroups, row: wire.GroupRow, path: str) -> None:
    """Check one row, and remember its name.

    The name must be unique. A group has either a count or children; only a group without children
    may have the fields of pods. The depth, the minimum and the spread must be possible.
    """
    if row.name in builder.names:
        raise PlacementRequestError(f"{path}.name", f"two groups are named {show(row.name)}")
    builder.names.add(row.name)
    if (row.count is None) == (not row.children):
        raise PlacementRequestError(f"{path}.count", "expected either count or children")
    if row.count == 0 and row.min != 0:
        raise PlacementRequestError(f"{path}.count", "expected a positive integer, got 0")
    if path.count("[") > MAX_DEPTH:
        raise PlacementRequestError(f"{path}.children", f"expected at most {MAX_DEPTH} levels")
    maximum = len(row.children) if row.count is None else row.count
    if (row.min or 0) > maximum:
        limit = "count" if row.count is not None else "number of children"
        message = f"expected at most {maximum}, the {limit}, got {row.min}"
        raise PlacementRequestError(f"{path}.min", message)
    for tier, bound in row.spread.items():
        _check_spread(bound, maximum, f"{path}.spread.{show(tier)}")
    for name in (
        "slices",
        "multiple_of",
        "node_selector",
        "node_affinity",
        "node_preference",
        "leader_of",
        "max_per_node",
        "spread",
    ):
        if row.children and getattr(row, name):
            message = "only allowed on a group of pods, not on a group with children"
            raise PlacementRequestError(f"{path}.{name}", message)


def _check_spread(bound: wire.SpreadRow, num_pods: int, path: str) -> None:
    if bound.min > num_pods:
        message = f"expected at most {num_pods}, the count, got {bound.min}"
        raise PlacementRequestError(f"{path}.min", message)
    if bound.max is not None and bound.max < bound.min:
        message = f"expected at least {bound.min}, the minimum, got {bound.max}"
        raise PlacementRequestError(f"{path}.max", message)


def _add_parent(builder: FlatGroups, row: wire.GroupRow, path: str, *, is_optional: bool) -> int:
    min_members = len(row.children) if row.min is None else row.min
    are_members_optional = is_optional or min_members < len(row.children)
    groups, sets = _add_members(
        builder, row.children, f"{path}.children", is_optional=are_members_optional
    )
    num_led_groups = sum(
        len(builder.sets[set_index].groups) - 1
        for set_index in sets
        if is_leader_with_workers(builder.sets[set_index], builder.groups)
    )
    if num_led_groups and min_members < len(row.children):
        raise PlacementRequestError(
            f"{path}.min", "not allowed below the number of children if one of them is a leader"
        )
    group_set = GroupSet(
        row.name,
        tuple(groups),
        tuple(sets),
        min_members - num_led_groups,
        row.required,
        tuple(row.preferred),
        row.exclusive,
    )
    builder.sets.append(group_set)
    return len(builder.sets) - 1


def is_leader_with_workers(group_set: GroupSet, groups: Sequence[GangGroup]) -> bool:
    """Return whether a set is a leader with its workers: it then has the leader's name."""
    return bool(group_set.groups) and groups[group_set.groups[0]].name == group_set.name


def _row_index(rows: Sequence[wire.GroupRow], builder: FlatGroups, group: int) -> int:
    name = builder.groups[group].name
    return next(index for index, row in enumerate(rows) if row.name == name)


def _add_leader_set(
    builder: FlatGroups, leader: int, groups: list[int], sets: list[int], path: str
) -> None:
    """Put a leader and its workers into a set of their own if the leader has a required tier."""
    row = builder.groups[leader]
    if row.leader_of is None:
        return
    workers = [
        group for group in groups if builder.groups[group].name == row.leader_of and group != leader
    ]
    if not workers:
        message = "expected the name of a sibling group without another leader"
        raise PlacementRequestError(f"{path}.leader_of", message)
    if row.required is None:
        return
    pair = (leader, workers[0])
    builder.sets.append(GroupSet(row.name, pair, (), len(pair), row.required, ()))
    sets.append(len(builder.sets) - 1)
    for group in pair:
        groups.remove(group)


def _build_group(row: wire.GroupRow, *, is_optional: bool) -> GangGroup:
    selector = {key: tuple(accepted.values) for key, accepted in row.node_selector.items()}
    layers = tuple(
        SliceLayer(
            size=layer.size,
            tier=layer.tier,
            has_short=layer.remainder == "short",
            is_spread=layer.placement == "spread",
            is_indexed=layer.indexed,
            least=layer.min,
        )
        for layer in row.slices
    )
    count = row.count or 0
    return GangGroup(
        name=row.name,
        count=count,
        least=count if row.min is None else row.min,
        request=tuple(sorted(row.request.items())),
        selector=tuple(sorted(selector.items())),
        tolerations=frozenset(
            Toleration(entry.key, entry.operator, entry.value, str(entry.effect or ""))
            for entry in row.tolerations
        ),
        required=row.required,
        preferred=tuple(row.preferred),
        slices=layers,
        multiples=tuple(sorted(row.multiple_of.items())),
        preferred_labels=tuple(sorted(row.node_preference.items())),
        leader_of=row.leader_of,
        is_optional=is_optional,
        spread=tuple(
            DomainSpread(tier, bound.min, bound.max) for tier, bound in sorted(row.spread.items())
        ),
        exclusive=row.exclusive,
        affinity=_build_affinity(row.node_affinity),
        max_per_node=row.max_per_node,
    )


def _build_affinity(terms: Sequence[wire.NodeTermRow]) -> NodeTerms:
    """Return the terms in a form that is equal for terms that differ only in their order."""
    return tuple(
        sorted({tuple(sorted(set(map(_build_requirement, term.requirements)))) for term in terms})
    )


def _build_requirement(row: wire.NodeRequirementRow) -> NodeRequirement:
    values = tuple(sorted(set(row.values)))
    return NodeRequirement(row.key or NAME_FIELD, row.operator, values, row.field is not None)
