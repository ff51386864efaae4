"""Planned devices that are gone: no report shows them, and the other ends have no link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from topology.cabling.plan_names import PlanPorts, UnknownReason
from topology.model.cabling_plan import PlannedCable
from topology.model.fabric import KIND_CODES, MEDIUM_CODES, STATE_CODES, Fabric
from topology.model.facts import DeviceKind, Medium, PortName, PortState

_SEEN_NOWHERE: Final = {UnknownReason.UNSEEN, UnknownReason.SILENT}
"""A silent device is only in a list of nodes."""
_MIN_ALL: Final = 2
"""Cables without a link if no other end has one: a single cable may be unplugged."""
_MIN_MOST: Final = 3
"""Cables without a link if some other end has one."""


class LostDevice(NamedTuple):
    """A planned device that no report shows."""

    name: str
    """As the plan spells it first."""
    cables: tuple[PlannedCable, ...]
    """Its cables, without those whose other end has a link to another device."""
    num_dark: int
    """How many other ends report that they have no link."""


class LostDeviceSearch:
    """Finds devices by what the other ends of their planned cables report."""

    def __init__(
        self,
        fabric: Fabric,
        ports: PlanPorts,
        peer_by_port: Mapping[int, int],
        planned: Iterable[int],
    ) -> None:
        """Index the devices that list all their ports.

        Args:
            fabric: the states of the ports.
            ports: numbers the ports.
            peer_by_port: the observed cables.
            planned: the ports that the plan names on known devices.
        """
        self._fabric, self._ports, self._peer_by_port = fabric, ports, peer_by_port
        columns = fabric.columns
        in_sweep = {
            *columns.port_devices[columns.media == MEDIUM_CODES[Medium.INFINIBAND]].tolist()
        }
        alike = {ports.devices[port] for port in planned if ports.is_seen(port)}
        self._swept: Collection[int] = in_sweep & alike
        """Devices with InfiniBand ports whose names are those of the plan."""

    def find(self, unknown: Iterable[PlannedCable]) -> list[LostDevice]:
        """Return the lost devices of cables that cannot be compared, in the order of the plan.

        Each cable is in one device at most.
        """
        own: dict[str, list[tuple[PortName, PortName, PlannedCable]]] = defaultdict(list)
        for cable in sorted(unknown, key=lambda row: row.line):
            for near, far in (cable.ends, cable.ends[::-1]):
                if self._ports.find_device(near.device) in _SEEN_NOWHERE:
                    own[self._ports.name_key(near.device)].append((near, far, cable))
        lost: list[LostDevice] = []
        taken: set[PlannedCable] = set()
        for rows in own.values():
            far_ports = [self._find_far_port(far) for _, far, _ in rows]
            num_known = sum(port is not None for port in far_ports)
            num_dark = sum(port is not None and self._is_dark(port) for port in far_ports)
            is_lost = (
                num_dark >= _MIN_ALL
                if num_dark == num_known
                else (num_dark >= _MIN_MOST and 2 * num_dark > num_known)
            )
            cables = tuple(
                cable
                for (_, _, cable), port in zip(rows, far_ports, strict=True)
                if port not in self._peer_by_port and cable not in taken
            )
            if is_lost:
                taken.update(cables)
                lost.append(LostDevice(rows[0][0].device, cables, num_dark))
        return lost

    def _find_far_port(self, end: PortName) -> int | None:
        device = self._ports.find_device(end.device)
        return None if isinstance(device, UnknownReason) else self._ports.find_port(device, end)

    def _is_dark(self, port: int) -> bool:
        """Return whether the owner of a port reports that it has no link.

        A sweep lists only the linked ports of a switch. Other sources may leave out a port for
        other reasons.
        """
        device, columns = self._ports.devices[port], self._fabric.columns
        if not self._fabric.devices[device].is_reporting or port in self._peer_by_port:
            return False
        if self._ports.is_seen(port):
            return bool(columns.states[port] == STATE_CODES[PortState.DOWN])
        return (
            bool(columns.kinds[device] == KIND_CODES[DeviceKind.SWITCH]) and device in self._swept
        )
