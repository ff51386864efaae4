"""Port lines of a sweep whose far end the other node does not tell, one by one.

A line was lost there, or the other end speaks of another port. The rules are those of `fabric`:
known by its port's GUID, else by its name, else by the answer of the one port that names this
one; and if nothing tells, it is a port that only this end knows of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from topology.join.sweep_devices import JoinedSweep
from topology.model.fabric_columns import Index
from topology.sources.ibnetdiscover.columns import HCA, NO_GUID, SweepColumns
from topology.sources.infiniband.node_names import host_name

_Key: TypeAlias = tuple[str, str]


class PortLines(NamedTuple):
    """Where the port lines of a sweep went; one entry per port but for the last."""

    lines: Index
    number: Index
    """The reverse: port by line."""
    nodes: Index
    devices: Index
    device_of_node: Index


class AddedPort(NamedTuple):
    """A port that only its far end knows of."""

    device: int
    name: str


def place_unmatched(
    sweep: SweepColumns, joined: JoinedSweep, ports: PortLines, far: Index
) -> list[AddedPort]:
    """Fill in the far ends that are -1 although the port hears one.

    Args:
        sweep: all nodes.
        joined: its devices.
        ports: its ports.
        far: the port that each port hears; changed in place.

    Returns:
        The ports that had to be added; they are numbered after all others.
    """
    is_heard = sweep.columns.peer_letters[ports.lines] != NO_GUID
    strays = np.flatnonzero((far < 0) & is_heard)
    if not len(strays):
        return []
    placing = _UnmatchedPlacer(sweep, joined, ports, far)
    ordered = sorted(strays.tolist(), key=placing.sort_key)
    left = [at for at in ordered if not placing.find(at)]
    answers = {at: placing.find_answers(at) for at in left}
    for at in left:
        placing.place(at, answers[at])
    return placing.added


@dataclass(slots=True)
class _UnmatchedPlacer:
    sweep: SweepColumns
    joined: JoinedSweep
    ports: PortLines
    far: Index
    added: list[AddedPort] = field(default_factory=list)
    known: dict[int, dict[_Key, int]] = field(default_factory=dict)
    """By device: key to port, -1 where several share it."""

    def sort_key(self, at: int) -> tuple[int, int]:
        """Return when a port's turn is: in the order of devices' claims, then of their ports."""
        return self.joined.claim_order[int(self.ports.devices[at])], at

    def find(self, at: int) -> bool:
        """Fill in the far end where its keys tell it."""
        device, keys, _ = self._far_keys(at)
        known = self._known(device)
        found = next((known[key] for key in keys if known.get(key, -1) >= 0), None)
        if found is not None:
            self.far[at] = found
        return found is not None

    def find_answers(self, at: int) -> Index:
        """Return the ports of the peer that hear this port."""
        device, _, _ = self._far_keys(at)
        hearing = np.flatnonzero(self.far == at)
        answers: Index = hearing[self.ports.devices[hearing] == device]
        return answers

    def place(self, at: int, answers: Index) -> None:
        """Fill in the far end by its answer, else by a port that is added."""
        device, keys, name = self._far_keys(at)
        if self.find(at):
            return
        if len(answers) == 1:
            self.far[at] = answers[0]
            return
        self.added.append(AddedPort(device, name))
        self.far[at] = len(self.far) + len(self.added) - 1
        self._add_keys(self._known(device), int(self.far[at]), keys)

    def _far_keys(self, at: int) -> tuple[int, list[_Key], str]:
        """Return the device that a port hears, the keys of the port there, and its name."""
        found, line = self.sweep.columns, int(self.ports.lines[at])
        peer = int(np.searchsorted(found.guids, found.peers[line]))
        guid, number = f"{found.peers[line]:016x}", str(found.far_numbers[line])
        name = number
        if found.peer_letters[line] == HCA:
            text = self.sweep.texts[int(found.peer_starts[line]), int(found.peer_stops[line])]
            name = f"{host_name(text)[1] or guid}/{number}"
        keys = list(_keys((guid, number), int(found.far_guids[line]), name))
        return int(self.ports.device_of_node[peer]), keys, name

    def _known(self, device: int) -> dict[_Key, int]:
        known = self.known.get(device)
        if known is None:
            known = self.known[device] = {}
            for node in self.joined.devices[device].parts:
                for port, keys in self._own_ports(node):
                    self._add_keys(known, port, keys)
        return known

    def _own_ports(self, node: int) -> Iterator[tuple[int, list[_Key]]]:
        found = self.sweep.columns
        guid = f"{found.guids[node]:016x}"
        start = int(self.sweep.row_starts[node])
        for line in range(start, start + int(found.num_rows[node])):
            number = str(found.numbers[line])
            label = self.joined.labels.of(node) or guid
            name = f"{label}/{number}" if found.letters[node] == HCA else number
            keys = _keys((guid, number), int(found.own_guids[line]), name)
            yield int(self.ports.number[line]), list(keys)

    def _add_keys(self, known: dict[_Key, int], port: int, keys: list[_Key]) -> None:
        for key in keys:
            known[key] = port if known.get(key, port) == port else -1


def _keys(end: tuple[str, str], guid: int, name: str) -> Iterator[_Key]:
    """Yield what a port is known by within its device, strongest first."""
    yield "guid", "/".join(end)
    if guid != NO_GUID:
        yield "port-guid", f"{guid:016x}"
    yield "name", name
