"""Rules of a walk, as data: which tiers a preset tries, how it sorts domains and fills nodes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class CandidateTiers(StrEnum):
    """Tiers whose domains are tried, finest first, up to the highest allowed tier."""

    LOWEST = "lowest"
    """All tiers; only the domains of the first tier with a fitting domain."""
    LOWEST_FROM_LEAVES = "leaves"
    """The same, from tier 1 on."""
    FROM_PREFERRED = "asked"
    """From the finest preferred tier on; only the required tier if none is preferred."""
    NAMED_ONLY = "keys"
    """Only the tiers that the request names, and the cluster if no tier is required."""


class SortKey(StrEnum):
    """What domains are sorted by."""

    RUNNING = "running"
    """More running pods of the gang first."""
    PREFERRED_LABELS = "wished"
    """More preferred labels on nodes with a free slot first."""
    TIGHT = "tight"
    """Fewer slots first."""
    SMALL_OFFER = "small-offer"
    """Fewer slots first; slots of a node beyond the size of the gang do not count.

    Slots that multiples leave unused do not count either.
    """
    LARGE_OFFER = "large-offer"
    """The same, more slots first."""
    ROOMY = "roomy"
    """More slots first."""
    FULLEST = "fullest"
    """The larger share of the free resources taken by the whole request first, then names as text.

    All nodes of the domain count, also those that the request excludes.
    """
    USER_RULES = "rules"
    """The user's sort rules; without rules, less CPU capacity first."""
    NAME_TEXT = "text"
    """Names from the top domain down, compared as text."""
    OWN_NAME_TEXT = "own-text"
    """Own names compared as text, whatever the names of the domains above."""
    TREE_ORDER = "first"
    """Tree order, which is natural order."""
    REVERSE_TREE_ORDER = "last"
    """Reverse tree order."""


class AncestorOrder(StrEnum):
    """Whether the domains above a domain are compared too."""

    NONE = "no"
    OWN_FIRST = "after"
    """Its own value first, then those above, nearest first."""
    ANCESTORS_FIRST = "before"
    """Those above first, from the top, then its own value."""


class DomainSort(NamedTuple):
    """One rule by which domains are sorted."""

    key: SortKey
    ancestors: AncestorOrder = AncestorOrder.NONE


class FlatFill(StrEnum):
    """Tier below which nodes are filled one by one, without regard to the tiers between."""

    NOWHERE = "nowhere"
    LEAVES = "leaves"
    """Tier 1."""
    FINEST_NAMED = "asked"
    """The finest tier that the request names."""


@dataclass(frozen=True, slots=True)
class PlacementWalk:
    """How a system tries domains, and fills the domain that it chooses."""

    candidate_tiers: CandidateTiers
    domain_order: tuple[DomainSort, ...]
    """Order in which the domains of a tier are tried."""
    fill_order: tuple[DomainSort, ...]
    """Order in which the domains inside the chosen one are filled."""
    node_order: tuple[DomainSort, ...] = ()
    """The same for nodes that are filled flat."""
    flat_fill: FlatFill = FlatFill.NOWHERE
    best_fit_order: tuple[DomainSort, ...] = ()
    """Order among domains that hold all remaining pods; empty: such domains get no preference."""
    untiered_node_order: tuple[DomainSort, ...] = ()
    """Order of nodes for a group that names no tier; empty: the group is filled like others."""
    is_slice_by_slice: bool = False
    """Whether each slice is placed by itself, rather than as many as a domain holds."""
    starts_with_minimum: bool = False
    """Whether the domain is chosen for the minimum number of pods."""
    may_leave_domain: bool = False
    """Whether pods beyond the minimum may leave that domain."""
    checks_total_capacity: bool = False
    """Whether a domain is tried if the total capacity of its nodes, when empty, is enough."""
    spreads_from_emptiest: bool = False
    """Whether the nodes of the preferred domain that ranks last by `domain_order` come first.

    The nearest scope that prefers a tier decides, with the free resources before it was placed.
    """
    fills_by_level: bool = False
    """Whether the parts of all chosen domains are compared together, tier by tier."""
    shares_evenly: bool = False
    """Whether a group that prefers a tier is first shared evenly, if possible."""
