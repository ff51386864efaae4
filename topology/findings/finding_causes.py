"""Findings by their cause: what is wrong with one host is one thing, and so is what follows.

A list of findings has each observation. A person mends causes: one host whose agent is silent, or
one host with three dead ports, is one thing to look at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from topology.model.errors import list_some, show
from topology.model.facts import Finding, FindingKind, PortName, Severity

SEVERITY_RANK: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
_MAX_EVIDENCE: Final = 4
_OF_SEVERAL_DEVICES: Final = frozenset(
    {FindingKind.LOST_SWITCH, FindingKind.SWAPPED_CABLE, FindingKind.WRONG_RAIL}
)
"""Each of them is a cause of its own, whatever device is its subject."""
_UNHEARD: Final = frozenset(
    {FindingKind.SILENT_NODE, FindingKind.STALE_REPORT, FindingKind.UNUSABLE_REPORT}
)
"""Why a host does not confirm its cables."""
_CAUSES_FIRST: Final = {
    kind: rank
    for rank, kind in enumerate(
        (
            FindingKind.LOST_SWITCH,
            *(FindingKind.UNUSABLE_REPORT, FindingKind.SILENT_NODE),  # all else is what others saw
            *(FindingKind.DOWN_PORT, FindingKind.FLAPPING_LINK, FindingKind.SLOW_LINK),
            *(FindingKind.DUPLICATE_NAME, FindingKind.DUPLICATE_ID, FindingKind.UNRESOLVED_HOST),
            *(FindingKind.HOST_ON_SPINE, FindingKind.NO_LLDP, FindingKind.MISSING_LINK),
            *(FindingKind.ONE_SIDED_LINK, FindingKind.STALE_REPORT),  # never a reason for others
        )
    )
}
"""Of the findings about one host, the first one is the cause; the others are its evidence. Kinds
that are not listed come between the last two rows: a report that is old never hides a fault."""
_LAST: Final = _CAUSES_FIRST[FindingKind.ONE_SIDED_LINK] - 0.5


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
    """Return the findings without those that `find_explanations` explains."""
    findings = list(findings)
    explained = find_explanations(findings)
    return [row for number, row in enumerate(findings) if number not in explained]


def find_explanations(findings: Sequence[Finding]) -> dict[int, int]:
    """Return the findings that follow from another one, and the number of that one.

    A lost switch explains the ports that are down and the links that are missing there, and also
    that a neighbor has too few links at ports that are unknown; a port that is down explains its
    missing link.
    """
    lost: dict[PortName, int] = {}
    neighbors: dict[str, int] = {}
    down: dict[PortName, int] = {}
    for number, row in enumerate(findings):
        if row.kind is FindingKind.LOST_SWITCH:
            lost.update(dict.fromkeys(row.ports, number))
            neighbors.update((end.device, number) for end in row.ports)
        elif row.kind is FindingKind.DOWN_PORT:
            down[PortName(row.device, row.port or "")] = number
    explained: dict[int, int] = {}
    for number, row in enumerate(findings):
        if row.kind is FindingKind.MISSING_LINK:
            cause = _find_cause(row, lost)
            cause = _find_cause(row, down) if cause is None else cause
            if cause is None and row.ports == (PortName(row.device, ""),):
                cause = neighbors.get(row.device)
        elif row.kind is FindingKind.DOWN_PORT:
            cause = lost.get(PortName(row.device, row.port or ""))
        else:
            continue
        if cause is not None:
            explained[number] = explained.get(cause, cause)
    return explained


def _find_cause(finding: Finding, causes: Mapping[PortName, int]) -> int | None:
    """Return what explains a missing link: of one cable either end, else each own port."""
    own = [end for end in finding.ports if end.device == finding.device]
    ends = finding.ports if len(own) == 1 else own
    found = [causes[end] for end in ends if end in causes]
    return found[0] if found and (len(own) == 1 or len(found) == len(ends)) else None


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


def _rank(finding: Finding) -> tuple[int, float]:
    return SEVERITY_RANK[finding.severity], _CAUSES_FIRST.get(finding.kind, _LAST)


def _show_place(finding: Finding, cause: Finding) -> str:
    """Return the port of a finding, and its device unless that is the device of the cause."""
    device = "" if finding.device == cause.device else f" {show(finding.device)}"
    port = f" port {show(finding.port)}" if finding.port else ""
    return f"{device}{port}"
