"""`toponaut findings`: list what is wrong with the cabling, with evidence and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.history_access import find_generation_since, open_given_history, show_time
from generator.cli.options import HistoryOptions, InputOptions
from generator.cli.output import (
    CSV,
    SEVERITY_COLORS,
    WIDE,
    Table,
    list_nodes,
    paint,
    print_document,
    show_count,
)
from generator.cli.silence_file import print_expired_silences, read_silences
from generator.history.findings import FindingAge, compare_findings
from runtime.clock import utc_now
from topology.findings.finding_causes import (
    SEVERITY_RANK,
    describe_evidence,
    drop_consequences,
    group_by_cause,
)
from topology.findings.silences import (
    SilencedRow,
    SilenceSplit,
    SilenceSubject,
    split_silenced,
)
from topology.model.errors import ConfigError, ParseError, list_some, show
from topology.model.facts import (
    Finding,
    FindingKind,
    PortName,
    Severity,
    render_finding,
    sort_findings,
)
from topology.model.tree import all_nodes

if TYPE_CHECKING:
    from generator.cli.observation import LoadedObservation

_CSV_HEADER: Final = ("severity", "kind", "device", "port", "message", "ports", "since", "silenced")
_MAX_NAMES_SHOWN: Final = 5
_HEADER: Final = ("severity", "kind", "subject", "what to do")
_SEVERITIES: Final = [row.value for row in reversed(Severity)]
_MIN_FOLDED: Final = 3
"""Findings that say the same of fewer devices are rows of their own."""
_MIN_SUMMARY: Final = 10
"""Fewer rows need no summary above them."""
_MAX_WORST: Final = 5
_MAX_SUBJECT: Final = 48
"""Characters of the devices of one row."""


class _FindingFilter(NamedTuple):
    """Which findings are printed; an empty field lets all through."""

    kind: tuple[FindingKind, ...] = options.option("Only findings of this kind. Repeatable.")
    severity: tuple[str, ...] = options.option(
        "Only findings of this severity. Repeatable.",
        type=click.Choice(_SEVERITIES),
    )
    device: tuple[str, ...] = options.option(
        "Only findings about this node or switch, or with a port of it. Repeatable.",
        "--device",
        "--node",
        "--switch",
        metavar="NAME",
    )

    def choose(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return those that every field lets through."""
        return [
            finding
            for finding in findings
            if (not self.kind or finding.kind in self.kind)
            and (not self.severity or finding.severity in self.severity)
            and (not self.device or _names_any(finding, self.device))
        ]


@options.command("findings", is_watchable=True)
def command(
    *,
    sources: InputOptions,
    chosen: _FindingFilter,
    period: float | None = options.duration(
        "Collection period of the agents, such as 1m: reports older than three periods are "
        "stale. Without it, the age of reports is ignored."
    ),
    since: datetime | None = options.SINCE,
    history: HistoryOptions,
    age: tuple[FindingAge, ...] = options.option(
        "Only findings that are new, lasting or gone since --since. Repeatable."
    ),
    silence: Path | None = options.SILENCE,
    check: bool = options.option("Exit with 5 if there are warnings or errors."),
    output: str = options.output_of(
        WIDE, CSV, note=" text prints findings that say the same as one row; wide prints each."
    ),
) -> None:
    """List what is wrong with the cabling, or with the data about it, and what to do.

    Ten rows or more begin with a summary. toponaut describe shows what is connected to a device.
    With --since, the findings are compared with the history of `toponaut serve`, and each is new,
    lasting or gone. Without a source, the last record of the history is compared.
    """
    silences, now = read_silences(silence), utc_now()
    past = None if since is None else _read_past(since, history)
    if past is None:
        _refuse_without_since(history, age)
    present = _read_present(sources, past, chosen.device, period, now=now)
    split_by_age = {
        one: split_silenced(
            chosen.choose(findings), silences, today=now.date(), subject=_build_silence_subject
        )
        for one, findings in _select_ages(past, present.findings, age).items()
    }
    print_document(
        [row for one, split in split_by_age.items() for row in _render_split(one, split)],
        output,
        text=lambda: _list_sections(split_by_age, past, output, present.hosts),
        table=lambda: _build_table(split_by_age),
    )
    if past is None:
        print_expired_silences(split_by_age[None].expired)
    is_failed = check and any(
        finding.severity is not Severity.INFO
        for one, split in split_by_age.items()
        if one is not FindingAge.GONE
        for finding in split.active
    )
    exit_with_problems(present.problems, ExitCode.CHECK_FAILED if is_failed else None)


class _PastFindings(NamedTuple):
    """The findings of an earlier time, and those of the last record."""

    since_s: int
    before: tuple[Finding, ...]
    last: tuple[Finding, ...]
    hosts: frozenset[str]
    """The nodes of both times."""


