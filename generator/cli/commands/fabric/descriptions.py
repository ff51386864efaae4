"""All that is known about one device, one port or one domain, as documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np

from generator.cli.commands.fabric.running_jobs import NodesByGang, list_jobs
from topology.model.fabric import Fabric, FabricDevice, Link, columns_of
from topology.model.fabric_columns import Flags, name_codes
from topology.model.facts import DeviceKind, Finding, render_finding
from topology.model.ids import Id, natural_key
from topology.model.tree import TopologyTree
from topology.planes.plane import PlaneSplit

_MIN_RAILS: Final = 2


@dataclass(frozen=True, slots=True)
class FabricDescriber:
    """A fabric, its tree and its findings."""

    split: PlaneSplit
    """The fabric, and the planes of its ports."""
    tree: TopologyTree
    findings: Sequence[Finding]
    gangs: NodesByGang | None = None
    """The nodes of each gang; None: unknown."""

    @property
    def fabric(self) -> Fabric:
        """All devices, ports and links."""
        return self.split.fabric

    def find_device(self, name: str, *, is_switch: bool) -> int | None:
        """Return the number of a host or a switch by its name, its node, or one of its ids."""
        hosts = {DeviceKind.HOST, DeviceKind.UNKNOWN}
        candidates = [
            index
            for index, device in enumerate(self.fabric.devices)
            if (device.kind not in hosts if is_switch else device.kind in hosts)
        ]
        rows = self.fabric.devices
        named = [index for index in candidates if name in {rows[index].name, rows[index].node}]
        wanted = name.lower().removeprefix("0x")
        with_id = (
            index
            for index in candidates
            if any(row.value.lower().removeprefix("0x") == wanted for row in rows[index].ids)
        )
        return named[0] if named else next(with_id, None)

    def describe_device(self, device: int) -> dict[str, Any]:
        """Return a device: its ids, domains, ports with the other end of each cable, findings."""
        row = self.fabric.devices[device]
        home = self._home_of(row)
        unplaced = [one.reason for one in self.tree.unplaced if one.node in {row.name, row.node}]
        return {
            "name": row.name,
            "kind": row.kind.value,
            "node": row.node,
            "ids": [_render_id(one) for one in row.ids],
            "domains": [] if home is None else self._render_tiers(home),
            "unplaced": unplaced[0] if unplaced else None,
            "jobs": self._list_jobs(self._list_nodes_at(device)),
            "ports": self._describe_ports(device),
            "findings": self._render_findings({row.name, row.node or row.name}),
        }

    def describe_port(self, device: int, port: str) -> dict[str, Any] | None:
        """Return a port of a device and its findings. None if the device has no such port."""
        row = self.fabric.devices[device]
        ports = [one for one in self._describe_ports(device) if one["name"] == port]
        if not ports:
            return None
        findings = [
            render_finding(finding) for finding in self.findings if (row.name, port) in finding.ends
        ]
        return {"device": row.name, **ports[0], "findings": findings}

    def describe_domain(self, name: str) -> dict[str, Any] | None:
        """Return a domain with all its nodes; None if the tree has no such domain."""
        names = [row.name for row in self.tree.domains]
        if name not in names:
            return None
        number = names.index(name)
        domain = self.tree.domains[number]
        nodes = self.tree.nodes_of(domain)
        inside = (
            row
            for row in self.tree.domains
            if domain.start <= row.start and row.stop <= domain.stop and row.tier <= domain.tier
        )
        switches = set(chain.from_iterable(row.switches for row in inside))
        return {
            "name": domain.name,
            "tier": self.tree.tiers[domain.tier - 1],
            "margin": domain.margin,
            "parents": self._render_tiers(number)[1:],
            "children": [self.tree.domains[child].name for child in domain.children],
            "nodes": list(nodes),
            "switches": list(domain.switches),
            "jobs": self._list_jobs(nodes),
            "findings": self._render_findings({*nodes, *switches}),
        }

    def _home_of(self, device: FabricDevice) -> int | None:
        """Return the lowest domain of a node, or the domain that a switch connects."""
        node = device.node or device.name
        numbered = enumerate(self.tree.domains)
        homes = (n for n, row in numbered if node in row.nodes or device.name in row.switches)
        return next(homes, None)

    def _render_tiers(self, number: int) -> list[dict[str, Any]]:
        """Return a domain and those above it, lowest first."""
        rows = [self.tree.domains[index] for index in self.tree.with_ancestors(number)]
        return [
            {"tier": self.tree.tiers[row.tier - 1], "name": row.name, "margin": row.margin}
            for row in rows
        ]

    def _render_findings(self, names: set[str]) -> list[dict[str, Any]]:
        return [
            render_finding(finding)
            for finding in self.findings
            if finding.device in names or any(end.device in names for end in finding.ends)
        ]

    def _describe_ports(self, device: int) -> list[dict[str, Any]]:
        numbers = [n for n, port in enumerate(self.fabric.ports) if port.device == device]
        links = self._links_of(set(numbers))
        planes = self.split.port_planes
        rails = number_rails(self.fabric, planes.is_in(self.tree.plane))
        rows = []
        for number in numbers:
            port, plane = self.fabric.ports[number], planes.get(number)
            row = {
                "name": port.name,
                "medium": port.medium.value,
                "state": port.state.value,
                "rateBps": port.rate_bps,
                "plane": plane.plane if plane else None,
                "rail": self._find_rail(number, links.get(number, ()), rails),
                "links": [self._render_link(link, number) for link in links.get(number, ())],
            }
            rows.append(row)
        return rows

    def _find_rail(self, port: int, links: Sequence[Link], rails: Mapping[int, int]) -> int | None:
        """Return the rail of a port of a host, or of the host at the other end of a cable."""
        peers = (link.b if link.a == port else link.a for link in links)
        return next((rails[end] for end in (port, *peers) if end in rails), None)

    def _list_jobs(self, nodes: Collection[str]) -> list[dict[str, Any]] | None:
        return None if self.gangs is None else list_jobs(self.gangs, nodes)

    def _list_nodes_at(self, device: int) -> list[str]:
        """Return the node that a host is, or the nodes with a cable to a switch."""
        ports = self.fabric.ports
        own = {n for n, port in enumerate(ports) if port.device == device}
        ends = ((link.a, link.b) for link in self.fabric.links)
        peers = {ports[b if a in own else a].device for a, b in ends if (a in own) != (b in own)}
        hosts = {DeviceKind.HOST, DeviceKind.UNKNOWN}
        rows = [self.fabric.devices[index] for index in sorted({device, *peers})]
        is_host = self.fabric.devices[device].kind in hosts
        chosen = [self.fabric.devices[device]] if is_host else rows
        return [row.node or row.name for row in chosen if row.kind in hosts]

    def _links_of(self, ports: set[int]) -> dict[int, list[Link]]:
        found: dict[int, list[Link]] = {}
        for link in self.fabric.links:
            for end in (link.a, link.b):
                if end in ports:
                    found.setdefault(end, []).append(link)
        return found

    def _render_link(self, link: Link, port: int) -> dict[str, Any]:
        peer = self.fabric.port_name(link.b if link.a == port else link.a)
        return {
            "device": peer.device,
            "port": peer.port,
            "rateBps": link.rate_bps,
            "oneSided": link.is_one_sided,
            "disputed": link.is_disputed,
        }


def _render_id(one: Id) -> dict[str, str]:
    return {"type": one.kind.value, "value": one.value}


def number_rails(fabric: Fabric, is_in_plane: Flags) -> dict[int, int]:
    """Return the rail of each port of a plane: the number of its name among those of most hosts.

    A fabric whose hosts have one port each, or share no names of ports, has no rails.

    Args:
        fabric: the ports.
        is_in_plane: one flag per port: whether a host has it in the plane.
    """
    ports = np.flatnonzero(is_in_plane)
    codes, texts = name_codes(columns_of(fabric).port_names, ports)
    num_hosts = len(np.unique(columns_of(fabric).port_devices[ports]))
    counts = np.bincount(codes, minlength=len(texts)).tolist()
    usual = [text for text, count in zip(texts, counts, strict=True) if 2 * count >= num_hosts]
    if len(usual) < _MIN_RAILS:
        return {}
    rail_of = {text: number for number, text in enumerate(sorted(usual, key=natural_key), 1)}
    named = zip(ports.tolist(), codes.tolist(), strict=True)
    return {port: rail_of[texts[code]] for port, code in named if texts[code] in rail_of}
