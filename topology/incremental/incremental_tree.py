"""Claims to a tree, repeatedly: unchanged reports are not processed again.

    claims ─> joined fabric ─> planes ─> inference
       └ changed reports ─> updated fabric ─> updated planes ─> updated inference

The lower steps are tried for the changed reports. Where a change may have further effects, the full
step above is used instead. The result equals that of processing all claims at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import compress
from operator import is_not
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from topology.incremental.device_update import FabricUpdate
from topology.incremental.fabric_update import ClaimChange, update_fabric
from topology.incremental.plane_update import has_switches_like, update_plane, update_planes
from topology.incremental.tree_update import ChangedPlane, InferenceScope, update_inference
from topology.inference.tree_inference import InferenceState, build_inference_state
from topology.join.claim_join import JoinedFabric, join_claims
from topology.join.fabric_join import join_as_columns
from topology.join.neighbor_links import NO_PORT
from topology.model.claims import Claim, PreviousOwners, SweptClaims
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import DeviceKind
from topology.model.tree import TopologyTree
from topology.planes.plane import Plane, PlaneSplit, split_planes
from topology.planes.policy import COMPUTE, PlanePolicy

MAX_CHANGES: Final = 64
"""Most changed reports that are applied one by one; with more, all reports are joined again."""

AnyClaim: TypeAlias = Claim | SweptClaims


class RebuildScope(StrEnum):
    """How much of the tree was rebuilt."""

    WHOLE = "whole"
    """Everything."""
    JOINED = "joined"
    """Planes and tree; the unchanged reports were not joined again."""
    PART = "part"
    """The part of the tree that is connected to moved host cables."""
    NOTHING = "nothing"
    """No cable moved."""


class TreeOptions(NamedTuple):
    """The plane to infer, and the settings for it."""

    plane: str = COMPUTE
    """Name of the plane."""
    policies: tuple[PlanePolicy, ...] = ()
    """Policies that assign ports to planes; the default policy if empty."""
    names_of_tiers: tuple[str, ...] = ()
    """Tier names bottom-up; the default names if empty."""


class PreviousGeneration(NamedTuple):
    """Facts that carry over from the last generation."""

    previous: TopologyTree | None = None
    """The tree whose names are carried over."""
    previous_owners: PreviousOwners = MappingProxyType({})
    """The node that had each ID."""


@dataclass(frozen=True, slots=True)
class TreeState:
    """All results for some claims, from which the next update starts."""

    claims: tuple[AnyClaim, ...]
    """The claims, in the order given."""
    options: TreeOptions
    joined: JoinedFabric | None
    """The joined claims; None for one sweep, with or without an inventory, which is joined at once,
    and for the last state."""
    fabric: Fabric
    split: PlaneSplit
    plane: Plane
    inference_state: InferenceState
    scope: RebuildScope


def build_tree_state(
    claims: Sequence[AnyClaim],
    *,
    options: TreeOptions = TreeOptions(),  # noqa: B008 - frozen
    context: PreviousGeneration = PreviousGeneration(),  # noqa: B008 - frozen
    last: TreeState | None = None,
    has_updates: bool = True,
) -> TreeState:
    """Return the tree of claims in any order; equal to the result without `last`.

    Cost: that of `build_fabric`, `split_planes` and `infer_tree`; about a hundredth of it where few
    reports changed.

    Args:
        claims: unchanged claims should be the same objects at the same positions.
        options: the plane, and its settings.
        context: the last generation.
        last: the last state.
        has_updates: whether the result is the last state of a further call.
    """
    claims = tuple(claims)
    state = update_tree_state(last, claims, options=options, context=context) if last else None
    return state or _build_all(claims, options, context, has_updates=has_updates)


def update_tree_state(
    last: TreeState,
    claims: Sequence[AnyClaim],
    *,
    options: TreeOptions = TreeOptions(),  # noqa: B008 - frozen
    context: PreviousGeneration = PreviousGeneration(),  # noqa: B008 - frozen
) -> TreeState | None:
    """Return the tree of claims, or None if all of them must be joined again.

    A caller that drops the last state before `build_tree_state` then needs the memory of one state,
    not of two.
    """
    claims = tuple(claims)
    changes = _find_changes(last, claims, options)
    if changes is None or not _has_same_owners(last, context):
        return None
    return _TreeUpdater(last, options, context).update(claims, changes)


def _build_all(
    claims: tuple[AnyClaim, ...],
    options: TreeOptions,
    context: PreviousGeneration,
    *,
    has_updates: bool,
) -> TreeState:
    joined, fabric = None, join_as_columns(claims, has_updates=has_updates)
    if fabric is None:
        joined = join_claims(claims, previous_owners=context.previous_owners)
        fabric = joined.fabric
    return _infer_state(
        _JoinedClaims(claims, joined, fabric), options, context, scope=RebuildScope.WHOLE
    )


class _JoinedClaims(NamedTuple):
    claims: tuple[AnyClaim, ...]
    joined: JoinedFabric | None
    fabric: Fabric


def _infer_state(
    joined_claims: _JoinedClaims,
    options: TreeOptions,
    context: PreviousGeneration,
    *,
    scope: RebuildScope,
) -> TreeState:
    split = split_planes(joined_claims.fabric, options.policies)
    plane = split.plane(options.plane)
    inference_state = build_inference_state(
        joined_claims.fabric,
        plane=plane,
        previous=context.previous,
        names_of_tiers=options.names_of_tiers,
    )
    return TreeState(
        joined_claims.claims,
        options,
        joined_claims.joined,
        joined_claims.fabric,
        split,
        plane,
        inference_state,
        scope,
    )


def _find_changes(
    last_state: TreeState, claims: tuple[AnyClaim, ...], options: TreeOptions
) -> list[ClaimChange] | None:
    """Return the changed reports; None if anything else differs, or if too many changed."""
    if (
        last_state.joined is None
        or last_state.options != options
        or len(last_state.claims) != len(claims)
    ):
        return None
    changes: list[ClaimChange] = []
    pairs = zip(last_state.claims, claims, strict=True)
    for old, new in compress(pairs, map(is_not, last_state.claims, claims)):
        if old == new:
            continue
        if isinstance(old, SweptClaims) or isinstance(new, SweptClaims):
            return None
        changes.append(ClaimChange(old, new))
    return changes if len(changes) <= MAX_CHANGES else None


def _has_same_owners(last_state: TreeState, context: PreviousGeneration) -> bool:
    """Return whether the previous owners of contested IDs are unchanged."""
    previous_owners = last_state.joined.previous_owners if last_state.joined is not None else {}
    return all(context.previous_owners.get(key) == node for key, node in previous_owners.items())


@dataclass(slots=True)
class _TreeUpdater:
    last: TreeState
    options: TreeOptions
    context: PreviousGeneration

    def update(
        self, claims: tuple[AnyClaim, ...], changes: Sequence[ClaimChange]
    ) -> TreeState | None:
        joined = self.last.joined
        split: PlaneSplit | None = None if self.options.policies else self.last.split
        plane, moved_devices = self.last.plane, set[int]()
        for change in changes:
            fabric_update = update_fabric(joined, change) if joined is not None else None
            if joined is None or fabric_update is None:
                return None
            moved_devices |= _find_moved_devices(joined.fabric, fabric_update)
            joined = fabric_update.joined
            plane_update = update_planes(split, fabric_update) if split is not None else None
            split = plane_update.split if plane_update is not None else None
            if plane_update is not None:
                plane = update_plane(plane, plane_update, fabric_update)
        fabric = joined.fabric if joined is not None else self.last.fabric
        joined_claims = _JoinedClaims(claims, joined, fabric)
        if split is None or not has_switches_like(self.last.plane, plane):
            return _infer_state(
                joined_claims, self.options, self.context, scope=RebuildScope.JOINED
            )
        hosts = (
            device for device in moved_devices if fabric.devices[device].kind is DeviceKind.HOST
        )
        changed_plane = ChangedPlane(fabric, plane, frozenset(hosts), keeps_links=not moved_devices)
        inference_update = update_inference(
            self.last.inference_state,
            changed_plane,
            previous=self.context.previous,
            names_of_tiers=self.options.names_of_tiers,
        )
        scope = _SCOPES[inference_update.scope]
        return TreeState(
            claims, self.options, joined, fabric, split, plane, inference_update.state, scope
        )


_SCOPES: Final = {
    InferenceScope.ALL: RebuildScope.JOINED,
    InferenceScope.PART: RebuildScope.PART,
    InferenceScope.NOTHING: RebuildScope.NOTHING,
}


def _find_moved_devices(before: Fabric, fabric_update: FabricUpdate) -> set[int]:
    """Return the devices at the ends of links that were removed, added, or changed otherwise.

    A change is another rate, or another state such as one-sided. The device of a removed port is
    left out; the other end of its link is included.
    """
    fabric = fabric_update.joined.fabric
    old_link_rows = _links_at(before, fabric_update.before)
    if fabric_update.numbers is not None:
        link_ports = fabric_update.numbers[old_link_rows[:, :2]]
        old_link_rows = np.column_stack([link_ports, old_link_rows[:, 2:]])
    new_link_rows = _links_at(fabric, fabric_update.after)
    moved = set(map(tuple, old_link_rows.tolist())) ^ set(map(tuple, new_link_rows.tolist()))
    owners = columns_of(fabric).port_devices
    return {int(owners[port]) for link in moved for port in link[:2] if port != NO_PORT}


def _links_at(fabric: Fabric, ports: np.ndarray) -> np.ndarray:
    links = columns_of(fabric).links
    is_chosen_port = np.zeros(len(columns_of(fabric).port_devices), np.bool_)
    is_chosen_port[ports] = True
    chosen = is_chosen_port[links.a] | is_chosen_port[links.b]
    return np.column_stack([column[chosen] for column in links])
