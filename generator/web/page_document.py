"""Turns a tree, a fabric and findings into the document that the page draws.

Links and devices are columns of numbers, so that a fabric of 10,000 hosts stays a few megabytes.
Names are foreign text: each is escaped for display once, here. The page shows it as text only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from generator.history.findings import build_fault_key
from topology.findings.finding_causes import list_absent_cables, list_causes, name_lost_switch
from topology.model.errors import list_some, show
from topology.model.fabric import Fabric
from topology.model.facts import (
    DeviceKind,
    Finding,
    FindingKind,
    PortName,
    describe_impact,
    render_finding,
)
from topology.model.ids import IdKind
from topology.model.tree import TopologyTree
from topology.planes.plane_split import PlaneSplit

PAGE_FORMAT: Final = 6
_GIGA: Final = 1_000_000_000
_MAX_NAME: Final = 200
_MAX_MESSAGE: Final = 600
_MAX_ALIKE: Final = 4
LINK_STATES: Final = ("good", "one-sided", "slow", "flapping", "down", "swapped")
"""The states of a link, least urgent first; the document has their indices."""
_STATE_BY_KIND: Final[Mapping[FindingKind, int]] = MappingProxyType(
    {
        FindingKind.ONE_SIDED_LINK: 1,
        FindingKind.SLOW_LINK: 2,
        FindingKind.FLAPPING_LINK: 3,
        FindingKind.DOWN_PORT: 4,
        FindingKind.WRONG_RAIL: 5,
        FindingKind.SWAPPED_CABLE: 5,
    }
)
_ID_KINDS: Final = frozenset(
    {IdKind.NODE_GUID, IdKind.SYSTEM_IMAGE_GUID, IdKind.PORT_GUID, IdKind.MAC, IdKind.CHASSIS_ID}
)
_ENDS_OF_A_CABLE: Final = 2
_LINK_COLUMNS: Final = ("a", "aPort", "b", "bPort", "state", "rate", "ports", "gbps")
_MAX_PLANES: Final = 31
"""Planes that the page can show one by one: JavaScript has 31 bits in a positive number."""


@dataclass(slots=True)
class _Devices:
    """Names of devices as numbers; a name that the fabric lacks becomes a device of its own."""

    number_by_name: dict[str, int]
    names: list[str]
    kinds: list[str]
    ids: list[list[str]]

    def number_of(self, name: str) -> int:
        """Return the number of a host, which is added if no source describes it."""
        if name not in self.number_by_name:
            self.number_by_name[name] = len(self.names)
            self.names.append(show(name, _MAX_NAME))
            self.kinds.append(DeviceKind.HOST.value)
            self.ids.append([])
        return self.number_by_name[name]


def build_page_document(
    tree: TopologyTree,
    split: PlaneSplit | None,
    findings: Sequence[Finding],
    *,
    jobs: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return everything that the page draws, ready for JSON. Cost: O(devices + links).

    Args:
        tree: the domains and the order of the hosts.
        split: the cables and their planes; None where only a tree is known, as from HyperNodes.
        findings: the findings of the same observation.
        jobs: the jobs as `build_job_view` returns them; None: unknown.
        changes: the changes as `build_change_view` returns them; None: unknown.
    """
    began = (changes or {}).get("began", {})
    fabric = split.fabric if split else None
    devices = _list_devices(fabric)
    links, link_by_port = _list_links(fabric)
    planes = split.names[:_MAX_PLANES] if split else ()
    links["planes"] = _list_link_planes(split, planes) if split else []
    listed = _list_by_cause(findings, frozenset(tree.all_nodes))
    findings = [row.finding for row in listed]
    _mark_links(links["state"], findings, link_by_port)
    hosts = [devices.number_of(name) for name in tree.nodes]
    unplaced = [[devices.number_of(row.node), show(row.reason, _MAX_NAME)] for row in tree.unplaced]
    return {
        "format": PAGE_FORMAT,
        "plane": show(tree.plane),
        "planes": [show(name, _MAX_NAME) for name in planes],
        "tiers": [show(name) for name in tree.tiers],
        "domains": _list_domains(tree, devices),
        "hosts": hosts,
        "unplaced": unplaced,
        "links": links,
        "states": LINK_STATES,
        "exchanges": _list_exchanges(findings, link_by_port),
        "absent": _list_absent(listed, tree, devices, link_by_port.keys()),
        "findings": [
            {
                **render_finding_row(row.finding, devices.number_by_name, more_ends=row.more_ends),
                "beganS": began.get(build_fault_key(row.finding), 0),
                "cause": row.cause,
                "evidence": row.evidence,
                "alike": [devices.number_by_name.get(name, -1) for name in row.alike],
                "causeCosts": row.costs,
            }
            for row in listed
        ],
        "jobs": jobs,
        "changes": {key: row for key, row in (changes or {}).items() if key != "began"} or None,
        "devices": {"name": devices.names, "kind": devices.kinds, "ids": devices.ids},
    }


