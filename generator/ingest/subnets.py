"""InfiniBand subnets by what nodes report: which are waited for, which refuse a sweep. Pure.

A subnet without a sweep is unknown, never empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from topology.model.claims import Claim
from topology.model.facts import Finding, FindingKind, Port, Severity
from topology.model.ids import IdKind
from topology.reports.compact_reports import Report

_GUIDS: Final = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID})


def find_subnets(reports: Iterable[Report]) -> frozenset[str]:
    """Return the subnets that hosts have ports in that are up."""
    return frozenset(port.subnet for report in reports for port in report.swept_ports)


def find_expected_subnets(reports: Iterable[Report]) -> frozenset[str]:
    """Return the subnets that nodes which take part in sweeping have ports in.

    One of them without a sweep is unknown. Where nobody takes part nobody is waited for.
    """
    taking_part = (report for report in reports if report.status.sweeping is not None)
    return find_subnets(taking_part)


def find_uncovered_subnets(
    subnets: Collection[str], reports: Iterable[Report], swept: Iterable[Claim]
) -> tuple[str, ...]:
    """Return those of the subnets, sorted, of which no port is in what was swept.

    Args:
        subnets: that lack a sweep of their own.
        reports: whose ports tell what is in a subnet.
        swept: claims of sweeps that do not say of which subnet they are, as saved files.
    """
    if not subnets:
        return ()
    devices = [claim.device for claim in swept]
    ids = [one for device in devices for one in device.ids]
    ids += [one for device in devices for port in device.ports for one in port.ids]
    guids = {(one.kind, one.value) for one in ids if one.kind in _GUIDS}
    covered = {
        port.subnet
        for report in reports
        for port in _find_subnet_ports(report)
        if port.subnet and any((one.kind, one.value) in guids for one in port.ids)
    }
    return tuple(sorted(set(subnets) - covered))


def _find_subnet_ports(report: Report) -> list[Port]:
    names = {port.name for port in report.swept_ports}
    device = report.device if names else None
    return [port for port in device.ports if port.name in names] if device else []


def derive_refusal_findings(
    reports: Iterable[Report], *, unknown: Collection[str]
) -> list[Finding]:
    """Return a finding per node and subnet that let all of its queries time out.

    Args:
        reports: all that there are.
        unknown: subnets of which no sweep is known, so that nothing is known of their cables.
    """
    return [
        _build_refused_finding(report, subnet, is_unknown=subnet in unknown)
        for report in reports
        if report.status.sweeping is not None
        for subnet in report.status.sweeping.refused
    ]


def _build_refused_finding(report: Report, subnet: str, *, is_unknown: bool) -> Finding:
    name = report.metadata.name
    ports: Mapping[str, str] = {port.subnet: port.name for port in reversed(report.swept_ports)}
    state = "nothing is known of its cables" if is_unknown else "its last good sweep still counts"
    return Finding(
        kind=FindingKind.SWEEP_REFUSED,
        device=name,
        port=ports.get(subnet),
        severity=Severity.ERROR if is_unknown else Severity.WARNING,
        message=(
            f"Every query of the sweep of subnet {subnet} from {name} timed out, as where an M_Key "
            f"guards the fabric; {state}. Read what its own manager writes (ibdiagnet's files, "
            "opensm-subnet.lst) with --ibnetdiscover, or give the sweep the key (m_key in "
            "/etc/infiniband-diags/ibdiag.conf)."
        ),
    )
