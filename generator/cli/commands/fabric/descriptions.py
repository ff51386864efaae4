"""All that is known about one device, one port or one domain, as documents. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from topology.model.fabric import Fabric, FabricDevice, Link
from topology.model.facts import DeviceKind, Finding, render_finding
from topology.model.ids import Id
from topology.model.tree import TopologyTree
from topology.planes.plane import split_planes
from topology.planes.policy import PlanePolicy


@dataclass(frozen=True, slots=True)
class FabricDescriber:
    """A fabric, its tree and its findings."""

    fabric: Fabric
    tree: TopologyTree
    findings: Sequence[Finding]
    policies: Sequence[PlanePolicy] = ()
    """Rules that assign ports to planes."""

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
        planes = split_planes(self.fabric, self.policies).port_planes
        rows = []
        for number in numbers:
            port, plane = self.fabric.ports[number], planes.get(number)
            row = {
                "name": port.name,
                "medium": port.medium.value,
                "state": port.state.value,
                "rateBps": port.rate_bps,
                "plane": plane.plane if plane else None,
                "links": [self._render_link(link, number) for link in links.get(number, ())],
            }
            rows.append(row)
        return rows

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
