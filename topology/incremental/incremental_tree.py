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

from topology.incremental.device_update import Rejoined
from topology.incremental.fabric_update import Change, rejoin
from topology.incremental.plane_update import has_switches_like, replane, resplit
from topology.incremental.tree_update import Extent, Site, reinfer
from topology.inference.tree_inference import Inferred, infer_all
from topology.join.claim_join import Joined, join_claims
from topology.join.fabric_join import build_fabric
from topology.join.neighbor_links import NO_PORT
from topology.model.claims import Claim, FirstOwners, SweptClaims
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import DeviceKind
from topology.model.tree import TopologyTree
from topology.planes.plane import Plane, Split, split_planes
from topology.planes.policy import COMPUTE, PlanePolicy

MAX_CHANGES: Final = 64
"""Reports that may differ; with more of them at once, all are joined anew."""

AnyClaim: TypeAlias = Claim | SweptClaims


class Path(StrEnum):
    """How much was done anew."""

    WHOLE = "whole"
    """Everything."""
    JOINED = "joined"
    """Planes and tree; the reports that did not change were not joined again."""
    PART = "part"
    """What cables of hosts join to those that moved."""
    NOTHING = "nothing"
    """No cable moved."""


class Wanted(NamedTuple):
    """What is to be made of claims."""

    plane: str = COMPUTE
    policies: tuple[PlanePolicy, ...] = ()
    names_of_tiers: tuple[str, ...] = ()


class Context(NamedTuple):
    """What is known from the last generation."""

    previous: TopologyTree | None = None
    """Whose names are carried over."""
    first_owners: FirstOwners = MappingProxyType({})
    """By id the node that had it."""


@dataclass(frozen=True, slots=True)
class Known:
    """All that was made of claims, to go on from."""

    claims: tuple[AnyClaim, ...]
    wanted: Wanted
    joined: Joined | None
    """None where all claims are of one sweep, which is joined at once."""
    fabric: Fabric
    split: Split
    plane: Plane
    inferred: Inferred
    path: Path


def learn(
    claims: Sequence[AnyClaim],
    *,
    wanted: Wanted = Wanted(),  # noqa: B008 - frozen
    context: Context = Context(),  # noqa: B008 - frozen
    last: Known | None = None,
) -> Known:
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
    changes = _changes(last, claims, wanted) if last is not None else None
    if last is None or changes is None or not _has_same_owners(last, context):
        return _learn_all(claims, wanted, context)
    return _Learning(last, wanted, context).learn(claims, changes)


def _learn_all(claims: tuple[AnyClaim, ...], wanted: Wanted, context: Context) -> Known:
    if all(isinstance(claim, SweptClaims) for claim in claims):
        joined, fabric = None, build_fabric(claims, first_owners=context.first_owners)
    else:
        joined = join_claims(claims, first_owners=context.first_owners)
        fabric = joined.fabric
    return _infer_all(_Basis(claims, joined, fabric), wanted, context, path=Path.WHOLE)


class _Basis(NamedTuple):
    claims: tuple[AnyClaim, ...]
    joined: Joined | None
    fabric: Fabric


def _infer_all(basis: _Basis, wanted: Wanted, context: Context, *, path: Path) -> Known:
    split = split_planes(basis.fabric, wanted.policies)
    plane = split.plane(wanted.plane)
    inferred = infer_all(
        basis.fabric,
        plane=plane,
        previous=context.previous,
        names_of_tiers=wanted.names_of_tiers,
    )
    return Known(basis.claims, wanted, basis.joined, basis.fabric, split, plane, inferred, path)


def _changes(last: Known, claims: tuple[AnyClaim, ...], wanted: Wanted) -> list[Change] | None:
    """Return the reports that changed; None where more is different, or too many are."""
    if last.joined is None or last.wanted != wanted or len(last.claims) != len(claims):
        return None
    found: list[Change] = []
    pairs = zip(last.claims, claims, strict=True)
    for old, new in compress(pairs, map(is_not, last.claims, claims)):
        if old == new:
            continue
        if isinstance(old, SweptClaims) or isinstance(new, SweptClaims):
            return None
        found.append(Change(old, new))
    return found if len(found) <= MAX_CHANGES else None


def _has_same_owners(last: Known, context: Context) -> bool:
    """Return whether ids that two claim were the same nodes' before."""
    asked = last.joined.first_owners if last.joined is not None else {}
    return all(context.first_owners.get(key) == node for key, node in asked.items())


@dataclass(slots=True)
class _Learning:
    last: Known
    wanted: Wanted
    context: Context

    def learn(self, claims: tuple[AnyClaim, ...], changes: Sequence[Change]) -> Known:
        joined = self.last.joined
        split: Split | None = None if self.wanted.policies else self.last.split
        plane, ends = self.last.plane, set[int]()
        for change in changes:
            found = rejoin(joined, change) if joined is not None else None
            if joined is None or found is None:
                return _learn_all(claims, self.wanted, self.context)
            ends |= _ends_of_moved(joined.fabric, found)
            joined = found.joined
            resplit_now = resplit(split, found) if split is not None else None
            split = resplit_now.split if resplit_now is not None else None
            if resplit_now is not None:
                plane = replane(plane, resplit_now, found)
        fabric = joined.fabric if joined is not None else self.last.fabric
        basis = _Basis(claims, joined, fabric)
        if split is None or not has_switches_like(self.last.plane, plane):
            return _infer_all(basis, self.wanted, self.context, path=Path.JOINED)
        hosts = (at for at in ends if fabric.devices[at].kind is DeviceKind.HOST)
        site = Site(fabric, plane, frozenset(hosts), keeps_links=not ends)
        found_tree = reinfer(
            self.last.inferred,
            site,
            previous=self.context.previous,
            names_of_tiers=self.wanted.names_of_tiers,
        )
        path = _PATHS[found_tree.extent]
        return Known(claims, self.wanted, joined, fabric, split, plane, found_tree.inferred, path)


_PATHS: Final = {Extent.ALL: Path.JOINED, Extent.PART: Path.PART, Extent.NOTHING: Path.NOTHING}


def _ends_of_moved(before: Fabric, found: Rejoined) -> set[int]:
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
