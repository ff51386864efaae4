"""Walk rules: how a preset chooses tiers, sorts domains and fills nodes, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class CandidateTiers(StrEnum):
    """Tiers whose domains are tried, from the finest on, up to the highest that is allowed."""

    LOWEST = "lowest"
    """All; the domains of the first tier where any fits."""
    LOWEST_FROM_LEAVES = "leaves"
    """The same from tier 1 on."""
    FROM_PREFERRED = "asked"
    """From the finest preferred one; only the required one where none is preferred."""
    NAMED_ONLY = "keys"
    """Only those that are named, and the cluster where none is required."""


class SortKey(StrEnum):
    """What domains are sorted by."""

    RUNNING = "running"
    """More pods of the gang run there."""
    PREFERRED_LABELS = "wished"
    """More room on nodes that carry the wished labels."""
    TIGHT = "tight"
    """Less room."""
    TIGHT_FOR_GANG = "tight-for-gang"
    """Less room, what is beyond the gang's size not counted."""
    ROOMY = "roomy"
    """More room."""
    USER_RULES = "rules"
    """The user's sort rules; without any, less CPU in all."""
    NAME_TEXT = "text"
    """Names from the top down, compared as text."""
    TREE_ORDER = "first"
    """Tree order, which is natural order."""
    REVERSE_TREE_ORDER = "last"
    """The reverse of it."""


class AncestorOrder(StrEnum):
    """Whether domains are compared by the domains above them too."""

    NONE = "no"
    OWN_FIRST = "after"
    """By their own value, then by those above, nearest first."""
    ANCESTORS_FIRST = "before"
    """By those above, the top one first, then by their own."""


class DomainSort(NamedTuple):
    """One rule by which domains are sorted."""

    key: SortKey
    ancestors: AncestorOrder = AncestorOrder.NONE


class FlatFill(StrEnum):
    """Below which tier nodes are filled one by one, whatever lies between."""

    NOWHERE = "nowhere"
    LEAVES = "leaves"
    """Tier 1."""
    FINEST_NAMED = "asked"
    """The finest tier that is named."""


@dataclass(frozen=True, slots=True)
class PlacementWalk:
    """How a system tries domains and fills the one that it takes."""

    candidate_tiers: CandidateTiers
    domain_order: tuple[DomainSort, ...]
    """In which order the domains of a tier are tried."""
    fill_order: tuple[DomainSort, ...]
    """In which order the domains inside it are filled."""
    node_order: tuple[DomainSort, ...] = ()
    """The same for nodes that are filled flat."""
    flat_fill: FlatFill = FlatFill.NOWHERE
    best_fit_order: tuple[DomainSort, ...] = ()
    """Order among domains that hold all that is left; none: such a domain is nothing special."""
    untiered_node_order: tuple[DomainSort, ...] = ()
    """Order of nodes for a group that names no tier; none: it is filled as others are."""
    is_slice_by_slice: bool = False
    """Whether each slice is placed by itself, rather than as many as a domain holds."""
    starts_with_minimum: bool = False
    """Whether the domain is chosen for the fewest pods that will do."""
    may_leave_domain: bool = False
    """Whether further pods may leave that domain."""
    checks_total_capacity: bool = False
    """Whether a domain is tried where its nodes would do in sum, were they empty and one."""
    shares_evenly: bool = False
    """Whether a group that prefers a tier is shared evenly first, if that can be done."""
