"""Findings as text: a summary first, then one row for each cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Final

from generator.cli.output import WIDE, list_nodes, paint, render_table, show_count
from topology.findings.finding_causes import (
    SEVERITY_RANK,
    describe_evidence,
    drop_consequences,
    group_by_cause,
)
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
SEVERITY_COLORS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}
_HEADER: Final = ("SEVERITY", "KIND", "SUBJECT", "WHAT TO DO")


def render_findings_text(
    split: SilenceSplit[Finding], output: str, hosts: Collection[str] = ()
) -> str:
    """Return the summary of many findings, then the rows, then the totals.

    Args:
        split: the findings.
        output: the format: text, with one row for each cause, or wide, with one for each finding.
        hosts: the devices of which all faults have one cause.
    """
    active = sorted(split.active, key=lambda finding: SEVERITY_RANK[finding.severity])
    causes: list[tuple[Finding, ...]] = [(finding,) for finding in active]
    if output != WIDE:
        causes = group_by_cause(drop_consequences(active), hosts)
    rows = list(chain.from_iterable(_render_group(group, output) for group in _group_alike(causes)))
    rows += [_render_silenced(row) for row in split.silenced]
    if not rows:
        return "no findings"
    summary = [*_render_summary(active), ""] if len(rows) >= _MIN_SUMMARY else []
    total = _render_total(active, len(split.silenced))
    num_hidden = len(active) - sum(map(len, causes))
    if num_hidden:
        total += f"; {num_hidden} follow from another one (-o wide prints each)"
    return "\n".join([*summary, render_table(_HEADER, rows), total])


def _render_summary(active: Sequence[Finding]) -> Iterator[str]:
    """Yield one line per severity with its kinds, and the devices with most findings."""
    for severity in SEVERITY_RANK:
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
        _show_total(counts[severity], severity) for severity in SEVERITY_RANK if counts[severity]
    ]
    return ", ".join([*total, f"{num_silenced} silenced"] if num_silenced else total)


def _group_alike(causes: Sequence[tuple[Finding, ...]]) -> list[list[tuple[Finding, ...]]]:
    """Return causes that say the same of several devices together, at the place of the first.

    Findings about ports say the same if the ports have the same name: a switch that fails takes
    down the same port of each of its hosts.
    """
    groups: dict[tuple[object, ...], list[tuple[Finding, ...]]] = {}
    for cause in causes:
        groups.setdefault(tuple(map(_build_alike, cause)), []).append(cause)
    return list(groups.values())


def _build_alike(finding: Finding) -> tuple[object, ...]:
    name = finding.device
    message = finding.message.replace(name, "\0") if name else finding.message
    return finding.severity, finding.kind, message, finding.port


def _render_group(group: Sequence[tuple[Finding, ...]], output: str) -> Iterator[Sequence[str]]:
    """Yield a row for each cause, or with few words one row for all of them."""
    first, evidence = group[0][0], describe_evidence(group[0])
    if len(group) < _MIN_FOLDED or output == WIDE:
        for cause in group:
            text = f"{cause[0].message}{describe_evidence(cause)}"
            yield _render_cells(cause[0], cause[0].severity.value, text)
        return
    devices = list_nodes([cause[0].device for cause in group], output, max_chars=_MAX_SUBJECT)
    text = f"{len(group)} findings like this (-o wide prints each): {first.message}{evidence}"
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
