"""The answer to a placement request, and the JSON document that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from topology.model.errors import show
from topology.model.tree import Unplaced

WITHOUT: Final = "without "
"""How the text of a change begins that leaves out a field of the request."""
UNMET: Final = "but no placement in it meets "
"""What stands in a verdict before the fields of the request that refuse the domain."""
NO_DETAILS: Mapping[str, Any] = MappingProxyType({})


class ReasonKind(StrEnum):
    """Why there is no placement; of several reasons the first in this order is reported."""

    INVALID = "invalid"
    NO_LEVEL = "no-level"
    BAD_SLICE = "bad-slice"
    NO_DOMAIN = "no-domain"
    CONFLICT = "conflict"
    STALE = "stale"
    LIMIT = "limit"
    EXCLUDED = "excluded"
    NO_FIT = "no-fit"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why there is no placement; fields that do not apply are None."""

    kind: ReasonKind
    tier: str | None = None
    size: int | None = None
    count: int | None = None
    fits: int | None = None
    """The most pods or slices that one allowed domain holds."""
    needed: int | None = None
    unit: str | None = None
    """The unit that `fits` and `needed` count: pods or slices."""
    known_tiers: tuple[str, ...] | None = None
    """The names of tiers that the request can use, lowest first."""
    excluded: Mapping[str, int] | None = None
    """Excluded nodes per cause: those of `Exclusion`, exclusive, taint, selector, affinity."""

    def render(self) -> dict[str, Any]:
        """Return the reason as a JSON document, without the fields that do not apply."""
        document: dict[str, Any] = {"kind": self.kind.value}
        for name in ("tier", "size", "count", "fits", "needed", "unit"):
            if getattr(self, name) is not None:
                document[name] = getattr(self, name)
        if self.known_tiers is not None:
            document["known_tiers"] = list(self.known_tiers)
        if self.excluded is not None:
            document["excluded"] = dict(self.excluded)
        return document


class VerdictKind(StrEnum):
    """The result for one domain."""

    CHOSEN = "chosen"
    REJECTED = "rejected"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True, slots=True)
class DomainVerdict:
    """One domain, or a count of further domains, and why it was chosen or not."""

    name: str
    verdict: VerdictKind
    needs: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """A change of the request, and the tier that the gang would then reach."""

    change: str
    tier: str | None
    is_feasible: bool


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer to one request.

    A feasible answer without an explanation has no objective, verdicts or details of its preset.
    """

    is_feasible: bool
    assignment: Mapping[str, tuple[str | None, ...]] = field(default_factory=lambda: NO_DETAILS)
    """Per group: the node of each pod by index; None for a pod that stays pending."""
    tier: str | None = None
    """Tier of the whole job; None if there is no placement."""
    objective: Mapping[str, object] = field(default_factory=lambda: NO_DETAILS)
    """Values by key, in the order in which the preset compares them."""
    is_proved: bool = True
    """Whether no better placement exists; False if the search ended early."""
    victims: tuple[str, ...] = ()
    reason: Reason | None = None
    alternatives: tuple[Alternative, ...] = ()
    domain_verdicts: tuple[DomainVerdict, ...] = ()
    preset_details: Mapping[str, Any] = field(default_factory=lambda: NO_DETAILS)
    """Details that only one preset computes: buckets, the sequence of pods, scores of nodes."""
    unplaced: tuple[Unplaced, ...] = ()
    """The nodes of the placement that have no place in the tree, in natural order."""

    def render(self) -> dict[str, Any]:
        """Return the JSON document that `toponaut place -o json` prints."""
        return {
            "feasible": self.is_feasible,
            "assignment": {name: list(nodes) for name, nodes in self.assignment.items()},
            "tier": self.tier,
            "objective": dict(self.objective),
            "proved": self.is_proved,
            "victims": list(self.victims),
            "reason": None if self.reason is None else self.reason.render(),
            "alternatives": [
                {"change": row.change, "tier": row.tier, "feasible": row.is_feasible}
                for row in self.alternatives
            ],
            "domains": [
                {"name": row.name, "verdict": row.verdict.value, "needs": row.needs}
                for row in self.domain_verdicts
            ],
            **self._render_unplaced(),
            **self.preset_details,
        }

    def _render_unplaced(self) -> dict[str, Any]:
        rows = [{"node": row.node, "reason": row.reason} for row in self.unplaced]
        return {"unplaced": rows} if rows else {}


def describe_reason(reason: Reason, selector: str = "") -> str:
    """Return a reason as text.

    Args:
        reason: why there is no placement.
        selector: the labels that the pods require; empty if they are unknown.
    """
    named = f"selector {selector}" if selector else "selector"
    parts = [reason.kind.value]
    if reason.tier is not None:
        parts.append(f"tier {show(reason.tier)}")
    if reason.known_tiers is not None:
        parts.append(f"the tree has {', '.join(map(show, reason.known_tiers))}")
    if reason.fits is not None and reason.needed is not None:
        parts.append(f"{reason.fits} of {reason.needed} {reason.unit or 'pods'} fit")
    if reason.size is not None:
        parts.append(f"slices of {reason.size} do not divide {reason.count} pods")
    parts += [
        f"{num} {'node' if num == 1 else 'nodes'} excluded by "
        f"{named if cause == 'selector' else show(cause)}"
        for cause, num in (reason.excluded or {}).items()
    ]
    return ", ".join(parts)
