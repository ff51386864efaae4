"""`toponaut findings`: list what is wrong with the cabling, with evidence and advice."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click

from generator.cli.commands.fabric.finding_text import render_findings_text
from generator.cli.exit_codes import ExitCode
from generator.cli.observation import LoadedObservation, exit_with_problems, read_observation
from generator.cli.options import parse_duration, watchable
from generator.cli.output import CSV, WIDE, build_output_option, print_csv, print_document
from generator.cli.silence import print_expired_silences, read_silences, silence_option
from generator.cli.source_options import parse_sources, source_options
from generator.observe.freshness import Periods, derive_report_findings
from runtime.clock import utc_now
from topology.findings.silences import SilencedRow, SilenceSplit, SilenceSubject, split_silenced
from topology.join.fabric_join import build_fabric
from topology.model.errors import ConfigError, list_some, show
from topology.model.facts import (
    Finding,
    FindingKind,
    PortName,
    Severity,
    render_finding,
    sort_findings,
)

_CSV_HEADER: Final = ("severity", "kind", "device", "port", "message", "ports", "since", "silenced")
_MAX_NAMES_SHOWN: Final = 5


@click.command(name="findings")
@source_options
@click.option(
    "--kind",
    multiple=True,
    type=click.Choice([kind.value for kind in FindingKind]),
    help="Only findings of this kind. Repeatable.",
)
@click.option(
    "--severity",
    multiple=True,
    type=click.Choice([severity.value for severity in reversed(Severity)]),
    help="Only findings of this severity. Repeatable.",
)
@click.option(
    "--device",
    "--node",
    "--switch",
    multiple=True,
    metavar="NAME",
    help="Only findings about this node or switch, or with a port of it. Repeatable.",
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
@build_output_option(
    WIDE, CSV, note=" text prints findings that say the same as one row; wide prints each."
)
@watchable
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str,
    *,
    period: float | None,
    silence: Path | None,
    check: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Print contradictions, missing data, and cables in the wrong port.

    Text begins with a summary if there are many. toponaut describe shows what is connected where.
    """
    kinds, severities, devices = (options.pop(key) for key in ("kind", "severity", "device"))
    silences = read_silences(silence)
    read = read_observation(parse_sources(options))
    now = utc_now()
    findings = _collect_findings(read, period, now=now)
    _check_devices(devices, read, findings)
    chosen = (
        finding
        for finding in findings
        if (not kinds or finding.kind in kinds)
        and (not severities or finding.severity in severities)
        and (not devices or _names_any(finding, devices))
    )
    split = split_silenced(chosen, silences, today=now.date(), subject=_build_silence_subject)
    if output == CSV:
        print_csv(_CSV_HEADER, _build_csv_rows(split))
    else:
        document = [*map(render_finding, split.active), *map(_render_silenced, split.silenced)]
        print_document(document, output, text=lambda: render_findings_text(split, output))
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


def _check_devices(
    names: Collection[str], read: LoadedObservation, findings: Collection[Finding]
) -> None:
    """Refuse the name of a device that is not in the sources: it would seem to have no findings.

    Raises:
        ConfigError: a name is unknown.
    """
    missing = {name for name in names if not any(_names_any(one, {name}) for one in findings)}
    if not missing:
        return
    tree, inventory = read.observation.tree, read.inputs.inventory
    missing -= {*tree.nodes, *(row.node for row in tree.unplaced)}
    missing -= {switch for domain in tree.domains for switch in domain.switches}
    missing -= {node.name for node in inventory.nodes} if inventory else set()
    for device in build_fabric(read.inputs.all_claims).devices if missing else ():
        missing -= {device.name, device.node}
    if missing:
        unknown = list_some([f"'{show(name)}'" for name in sorted(missing)], _MAX_NAMES_SHOWN)
        raise ConfigError(f"there is no node or switch {unknown} in these sources")


def _names_any(finding: Finding, devices: Collection[str]) -> bool:
    """Return whether a finding is about one of these devices, or shows a port of one."""
    return finding.device in devices or any(end.device in devices for end in finding.ends)


def _build_csv_rows(split: SilenceSplit[Finding]) -> Iterator[tuple[str, ...]]:
    rows = [(finding, "") for finding in split.active]
    rows += [
        (row.row, f"{row.silence.reason} (until {row.silence.until})") for row in split.silenced
    ]
    for finding, silenced in rows:
        ports = " ".join(f"{end.device}:{end.port}" for end in finding.ports if end.port)
        yield (
            *(finding.severity.value, finding.kind.value, finding.device, finding.port or ""),
            *(finding.message, ports, finding.since or "", silenced),
        )


def _build_silence_subject(finding: Finding) -> SilenceSubject:
    """Return the subject of a finding; ports that are only evidence do not match a silence."""
    return SilenceSubject(finding.kind.value, [PortName(finding.device, finding.port or "")])


def _render_silenced(row: SilencedRow[Finding]) -> dict[str, Any]:
    """Return a silenced finding: the finding, and why and until when it is silenced."""
    silence = row.silence
    silenced = {"reason": silence.reason, "until": silence.until.isoformat()}
    return {**render_finding(row.row), "silenced": silenced}
