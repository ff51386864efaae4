"""Placement requests: the frozen form that the engine uses, and the parser of a document.

A malformed document raises PlacementRequestError, which names the field. A valid request that the
cluster cannot satisfy is an answer, not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from generator.placement import wire
from generator.placement.groups import FlatGroups, GangGroup, GroupSet, flatten_groups
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show
from topology.model.validation import describe_fault

Nested = TypeVar("Nested")
"""The result of a group or a set in a fold over a request."""


class EvictionPolicy(StrEnum):
    """Which running pods may be evicted for a gang that does not fit otherwise."""

    NEVER = "never"
    TOPOLOGY_FIRST = "topologyFirst"
    """The best topology, at any number of victims."""
    FEWEST_VICTIMS = "fewestVictims"
    PER_DOMAIN = "perDomain"
    """The first domain, in the preset's order, that holds the gang with or without evictions."""


class SortRule(NamedTuple):
    """A user's sort rule for the domain of the job."""

    resource: str
    counts_free: bool
    """Whether free quantities are compared; otherwise capacities."""
    is_descending: bool


class RoleAffinity(NamedTuple):
    """Groups that attract or repel each other on a node; no set repeats a name."""

    attract: tuple[tuple[str, ...], ...] = ()
    repel: tuple[tuple[str, ...], ...] = ()
    order: tuple[str, ...] = ()
    """First to last; groups that are not listed come after these."""


class PresetOptions(NamedTuple):
    """Options that only one preset reads."""

    node_weights: tuple[tuple[str, int], ...] = ()
    """For `slurm-tree`: lighter nodes are used first."""
    score_weight: float | None = None
    """For `task-topology`: scales the scores; None: unscaled bucket scores."""
    preferred_nodes: tuple[str, ...] = ()
    """For `godel`: nodes that steer which domains are tried."""
    has_run_before: bool = False
    """For `godel`: one pod is then enough."""
    spares_islands: bool = False
    """For `optimal`: the tightest top domain is compared before fewer domains inside it."""
    sample: int = 0
    """For `kubernetes`: how many domains with room are compared; 0 for all."""


@dataclass(frozen=True)
class PlacementRequest:
    """A request for the placement of one gang. Tiers are names, or integers in text form."""

    preset: Preset
    gang: str
    priority: int
    least: int
    """The fewest pods over all groups; with fewer the gang is not placed."""
    groups: tuple[GangGroup, ...]
    """Groups of pods, in the order of the request."""
    sets: tuple[GroupSet, ...]
    """Groups that share a bound, inner sets first."""
    required: str | None
    preferred: tuple[str, ...]
    strategies: tuple[tuple[str, str], ...]
    """(tier of the job, tier of every part): the first feasible pair wins; empty: any."""
    limits: tuple[tuple[str, int], ...]
    """(tier, maximum number of its domains used), sorted."""
    exclusive: str | None
    """A tier: the gang's domains of this tier contain no other gang."""
    plane: str
    across_islands: bool
    deadline_s: float | None
    eviction: EvictionPolicy
    sort: tuple[SortRule, ...]
    roles: RoleAffinity
    traffic: tuple[tuple[str, str, int], ...]
    """(group, group, weight per pair of pods)."""
    options: PresetOptions

    @cached_property
    def cache_key(self) -> tuple[object, ...]:
        """All fields that decide the placement: all except the gang's name and the deadline.

        Gangs whose requests differ only by name and deadline share one answer.
        """
        return tuple(
            getattr(self, field.name)
            for field in fields(self)
            if field.name not in {"gang", "deadline_s"}
        )

    @cached_property
    def tiers(self) -> tuple[str, ...]:
        """All tiers that the request names, in the order of its fields."""
        names = [*filter(None, [self.required]), *self.preferred]
        names += [tier for pair in self.strategies for tier in pair]
        names += [tier for tier, _ in self.limits]
        names += filter(None, [self.exclusive])
        for group in self.groups:
            names += [*filter(None, [group.required]), *group.preferred]
            names += [layer.tier for layer in group.slices if layer.tier is not None]
            names += [tier for tier, _ in group.multiples]
            names += [bound.tier for bound in group.spread] + [*filter(None, [group.exclusive])]
        for group_set in self.sets:
            bounds = (group_set.required, group_set.exclusive)
            names += [*filter(None, bounds), *group_set.preferred]
        return tuple(names)

    def groups_in_set(self, set_index: int) -> tuple[int, ...]:
        """Return all groups in a set, including those of inner sets, sorted."""
        group_set = self.sets[set_index]
        inner = (group for index in group_set.sets for group in self.groups_in_set(index))
        return tuple(sorted((*group_set.groups, *inner)))

    def nest(
        self,
        leaves: Sequence[Sequence[Nested]],
        wrap: Callable[[int, list[Nested]], list[Nested]],
    ) -> list[Nested]:
        """Fold the tree of groups and sets, and return the results of the outermost ones.

        The results of groups come before those of sets.

        Args:
            leaves: the result of each group.
            wrap: returns the result of a set from its index and the results inside it. Inner sets
                are wrapped first, and their results come before those of groups.
        """
        sets: list[list[Nested]] = []
        for index, row in enumerate(self.sets):
            inside = [sets[inner] for inner in row.sets] + [
                [*leaves[group]] for group in row.groups
            ]
            sets.append(wrap(index, [*chain.from_iterable(inside)]))
        inner_groups = {group for row in self.sets for group in row.groups}
        inner_sets = {inner for row in self.sets for inner in row.sets}
        outermost = [row for index, row in enumerate(leaves) if index not in inner_groups]
        outermost += [row for index, row in enumerate(sets) if index not in inner_sets]
        return [*chain.from_iterable(outermost)]

    @property
    def one_pod_is_enough(self) -> bool:
        """Whether the gang may be placed with any one pod, because it ran before."""
        return self.preset is Preset.GODEL and self.options.has_run_before

    @cached_property
    def uses_tiers(self) -> bool:
        """Whether the request names tiers or slices: then nodes outside the tree are not used."""
        return bool(self.tiers) or any(group.slices for group in self.groups)

    @property
    def limits_nodes(self) -> bool:
        """Whether groups bound their pods on one node."""
        return any(group.max_per_node is not None for group in self.groups)

    def with_deadline(self, budget_s: float) -> PlacementRequest:
        """Return the request with this time limit, or its own if that is shorter."""
        return replace(self, deadline_s=min(budget_s, self.deadline_s or budget_s))


