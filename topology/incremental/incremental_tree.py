"""Claims to a tree, again and again: what did not change is not looked at a second time.

    claims ─> joined ─> planes ─> inferred
       └ changed reports ─> rejoined ─> resplit ─> reinferred

Each step below is tried for the reports that changed, and gives way to the whole step above where
more may have changed than it can tell. The result is the same as of all claims at once.
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
from topology.incremental.tree_update import InferenceScope, ChangedPlane, update_inference
from topology.inference.tree_inference import InferenceState, build_inference_state
from topology.join.claim_join import JoinedFabric, join_claims
from topology.join.fabric_join import build_fabric
from topology.join.neighbor_links import NO_PORT
from topology.model.claims import Claim, PreviousOwners, SweptClaims
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import DeviceKind
from topology.model.tree import TopologyTree
from topology.planes.plane import Plane, PlaneSplit, split_planes
from topology.planes.policy import COMPUTE, PlanePolicy

MAX_CHANGES: Final = 64
"""Reports that may differ; with more of them at once, all are joined anew."""

AnyClaim: TypeAlias = Claim | SweptClaims


class RebuildScope(StrEnum):
    """How much was done anew."""

    WHOLE = "whole"
    """Everything."""
    JOINED = "joined"
    """Planes and tree; the reports that did not change were not joined again."""
    PART = "part"
    """What cables of hosts join to those that moved."""
    NOTHING = "nothing"
    """No cable moved."""


class TreeOptions(NamedTuple):
    """What is to be made of claims."""

    plane: str = COMPUTE
    policies: tuple[PlanePolicy, ...] = ()
    names_of_tiers: tuple[str, ...] = ()


class PreviousGeneration(NamedTuple):
    """What is known from the last generation."""

    previous: TopologyTree | None = None
    """Whose names are carried over."""
    previous_owners: PreviousOwners = MappingProxyType({})
    """By id the node that had it."""


@dataclass(frozen=True, slots=True)
class TreeState:
    """All that was made of claims, to go on from."""

    claims: tuple[AnyClaim, ...]
    options: TreeOptions
    joined: JoinedFabric | None
    """None where all claims are of one sweep, which is joined at once."""
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
) -> TreeState:
    """Return what claims tell, in any order; equal to what they tell without `last`.

    Cost: that of `build_fabric`, `split_planes` and `infer`, or where few reports changed a
    hundredth of it.

    Args:
        claims: those that did not change should be the same objects, in the same places.
        wanted: which plane, and how.
        context: the last generation.
        last: what was known before.
    """
    claims = tuple(claims)
    changes = _find_changes(last, claims, options) if last is not None else None
    if last is None or changes is None or not _has_same_owners(last, context):
        return _build_all(claims, options, context)
    return _TreeUpdater(last, options, context).update(claims, changes)


def _build_all(
    claims: tuple[AnyClaim, ...], wanted: TreeOptions, context: PreviousGeneration
) -> TreeState:
    if all(isinstance(claim, SweptClaims) for claim in claims):
        joined, fabric = None, build_fabric(claims, previous_owners=context.previous_owners)
    else:
        joined = join_claims(claims, previous_owners=context.previous_owners)
        fabric = joined.fabric
    return _infer_state(
        _JoinedClaims(claims, joined, fabric), wanted, context, scope=RebuildScope.WHOLE
    )


class _JoinedClaims(NamedTuple):
    claims: tuple[AnyClaim, ...]
    joined: JoinedFabric | None
    fabric: Fabric


def _infer_state(
    basis: _JoinedClaims, wanted: TreeOptions, context: PreviousGeneration, *, scope: RebuildScope
) -> TreeState:
    split = split_planes(basis.fabric, wanted.policies)
    plane = split.plane(wanted.plane)
    inferred = build_inference_state(
        basis.fabric,
        plane=plane,
        previous=context.previous,
        names_of_tiers=wanted.names_of_tiers,
    )
    return TreeState(
        basis.claims, wanted, basis.joined, basis.fabric, split, plane, inferred, scope
    )


def _find_changes(
    last: TreeState, claims: tuple[AnyClaim, ...], wanted: TreeOptions
) -> list[ClaimChange] | None:
    """Return the reports that changed; None where more is different, or too many are."""
    if last.joined is None or last.options != wanted or len(last.claims) != len(claims):
        return None
    found: list[ClaimChange] = []
    pairs = zip(last.claims, claims, strict=True)
    for old, new in compress(pairs, map(is_not, last.claims, claims)):
        if old == new:
            continue
        if isinstance(old, SweptClaims) or isinstance(new, SweptClaims):
            return None
        found.append(ClaimChange(old, new))
    return found if len(found) <= MAX_CHANGES else None


def _has_same_owners(last: TreeState, context: PreviousGeneration) -> bool:
    """Return whether ids that two claim were the same nodes' before."""
    asked = last.joined.previous_owners if last.joined is not None else {}
    return all(context.previous_owners.get(key) == node for key, node in asked.items())


