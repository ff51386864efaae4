"""What the engine answers: values, and the document that they are printed as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

NO_DETAILS: Mapping[str, Any] = MappingProxyType({})


class ReasonKind(StrEnum):
    """Why there is no placement; the first that applies, in this order."""

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
    """Most that one allowed domain holds."""
    needed: int | None = None
    unit: str | None = None
    """What `fits` and `needed` count: pods or slices."""
    excluded: Mapping[str, int] | None = None
    """Nodes per cause: selector, taint, unschedulable."""


class VerdictKind(StrEnum):
    """What became of a domain."""

    CHOSEN = "chosen"
    REJECTED = "rejected"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True, slots=True)
class DomainVerdict:
    """One domain, or a count of further ones, and why it was taken or not."""

    name: str
    verdict: VerdictKind
    needs: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """A change of the request, and what it would lead to."""

    change: str
    tier: str | None
    is_feasible: bool


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer to one request; what explains it may be worked out when it is first read."""

    is_feasible: bool
    assignment: Mapping[str, tuple[str | None, ...]]
    """Per group the node of each pod by index, None where it stays pending."""
    tier: str | None
    """Of the whole job; None where there is no placement."""
    objective: Mapping[str, object]
    """Values by key, in the order that the preset compares."""
    is_proved: bool
    """Whether nothing better exists; False where the search ended early."""
    victims: tuple[str, ...] = ()
    reason: Reason | None = None
    alternatives: tuple[Alternative, ...] = ()
    domain_verdicts: Sequence[DomainVerdict] = ()
    preset_details: Mapping[str, Any] = field(default_factory=lambda: NO_DETAILS)
    """What only one preset computes: buckets, the sequence of pods, scores of nodes."""

    def explain(self) -> None:
        """Work out what explains it now, so that it keeps nothing of the cluster."""
        for told in (self.objective, self.domain_verdicts):
            len(told)


def render_placement(placement: Placement) -> dict[str, Any]:
    """Return the document that `toponaut place -o json` prints."""
    return {
        "feasible": placement.is_feasible,
        "assignment": {name: list(nodes) for name, nodes in placement.assignment.items()},
        "tier": placement.tier,
        "objective": dict(placement.objective),
        "proved": placement.is_proved,
        "victims": list(placement.victims),
        "reason": None if placement.reason is None else render_reason(placement.reason),
        "alternatives": [
            {"change": row.change, "tier": row.tier, "feasible": row.is_feasible}
            for row in placement.alternatives
        ],
        "domains": [
            {"name": row.name, "verdict": row.verdict.value, "needs": row.needs}
            for row in placement.domain_verdicts
        ],
        **placement.preset_details,
    }


def render_reason(reason: Reason) -> dict[str, Any]:
    """Return a reason without the fields that do not apply."""
    document: dict[str, Any] = {"kind": reason.kind.value}
    for name in ("tier", "size", "count", "fits", "needed", "unit"):
        if getattr(reason, name) is not None:
            document[name] = getattr(reason, name)
    if reason.excluded is not None:
        document["excluded"] = dict(reason.excluded)
    return document