class _ListedFinding(NamedTuple):
    """A finding in the list of the page."""

    finding: Finding
    cause: int
    """Its cause by place in the list: itself for a cause, and for what follows from a finding, such
    as a missing link at a port that is down, this finding."""
    evidence: str
    """For a cause: what else was found of it."""
    more_ends: tuple[PortName, ...] = ()
    """For a cause: the far end of each of its cables, where it is known."""
    alike: tuple[str, ...] = ()
    """For a cause: the other devices that have it."""
    costs: str = ""
    """For a cause: what it costs at all of its devices."""


def _list_by_cause(findings: Sequence[Finding], hosts: Collection[str]) -> list[_ListedFinding]:
    """Return the findings by cause, the costliest cause first.

    A cause is followed by other findings about the same fault, then by its consequences.
    """
    causes = list_causes(findings, hosts)
    rows: list[_ListedFinding] = []
    follow: list[_ListedFinding] = []
    for cause in causes:
        place = len(rows)
        alike = tuple(row.finding.device for row in cause.alike)
        likewise = f" Likewise: {list_some(alike, _MAX_ALIKE)}." if alike else ""
        text = show(f"{cause.describe_others()}{cause.advise_switch()}{likewise}", _MAX_MESSAGE)
        ends = tuple(cable.far for cable in cause.cables if cable.far)
        costs = describe_impact(cause.impact)
        rows.append(_ListedFinding(cause.finding, place, text, ends, alike, costs))
        for member in cause.members:
            first = () if member.finding is cause.finding else (member.finding,)
            rows += [_ListedFinding(finding, place, "") for finding in (*first, *member.others)]
            follow += [_ListedFinding(finding, place, "") for finding in member.consequences]
    return [*rows, *follow]


def _list_devices(fabric: Fabric | None) -> _Devices:
    rows = fabric.devices if fabric else ()
    return _Devices(
        number_by_name={device.name: number for number, device in enumerate(rows)},
        names=[show(device.name, _MAX_NAME) for device in rows],
        kinds=[device.kind.value for device in rows],
        ids=[
            list(
                dict.fromkeys(
                    show(id_.value, _MAX_NAME) for id_ in row.ids if id_.kind in _ID_KINDS
                )
            )
            for row in rows
        ],
    )


def _list_links(fabric: Fabric | None) -> tuple[dict[str, Any], Mapping[PortName, int]]:
    """Return the links as columns, and the number of the link of each port.

    Ports and rates are numbers into the lists `ports` and `gbps`, where 0 is an unknown rate.
    """
    links: dict[str, Any] = {name: [] for name in _LINK_COLUMNS}
    link_by_port: dict[PortName, int] = {}
    if fabric is None:
        return links, link_by_port
    columns = fabric.columns
    owners, codes = columns.port_devices.tolist(), dict[str, int]()
    names = [str(name) for name in columns.port_names]
    ends = (columns.links.a.tolist(), columns.links.b.tolist())
    for key, ports in zip(("a", "b"), ends, strict=True):
        links[key] = [owners[port] for port in ports]
        links[f"{key}Port"] = [codes.setdefault(names[port], len(codes)) for port in ports]
        for number, port in enumerate(ports):
            link_by_port[PortName(columns.names[owners[port]], names[port])] = number
    links["state"] = [int(row) for row in columns.links.is_one_sided.tolist()]
    rates, rate_of = np.unique(columns.links.rates, return_inverse=True)
    links["rate"] = rate_of.tolist()
    links["gbps"] = [max(rate, 0) / _GIGA for rate in rates.tolist()]
    links["ports"] = [show(name) for name in codes]
    return links, link_by_port