def _read_past(since: datetime, given: HistoryOptions) -> _PastFindings:
    since_s = int(since.timestamp())
    with open_given_history(given) as history:
        trees = [find_generation_since(history, since), *history.read_generations(limit=1)]
        hosts = frozenset(chain.from_iterable(all_nodes(row.tree) for row in trees))
        return _PastFindings(
            since_s, history.read_findings(since_s), history.read_findings(), hosts
        )


class _PresentFindings(NamedTuple):
    """The findings of now, and the problems of the inputs that they follow from."""

    findings: Sequence[Finding]
    problems: Sequence[ParseError]
    hosts: frozenset[str]
    """The nodes of now; with a past, those of the history."""


def _read_present(
    sources: InputOptions,
    past: _PastFindings | None,
    names: Collection[str],
    period_s: float | None,
    *,
    now: datetime,
) -> _PresentFindings:
    """Read the sources; with a past and without a source, the last record of the history counts.

    Raises:
        ConfigError: there is no past, and a device of a name is not in the sources.
    """
    from generator.cli.observation import parse_sources, read_observation

    given = parse_sources(sources)
    if past is not None and given.is_empty:
        return _PresentFindings(past.last, (), past.hosts)
    read = read_observation(given)
    findings = _collect_findings(read, period_s, now=now)
    if past is not None:
        return _PresentFindings(findings, read.problems, past.hosts)
    _check_devices(names, read, findings)
    return _PresentFindings(findings, read.problems, frozenset(all_nodes(read.observation.tree)))


def _refuse_without_since(history: HistoryOptions, age: Collection[FindingAge]) -> None:
    for name, value in {**history._asdict(), "age": age}.items():
        if value:
            raise click.UsageError(f"--{name} applies to --since only")


def _select_ages(
    past: _PastFindings | None, now: Sequence[Finding], ages: Collection[FindingAge]
) -> dict[FindingAge | None, Sequence[Finding]]:
    """Return the findings by age, those of the chosen ages or all; without a past, by None."""
    if past is None:
        return {None: now}
    changes = compare_findings(past.before, now)
    return {age: changes.of(age) for age in FindingAge if not ages or age in ages}


def _collect_findings(
    read: LoadedObservation, period_s: float | None, *, now: datetime
) -> tuple[Finding, ...]:
    """Return the findings; with a period, also findings about stale reports."""
    from generator.observe.freshness import Periods, derive_report_findings

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
    from topology.join.fabric_join import build_fabric

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


def _render_split(age: FindingAge | None, split: SilenceSplit[Finding]) -> Iterator[dict[str, Any]]:
    """Yield findings as JSON; silenced ones with the reason and the end of the silence."""
    aged = {} if age is None else {"age": age.value}
    for finding in split.active:
        yield {**render_finding(finding), **aged}
    for row in split.silenced:
        silenced = {"reason": row.silence.reason, "until": row.silence.until.isoformat()}
        yield {**render_finding(row.row), "silenced": silenced, **aged}


def _build_table(split_by_age: Mapping[FindingAge | None, SilenceSplit[Finding]]) -> Table:
    rows = [
        (*cells, *([] if age is None else [age.value]))
        for age, split in split_by_age.items()
        for cells in _build_csv_rows(split)
    ]
    return Table(_CSV_HEADER if None in split_by_age else (*_CSV_HEADER, "age"), rows)


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


def _list_sections(
    split_by_age: Mapping[FindingAge | None, SilenceSplit[Finding]],
    past: _PastFindings | None,
    output: str,
    hosts: Collection[str],
) -> Iterator[str | Table]:
    """Yield the findings as text, with a title for each age."""
    for age, split in split_by_age.items():
        num = len(split.active) + len(split.silenced)
        if age is not None and past is not None:
            yield f"{age.value} since {show_time(past.since_s)}: {show_count(num, 'finding')}"
        if num or age is None:
            yield from list_parts(split, output, hosts)
        if num and age is not None:
            yield ""


def list_parts(
    split: SilenceSplit[Finding], output: str, hosts: Collection[str] = ()
) -> Iterator[str | Table]:
    """Yield the summary of many findings, then the rows, then the totals.

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
    if len(rows) >= _MIN_SUMMARY:
        yield from _render_summary(active)
        yield ""
    total = _render_total(active, len(split.silenced))
    num_hidden = len(active) - sum(map(len, causes))
    if num_hidden:
        total += f"; {num_hidden} follow from another one (-o wide prints each)"
    yield Table(_HEADER, rows, total, "no findings")


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
    subject = f"{finding.device} port {finding.port}" if finding.port else finding.device
    return severity, finding.kind.value, show(subject), show(text, 600)
