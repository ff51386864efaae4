"""`toponaut findings`: list what is wrong with the cabling, with evidence and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.observation import LoadedObservation, exit_with_problems, read_observation
from generator.cli.options import parse_duration
from generator.cli.output import (
    WIDE,
    list_nodes,
    print_document,
    render_table,
    show_count,
    wide_output_option,
)
from generator.cli.silence import print_expired_silences, read_silences, silence_option
from generator.cli.source_options import parse_sources, source_options
from generator.observe.freshness import Periods, derive_report_findings
from runtime.clock import utc_now
from topology.findings.silences import SilencedRow, SilenceSplit, SilenceSubject, split_silenced
from topology.model.errors import show
from topology.model.facts import (
    Finding,
    FindingKind,
    PortName,
    Severity,
    render_finding,
    sort_findings,
)

_MIN_FOLDED: Final = 3
"""Findings that say the same of fewer devices are rows of their own."""
_SEVERITY_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


@click.command(name="findings")
@source_options
@click.option(
    "--kind",
    multiple=True,
    type=click.Choice([kind.value for kind in FindingKind]),
    help="Only findings of this kind. Repeatable.",
)
@click.option(
    "--period",
    type=parse_duration,
    metavar="DURATION",
    help="Collection period of the agents, such as 1m: reports older than three periods are "
    "stale. Without it, the age of reports is ignored.",
)
@silence_option
@click.option("--check", is_flag=True, help="Exit with 5 if there are warnings or errors.")
@wide_output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str,
    kind: tuple[str, ...],
    *,
    period: float | None,
    silence: Path | None,
    check: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Print contradictions, missing data, and cables in the wrong port."""
    silences = read_silences(silence)
    read = read_observation(parse_sources(options))
    now = utc_now()
    chosen = (
        finding
        for finding in _collect_findings(read, period, now=now)
        if not kind or finding.kind in kind
    )
    split = split_silenced(chosen, silences, today=now.date(), subject=_build_silence_subject)
    document = [*map(render_finding, split.active), *map(_render_silenced, split.silenced)]
    print_document(document, output, text=lambda: _render_text(split, output))
    print_expired_silences(split.expired)
    if check and any(finding.severity is not Severity.INFO for finding in split.active):
        exit_with_problems(ctx, read.problems, ExitCode.CHECK_FAILED)
    exit_with_problems(ctx, read.problems)


def _collect_findings(
    read: LoadedObservation, period_s: float | None, *, now: datetime
) -> tuple[Finding, ...]:
    """Return the findings; with a period, also findings about stale reports."""
    findings = read.observation.findings
    if period_s is None:
        return findings
    periods = Periods(timedelta(seconds=period_s))
    stale = derive_report_findings(read.inputs, now=now, periods=periods)
    return sort_findings([*findings, *stale])


def _build_silence_subject(finding: Finding) -> SilenceSubject:
    """Return the subject of a finding; ports that are only evidence do not match a silence."""
    return SilenceSubject(finding.kind.value, [PortName(finding.device, finding.port or "")])


def _render_silenced(row: SilencedRow[Finding]) -> dict[str, Any]:
    """Return a silenced finding: the finding, and why and until when it is silenced."""
    silence = row.silence
    silenced = {"reason": silence.reason, "until": silence.until.isoformat()}
    return {**render_finding(row.row), "silenced": silenced}


def _render_text(split: SilenceSplit[Finding], output: str) -> str:
    active = sorted(split.active, key=lambda finding: _SEVERITY_RANK[finding.severity])
    rows = list(chain.from_iterable(_render_group(group, output) for group in _group_alike(active)))
    rows += [
        _render_cells(row.row, "silenced", f"{row.silence.reason} (until {row.silence.until})")
        for row in split.silenced
    ]
    if not rows:
        return "no findings"
    counts = Counter(finding.severity for finding in active)
    total = [
        _show_total(counts[severity], severity) for severity in _SEVERITY_RANK if counts[severity]
    ]
    total += [f"{len(split.silenced)} silenced"] if split.silenced else []
    return (
        f"{render_table(('SEVERITY', 'KIND', 'SUBJECT', 'WHAT TO DO'), rows)}\n{', '.join(total)}"
    )


def _group_alike(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Return findings that say the same of several devices together, at the place of the first."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for number, finding in enumerate(findings):
        name = finding.device
        message = finding.message.replace(name, "\0") if name else finding.message
        alike = (finding.severity, finding.kind, message) if finding.port is None else (number,)
        groups.setdefault(alike, []).append(finding)
    return list(groups.values())


def _render_group(group: Sequence[Finding], output: str) -> Iterator[Sequence[str]]:
    """Yield a row for each finding, or with few words one row for all of them."""
    first = group[0]
    if len(group) < _MIN_FOLDED or output == WIDE:
        yield from (_render_cells(row, row.severity.value, row.message) for row in group)
        return
    devices = [finding.device for finding in group]
    text = f"{len(group)} findings like this (-o wide prints each): {first.message}"
    yield first.severity.value, first.kind.value, list_nodes(devices, output), show(text, 600)


def _show_total(num: int, severity: Severity) -> str:
    """Return the number of findings of a severity: `2 errors`, `1 warning`, `3 info`."""
    return f"{num} info" if severity is Severity.INFO else show_count(num, severity.value)


def _render_cells(finding: Finding, severity: str, text: str) -> Sequence[str]:
    return severity, finding.kind.value, show(_render_subject(finding)), show(text, 600)


def _render_subject(finding: Finding) -> str:
    return f"{finding.device} port {finding.port}" if finding.port else finding.device
