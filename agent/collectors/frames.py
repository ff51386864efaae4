"""Neighbors from LLDP frames that the node's ports receive, for nodes where no lldpd answers.

scapy captures the frames. It is under the GPL, so it is a separate extra, and only this file
imports it, when the first port is opened. Frames are only received: the sockets refuse to send.
`topology.sources.lldp.lldpdu` parses the frames.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.collectors.probe import (
    CollectedFacts,
    SourceAbsent,
    build_heard_port,
    restore_heard_ports,
)
from agent.node.command import Runner
from agent.node.frame_listener import Listener, ListenerSnapshot, PortSocket
from agent.node.sysfs import Sysfs
from agent.settings import AgentSettings, FrameMode
from topology.model.errors import show
from topology.model.facts import Device, Source
from topology.sources.lldp.lldpdu import ETHERTYPE, GROUPS
from topology.sources.lldp.neighbor_table import MAX_NEIGHBORS

if TYPE_CHECKING:
    from scapy.arch.linux import L2ListenSocket

log = logging.getLogger(__name__)

_NO_SCAPY: Final = "scapy not found: install toponaut[agent-frames]"
_NO_PERMISSION: Final = "not allowed to capture frames: needs CAP_NET_RAW"

# linux/if_packet.h, asm-generic/socket.h; Python has no names for these.
_SOL_PACKET: Final = 263
_ADD_MEMBERSHIP: Final = 1
_IGNORE_OUTGOING: Final = 23
_MULTICAST: Final = 0
_ATTACH_FILTER: Final = 26
_ALL_PROTOCOLS: Final = 3
# Classic BPF. The kernel has already removed the outer VLAN tag; an inner tag may remain.
_PROGRAM: Final = (
    (0x28, 0, 0, 12),  # 0: load the EtherType
    (0x15, 3, 0, ETHERTYPE),  # LLDP: to 5
    (0x15, 0, 5, 0x8100),  # no tag: to 8
    (0x28, 0, 0, 16),  # load the EtherType behind the tag
    (0x15, 0, 3, ETHERTYPE),  # not LLDP: to 8
    (0x30, 0, 0, 0xFFFFF004),  # 5: load the packet type
    (0x15, 1, 0, 4),  # outgoing, so sent by this node: to 8
    (0x06, 0, 0, 0xFFFF),  # keep it whole
    (0x06, 0, 0, 0),  # 8: drop it
)


def find_absence(settings: AgentSettings, _runner: Runner) -> SourceAbsent | None:
    """Return why no frames can be received, or None if they can."""
    if settings.frames is None:
        return SourceAbsent("listening is off (see --frames and --listen-for)")
    refusal = SystemInterfaces(settings.sysfs_root).explain_refusal()
    return SourceAbsent(refusal, find_evidence(settings)) if refusal else None


def find_evidence(settings: AgentSettings) -> str:
    """Return the sentence that the settings require this source; empty if lldpd may replace it."""
    is_required = settings.frames is not None and settings.frames.mode is FrameMode.ALWAYS
    return "--frames always requires it" if is_required else ""


def restore(device: Device) -> CollectedFacts:
    """Return the facts of frames in a report."""
    return CollectedFacts(ports=restore_heard_ports(device, {Source.LLDP}))


def collect(
    listener: Listener,
    ports: Sequence[str],
    settings: AgentSettings,
    wait: Callable[[float], object] | None = None,
) -> CollectedFacts:
    """Return the neighbors that the ports have heard.

    Args:
        listener: shared by all rounds.
        ports: names of this node's Ethernet ports.
        settings: how long to listen until every neighbor has sent a frame.
        wait: sleeps for that time; None if a later round reports the neighbors.

    Raises:
        SourceAbsent: this node cannot listen, or has not listened for long enough.
    """
    evidence = find_evidence(settings)
    refusal = listener.explain_refusal()
    if refusal:
        raise SourceAbsent(refusal, evidence)
    try:
        listener.listen(ports)
    except PermissionError as error:
        raise SourceAbsent(_NO_PERMISSION, evidence) from error
    if not ports:
        return CollectedFacts(note="no network port to listen on")
    listen_s = settings.frames.listen_s if settings.frames else 0.0
    heard = _await_snapshot(listener, listen_s, wait, evidence)
    crowded = [f"{show(port)}: more than {MAX_NEIGHBORS} neighbors" for port in heard.crowded_ports]
    return CollectedFacts(
        ports=tuple(build_heard_port(name, neighbors) for name, neighbors in heard.neighbors),
        errors=heard.errors,
        note="; ".join(crowded) if heard.neighbors else "no frame heard",
    )


def _await_snapshot(
    listener: Listener, listen_s: float, wait: Callable[[float], object] | None, evidence: str
) -> ListenerSnapshot:
    heard = listener.snapshot()
    if not heard.num_ports:
        raise SourceAbsent("no port could be opened", evidence)
    missing_s = listen_s - heard.listened_s
    if missing_s <= 0:
        return heard
    if wait is None:
        raise SourceAbsent(f"listening; first neighbors after {listen_s:g} s")
    fields = {"num_ports": heard.num_ports, "duration_s": round(missing_s, 3)}
    log.info("listening for frames", extra=fields)
    wait(missing_s)
    return listener.snapshot()


class SystemInterfaces:
    """The ports of this machine, opened through scapy."""

    def __init__(self, sysfs_root: Path) -> None:
        """Keep the root of sysfs, which has the index and the carrier state of each port."""
        self._sysfs = Sysfs(sysfs_root)

    def explain_refusal(self) -> str | None:
        """Return why no port can be opened, or None if ports can be opened."""
        if find_spec("scapy") is None:
            return _NO_SCAPY
        try:
            # A socket without a protocol receives nothing; this only checks the permission.
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
        except OSError as error:
            return _NO_PERMISSION if error.errno == errno.EPERM else f"no packet sockets: {error}"
        return None

    def index(self, port: str) -> int | None:
        """Return a port's index, or None without such a port.

        If sysfs shows another index, it describes another machine or network namespace, and the
        port is ignored.
        """
        sysfs_index = self._sysfs.read_int(f"class/net/{port}/ifindex")
        with suppress(OSError):
            index = socket.if_nametoindex(port)
            return index if index == sysfs_index else None
        return None

    def has_link(self, port: str) -> bool:
        """Return whether the port has a carrier; True if the driver does not report it."""
        return self._sysfs.read_int(f"class/net/{port}/carrier") != 0

    def open(self, port: str) -> PortSocket:
        """Open a socket that receives the frames of a port.

        Raises:
            OSError: the port cannot be opened; PermissionError without CAP_NET_RAW.
        """
        return _ScapySocket(_listen_socket(port), port)


class _ScapySocket:
    """A packet socket of scapy, which restores the VLAN tags that the kernel removed."""

    def __init__(self, opened: L2ListenSocket, port: str) -> None:
        self._socket = opened
        sock = opened.ins
        try:
            sock.settimeout(0)
            _attach_filter(sock)
            with suppress(OSError):  # missing before Linux 4.20; the filter drops these frames too
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
    """Return a socket that receives nothing yet: it is bound to no protocol."""
    _load_scapy()
    from scapy.arch.linux import L2ListenSocket  # noqa: PLC0415 - an extra; half a second
    from scapy.layers.l2 import Ether  # noqa: PLC0415 - same

    try:
        opened = L2ListenSocket(iface=port, type=0, promisc=False, nofilter=1)
    except ValueError as error:  # scapy raises it for an interface that does not exist
        raise OSError(errno.ENODEV, str(error)) from error
    if opened.LL is not Ether:
        opened.close()
        raise OSError(errno.EAFNOSUPPORT, f"{show(port)} is not an Ethernet port")
    return opened


@cache
def _load_scapy() -> None:
    """Import scapy so that it writes no cache into the home folder and uses the agent's log."""
    import scapy.main  # noqa: PLC0415 - an extra

    scapy.main.SCAPY_CACHE_FOLDER = None
    import scapy.arch  # noqa: PLC0415 - after its cache is off

    scapy_log = logging.getLogger("scapy")
    scapy_log.handlers.clear()
    scapy_log.propagate = True


def _attach_filter(sock: socket.socket) -> None:
    program = b"".join(struct.pack("HBBI", *step) for step in _PROGRAM)
    buffer = ctypes.create_string_buffer(program)
    packed = struct.pack("HL", len(_PROGRAM), ctypes.addressof(buffer))
    sock.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, packed)


def _join_groups(sock: socket.socket, ifindex: int) -> None:
    """Join the multicast groups of LLDP, whose frames the card would otherwise drop.

    The kernel leaves the groups when the socket closes.
    """
    for group in GROUPS:
        request = struct.pack("IHH8s", ifindex, _MULTICAST, len(group), group)
        sock.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, request)
