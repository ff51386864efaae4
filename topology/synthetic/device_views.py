"""A damaged fabric as its devices see it: the far end of each port, and its ids."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from topology.model.facts import PortName
from topology.model.ids import Id, IdKind
from topology.synthetic.faults import DamagedFabric
from topology.synthetic.wiring import Host, Nic, Switch, switch_port

FIRST_SUBNET = 0xFE80_0000_0000_0000


class SweptPortNames(NamedTuple):
    """The ids and names of a port in a sweep, the same from both ends of its cable."""

    node_ids: tuple[Id, ...]
    port_ids: tuple[Id, ...]
    port_name: str


class DeviceViews:
    """A damaged fabric, indexed by port."""

    def __init__(self, damaged: DamagedFabric) -> None:
        """Index the cables by both of their ends."""
        self.damaged = damaged
        self.medium = damaged.wiring.spec.medium
        self.rate_bps = damaged.wiring.spec.rate_bps
        self.hosts = {host.name: host for host in damaged.wiring.hosts}
        self.switches = {
            switch.name: switch
            for switch in damaged.wiring.switches
            if switch.name not in damaged.lost_switches
        }
        self._sweep_names: dict[PortName, SweptPortNames] = {}
        self._far = dict(damaged.cables) | {cable.high: cable.low for cable in damaged.cables}

    def ports_of(self, switch: Switch) -> list[str]:
        """Return the names of a switch's ports, with or without a cable."""
        return [switch_port(self.medium, number + 1) for number in range(switch.num_ports)]

    def far_end(self, device: str, port: str) -> PortName | None:
        """Return the port at the other end of the cable, None without a cable."""
        return self._far.get(PortName(device, port))

    def chassis_mac(self, device: str) -> str:
        """Return the MAC that a device sends as its chassis id; a host sends that of NIC 0."""
        host = self.hosts.get(device)
        return host.nics[0].mac if host else self.switches[device].mac

    def sweep_names(self, port: PortName) -> SweptPortNames:
        """Return the ids and names of a port in a sweep.

        The value is built once per port, and both ends of its cable refer to it.
        """
        names = self._sweep_names.get(port)
        return names or self._sweep_names.setdefault(port, self._build_sweep_names(port))

    def _build_sweep_names(self, port: PortName) -> SweptPortNames:
        nic = self.nics.get(port)
        if nic is None:
            guid = self.switches[port.device].guid
            port_ids = (Id(IdKind.NODE_GUID, guid, port.port),)
            return SweptPortNames((Id(IdKind.NODE_GUID, guid),), port_ids, port.port)
        return SweptPortNames((Id(IdKind.NODE_GUID, nic.guid),), hca_port_ids(nic), port.port)

    @cached_property
    def nics(self) -> dict[PortName, Nic]:
        """The NIC of every host port."""
        return {
            PortName(host.name, nic.port): nic for host in self.hosts.values() for nic in host.nics
        }


def subnet_of(plane: int) -> str:
    """Return the InfiniBand subnet prefix of a plane, 16 hex digits."""
    return f"{FIRST_SUBNET + plane:016x}"


def hca_description(host: Host, nic: Nic) -> str:
    """Return the node description of an HCA, which the driver sets, with or without an agent."""
    return f"{host.name} {nic.device}"


def hca_port_ids(nic: Nic) -> tuple[Id, ...]:
    """Return the ids of an HCA's only port."""
    return (Id(IdKind.NODE_GUID, nic.guid, "1"), Id(IdKind.PORT_GUID, nic.guid))
