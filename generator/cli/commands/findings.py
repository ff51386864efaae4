"""`toponaut findings`: what is wrong with the cabling, with evidence and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.observation import LoadedObservation, exit_with_problems, read_observation
from generator.cli.options import parse_duration
from generator.cli.output import output_option, print_document, render_table
from generator.cli.silence import print_expired_silences, read_silences, silence_option
from generator.cli.source_options import source_options, parse_sources
from generator.observe.freshness import Periods, derive_report_findings
from runtime.clock import utc_now
from topology.findings.silences import SilenceSplit, SilencedRow, SilenceSubject, split_silenced
from topology.model.errors import show
from topology.model.facts import (
    Finding,
    FindingKind,
    PortName,
    Severity,
    render_finding,
    sort_findings,
)

_SEVERITY_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


@click.command(name="findings")
@source_options
@click.option(
    "--kind",
    multiple=True,
    type=click.Choice([kind.value for kind in FindingKind]),
    help="Only findings of this kind; repeatable.",
)
@click.option(
    "--period",
    type=parse_duration,
    metavar="DURATION",
    help="How often agents collect, such as 1m: reports older than three periods are stale. "
    "Without it, the age of saved reports means nothing.",
)
@silence_option
@click.option("--check", is_flag=True, help="Exit with 5 when there are warnings or errors.")
@output_option
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
    """Print what contradicts itself, is missing, or sits in the wrong port."""
    silences = read_silences(silence)
    read = read_observation(parse_sources(options))
    now = utc_now()
    chosen = (
        one for one in _collect_findings(read, period, now=now) if not kind or one.kind in kind
    )
    found = split_silenced(chosen, silences, today=now.date(), subject=_build_silence_subject)
    document = [*map(render_finding, found.active), *map(_render_silenced, found.silenced)]
    print_document(document, output, text=lambda: _render_text(found))
    print_expired_silences(found.expired)
    if check and any(finding.severity is not Severity.INFO for finding in found.active):
        exit_with_problems(ctx, read.problems, ExitCode.CHECK_FAILED)
    exit_with_problems(ctx, read.problems)


def _collect_findings(
    read: LoadedObservation, period_s: float | None, *, now: datetime
) -> tuple[Finding, ...]:
    """Return the findings, with those of reports too old where a period is named."""
    findings = read.observation.findings
    if period_s is None:
        return findings
    ages = Periods(timedelta(seconds=period_s))
    return sort_findings([*findings, *derive_report_findings(read.inputs, now=now, periods=ages)])


def _build_silence_subject(finding: Finding) -> SilenceSubject:
    """Return the subject as it is printed; the ports of its evidence may well be in order."""
    return SilenceSubject(finding.kind.value, [PortName(finding.device, finding.port or "")])


def _render_silenced(found: SilencedRow[Finding]) -> dict[str, Any]:
    """Return a finding with why it is silenced, which only such ones have."""
    silence = found.silence
    silenced = {"reason": silence.reason, "until": silence.until.isoformat()}
    return {**render_finding(found.row), "silenced": silenced}


def _render_text(found: SilenceSplit[Finding]) -> str:
    heard = sorted(found.active, key=lambda one: _SEVERITY_RANK[one.severity])
    rows = [_render_cells(one, one.severity.value, one.message) for one in heard]
    rows += [
        _render_cells(one.row, "silenced", f"{one.silence.reason} (until {one.silence.until})")
        for one in found.silenced
    ]
    if not rows:
        return "no findings"
    counts = Counter(one.severity.value for one in heard)
    total = [f"{counts[one.value]} {one.value}" for one in _SEVERITY_RANK if counts[one.value]]
    total += [f"{len(found.silenced)} silenced"] if found.silenced else []
    return (
        f"{render_table(('SEVERITY', 'KIND', 'SUBJECT', 'WHAT TO DO'), rows)}\n{', '.join(total)}"
    )


def _render_cells(finding: Finding, severity: str, text: str) -> Sequence[str]:
    return severity, finding.kind.value, show(_render_subject(finding)), show(text, 600)


def _render_subject(finding: Finding) -> str:
    return f"{finding.device} port {finding.port}" if finding.port else finding.device
