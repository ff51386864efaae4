"""`toponaut findings`: list what is wrong with the cabling, with evidence and advice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import click

from generator.cli.commands.fabric.finding_history import (
    choose_ages,
    read_past_findings,
    refuse_without_since,
    render_aged,
    render_aged_text,
)
from generator.cli.commands.fabric.finding_text import render_findings_text
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.observation import LoadedObservation, read_observation
from generator.cli.output import CSV, print_csv, print_document
from generator.cli.silence_file import print_expired_silences, read_silences
from generator.cli.source_values import parse_sources
from generator.history.finding_changes import FindingAge
from generator.observe.freshness import Periods, derive_report_findings
from runtime.clock import utc_now
from topology.findings.silences import (
    Silence,
    SilencedRow,
    SilenceSplit,
    SilenceSubject,
    split_silenced,
)
from topology.join.fabric_join import build_fabric
from topology.model.errors import ConfigError, ParseError, list_some, show
from topology.model.facts import (
    Finding,
    PortName,
    Severity,
    render_finding,
    sort_findings,
)
from topology.model.tree import all_nodes

_CSV_HEADER: Final = ("severity", "kind", "device", "port", "message", "ports", "since", "silenced")
_MAX_NAMES_SHOWN: Final = 5


def run(
    ctx: click.Context,
    /,
    output: str,
    *,
    period: float | None,
    silence: Path | None,
    check: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut findings` with the values of its options."""
    chosen_by = _FindingFilter(*(options.pop(key) for key in ("kind", "severity", "device")))
    printed = _PrintOptions(output, read_silences(silence), check=check)
    since = options.pop("since")
    if since is not None:
        _print_since(ctx, since, options | {"period": period}, chosen_by, printed)
        return
    refuse_without_since(options)
    read = read_observation(parse_sources(options))
    now = utc_now()
    findings = _collect_findings(read, period, now=now)
    hosts = frozenset(all_nodes(read.observation.tree))
    _check_devices(chosen_by.devices, read, findings)
    split = printed.split(chosen_by.choose(findings), now)
    if output == CSV:
        print_csv(_CSV_HEADER, _build_csv_rows(split))
    else:
        document = [*map(render_finding, split.active), *map(_render_silenced, split.silenced)]
        print_document(document, output, text=lambda: render_findings_text(split, output, hosts))
    print_expired_silences(split.expired)
    _exit(ctx, split.active, read.problems, check=check)


class _FindingFilter(NamedTuple):
    """Which findings are printed; an empty field lets all through."""

    kinds: Collection[str]
    severities: Collection[str]
    devices: Collection[str]

    def choose(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return those that every field lets through."""
        return [
            finding
            for finding in findings
            if (not self.kinds or finding.kind in self.kinds)
            and (not self.severities or finding.severity in self.severities)
            and (not self.devices or _names_any(finding, self.devices))
        ]


@dataclass(frozen=True, slots=True)
class _PrintOptions:
    """How findings are printed, and whether they fail."""

    output: str
    silences: tuple[Silence, ...]
    check: bool

    def split(self, findings: Sequence[Finding], now: datetime) -> SilenceSplit[Finding]:
        """Return the findings with and without a silence."""
        return split_silenced(
            findings, self.silences, today=now.date(), subject=_build_silence_subject
        )


def _print_since(
    ctx: click.Context,
    since: datetime,
    options: dict[str, Any],
    chosen_by: _FindingFilter,
    printed: _PrintOptions,
) -> None:
    """Print what is new, lasting and gone; without sources, up to the last record."""
    past = read_past_findings(since, options)
    ages, period_s = options.pop("age"), options.pop("period")
    sources, now = parse_sources(options), utc_now()
    present, problems = past.last, tuple[ParseError, ...]()
    if not sources.is_empty:
        read = read_observation(sources)
        present, problems = _collect_findings(read, period_s, now=now), read.problems
    by_age = {
        age: printed.split(chosen_by.choose(findings), now)
        for age, findings in choose_ages(past, present, ages).items()
    }
    if printed.output == CSV:
        rows = (
            (*row, age.value) for age, split in by_age.items() for row in _build_csv_rows(split)
        )
        print_csv((*_CSV_HEADER, "age"), rows)
    else:
        print_document(
            render_aged(by_age, _render_silenced),
            printed.output,
            text=lambda: render_aged_text(by_age, past, printed.output),
        )
    active = [
        row for age, split in by_age.items() if age is not FindingAge.GONE for row in split.active
    ]
    _exit(ctx, active, problems, check=printed.check)


def _exit(
    ctx: click.Context,
    active: Iterable[Finding],
    problems: Sequence[ParseError],
    *,
    check: bool,
) -> NoReturn:
    is_failed = check and any(finding.severity is not Severity.INFO for finding in active)
    exit_with_problems(ctx, problems, ExitCode.CHECK_FAILED if is_failed else None)


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
