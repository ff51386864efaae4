"""Resolve the port lines of a sweep that the other node does not confirm, one by one.

A line is missing in the other node's record, or that record names another port. The rules are
those of `claim_join`: the far port is identified by its GUID, else by its name, else by the single
port that hears this one. If none of these applies, a port is added that only this end knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from topology.join.port_numbers import port_keys, sort_ports
from topology.join.sweep_devices import JoinedSweep
from topology.model.fabric_columns import Index
from topology.sources.ibnetdiscover.columns import HCA, NO_GUID, SweepColumns
from topology.sources.infiniband.node_names import host_name

_Key: TypeAlias = tuple[str, str]


class PortLines(NamedTuple):
    """Port numbers and port lines of a sweep; one entry per port unless stated otherwise."""

    lines: Index
    """The line of the port; -1 if only a report describes it."""
    number: Index
    """The port, one entry per line."""
    nodes: Index
    """The node of the port."""
    devices: Index
    """The device of the port."""
    device_of_node: Index
    """The device, one entry per node."""
    positions: Index
    """The position of the line of the port in the order of claims."""


class AddedPort(NamedTuple):
    """A port that only its far end reports."""

    device: int
    name: str


def place_unmatched(
    sweep: SweepColumns, joined: JoinedSweep, ports: PortLines, far: Index
) -> list[AddedPort]:
    """Fill in the far ends that are -1 although the port hears another port.

    Args:
        sweep: all nodes.
        joined: the devices of the sweep.
        ports: the ports of the sweep.
        far: the port that each port hears; changed in place.

    Returns:
        The added ports; they are numbered after all others.
    """
    is_heard = (sweep.columns.peer_letters[ports.lines] != NO_GUID) & (ports.lines >= 0)
    unmatched = np.flatnonzero((far < 0) & is_heard)
    if not len(unmatched):
        return []
    placer = _UnmatchedPlacer(sweep, joined, ports, far)
    ordered = sorted(unmatched.tolist(), key=placer.sort_key)
    unplaced_ports = [port for port in ordered if not placer.find(port)]
    answers = {port: placer.find_answers(port) for port in unplaced_ports}
    for port in unplaced_ports:
        placer.place(port, answers[port])
    return placer.added


@dataclass(slots=True)
class _UnmatchedPlacer:
    sweep: SweepColumns
    joined: JoinedSweep
    ports: PortLines
    far: Index
    added: list[AddedPort] = field(default_factory=list)
    ports_by_key: dict[int, dict[_Key, int]] = field(default_factory=dict)
    """By device: key to port, -1 if several ports share the key."""

    def sort_key(self, port: int) -> tuple[int, int]:
        """Return the sort key of a port: the position of its device's claim, then its line's."""
        device = self.ports.devices.item(port)
        return self.joined.claim_order[device], self.ports.positions.item(port)

    def find(self, port: int) -> bool:
        """Fill in the far end if its keys identify a port; return whether they do."""
        device, keys, _ = self._far_keys(port)
        port_by_key = self._port_by_key(device)
        far_port = next((port_by_key[key] for key in keys if port_by_key.get(key, -1) >= 0), None)
        if far_port is not None:
            self.far[port] = far_port
        return far_port is not None

    def find_answers(self, port: int) -> Index:
        """Return the ports of the peer that hear this port."""
        device, _, _ = self._far_keys(port)
        hearing = np.flatnonzero(self.far == port)
        answers: Index = hearing[self.ports.devices[hearing] == device]
        return answers

    def place(self, port: int, answers: Index) -> None:
        """Fill in the far end: the single port that hears this one, else an added port."""
        device, keys, name = self._far_keys(port)
        if self.find(port):
            return
        if len(answers) == 1:
            self.far[port] = answers[0]
            return
        self.added.append(AddedPort(device, name))
        self.far[port] = len(self.far) + len(self.added) - 1
        self._add_keys(self._port_by_key(device), int(self.far[port]), keys)

    def _far_keys(self, port: int) -> tuple[int, list[_Key], str]:
        """Return the device that a port hears, the keys of the far port, and its name."""
        columns, line = self.sweep.columns, int(self.ports.lines[port])
        peer = int(np.searchsorted(columns.guids, columns.peers[line]))
        guid, number = f"{columns.peers[line]:016x}", str(columns.far_numbers[line])
        name = number
        if columns.peer_letters[line] == HCA:
            text = self.sweep.texts[int(columns.peer_starts[line]), int(columns.peer_stops[line])]
            name = f"{host_name(text)[1] or guid}/{number}"
        keys = list(_keys((guid, number), int(columns.far_guids[line]), name))
        return int(self.ports.device_of_node[peer]), keys, name

    def _port_by_key(self, device: int) -> dict[_Key, int]:
        port_by_key = self.ports_by_key.get(device)
        if port_by_key is None:
            port_by_key = self.ports_by_key[device] = {}
            for port, keys in self._reported_ports(device):
                self._add_keys(port_by_key, port, keys)
            for node in self.joined.devices[device].parts:
                for port, keys in self._node_ports(node):
                    self._add_keys(port_by_key, port, keys)
        return port_by_key

    def _reported_ports(self, device: int) -> Iterator[tuple[int, list[_Key]]]:
        """Yield the ports in a device's report, which come first, with their keys."""
        report = self.joined.devices[device].report
        if report is not None:
            first = int(np.searchsorted(self.ports.devices, device))
            for number, port in enumerate(sort_ports(report.device.ports), first):
                yield number, port_keys(port.ids, port.name)

    def _node_ports(self, node: int) -> Iterator[tuple[int, list[_Key]]]:
        columns = self.sweep.columns
        guid = f"{columns.guids[node]:016x}"
        start = int(self.sweep.row_starts[node])
        for line in range(start, start + int(columns.num_rows[node])):
            number = str(columns.numbers[line])
            label = self.joined.labels.of(node) or guid
            name = f"{label}/{number}" if columns.letters[node] == HCA else number
            keys = _keys((guid, number), int(columns.own_guids[line]), name)
            yield int(self.ports.number[line]), list(keys)

    def _add_keys(self, port_by_key: dict[_Key, int], port: int, keys: list[_Key]) -> None:
        for key in keys:
            port_by_key[key] = port if port_by_key.get(key, port) == port else -1


def _keys(end: tuple[str, str], guid: int, name: str) -> Iterator[_Key]:
    """Yield the keys of a port within its device, strongest first."""
    yield "guid", "/".join(end)
    if guid != NO_GUID:
        yield "port-guid", f"{guid:016x}"
    yield "name", name
