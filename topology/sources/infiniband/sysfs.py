"""`/sys/class/infiniband`: the node's own HCAs, which identify it on InfiniBand.

Pure: the caller reads the files. Skips virtual functions and management devices (`smi*`), which
have no cables. The cable of a RoCE port belongs to its network interface; this module returns the
facts that identify that interface.

Source: Documentation/ABI/stable/sysfs-class-infiniband of the kernel; make_default_gid in
drivers/infiniband/core/cache.c for the default GID of RoCE.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

from topology.model.errors import ParseError, show
from topology.model.facts import Device, DeviceKind, Medium, Port, PortState
from topology.model.ids import Id, IdKind, natural_key, parse_guid, parse_mac

_GUID: Final = re.compile(r"[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}")
_GID: Final = re.compile(r"((?:[0-9a-fA-F]{4}:){4})((?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4})")
_RATE: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec\b")
_PHYSICAL_STATE: Final = re.compile(r"([0-9]): ?\w*")
_LINK_UP: Final = "5"
_STATE: Final = re.compile(r"([0-5]): ?\w*")
_STATES: Final = {
    "1": PortState.DOWN,
    "2": PortState.UP,  # INIT: a cable, but no subnet manager yet
    "3": PortState.UP,
    "4": PortState.UP,
    "5": PortState.UP,  # ACTIVE_DEFER: a short loss of the link, which may recover
}
_PORT_FILE: Final = re.compile(r"ports/([0-9]{1,3})/")
_LINK_LOCAL_MAC: Final = re.compile(
    r"fe80(?::0000){3}:([0-9a-f]{4}):([0-9a-f]{2})ff:fe([0-9a-f]{2}):([0-9a-f]{4})"
)
_NO_LINK_LAYER: Final = frozenset({"Unknown", "Unspecified"})
"""What the kernel prints for a device that has neither, in `link_layer_show`; the second word is
that of `ibv_devinfo`."""
_UNIVERSAL: Final = 0x02
"""The bit of the first byte that differs between a MAC and its interface id."""


class RocePort(NamedTuple):
    """A port of an RDMA device over Ethernet; its cable is that of its network interface."""

    port: Port
    """Named after the RDMA device, with the address that its default GID has."""
    image_guid: str | None
    """System image GUID: functions of one card have the same."""
    interfaces: tuple[str, ...]
    """The interfaces of the same PCI function, in this network namespace."""
    gid_interface: str
    """The interface of the default GID, in any network namespace; empty if unknown."""


@dataclass(frozen=True, slots=True)
class IbSysfs:
    """The HCAs of a node."""

    devices: tuple[Device, ...] = ()
    """One host without a name; empty if the node has no HCA."""
    errors: tuple[ParseError, ...] = ()
    roce_ports: tuple[RocePort, ...] = ()
    cloud_devices: tuple[str, ...] = ()
    """RDMA devices without a link layer, such as EFA of Amazon: they show no cable."""


def parse_ib_sysfs(files: Mapping[str, str], *, source: str = "") -> IbSysfs:
    """Return the HCAs in `files`. Skips a field with bad content, with an error.

    A missing file is not an error.

    Args:
        files: contents by path below /sys/class/infiniband, such as `mlx5_0/ports/1/rate`.
            `NAME/device/net` lists interfaces, one per line; `NAME/device/physfn` marks a VF.
        source: prefix of the paths in errors.
    """
    reader = _SysfsParser(files, source)
    names = sorted({path.partition("/")[0] for path in files}, key=natural_key)
    hcas = [
        name
        for name in names
        if name and not name.startswith("smi") and f"{name}/device/physfn" not in files
    ]
    if not hcas:
        return IbSysfs()
    ids: set[Id] = set()
    ports: list[Port] = []
    roce_ports: list[RocePort] = []
    for name in hcas:
        ids.update(reader.device_ids(name))
        ports.extend(reader.ports(name))
        roce_ports.extend(reader.roce_ports(name))
    host = Device(
        kind=DeviceKind.HOST,
        name="",
        ids=tuple(sorted(ids)),
        ports=tuple(sorted(ports, key=lambda port: (natural_key(port.name), port.name))),
    )
    clouds = tuple(name for name in hcas if reader.is_cloud_device(name))
    return IbSysfs((host,), tuple(reader.errors), tuple(roce_ports), clouds)


class _SysfsParser:
    """Reads single fields and collects errors for bad content."""

    def __init__(self, files: Mapping[str, str], source: str) -> None:
        self._files = files
        self._source = source
        self._numbers: dict[str, set[int]] = defaultdict(set)
        for path in files:
            name, _, file_name = path.partition("/")
            match = _PORT_FILE.match(file_name)
            if match:
                self._numbers[name].add(int(match[1]))
        self.errors: list[ParseError] = []

    def device_ids(self, name: str) -> Iterator[Id]:
        guids = (
            (IdKind.NODE_GUID, self._guid(f"{name}/node_guid")),
            (IdKind.SYSTEM_IMAGE_GUID, self._guid(f"{name}/sys_image_guid")),
        )
        yield from (Id(kind, guid) for kind, guid in guids if guid)

    def is_cloud_device(self, name: str) -> bool:
        """Return whether a port of the device has no link layer."""
        return any(
            self._read_link_layer(name, number) in _NO_LINK_LAYER
            for number in self._port_numbers(name)
        )

    def ports(self, name: str) -> Iterator[Port]:
        """Yield the InfiniBand ports of one HCA."""
        node_guid = parse_guid(self._files.get(f"{name}/node_guid", ""))
        for number in self._port_numbers(name):
            if self._link_layer(name, number) is Medium.INFINIBAND:
                yield self._port(name, number, node_guid)

    def roce_ports(self, name: str) -> Iterator[RocePort]:
        """Yield the Ethernet ports of one HCA."""
        image = parse_guid(self._files.get(f"{name}/sys_image_guid", ""))
        interfaces = tuple(self._files.get(f"{name}/device/net", "").split())
        for number in self._port_numbers(name):
            folder = f"{name}/ports/{number}"
            if self._files.get(f"{folder}/link_layer", "").strip() == "Ethernet":
                gid_interface = self._files.get(f"{folder}/gid_attrs/ndevs/0", "").strip()
                port = self._roce_port(name, number)
                yield RocePort(port, image, interfaces, gid_interface)

    def _roce_port(self, name: str, number: int) -> Port:
        folder = f"{name}/ports/{number}"
        state = self._state(folder)
        gid = self._match(f"{folder}/gids/0", _GID)
        mac = _find_mac(gid[1] + gid[2]) if gid else None
        return Port(
            name=f"{name}/{number}",
            ids=(Id(IdKind.MAC, mac),) if mac else (),
            medium=Medium.ETHERNET,
            state=state,
            rate_bps=self._rate_bps(folder) if state is PortState.UP else None,
            rdma_device=name,
        )

    def _port_numbers(self, name: str) -> list[int]:
        return sorted(self._numbers.get(name, ()))

    def _read_link_layer(self, name: str, number: int) -> str:
        """Return the text. Kernels before 2.6.37 support only InfiniBand and have no file."""
        return self._files.get(f"{name}/ports/{number}/link_layer", "InfiniBand").strip()

    def _link_layer(self, name: str, number: int) -> Medium | None:
        """Return the medium; None if the device has another one or none."""
        text = self._read_link_layer(name, number)
        if text in _NO_LINK_LAYER:
            return None
        if text not in {"InfiniBand", "Ethernet"}:
            self._error(f"{name}/ports/{number}/link_layer", text)
            return None
        return Medium.INFINIBAND if text == "InfiniBand" else Medium.ETHERNET

    def _port(self, name: str, number: int, node_guid: str | None) -> Port:
        folder = f"{name}/ports/{number}"
        state = self._state(folder)
        ids = []
        if node_guid:
            ids.append(Id(IdKind.NODE_GUID, node_guid, str(number)))
        gid = self._match(f"{folder}/gids/0", _GID)
        port_guid = parse_guid(gid[2]) if gid else None
        is_up = state is PortState.UP
        if port_guid:
            ids.append(Id(IdKind.PORT_GUID, port_guid))
        return Port(
            name=f"{name}/{number}",
            ids=tuple(ids),
            medium=Medium.INFINIBAND,
            state=state,
            rate_bps=self._rate_bps(folder) if is_up else None,
            rdma_device=name,
            # Without a link, the GID has the default subnet prefix, wherever the cable leads.
            subnet=parse_guid(gid[1]) if gid and is_up else None,
        )

    def _state(self, folder: str) -> PortState:
        """Return the state of the link: from the physical state or, without one, the logical."""
        physical = self._match(f"{folder}/phys_state", _PHYSICAL_STATE)
        if physical:
            return PortState.UP if physical[1] == _LINK_UP else PortState.DOWN
        logical = self._match(f"{folder}/state", _STATE)
        return _STATES.get(logical[1], PortState.UNKNOWN) if logical else PortState.UNKNOWN

    def _rate_bps(self, folder: str) -> int | None:
        """Return bits per second from `200 Gb/sec (2X NDR)` or `2.5 Gb/sec (1X SDR)`."""
        match = self._match(f"{folder}/rate", _RATE, is_prefix=True)
        return int(Decimal(match[1]) * 10**9) if match else None

    def _guid(self, path: str) -> str | None:
        match = self._match(path, _GUID)
        return parse_guid(match[0]) if match else None

    def _match(
        self, path: str, pattern: re.Pattern[str], *, is_prefix: bool = False
    ) -> re.Match[str] | None:
        """Match the content of a file; None if it is missing or bad. Bad content adds an error."""
        if path not in self._files:
            return None
        text = self._files[path].strip()
        match = pattern.match(text) if is_prefix else pattern.fullmatch(text)
        if match is None:
            self._error(path, text)
        return match

    def _error(self, path: str, text: str) -> None:
        place = "/".join(part for part in (self._source, show(path)) if part)
        self.errors.append(ParseError("unexpected content", source=place, excerpt=text))


def _find_mac(gid: str) -> str | None:
    """Return the MAC that the kernel made a default GID of (modified EUI-64); None for others."""
    match = _LINK_LOCAL_MAC.fullmatch(gid.lower())
    if match is None:
        return None
    digits = f"{int(match[1], 16) ^ (_UNIVERSAL << 8):04x}" + match[2] + match[3] + match[4]
    return parse_mac(f"{digits[:4]}.{digits[4:8]}.{digits[8:]}")
