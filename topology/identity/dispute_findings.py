"""Findings about ids that several devices claim: one per pair of devices, for all of their ids.

If many devices claim the ids of one device, they share one finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from topology.model.claims import Key
from topology.model.errors import list_some, show
from topology.model.facts import Finding, FindingKind, PortName, Severity

_MAX_SHOWN: Final = 3
_MAX_CLAIMANTS: Final = 8
"""Further devices with the same ids that have a finding each; more have one together."""


class Verdict(StrEnum):
    """The result for an id that two devices claim."""

    CLAIM_LOST = "claim-lost"
    """The claimant reports an id of the other device."""
    LISTING_LOST = "listing-lost"
    """The inventory lists an id for the claimant that is the other node's."""
    LISTING_KEPT = "listing-kept"
    """The inventory lists an id for the claimant, and a sweep describes it as the other node's."""
    KEPT_AS_LISTED = "kept-as-listed"
    """Both report the id, and the inventory lists it for one of them."""
    NEITHER = "neither"
    """Both have the id, and nothing decides."""


class Dispute(NamedTuple):
    """One id that two devices claim."""

    verdict: Verdict
    claimant: str
    """Display name of the device that the finding is about."""
    other: str
    """Display name of the other device; empty for a claimant that is already known."""
    key: Key


def describe_disputes(disputes: Iterable[Dispute]) -> Iterator[Finding]:
    """Yield one finding per verdict and pair of devices, sorted."""
    keys: dict[tuple[Verdict, str, str], set[Key]] = defaultdict(set)
    for verdict, claimant, other, key in disputes:
        keys[verdict, claimant, other].add(key)
    yield from _pop_crowds(keys)
    for verdict, claimant, other in sorted(keys):
        own = sorted(keys[verdict, claimant, other])
        mirrored = keys.get((verdict, other, claimant))
        if verdict is Verdict.LISTING_LOST and mirrored:
            if claimant < other:
                yield _build_finding((claimant, other), _explain_exchange(claimant, other, own))
            continue
        is_listing = verdict in (Verdict.LISTING_LOST, Verdict.LISTING_KEPT)
        names = (claimant, other) if is_listing else (claimant,)
        yield _build_finding(names, _MESSAGES[verdict](claimant, other, own))


def _pop_crowds(keys: dict[tuple[Verdict, str, str], set[Key]]) -> Iterator[Finding]:
    """Remove the further claimants of ids that many devices claim; yield one finding per crowd."""
    crowds: dict[tuple[Verdict, tuple[Key, ...]], list[str]] = defaultdict(list)
    for (verdict, claimant, other), own in sorted(keys.items()):
        if not other:
            crowds[verdict, tuple(sorted(own))].append(claimant)
    for (verdict, own_keys), claimants in sorted(crowds.items()):
        if len(claimants) > _MAX_CLAIMANTS:
            for claimant in claimants:
                del keys[verdict, claimant, ""]
            names = list_some(claimants, _MAX_SHOWN)
            yield _build_finding(
                claimants[:_MAX_CLAIMANTS],
                f"{names} also claim {_list_keys(own_keys)}, so it does not identify them. Check "
                "for cloned firmware, misbehaving nodes or a wrong list of nodes.",
            )


def _build_finding(names: Sequence[str], message: str) -> Finding:
    return Finding(
        kind=FindingKind.DUPLICATE_ID,
        device=names[0],
        port=None,
        severity=Severity.ERROR,
        message=message,
        ports=tuple(PortName(name, "") for name in names if name) if len(names) > 1 else (),
    )


def _list_keys(keys: Sequence[Key]) -> str:
    return list_some((f"{kind} {show(value)}" for kind, value in keys), _MAX_SHOWN)


def _explain_lost_claim(claimant: str, other: str, keys: Sequence[Key]) -> str:
    belong, this = ("belongs", "this id is") if len(keys) == 1 else ("belong", "these ids are")
    return (
        f"{claimant} claims {_list_keys(keys)}, which {belong} to {other} according to other "
        f"devices; {this} ignored, the rest of the report counts. Check for cloned firmware or a "
        "misbehaving node."
    )


def _explain_lost_listing(claimant: str, other: str, keys: Sequence[Key]) -> str:
    return (
        f"The inventory lists {_list_keys(keys)} for {claimant}, but the reports or the sweep show "
        f"{other} there; what they show counts. Correct the inventory."
    )


def _explain_exchange(claimant: str, other: str, keys: Sequence[Key]) -> str:
    return (
        f"The inventory lists ids of {claimant} and {other} for each other ({_list_keys(keys)} of "
        f"{other} for {claimant}), but the reports or the sweep show them the other way round; "
        "what they show counts. Correct the inventory."
    )


def _explain_kept_listing(claimant: str, other: str, keys: Sequence[Key]) -> str:
    return (
        f"The inventory lists {_list_keys(keys)} for {claimant}, but the sweep describes the HCA "
        f"as {other}'s. It counts for {claimant}. Check the host name on the node, and the "
        "inventory."
    )


def _explain_neither(claimant: str, other: str, keys: Sequence[Key]) -> str:
    return (
        f"{_explain_claimants(claimant, other)} {_list_keys(keys)}; it identifies neither. Check "
        "for cloned firmware or a misbehaving node."
    )


def _explain_listed(claimant: str, other: str, keys: Sequence[Key]) -> str:
    return (
        f"{_explain_claimants(claimant, other)} {_list_keys(keys)}; it stays with the device that "
        "the inventory lists it for. Check for cloned firmware or a misbehaving node."
    )


def _explain_claimants(claimant: str, other: str) -> str:
    return (
        " and ".join(sorted((claimant, other))) + " both claim"
        if other
        else (f"{claimant} also claims")
    )


_MESSAGES: Final = {
    Verdict.CLAIM_LOST: _explain_lost_claim,
    Verdict.LISTING_LOST: _explain_lost_listing,
    Verdict.LISTING_KEPT: _explain_kept_listing,
    Verdict.KEPT_AS_LISTED: _explain_listed,
    Verdict.NEITHER: _explain_neither,
}
