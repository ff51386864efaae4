"""`toponaut findings`: what is wrong with the cabling, with evidence and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from generator.cli.exit_codes import Exit
from generator.cli.observation import Read, finish, read_observation
from generator.cli.options import parse_duration
from generator.cli.output import output_option, print_document, table
from generator.cli.silence import print_expired, read_silences, silence_option
from generator.cli.source_options import input_options, sources_of
from generator.observe.freshness import Periods, report_findings
from runtime.clock import utc_now
from topology.findings.silences import Sifted, SilencedRow, Subject, sift_silenced
from topology.model.errors import show
from topology.model.facts import (
    Finding,
    FindingKind,
    PortName,
    Severity,
    render_finding,
    sort_findings,
)

_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


@click.command(name="findings")
@input_options
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
    read = read_observation(sources_of(options))
    now = utc_now()
    chosen = (one for one in _judged(read, period, now=now) if not kind or one.kind in kind)
    found = sift_silenced(chosen, silences, today=now.date(), subject=_silence_subject)
    document = [*map(render_finding, found.heard), *map(_render_silenced, found.silenced)]
    print_document(document, output, text=lambda: _text(found))
    print_expired(found.expired)
    if check and any(finding.severity is not Severity.INFO for finding in found.heard):
        finish(ctx, read.problems, Exit.CHECK_FAILED)
    finish(ctx, read.problems)


def _judged(read: Read, period_s: float | None, *, now: datetime) -> tuple[Finding, ...]:
    """Return the findings, with those of reports too old where a period is named."""
    findings = read.observation.findings
    if period_s is None:
        return findings
    ages = Periods(timedelta(seconds=period_s))
    return sort_findings([*findings, *report_findings(read.inputs, now=now, ages=ages)])


def _silence_subject(finding: Finding) -> Subject:
    """Return the subject as it is printed; the ports of its evidence may well be in order."""
    return Subject(finding.kind.value, [PortName(finding.device, finding.port or "")])


def _render_silenced(found: SilencedRow[Finding]) -> dict[str, Any]:
    """Return a finding with why it is silenced, which only such ones have."""
    silence = found.silence
    silenced = {"reason": silence.reason, "until": silence.until.isoformat()}
    return {**render_finding(found.row), "silenced": silenced}


def _text(found: Sifted[Finding]) -> str:
    heard = sorted(found.heard, key=lambda one: _RANK[one.severity])
    rows = [_cells(one, one.severity.value, one.message) for one in heard]
    rows += [
        _cells(one.row, "silenced", f"{one.silence.reason} (until {one.silence.until})")
        for one in found.silenced
    ]
    if not rows:
        return "no findings"
    counts = Counter(one.severity.value for one in heard)
    total = [f"{counts[one.value]} {one.value}" for one in _RANK if counts[one.value]]
    total += [f"{len(found.silenced)} silenced"] if found.silenced else []
    return f"{table(('SEVERITY', 'KIND', 'SUBJECT', 'WHAT TO DO'), rows)}\n{', '.join(total)}"


def _cells(finding: Finding, severity: str, text: str) -> Sequence[str]:
    return severity, finding.kind.value, show(_subject(finding)), show(text, 600)


def _subject(finding: Finding) -> str:
    return f"{finding.device} port {finding.port}" if finding.port else finding.device
