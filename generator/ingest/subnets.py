"""InfiniBand subnets in reports: which need a sweep, which are covered, which refuse it. Pure.

A subnet without a sweep is unknown, never empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from generator.ingest.named_sweepers import NamedSweepers
from topology.model.claims import Claim
from topology.model.facts import Finding, FindingKind, Port, Severity
from topology.model.ids import IdKind
from topology.reports.packed_reports import PackedReport

MIN_HOSTS: Final = 2
"""So many hosts must report a port in a subnet before it is a subnet for more than its reporter."""
_GUIDS: Final = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID})


def find_subnets(reports: Iterable[PackedReport]) -> frozenset[str]:
    """Return the subnets in which a host has a port that is up."""
    return frozenset(port.subnet for report in reports for port in report.swept_ports)


def find_attested_subnets(reports: Iterable[PackedReport]) -> frozenset[str]:
    """Return the subnets in which at least two hosts report a port that is up."""
    hosts = Counter(
        subnet for report in reports for subnet in {port.subnet for port in report.swept_ports}
    )
    return frozenset(subnet for subnet, num in hosts.items() if num >= MIN_HOSTS)


def find_awaited_subnets(
    reports: Sequence[PackedReport], named: NamedSweepers, swept: Iterable[str]
) -> frozenset[str]:
    """Return the subnets that are unknown without a complete sweep.

    One node must not hold up the others in a cluster. So a subnet that only one host reports, or
    whose first sweep only one node offers, is not awaited, unless a person listed the node.

    Args:
        reports: all reports.
        named: the nodes whose sweeps count.
        swept: subnets of which there is a part of a sweep that counts.
    """
    participants = [report for report in reports if report.status.sweeping is not None]
    offered = find_subnets(participants)
    if not named.has_agent_tokens:
        return offered | frozenset(swept)
    counted = {sweep.subnet for sweep in named.status.sweeps}
    trusted = find_subnets(report for report in participants if report.name in named.listed)
    offered_by_several = find_attested_subnets(participants)
    expected = offered_by_several | (offered & counted) | frozenset(swept)
    return trusted | (expected & find_attested_subnets(reports))


def find_uncovered_subnets(
    subnets: Collection[str], reports: Iterable[PackedReport], swept: Iterable[Claim]
) -> tuple[str, ...]:
    """Return the subnets that no given sweep covers, sorted: none of their ports is in it.

    Args:
        subnets: subnets without a reported sweep.
        reports: the reports that show which ports are in which subnet.
        swept: claims of sweeps that do not name their subnet, such as saved files.
    """
    if not subnets:
        return ()
    devices = [claim.device for claim in swept]
    ids = [id_ for device in devices for id_ in device.ids]
    ids += [id_ for device in devices for port in device.ports for id_ in port.ids]
    guids = {(id_.kind, id_.value) for id_ in ids if id_.kind in _GUIDS}
    covered = {
        port.subnet
        for report in reports
        for port in _find_subnet_ports(report)
        if port.subnet and any((id_.kind, id_.value) in guids for id_ in port.ids)
    }
    return tuple(sorted(set(subnets) - covered))


def _find_subnet_ports(report: PackedReport) -> list[Port]:
    names = {port.name for port in report.swept_ports}
    device = report.device if names else None
    return [port for port in device.ports if port.name in names] if device else []


def derive_refusal_findings(
    reports: Iterable[PackedReport], *, unknown: Collection[str]
) -> list[Finding]:
    """Return a finding per node and subnet that let every query of the node's sweep time out.

    Args:
        reports: all reports.
        unknown: subnets without any known sweep, whose cables are unknown.
    """
    return [
        _build_refused_finding(report, subnet, is_unknown=subnet in unknown)
        for report in reports
        if report.status.sweeping is not None
        for subnet in report.status.sweeping.refused
    ]


def _build_refused_finding(report: PackedReport, subnet: str, *, is_unknown: bool) -> Finding:
    name = report.name
    ports: Mapping[str, str] = {port.subnet: port.name for port in reversed(report.swept_ports)}
    state = "its cables are unknown" if is_unknown else "its last good sweep still counts"
    return Finding(
        kind=FindingKind.SWEEP_REFUSED,
        device=name,
        port=ports.get(subnet),
        severity=Severity.ERROR if is_unknown else Severity.WARNING,
        message=(
            f"Every query of the sweep of subnet {subnet} from {name} timed out, as happens when "
            f"an M_Key protects the fabric; {state}. Read the files of its own manager "
            "(ibdiagnet's files, opensm-subnet.lst) with --ibnetdiscover, or give the sweep the "
            "key (m_key in /etc/infiniband-diags/ibdiag.conf)."
        ),
    )
