"""Switches that earlier generations had: which of them are gone, by name. Pure.

A switch is gone if no port of it has a link, and most of the devices that it was cabled to are
still there, with the ports free. A switch whose ports are used again was replaced, and one that is
gone together with its neighbors was taken down. A leaf that is gone together with its hosts is a
rack that was taken down or switched off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.findings.usual_ports import LinkedPorts
from topology.model.fabric import Fabric
from topology.model.facts import Finding, FindingKind, PortName, Severity
from topology.model.name_ranges import fold_texts
from topology.model.tree import TopologyTree
from topology.planes.plane import Plane

_NO_TREE: Final = TopologyTree("", (), (), ())


class _SwitchCables(NamedTuple):
    """The cables of the switches of a plane, without the rest of its fabric."""

    devices: Sequence[str]
    switches: Collection[str]
    ends: NDArray[np.int32]
    """Three rows, one entry per end at a switch: the switch, and the device and port code at the
    other end."""
    ports: Sequence[str]
    """The names of ports by code."""

    def list_ends(self, switches: Collection[str]) -> Mapping[str, list[PortName]]:
        """Return the ports that switches were cabled to."""
        is_asked = np.array([name in switches for name in self.devices], np.bool_)
        found: dict[str, list[PortName]] = defaultdict(list)
        for switch, device, port in self.ends[:, is_asked[self.ends[0]]].T.tolist():
            found[self.devices[switch]].append(PortName(self.devices[device], self.ports[port]))
        return found


class KnownSwitches:
    """The switches of the last generation, and those that were lost before it."""

    def __init__(self, tree: TopologyTree = _NO_TREE, findings: Iterable[Finding] = ()) -> None:
        """Begin with the history of another process.

        Args:
            tree: the tree of the last generation.
            findings: the findings of the last generation.
        """
        self._tree = tree
        self._cables: _SwitchCables | None = None
        self._lost: Mapping[str, Sequence[PortName]] = {
            finding.device: finding.ports
            for finding in findings
            if finding.kind is FindingKind.LOST_SWITCH and finding.port is None
        }

    def name_lost(
        self, fabric: Fabric, plane: Plane, findings: Iterable[Finding]
    ) -> tuple[Finding, ...]:
        """Return the findings of a new generation with the lost switches by their names.

        The switches of the fabric are remembered.

        Args:
            fabric: the new fabric.
            plane: the plane of the tree.
            findings: the findings of the tree; symmetry shows lost switches without names.
        """
        findings = tuple(findings)
        unnamed = [row for row in findings if row.kind is FindingKind.LOST_SWITCH]
        present = _Present(fabric)
        known = self._list_known()
        gone = self._find_gone(present.switches, unnamed)
        lost = {
            name: present.list_free(ends, known) for name, ends in {**gone, **self._lost}.items()
        }
        self._lost = {
            name: ends for name, ends in lost.items() if ends and name not in present.switches
        }
        self._cables, self._tree = _copy_cables(fabric, plane), _NO_TREE
        named = {end for ends in self._lost.values() for end in ends if end.port}
        return (
            *(finding for finding in findings if finding.kind is not FindingKind.LOST_SWITCH),
            *(_build_finding(name, ends) for name, ends in sorted(self._lost.items())),
            *(finding for finding in unnamed if named.isdisjoint(finding.ports)),
        )

    def _list_known(self) -> Collection[str]:
        """Return the names of the switches of the last generation."""
        if self._cables is not None:
            return self._cables.switches
        return {switch for domain in self._tree.domains for switch in domain.switches}

    def _find_gone(
        self, present: Collection[str], unnamed: Sequence[Finding]
    ) -> Mapping[str, Sequence[PortName]]:
        """Return, for each known switch that is not present, the ports that it was cabled to.

        If most of them are gone, this is another input, and not a loss.
        """
        known = self._list_known()
        gone = frozenset(known) - frozenset(present)
        if not gone or 2 * len(gone) > len(known):
            return {}
        if self._cables is not None:
            return self._cables.list_ends(gone)
        by_tree = _guess_ends(self._tree, unnamed)
        return {name: by_tree[name] for name in gone}


class _Present:
    """What is in a fabric."""

    def __init__(self, fabric: Fabric) -> None:
        columns = fabric.columns
        linked = np.concatenate([columns.links.a, columns.links.b])
        devices = np.unique(columns.port_devices[linked])
        self.switches = frozenset(columns.names[device] for device in devices.tolist())
        """Devices with links."""
        self._number_by_name = {name: number for number, name in enumerate(columns.names)}
        self._linked = LinkedPorts(fabric)
        is_node = np.array([node is not None for node in columns.nodes], np.bool_)
        has_report = np.array([device.has_report for device in fabric.devices], np.bool_)
        # Where most nodes report, one that does not is off. Elsewhere only the node list tells.
        says_off = 2 * np.count_nonzero(is_node & has_report) > np.count_nonzero(is_node)
        self._is_on = has_report | ~is_node if says_off else np.ones(len(is_node), np.bool_)

    def list_free(
        self, ends: Sequence[PortName], switches: Collection[str]
    ) -> tuple[PortName, ...]:
        """Return which of the ports are free; none if most devices are gone or ports are used.

        Args:
            ends: the ports that a switch was cabled to.
            switches: the known switches. If an end is at a host, most hosts must be there.
        """
        numbers = self._number_by_name
        devices = {end.device for end in ends}
        judged = {name for name in devices if name not in switches} or devices
        num_on = sum(name in numbers and self._is_on[numbers[name]] for name in judged)
        if 2 * num_on < len(judged):
            return ()
        there = [end for end in ends if end.device in numbers]
        free = [
            end for end in there if end.port not in self._linked.list_names(numbers[end.device])
        ]
        return tuple(free) if 2 * len(free) >= len(there) else ()


def _copy_cables(fabric: Fabric, plane: Plane) -> _SwitchCables:
    columns = fabric.columns
    hosts, switches = plane.host_edges.columns, plane.switch_edges.columns
    near = np.concatenate([hosts.b, switches.a, switches.b])
    far = np.concatenate([hosts.a, switches.b, switches.a])
    codes, texts = columns.port_names.code(
        np.concatenate([hosts.a_port, switches.b_port, switches.a_port])
    )
    return _SwitchCables(
        tuple(map(str, columns.names)),
        frozenset(str(columns.names[switch]) for switch in plane.switches),
        np.stack((near, far, codes)).astype(np.int32),
        tuple(map(str, texts)),
    )


def _guess_ends(tree: TopologyTree, unnamed: Sequence[Finding]) -> Mapping[str, Sequence[PortName]]:
    """Return the likely cable ends of each switch of a tree, which has no cables.

    These are the devices below its domain, with empty port names. If exactly one unnamed finding
    about a lost switch lies in the domain, they are the ports of that finding.
    """
    known: dict[str, Sequence[PortName]] = {}
    for domain in tree.domains:
        below = {*domain.nodes}
        for child in domain.children:
            below.update(tree.domains[child].switches)
        shown = [row for row in unnamed if row.ports and row.device in below]
        ends = shown[0].ports if len(shown) == 1 else [PortName(name, "") for name in sorted(below)]
        known.update(dict.fromkeys(domain.switches, tuple(ends)))
    return known


def _build_finding(name: str, ends: Sequence[PortName]) -> Finding:
    devices = list(dict.fromkeys(end.device for end in ends))
    return Finding(
        kind=FindingKind.LOST_SWITCH,
        device=name,
        port=None,
        severity=Severity.ERROR,
        message=(
            f"{name} is gone, and with it the cables to {fold_texts(devices)} ({len(devices)} "
            "devices). Check its power. If it was removed on purpose, silence this finding."
        ),
        ports=tuple(ends),
    )
