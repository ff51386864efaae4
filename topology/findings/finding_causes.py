"""Findings by their cause: what is wrong with one host is one thing, and so is what follows.

A list of findings has each observation. A person mends causes: one host whose agent is silent, or
one host with three dead ports, is one thing to look at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from topology.model.errors import list_some, show
from topology.model.facts import Finding, FindingKind, Severity

SEVERITY_RANK: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
_MAX_EVIDENCE: Final = 4
_OF_SEVERAL_DEVICES: Final = frozenset({FindingKind.SWAPPED_CABLE, FindingKind.WRONG_RAIL})
"""Plugs of two devices are exchanged; each pair is a cause of its own."""
_UNHEARD: Final = frozenset(
    {FindingKind.SILENT_NODE, FindingKind.STALE_REPORT, FindingKind.UNUSABLE_REPORT}
)
"""Why a host does not confirm its cables."""
_CAUSES_FIRST: Final = {
    kind: rank
    for rank, kind in enumerate(
        (
            *(FindingKind.UNUSABLE_REPORT, FindingKind.SILENT_NODE, FindingKind.STALE_REPORT),
            *(FindingKind.DUPLICATE_NAME, FindingKind.DUPLICATE_ID, FindingKind.UNRESOLVED_HOST),
            *(FindingKind.HOST_ON_SPINE, FindingKind.DOWN_PORT, FindingKind.FLAPPING_LINK),
            *(FindingKind.SLOW_LINK, FindingKind.NO_LLDP, FindingKind.ONE_SIDED_LINK),
            FindingKind.MISSING_LINK,
        )
    )
}
"""Of the findings about one host, the first one is the cause; the others are its evidence."""


def group_by_cause(
    findings: Sequence[Finding], hosts: Collection[str]
) -> list[tuple[Finding, ...]]:
    """Return the findings by cause, the cause first, at the place of the first one.

    Args:
        findings: sorted by severity.
        hosts: all findings about one of these devices have one cause.
    """
    unheard = {row.device for row in findings if row.kind in _UNHEARD}
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        host = _find_host(finding, hosts, unheard)
        groups.setdefault(number if host is None else host, []).append(finding)
    return [tuple(sorted(group, key=_rank)) for group in groups.values()]


def describe_evidence(group: Sequence[Finding]) -> str:
    """Return what else was found of one cause; empty if nothing was."""
    if len(group) == 1:
        return ""
    cause = group[0]
    evidence = [f"{row.kind.value}{_show_place(row, cause)}" for row in group[1:]]
    return f" Also: {list_some(dict.fromkeys(evidence), _MAX_EVIDENCE)}."


def drop_consequences(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings without missing links that a port that is down explains."""
    findings = list(findings)
    down = {(row.device, row.port) for row in findings if row.kind is FindingKind.DOWN_PORT}
    return [row for row in findings if not _is_explained(row, down)]


def _is_explained(finding: Finding, down: Collection[tuple[str, str | None]]) -> bool:
    """Return whether a missing link is between ports of which one is down."""
    if finding.kind is not FindingKind.MISSING_LINK or not finding.ports:
        return False
    are_down = [(end.device, end.port) in down for end in finding.ports]
    is_cable = len({end.device for end in finding.ports}) > 1
    return any(are_down) if is_cable else all(are_down)


def _find_host(finding: Finding, hosts: Collection[str], unheard: Collection[str]) -> str | None:
    """Return the host whose fault a finding shows; None if it is a cause of its own."""
    if finding.kind in _OF_SEVERAL_DEVICES:
        return None
    if finding.device in hosts:
        return finding.device
    if finding.kind is FindingKind.ONE_SIDED_LINK:
        silent = (end.device for end in finding.ends if end.device in unheard)
        return next((device for device in silent if device in hosts), None)
    return None


def _rank(finding: Finding) -> tuple[int, int]:
    rank = _CAUSES_FIRST.get(finding.kind, len(_CAUSES_FIRST))
    return SEVERITY_RANK[finding.severity], rank


def _show_place(finding: Finding, cause: Finding) -> str:
    """Return the port of a finding, and its device unless that is the device of the cause."""
    device = "" if finding.device == cause.device else f" {show(finding.device)}"
    port = f" port {show(finding.port)}" if finding.port else ""
    return f"{device}{port}"
