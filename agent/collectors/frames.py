"""Neighbors from LLDP frames that the node's ports hear: for nodes where no lldpd answers.

scapy captures; it is GPL, hence an extra of its own, and this file alone imports it, when the
first port is opened. Frames are only ever received: the sockets used refuse to send. Reading
them is left to `topology.sources.lldp.lldpdu`.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.collectors.probe import CollectedFacts, Collector, SourceAbsent
from agent.node.command import Runner
from agent.node.frame_listener import PortSocket, ListenerSnapshot, Listener
from agent.node.sysfs import Sysfs
from agent.settings import AgentSettings
from topology.model.errors import show
from topology.model.facts import Device, Medium, Neighbor, Port, Source
from topology.model.ids import Id, IdKind
from topology.sources.lldp.lldpdu import ETHERTYPE, GROUPS
from topology.sources.lldp.neighbor_table import MAX_NEIGHBORS

if TYPE_CHECKING:
    from scapy.arch.linux import L2ListenSocket

log = logging.getLogger(__name__)

MAX_IDS: Final = 64
"""Of one neighbor: a frame has room for more management addresses than a report; the chassis id
sorts before them."""

_NO_SCAPY: Final = "scapy not found: install toponaut[agent-frames]"
_NO_PERMISSION: Final = "no right to capture frames: it takes CAP_NET_RAW"

# linux/if_packet.h, asm-generic/socket.h; Python has no names for these.
_SOL_PACKET: Final = 263
_ADD_MEMBERSHIP: Final = 1
_IGNORE_OUTGOING: Final = 23
_MULTICAST: Final = 0
_ATTACH_FILTER: Final = 26
_ALL_PROTOCOLS: Final = 3
# Classic BPF. The kernel takes the outer tag off before; another one may be left.
_PROGRAM: Final = (
    (0x28, 0, 0, 12),  # 0: load the EtherType
    (0x15, 3, 0, ETHERTYPE),  # LLDP: to 5
    (0x15, 0, 5, 0x8100),  # no tag: to 8
    (0x28, 0, 0, 16),  # load the EtherType behind the tag
    (0x15, 0, 3, ETHERTYPE),  # no LLDP: to 8
    (0x30, 0, 0, 0xFFFFF004),  # 5: load the packet type
    (0x15, 1, 0, 4),  # outgoing, so our own node's: to 8
    (0x06, 0, 0, 0xFFFF),  # keep it whole
    (0x06, 0, 0, 0),  # 8: drop it
)


def explain_absence(settings: AgentSettings, _runner: Runner) -> str | None:
    """Return why no frames can be heard, None when they can."""
    if settings.frames is None:
        return "not told to listen (--frames, --listen-for)"
    return SystemInterfaces(settings.sysfs_root).explain_refusal()


def restore(device: Device) -> CollectedFacts:
    """Return what frames once told, out of a report."""
    heard = (
        (port.name, tuple(one for one in port.neighbors if one.source is Source.LLDP))
        for port in device.ports
    )
    return CollectedFacts(
        ports=tuple(_port(name, neighbors) for name, neighbors in heard if neighbors)
    )


@dataclass(frozen=True, slots=True)
class FrameCollector:
    """What a round hears frames by."""

    listener: Listener
    """Kept from round to round."""
    ports: tuple[str, ...]
    """Names of this node's Ethernet ports."""
    listen_s: float
    """How long until everybody has been heard."""
    wait: Callable[[float], object] | None
    """Sleeps that long; None where a later round will tell."""

    @property
    def collector(self) -> Collector:
        """The collector of this round."""
        return Collector(self.collect, explain_absence, restore)

    def collect(self, _settings: AgentSettings, _runner: Runner) -> CollectedFacts:
        """Return what the ports hear, once they have listened for long enough.

        Raises:
            SourceAbsent: nothing can be heard on this node, or not yet.
        """
        self._listen()
        if not self.ports:
            return CollectedFacts(note="no network port to listen on")
        heard = self._await_snapshot()
        crowded = [
            f"{show(port)}: more than {MAX_NEIGHBORS} neighbors" for port in heard.crowded_ports
        ]
        return CollectedFacts(
            ports=tuple(_port(name, neighbors) for name, neighbors in heard.neighbors),
            errors=heard.errors,
            note="; ".join(crowded) if heard.neighbors else "no frame heard",
        )

    def _listen(self) -> None:
        refusal = self.listener.explain_refusal()
        if refusal:
            raise SourceAbsent(refusal)
        try:
            self.listener.listen(self.ports)
        except PermissionError as error:
            raise SourceAbsent(_NO_PERMISSION) from error

    def _await_snapshot(self) -> ListenerSnapshot:
        heard = self.listener.snapshot()
        if not heard.num_ports:
            raise SourceAbsent("none of the ports could be opened to listen on")
        missing_s = self.listen_s - heard.listened_s
        if missing_s <= 0:
            return heard
        if self.wait is None:
            raise SourceAbsent(f"listening; tells first after {self.listen_s:g} s")
        fields = {"num_ports": heard.num_ports, "duration_s": round(missing_s, 3)}
        log.info("listening for frames", extra=fields)
        self.wait(missing_s)
        return self.listener.snapshot()


