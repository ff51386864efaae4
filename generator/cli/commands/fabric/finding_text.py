"""Findings as text: a summary first, then one row for each fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from generator.cli.output import WIDE, list_nodes, paint, render_table, show_count
from topology.findings.silences import SilencedRow, SilenceSplit
from topology.model.errors import show
from topology.model.facts import Finding, FindingKind, Severity

_MIN_FOLDED: Final = 3
"""Findings that say the same of fewer devices are rows of their own."""
_MIN_SUMMARY: Final = 10
"""Fewer rows need no summary above them."""
_MAX_WORST: Final = 5
_MAX_SUBJECT: Final = 48
"""Characters of the devices of one row."""
_SEVERITY_RANK: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
SEVERITY_COLORS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}
_HEADER: Final = ("SEVERITY", "KIND", "SUBJECT", "WHAT TO DO")


def render_findings_text(split: SilenceSplit[Finding], output: str) -> str:
    """Return the summary of many findings, then the rows, then the totals."""
    active = sorted(split.active, key=lambda finding: _SEVERITY_RANK[finding.severity])
    shown = active if output == WIDE else _without_consequences(active)
    rows = list(chain.from_iterable(_render_group(group, output) for group in _group_alike(shown)))
    rows += [_render_silenced(row) for row in split.silenced]
    if not rows:
        return "no findings"
    summary = [*_render_summary(active), ""] if len(rows) >= _MIN_SUMMARY else []
    total = _render_total(active, len(split.silenced))
    num_hidden = len(active) - len(shown)
    if num_hidden:
        total += f"; {num_hidden} follow from a port that is down (-o wide prints each)"
    return "\n".join([*summary, render_table(_HEADER, rows), total])


def _without_consequences(active: Sequence[Finding]) -> list[Finding]:
    """Return the findings without missing links of ports that have a finding as down."""
    down = {(row.device, row.port) for row in active if row.kind is FindingKind.DOWN_PORT}
    return [
        row
        for row in active
        if row.kind is not FindingKind.MISSING_LINK
        or not row.ports
        or any((end.device, end.port) not in down for end in row.ports)
    ]


def _render_summary(active: Sequence[Finding]) -> Iterator[str]:
    """Yield one line per severity with its kinds, and the devices with most findings."""
    for severity in _SEVERITY_RANK:
        kinds = Counter(row.kind.value for row in active if row.severity is severity)
        if kinds:
            shown = ", ".join(f"{kind} {num}" for kind, num in kinds.most_common())
            name = _show_total(kinds.total(), severity)
            yield f"{paint(name, SEVERITY_COLORS[severity])}: {shown}"
    devices = Counter(row.device for row in active if row.severity is not Severity.INFO)
    worst = [(device, num) for device, num in devices.most_common(_MAX_WORST) if num > 1]
    if worst:
        yield f"most findings: {', '.join(f'{show(device)} {num}' for device, num in worst)}"


def _render_total(active: Sequence[Finding], num_silenced: int) -> str:
    counts = Counter(finding.severity for finding in active)
    total = [
        _show_total(counts[severity], severity) for severity in _SEVERITY_RANK if counts[severity]
    ]
    return ", ".join([*total, f"{num_silenced} silenced"] if num_silenced else total)


def _group_alike(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Return findings that say the same of several devices together, at the place of the first.

    Findings about ports say the same if the ports have the same name: a switch that fails takes
    down the same port of each of its hosts.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        name = finding.device
        message = finding.message.replace(name, "\0") if name else finding.message
        alike = (finding.severity, finding.kind, message, finding.port)
        groups.setdefault(alike, []).append(finding)
    return list(groups.values())


def _render_group(group: Sequence[Finding], output: str) -> Iterator[Sequence[str]]:
    """Yield a row for each finding, or with few words one row for all of them."""
    first = group[0]
    if len(group) < _MIN_FOLDED or output == WIDE:
        yield from (_render_cells(row, row.severity.value, row.message) for row in group)
        return
    devices = list_nodes([row.device for row in group], output, max_chars=_MAX_SUBJECT)
    text = f"{len(group)} findings like this (-o wide prints each): {first.message}"
    if first.kind is FindingKind.DOWN_PORT:
        text += " If these hosts share a switch, check the switch first."
    subject = devices if first.port is None else f"{devices} port {show(first.port)}"
    yield first.severity.value, first.kind.value, subject, show(text, 600)


def _show_total(num: int, severity: Severity) -> str:
    """Return the number of findings of a severity: `2 errors`, `1 warning`, `3 info`."""
    return f"{num} info" if severity is Severity.INFO else show_count(num, severity.value)


def _render_silenced(row: SilencedRow[Finding]) -> Sequence[str]:
    silence = row.silence
    return _render_cells(row.row, "silenced", f"{silence.reason} (until {silence.until})")


def _render_cells(finding: Finding, severity: str, text: str) -> Sequence[str]:
    return severity, finding.kind.value, show(render_subject(finding)), show(text, 600)


def render_subject(finding: Finding) -> str:
    """Return the device of a finding, and its port if the finding is about one."""
    return f"{finding.device} port {finding.port}" if finding.port else finding.device