@dataclass(slots=True)
class _TreeUpdater:
    last: TreeState
    options: TreeOptions
    context: PreviousGeneration

    def update(self, claims: tuple[AnyClaim, ...], changes: Sequence[ClaimChange]) -> TreeState:
        joined = self.last.joined
        split: PlaneSplit | None = None if self.options.policies else self.last.split
        plane, ends = self.last.plane, set[int]()
        for change in changes:
            found = update_fabric(joined, change) if joined is not None else None
            if joined is None or found is None:
                return _build_all(claims, self.options, self.context)
            ends |= _find_moved_devices(joined.fabric, found)
            joined = found.joined
            resplit_now = update_planes(split, found) if split is not None else None
            split = resplit_now.split if resplit_now is not None else None
            if resplit_now is not None:
                plane = update_plane(plane, resplit_now, found)
        fabric = joined.fabric if joined is not None else self.last.fabric
        basis = _JoinedClaims(claims, joined, fabric)
        if split is None or not has_switches_like(self.last.plane, plane):
            return _infer_state(basis, self.options, self.context, scope=RebuildScope.JOINED)
        hosts = (at for at in ends if fabric.devices[at].kind is DeviceKind.HOST)
        site = ChangedPlane(fabric, plane, frozenset(hosts), keeps_links=not ends)
        found_tree = update_inference(
            self.last.inference_state,
            site,
            previous=self.context.previous,
            names_of_tiers=self.options.names_of_tiers,
        )
        path = _SCOPES[found_tree.scope]
        return TreeState(claims, self.options, joined, fabric, split, plane, found_tree.state, path)


_SCOPES: Final = {
    InferenceScope.ALL: RebuildScope.JOINED,
    InferenceScope.PART: RebuildScope.PART,
    InferenceScope.NOTHING: RebuildScope.NOTHING,
}


def _find_moved_devices(before: Fabric, found: FabricUpdate) -> set[int]:
    """Return the devices at the ends of links that are gone, new, or of another rate or standing.

    Those of a port that is no more have another end.
    """
    fabric = found.joined.fabric
    was = _links_at(before, found.before)
    if found.numbers is not None:
        ends = found.numbers[was[:, :2]]
        was = np.column_stack([ends, was[:, 2:]])
    now = _links_at(fabric, found.after)
    moved = set(map(tuple, was.tolist())) ^ set(map(tuple, now.tolist()))
    owners = columns_of(fabric).port_devices
    return {int(owners[port]) for link in moved for port in link[:2] if port != NO_PORT}


def _links_at(fabric: Fabric, ports: np.ndarray) -> np.ndarray:
    links = columns_of(fabric).links
    is_there = np.zeros(len(columns_of(fabric).port_devices), np.bool_)
    is_there[ports] = True
    chosen = is_there[links.a] | is_there[links.b]
    return np.column_stack([column[chosen] for column in links])
