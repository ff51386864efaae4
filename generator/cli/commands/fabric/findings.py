"""`toponaut findings`: list what is wrong with the cabling, with evidence and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.history_access import find_generation_since, open_given_history, show_time
from generator.cli.options import HistoryOptions, InputOptions, PodOptions
from generator.cli.output import (
    CSV,
    SEVERITY_COLORS,
    WIDE,
    Table,
    list_nodes,
    paint,
    print_document,
    show_count,
    show_severity,
)
from generator.cli.silence_file import print_expired_silences, read_silences
from generator.cli.work_orders import (
    ORDERS,
    OrderOptions,
    print_order,
    read_places,
    warn_of_racks,
)
from generator.history.findings import FindingAge, compare_findings
from runtime.clock import utc_now
from runtime.options import Choice, suggest_names
from topology.findings.finding_causes import Cause, list_causes
from topology.findings.silences import (
    SilencedRow,
    SilenceSplit,
    SilenceSubject,
    split_silenced,
)
from topology.findings.work_order import Place, build_work_order, show_subject
from topology.model.cabling_plan import show_end
from topology.model.errors import ConfigError, ParseError, list_some, show
from topology.model.facts import (
    SEVERITY_RANK,
    Finding,
    FindingKind,
    PortName,
    Severity,
    describe_impact,
    render_finding,
    sort_findings,
)

if TYPE_CHECKING:
    from generator.cli.observation import LoadedObservation
    from generator.cli.running_pods import NodesByGang
    from topology.model.tree import TopologyTree

_CSV_HEADER: Final = ("severity", "kind", "device", "port", "message", "ports", "since", "silenced")
_MAX_NAMES_SHOWN: Final = 5
_MAX_ENDS_SHOWN: Final = 3
_HEADER: Final = ("severity", "kind", "costs", "subject", "what to do")
_SEVERITIES: Final = [row.value for row in reversed(Severity)]
_MIN_SUMMARY: Final = 10
"""Fewer rows need no summary above them."""
_MAX_WORST: Final = 5
_NO_PLACES: Final[Mapping[str, Place]] = MappingProxyType({})
_MAX_SUBJECT: Final = 48
"""Characters of the devices of one row."""


class _FindingFilter(NamedTuple):
    """Which findings are printed; an empty field lets all through."""

    kind: tuple[FindingKind, ...] = options.option("Only findings of this kind. Repeatable.")
    severity: tuple[str, ...] = options.option(
        "Only findings of this severity. Repeatable.",
        type=Choice(_SEVERITIES),
    )
    device: tuple[str, ...] = options.option(
        "Only findings about this node or switch, or with a port of it; the name of a domain "
        "stands for all nodes and switches in it. Repeatable.",
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


@options.command(
    "findings",
    is_watchable=True,
    examples=(
        "toponaut findings --reports fabric/reports --nodes fabric/nodes.yaml",
        "toponaut findings --reports fabric/reports --top 5",
    ),
)
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
    pods: PodOptions,
    top: int | None = options.number(
        1, 1000, "Only so many causes, the costliest first, each with both ends of its cables."
    ),
    order: OrderOptions,
    age: tuple[FindingAge, ...] = options.option(
        "Only findings that are new, lasting or gone since --since. Repeatable."
    ),
    silence: Path | None = options.SILENCE,
    check: bool = options.option("Exit with 5 if there are warnings or errors, or cables gone."),
    output: str = options.output_of(
        *(WIDE, CSV, *ORDERS),
        note=" text prints findings that say the same as one row; wide prints each. The work "
        "orders are Markdown, CSV, and a page to print.",
    ),
) -> None:
    """List what is wrong with the cabling, or with the data about it, and what to do.

    The costliest are first, and --top 5 prints what to mend first. Ten rows or more begin with a
    summary. With --pods or --running, the costs include the gangs that run there. toponaut describe
    shows what is connected to a device.
    With --since, the findings are compared with the history of `toponaut serve`, and each is new,
    lasting or gone. Without a source, the last record of the history is compared.
    """
    silences, now = read_silences(silence), utc_now()
    past = None if since is None else _read_past(since, history)
    if past is None:
        _refuse_without_since(history, age)
    elif top is not None or output in ORDERS:
        raise click.UsageError("--top and work orders do not apply to --since")
    order.check_format(output)
    pods.refuse_both()
    present = _read_present(sources, past, chosen.device, pods, period, now=now)
    chosen = chosen._replace(device=present.devices)
    split_by_age = {
        one: split_silenced(
            chosen.choose(findings), silences, today=now.date(), subject=_build_silence_subject
        )
        for one, findings in _select_ages(past, present.findings, age).items()
    }
    is_failed = check and any(
        finding.severity is not Severity.INFO or finding.impact.cables
        for one, split in split_by_age.items()
        if one is not FindingAge.GONE
        for finding in split.active
    )
    has_causes = top is not None or output in ORDERS
    causes = list_causes(split_by_age[None].active, present.hosts) if has_causes else []
    placed = read_places(present.read.inputs.inventory if present.read else None, order.racks)
    places = placed.by_device
    if output in ORDERS and present.read:
        from generator.outputs.work_order import CAUSES

        steps = build_work_order(causes[:top], present.read.observation.tree, places)
        print_order(steps, order, output, num_all=len(causes), source=CAUSES)
    else:
        if top:
            split_by_age = {None: _keep(split_by_age[None], causes[:top])}
        print_document(
            [row for one, split in split_by_age.items() for row in _render_split(one, split)],
            output,
            text=lambda: (
                _list_first(causes, top, places)
                if top
                else _list_sections(split_by_age, past, output, present.hosts, places)
            ),
            table=lambda: _build_table(split_by_age),
        )
    if order.racks is not None and present.read:
        shown = _list_devices(causes[:top], split_by_age.values())
        tree = present.read.observation.tree
        unknown = (
            {*placed.in_file}
            - _list_known(present.findings, (tree,))
            - _list_devices_of(present.read)
        )
        warn_of_racks(placed, unknown, shown)
    if past is None:
        print_expired_silences(split_by_age[None].expired)
    exit_with_problems(present.problems, ExitCode.CHECK_FAILED if is_failed else None)


def _list_devices(
    causes: Sequence[Cause], splits: Iterable[SilenceSplit[Finding]]
) -> frozenset[str]:
    """Return the devices of the causes, or without any those of all findings."""
    members = chain.from_iterable(cause.members for cause in causes)
    rows = [row.finding for row in members] or [row for one in splits for row in one.active]
    return frozenset(end.device for row in rows for end in row.ends if end.device)


class _PastFindings(NamedTuple):
    """The findings of an earlier time, and those of the last record."""

    since_s: int
    before: tuple[Finding, ...]
    last: tuple[Finding, ...]
    trees: tuple[TopologyTree, ...]
    """The trees of both times."""

    @property
    def hosts(self) -> frozenset[str]:
        """The nodes of both times."""
        return frozenset(chain.from_iterable(tree.all_nodes for tree in self.trees))


def _read_past(since: datetime, given: HistoryOptions) -> _PastFindings:
    since_s = int(since.timestamp())
    with open_given_history(given) as history:
        rows = [find_generation_since(history, since), *history.read_generations(limit=1)]
        trees = tuple(row.tree for row in rows)
        return _PastFindings(
            since_s, history.read_findings(since_s), history.read_findings(), trees
        )


class _PresentFindings(NamedTuple):
    """The findings of now, and the problems of the inputs that they follow from."""

    findings: Sequence[Finding]
    problems: Sequence[ParseError]
    hosts: frozenset[str]
    """The nodes of now; with a past, those of the history."""
    devices: tuple[str, ...]
    """The devices of --device, and those in the domains that it names."""
    read: LoadedObservation | None = None
    """What the sources say; None: they are not given."""


def _read_present(
    sources: InputOptions,
    past: _PastFindings | None,
    names: Collection[str],
    pods: PodOptions,
    period_s: float | None,
    *,
    now: datetime,
) -> _PresentFindings:
    """Read the sources; with a past and without a source, the last record of the history counts.

    Raises:
        ConfigError: there is no past, and nothing in the sources has a name.
    """
    from generator.cli.observation import parse_sources, read_observation
    from generator.cli.running_pods import read_pods

    given = parse_sources(sources)
    if past is not None and given.is_empty:
        known = _list_known((*past.before, *past.last), past.trees)
        devices = _resolve_devices(names, known, past.trees)
        return _PresentFindings(past.last, (), past.hosts, tuple(devices))
    read = read_observation(given)
    running = read_pods(pods, None)
    gangs = running.list_gang_nodes() if running else None
    findings = _collect_findings(read, gangs, period_s, now=now)
    problems = (*read.problems, *(running.problems if running else ()))
    trees = (read.observation.tree, *(past.trees if past else ()))
    known = _list_known((*findings, *(past.before if past else ())), trees)
    missing = {*names} - known
    known |= _list_devices_of(read) if missing else set()
    resolved = tuple(_resolve_devices(names, known, trees))
    if past is not None:
        return _PresentFindings(findings, problems, past.hosts, resolved)
    hosts = frozenset(read.observation.tree.all_nodes)
    return _PresentFindings(findings, problems, hosts, resolved, read)


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
    read: LoadedObservation, gangs: NodesByGang | None, period_s: float | None, *, now: datetime
) -> tuple[Finding, ...]:
    """Return the findings with what they cost; with a period, also those about stale reports."""
    from generator.jobs.free_by_domain import count_gpus
    from generator.observe.freshness import Periods, derive_report_findings
    from topology.findings.impact import add_workloads, measure_impacts

    findings, tree = [*read.observation.findings], read.observation.tree
    if period_s is not None:
        periods = Periods(timedelta(seconds=period_s))
        stale = derive_report_findings(
            read.inputs, now=now, periods=periods, unlinked=read.observation.unlinked_nodes
        )
        findings += measure_impacts(stale, tree)
    inventory = read.inputs.inventory
    gpus = count_gpus(node.spec for node in inventory.nodes) if inventory else None
    return sort_findings(add_workloads(findings, tree, gpus=gpus, gangs=gangs))


def _resolve_devices(
    names: Collection[str], known: Collection[str], trees: Collection[TopologyTree]
) -> Iterator[str]:
    """Yield the devices with these names, and the nodes and switches of domains with them.

    A domain that has another name now has its old name in an older tree.

    Raises:
        ConfigError: nothing has a name, which would seem to have no findings.
    """
    unknown = []
    yield from (name for name in names if name in known)
    for name in sorted({*names} - {*known}):
        from generator.outputs.domain_names import find_domain  # loads the outputs

        found = [(tree, find_domain(tree, name)) for tree in trees]
        inside = [(tree, tree.domains[number]) for tree, number in found if number is not None]
        if not inside:
            unknown.append(name)
        for tree, outer in inside:
            yield from tree.nodes_of(outer)
            yield from chain.from_iterable(
                domain.switches
                for domain in tree.domains
                if outer.start <= domain.start and domain.stop <= outer.stop
            )
    if unknown:
        some = list_some((f"'{show(name)}'" for name in unknown), _MAX_NAMES_SHOWN)
        domains = (row.name for tree in trees for row in tree.domains)
        similar = suggest_names(unknown[0], {*known, *domains})
        raise ConfigError(f"there is no node, switch or domain {some} in these sources{similar}")


def _list_known(findings: Iterable[Finding], trees: Iterable[TopologyTree]) -> set[str]:
    """Return the names of the devices of findings and of trees."""
    rows = list(findings)
    known = {name for row in rows for name in (row.device, row.lost_name) if name}
    known |= {end.device for row in rows for end in row.ends}
    for tree in trees:
        known |= {*tree.all_nodes}
        known |= {switch for domain in tree.domains for switch in domain.switches}
    return known


def _list_devices_of(read: LoadedObservation) -> set[str]:
    """Return the names of the listed nodes, and of all devices in the sources."""
    from topology.join.fabric_join import build_fabric

    inventory, devices = read.inputs.inventory, build_fabric(read.inputs.all_claims).devices
    known = {node.name for node in inventory.nodes} if inventory else set()
    return known | {name for row in devices for name in (row.name, row.node) if name}


def _names_any(finding: Finding, devices: Collection[str]) -> bool:
    """Return whether a finding is about one of these devices, or shows a port of one."""
    names = (finding.device, finding.lost_name, *(end.device for end in finding.ends))
    return any(name in devices for name in names)


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


def _keep(split: SilenceSplit[Finding], causes: Iterable[Cause]) -> SilenceSplit[Finding]:
    """Return only the findings of some causes, and none that is silenced."""
    rows = chain.from_iterable(cause.findings for cause in causes)
    return replace(split, active=tuple(rows), silenced=())


def _list_first(
    causes: Sequence[Cause], num: int, places: Mapping[str, Place]
) -> Iterator[str | Table]:
    """Yield one row for each of the first causes; a row names the racks of both ends."""
    shown = causes[:num]
    if shown:
        yield paint("Fix these first", "bold")
    total = f"{len(shown)} of {show_count(len(causes), 'cause')}"
    num = sum(1 for cause in causes for _ in cause.findings)
    if num > len(causes):
        total += f" of {num} findings"
    if len(shown) < len(causes):
        total += " (toponaut findings prints all)"
    rows = [_render_cause(cause, _show_ends(cause, places)) for cause in shown]
    yield Table(_HEADER, rows, total, "no findings")


def _list_sections(
    split_by_age: Mapping[FindingAge | None, SilenceSplit[Finding]],
    past: _PastFindings | None,
    output: str,
    hosts: Collection[str],
    places: Mapping[str, Place],
) -> Iterator[str | Table]:
    """Yield the findings as text, with a title for each age."""
    for age, split in split_by_age.items():
        num = len(split.active) + len(split.silenced)
        if age is not None and past is not None:
            yield f"{age.value} since {show_time(past.since_s)}: {show_count(num, 'finding')}"
        if num or age is None:
            yield from list_parts(split, output, hosts, places)
        if num and age is not None:
            yield ""


def list_parts(
    split: SilenceSplit[Finding],
    output: str,
    hosts: Collection[str] = (),
    places: Mapping[str, Place] = _NO_PLACES,
) -> Iterator[str | Table]:
    """Yield the summary of many findings, then the rows, then the totals.

    Args:
        split: the findings.
        output: the format: text, with one row for each cause, or wide, with one for each finding.
        hosts: the devices of which all faults have one cause.
        places: the rack and the unit of each device where they are known.
    """
    active = sort_findings(split.active)
    causes = list(map(Cause, active)) if output == WIDE else list_causes(active, hosts)
    rows = [_render_cause(cause, _show_devices(cause, places)) for cause in causes]
    rows += [_render_silenced(row) for row in split.silenced]
    if len(rows) >= _MIN_SUMMARY:
        yield from _render_summary(active)
        yield ""
    total = _render_total(active, len(split.silenced))
    if len(causes) < len(active):
        total = f"{len(active)} findings of {show_count(len(causes), 'cause')}: {total}"
    num_hidden = (
        0
        if output == WIDE
        else sum(len(row.consequences) for cause in causes for row in cause.members)
    )
    if num_hidden:
        follow = "1 follows" if num_hidden == 1 else f"{num_hidden} follow"
        total += f"; {follow} from another one (-o wide prints each)"
    yield Table(_HEADER, rows, total, "no findings")


def _render_summary(active: Sequence[Finding]) -> Iterator[str]:
    """Yield one line per severity with its kinds, and the devices with most findings."""
    for severity in SEVERITY_RANK:
        kinds = Counter(row.kind.value for row in active if row.severity is severity)
        if kinds:
            shown = ", ".join(f"{kind} {num}" for kind, num in kinds.most_common())
            name = show_severity(kinds.total(), severity)
            yield f"{paint(name, SEVERITY_COLORS[severity])}: {shown}"
    devices = Counter(row.device for row in active if row.severity is not Severity.INFO)
    worst = [(device, num) for device, num in devices.most_common(_MAX_WORST) if num > 1]
    if worst:
        yield f"most findings: {', '.join(f'{show(device)} {num}' for device, num in worst)}"


def _render_total(active: Sequence[Finding], num_silenced: int) -> str:
    counts = Counter(finding.severity for finding in active)
    total = [
        show_severity(counts[severity], severity) for severity in SEVERITY_RANK if counts[severity]
    ]
    return ", ".join([*total, f"{num_silenced} silenced"] if num_silenced else total)


def _render_cause(cause: Cause, subject: str) -> Sequence[str]:
    finding, text = cause.finding, cause.describe()
    if cause.alike:
        text = text.replace(" like this", " like this (-o wide prints each)", 1)
    costs = describe_impact(cause.impact) or "-"
    return finding.severity.value, finding.kind.value, costs, subject, show(text, 600)


def _show_ends(cause: Cause, places: Mapping[str, Place]) -> str:
    """Return both ends of the cables of a cause; of causes alike, those of the first ones."""
    if not cause.cables:
        return _show_devices(cause, places)
    return list_some((show_subject(row, places) for row in cause.members), _MAX_ENDS_SHOWN)


def _show_devices(cause: Cause, places: Mapping[str, Place]) -> str:
    """Return both ends of the cables of a cause; of causes alike, their devices as ranges."""
    if not cause.alike:
        return show_subject(cause, places)
    names = [row.finding.device for row in cause.members]
    port = "" if cause.finding.port is None else f" port {show(cause.finding.port)}"
    return f"{list_nodes(names, 'text', max_chars=_MAX_SUBJECT)}{port}"


def _render_silenced(row: SilencedRow[Finding]) -> Sequence[str]:
    finding, silence = row
    subject = show_end(PortName(finding.device, finding.port or ""))
    text = show(f"{silence.reason} (until {silence.until})", 600)
    return "silenced", finding.kind.value, "-", subject, text
