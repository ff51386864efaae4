"""The answer to a placement request, and the JSON document that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Generic, TypeVar, overload

from topology.model.errors import show

Item = TypeVar("Item")
Value = TypeVar("Value")

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
    """What `fits` and `needed` count: pods or slices."""
    excluded: Mapping[str, int] | None = None
    """Excluded nodes per cause: unschedulable, exclusive, taint, selector."""


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


class _Deferred(Generic[Value]):
    """A value that is computed when it is first read: most callers need only the nodes.

    It depends on frozen values alone, so the time does not matter. Two threads that read at once
    may both compute it, with equal results.
    """

    def __init__(self, make: Callable[[], Value]) -> None:
        """Store the function that computes the value, until it is read."""
        self._make = make

    def _read(self) -> Value:
        value = self._make()
        self._make = lambda: value
        return value


class LazyMapping(_Deferred[Mapping[str, Item]], Mapping[str, Item]):
    """A mapping that is computed when it is first read."""

    def __getitem__(self, key: str) -> Item:
        """Return the value of a key."""
        return self._read()[key]

    def __iter__(self) -> Iterator[str]:
        """Yield the keys in order."""
        return iter(self._read())

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._read())

    def __repr__(self) -> str:
        """Return the text of the computed mapping."""
        return repr(dict(self._read()))


class LazySequence(_Deferred[Sequence[Item]], Sequence[Item]):
    """A sequence that is computed when it is first read."""

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        """Return an item, or a slice."""
        return self._read()[index]

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self._read())

    def __eq__(self, other: object) -> bool:
        """Return whether another sequence has equal items."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the items."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """Return the text of the computed sequence."""
        return repr(tuple(self))


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer to one request; explanations may be computed when they are first read."""

    is_feasible: bool
    assignment: Mapping[str, tuple[str | None, ...]]
    """Per group: the node of each pod by index; None for a pod that stays pending."""
    tier: str | None
    """Tier of the whole job; None if there is no placement."""
    objective: Mapping[str, object]
    """Values by key, in the order in which the preset compares them."""
    is_proved: bool
    """Whether no better placement exists; False if the search ended early."""
    victims: tuple[str, ...] = ()
    reason: Reason | None = None
    alternatives: tuple[Alternative, ...] = ()
    domain_verdicts: Sequence[DomainVerdict] = ()
    preset_details: Mapping[str, Any] = field(default_factory=lambda: NO_DETAILS)
    """Details that only one preset computes: buckets, the sequence of pods, scores of nodes."""

    def detached(self, *, explains: bool) -> Placement:
        """Return the answer so that it no longer refers to the snapshot.

        Args:
            explains: whether to compute the explanation now; else it is left out, unless there is
                no placement: then it is the answer.
        """
        if self.is_feasible and not explains:
            return replace(
                self, objective=NO_DETAILS, domain_verdicts=(), preset_details=NO_DETAILS
            )
        for details in (self.objective, self.domain_verdicts, self.preset_details):
            len(details)
        return self


def render_placement(placement: Placement) -> dict[str, Any]:
    """Return the JSON document that `toponaut place -o json` prints."""
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
    """Return a reason as a JSON document, without the fields that do not apply."""
    document: dict[str, Any] = {"kind": reason.kind.value}
    for name in ("tier", "size", "count", "fits", "needed", "unit"):
        if getattr(reason, name) is not None:
            document[name] = getattr(reason, name)
    if reason.excluded is not None:
        document["excluded"] = dict(reason.excluded)
    return document


def describe_reason(reason: Reason) -> str:
    """Return a reason as text."""
    parts = [reason.kind.value]
    if reason.tier is not None:
        parts.append(f"tier {show(reason.tier)}")
    if reason.fits is not None and reason.needed is not None:
        parts.append(f"{reason.fits} of {reason.needed} {reason.unit or 'pods'} fit")
    if reason.size is not None:
        parts.append(f"slices of {reason.size} do not divide {reason.count} pods")
    parts += [
        f"{num} {'node' if num == 1 else 'nodes'} excluded by {show(cause)}"
        for cause, num in (reason.excluded or {}).items()
    ]
    return ", ".join(parts)