def _list_link_planes(split: PlaneSplit, planes: Sequence[str]) -> list[int]:
    """Return the planes of each link as bits, the first plane lowest; 0: in no plane."""
    links = split.fabric.columns.links
    bits = np.zeros(len(links.a), np.int64)
    for number, name in enumerate(planes):
        plane = split.plane(name)
        is_used = np.zeros(len(split.fabric.ports), bool)
        for edges in (plane.host_edges.columns, plane.switch_edges.columns):
            is_used[edges.a_port] = is_used[edges.b_port] = True
        bits[is_used[links.a] & is_used[links.b]] |= 1 << number
    return [int(row) for row in bits.tolist()]


def _mark_links(
    states: list[int], findings: Iterable[Finding], link_by_port: Mapping[PortName, int]
) -> None:
    """Give each link the most urgent state that a finding about one of its ports reports."""
    for finding in findings:
        state = _STATE_BY_KIND.get(finding.kind, 0)
        for port in finding.ends if state else ():
            link = link_by_port.get(port)
            if link is not None:
                states[link] = max(states[link], state)


def _list_exchanges(
    findings: Sequence[Finding], link_by_port: Mapping[PortName, int]
) -> list[list[int]]:
    """Return the two links that cross and the finding, for each exchange of plugs."""
    rows = []
    for number, finding in enumerate(findings):
        for first, second in finding.swap:
            ends = (link_by_port.get(first), link_by_port.get(second))
            if ends[0] is not None and ends[1] is not None and ends[0] != ends[1]:
                rows.append([ends[0], ends[1], number])
    return rows


def _list_absent(
    rows: Sequence[_ListedFinding],
    tree: TopologyTree,
    devices: _Devices,
    linked: Collection[PortName],
) -> list[list[int | str]]:
    """Return both ends of each cable that does not exist, and the place of its finding.

    An end is a device and a port. A port that is unknown is empty, and a device -1.
    """
    places = {id(row.finding): place for place, row in enumerate(rows)}
    found = list_absent_cables([row.finding for row in rows], frozenset(tree.all_nodes), linked)
    return [
        [*_number_end(near, devices), *_number_end(far, devices), places[id(finding)]]
        for finding, (near, far) in found
    ]


def _number_end(end: PortName | None, devices: _Devices) -> tuple[int, str]:
    if end is None:
        return -1, ""
    return devices.number_by_name.get(end.device, -1), show(end.port)


def _list_domains(tree: TopologyTree, devices: _Devices) -> list[dict[str, Any]]:
    return [
        {
            "name": show(domain.name, _MAX_NAME),
            "tier": domain.tier,
            "parent": -1 if domain.parent is None else domain.parent,
            "start": domain.start,
            "stop": domain.stop,
            "margin": domain.margin,
            "switches": [
                devices.number_by_name[name]
                for name in domain.switches
                if name in devices.number_by_name
            ],
        }
        for domain in tree.domains
    ]


def render_finding_row(
    finding: Finding, number_by_name: Mapping[str, int], *, more_ends: Sequence[PortName] = ()
) -> dict[str, Any]:
    """Return a finding as the page lists it; `number` is -1 if the fabric lacks its device.

    Args:
        finding: any finding.
        number_by_name: the numbers of the devices.
        more_ends: ports of its cables that it does not name.
    """
    row = render_finding(finding)
    evidence = [port for port in (*finding.ends, *more_ends) if port.device]
    return {
        "kind": row["kind"],
        "severity": row["severity"],
        "device": show(finding.device, _MAX_NAME),
        "number": number_by_name.get(finding.device, -1),
        "port": show(finding.port or ""),
        "message": show(finding.message, _MAX_MESSAGE),
        "ports": list(dict.fromkeys(_show_port(port) for port in evidence)),
        "ends": [
            [number_by_name.get(port.device, -1), show(port.port or "")]
            for port in dict.fromkeys(evidence)
        ],
        "swap": [[_show_port(first), _show_port(second)] for first, second in finding.swap],
        "since": finding.since or "",
        "costs": describe_impact(finding.impact),
        "cables": finding.impact.cables or 0,
        "lostName": show(name_lost_switch(finding), _MAX_NAME),
    }


def _show_port(port: PortName) -> str:
    device = show(port.device, _MAX_NAME)
    return f"{device} port {show(port.port)}" if port.port else device