def _port(name: str, neighbors: tuple[Neighbor, ...]) -> Port:
    kept = tuple(one._replace(device_ids=one.device_ids[:MAX_IDS]) for one in neighbors)
    return Port(name, (Id(IdKind.IFNAME, name),), medium=Medium.ETHERNET, neighbors=kept)


class SystemInterfaces:
    """The ports of this machine, heard through scapy."""

    def __init__(self, sysfs_root: Path) -> None:
        """Take where sysfs tells of links."""
        self._sysfs = Sysfs(sysfs_root)

    def explain_refusal(self) -> str | None:
        """Return why no port can be opened, None when they can."""
        if find_spec("scapy") is None:
            return _NO_SCAPY
        try:
            # Of no protocol, so it hears nothing: only whether it may be opened counts.
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
        except OSError as error:
            return _NO_PERMISSION if error.errno == errno.EPERM else f"no packet sockets: {error}"
        return None

    def index(self, port: str) -> int | None:
        """Return a port's index, None where there is none.

        One that sysfs numbers otherwise is another machine's, or of another network namespace.
        """
        told = self._sysfs.read_int(f"class/net/{port}/ifindex")
        with suppress(OSError):
            found = socket.if_nametoindex(port)
            return found if found == told else None
        return None

    def has_link(self, port: str) -> bool:
        """Return whether the carrier is there; a driver that does not tell counts as linked."""
        return self._sysfs.read_int(f"class/net/{port}/carrier") != 0

    def open(self, port: str) -> PortSocket:
        """Return an ear on a port.

        Raises:
            OSError: it cannot be opened; PermissionError without CAP_NET_RAW.
        """
        return _ScapySocket(_listen_socket(port), port)


class _ScapySocket:
    """A packet socket of scapy, which puts VLAN tags back that the kernel took off."""

    def __init__(self, opened: L2ListenSocket, port: str) -> None:
        self._socket = opened
        sock = opened.ins
        try:
            sock.settimeout(0)
            _attach_filter(sock)
            with suppress(OSError):  # Linux before 4.20 has it not; the filter drops them too
                sock.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
            _join_groups(sock, socket.if_nametoindex(port))
            # All protocols, because a bridge or an Open vSwitch takes frames of its ports before
            # sockets of one protocol see them.
            sock.bind((port, _ALL_PROTOCOLS))
        except OSError:
            opened.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> bytes | None:
        try:
            _, raw, _ = self._socket.recv_raw()
        except BlockingIOError:
            return None
        return raw

    def close(self) -> None:
        self._socket.close()


def _listen_socket(port: str) -> L2ListenSocket:
    """Return a socket that is set up to hear nothing yet: frames of no protocol."""
    _load_scapy()
    from scapy.arch.linux import L2ListenSocket  # noqa: PLC0415 - an extra; half a second
    from scapy.layers.l2 import Ether  # noqa: PLC0415 - same

    try:
        opened = L2ListenSocket(iface=port, type=0, promisc=False, nofilter=1)
    except ValueError as error:  # its word for an interface that is not there
        raise OSError(errno.ENODEV, str(error)) from error
    if opened.LL is not Ether:
        opened.close()
        raise OSError(errno.EAFNOSUPPORT, f"{show(port)} is no Ethernet port")
    return opened


@cache
def _load_scapy() -> None:
    """Import scapy so that it writes no cache into the home, and logs through our log."""
    import scapy.main  # noqa: PLC0415 - an extra

    scapy.main.SCAPY_CACHE_FOLDER = None
    import scapy.arch  # noqa: PLC0415 - after its cache is off

    chatter = logging.getLogger("scapy")
    chatter.handlers.clear()
    chatter.propagate = True


def _attach_filter(sock: socket.socket) -> None:
    program = b"".join(struct.pack("HBBI", *step) for step in _PROGRAM)
    buffer = ctypes.create_string_buffer(program)
    packed = struct.pack("HL", len(_PROGRAM), ctypes.addressof(buffer))
    sock.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, packed)


def _join_groups(sock: socket.socket, ifindex: int) -> None:
    """Ask the card for the groups of LLDP, which it would drop; left when the socket closes."""
    for group in GROUPS:
        request = struct.pack("IHH8s", ifindex, _MULTICAST, len(group), group)
        sock.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, request)