def validate_document(document: Mapping[str, Any]) -> wire.Spec:
    """Return the `spec` of a document of kind PlacementRequest; checks each field alone.

    `parse_request` also checks the rules that concern several fields.

    Raises:
        PlacementRequestError: a field is malformed; the path is relative to `spec`.
    """
    try:
        return wire.Document.model_validate(document).spec
    except ValidationError as error:
        raise build_request_error(error) from error


def parse_request(document: Mapping[str, Any]) -> PlacementRequest:
    """Return the request of a document of kind PlacementRequest.

    Raises:
        PlacementRequestError: the document is malformed or contradicts itself; the first fault in
            order of the fields. Paths are relative to `spec`.
    """
    spec = validate_document(document)
    grouping = flatten_groups(spec.groups)
    if spec.preset is Preset.GODEL and spec.options.ever_scheduled:
        # Source: Gödel, unit minimum of a job that was scheduled before: any pod is enough.
        grouping = FlatGroups(
            [replace(group, least=0, is_optional=True) for group in grouping.groups],
            [replace(group_set, least=0) for group_set in grouping.sets],
        )
    total = sum(group.count for group in grouping.groups)
    if not total:
        raise PlacementRequestError("groups", "expected at least one pod")
    if spec.min > total:
        raise PlacementRequestError("min", f"expected at most {total}, got {spec.min}")
    return PlacementRequest(
        preset=spec.preset,
        gang=spec.gang,
        priority=spec.priority,
        least=spec.min,
        groups=tuple(grouping.groups),
        sets=tuple(grouping.sets),
        required=spec.required,
        preferred=tuple(spec.preferred),
        strategies=tuple((row.job_tier, row.part_tier) for row in spec.strategies),
        limits=tuple(sorted(spec.max_domains.items())),
        exclusive=spec.exclusive,
        plane=spec.plane,
        across_islands=spec.across_islands,
        deadline_s=spec.deadline_s,
        eviction=EvictionPolicy(spec.preemption),
        sort=tuple(
            SortRule(rule.resource, rule.dimension == "Available", rule.order == "Descending")
            for rule in spec.sort
        ),
        roles=_build_affinity(spec, grouping),
        traffic=_traffic(spec, grouping),
        options=_options(spec.options),
    )


def _build_affinity(spec: wire.Spec, grouping: FlatGroups) -> RoleAffinity:
    """Return the role sets of a request; check that each role is a group, once per set."""
    group_names = {group.name for group in grouping.groups}
    affinity = spec.affinity
    attract = tuple(tuple(row.groups) for row in affinity.attract)
    repel = tuple(tuple(row.groups) for row in affinity.repel)
    for name_set in (*attract, *repel, affinity.order):
        if len(set(name_set)) < len(name_set):
            raise PlacementRequestError("affinity", "a role is named twice in one set")
        if not group_names.issuperset(name_set):
            unknown = next(name for name in name_set if name not in group_names)
            raise PlacementRequestError("affinity", f"no group is named {show(unknown)}")
    return RoleAffinity(attract, repel, tuple(affinity.order))


def _traffic(spec: wire.Spec, grouping: FlatGroups) -> tuple[tuple[str, str, int], ...]:
    group_names = {group.name for group in grouping.groups}
    for index, row in enumerate(spec.traffic):
        for name in (row.first, row.second):
            if name not in group_names:
                raise PlacementRequestError(f"traffic[{index}]", f"no group is named {show(name)}")
    return tuple((row.first, row.second, row.weight) for row in spec.traffic)


def _options(options: wire.OptionsRow) -> PresetOptions:
    return PresetOptions(
        node_weights=tuple(sorted(options.node_weights.items())),
        score_weight=options.score_weight,
        preferred_nodes=tuple(options.preferred_nodes),
        has_run_before=options.ever_scheduled,
        sample=options.sample,
        spares_islands=options.spare_islands,
    )


def build_request_error(validation: ValidationError) -> PlacementRequestError:
    """Return the first fault that pydantic found: path, expected value, actual value."""
    error = validation.errors()[0]
    error_type, context = error["type"], error.get("ctx", {})
    if error_type == "greater_than_equal":
        nature = {0: "a non-negative integer", 1: "a positive integer"}
        message = f"expected {nature.get(context['ge'], error['msg'])}"
    else:
        message = describe_fault(error)
    if error_type not in {"missing", "extra_forbidden"}:
        message += f", got {show(repr(error['input']))}"
    return PlacementRequestError(_field_path(error["loc"]), message)


def _field_path(loc: Sequence[int | str]) -> str:
    """Return `groups[0].count` for a location below `spec`; other locations are not shortened."""
    path = ""
    for part in loc[1:] if loc and loc[0] == "spec" and len(loc) > 1 else loc:
        path += f"[{part}]" if isinstance(part, int) else f".{show(part)}"
    return path.lstrip(".")
