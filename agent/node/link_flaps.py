"""Finds links that go down again and again, from the kernel's counters over the last hour.

A round sees only whether a port is up at that moment; the counters show what happened between two
rounds. The tracker returns only the names of flapping ports, not their counters, so a report does
not change while no port starts or stops flapping.

`link_downed` of an HCA is not free to read: the driver asks the firmware, and where the firmware
refuses, each read writes an error into the kernel's log. So it is read every few minutes, and never
again after a refusal while the same driver is bound. Then a counter that is free to read is used:
the carrier of the port's IPoIB interface, or the changes of its state from round to round.

Source: prometheus/node_exporter issue 3434 and leptonai/gpud pull request 1167: on DGX, HGX B200
and B300, and GB200, ConnectX-7 functions of Fabric Manager answer EINVAL, with `mlx5_cmd_out_err
... ACCESS_REG(0x805) ... err(-22)` in the kernel's log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from agent.node.hcas import INFINIBAND
from agent.node.sysfs import Sysfs, parse_number
from topology.model.facts import Medium, Port, PortState

MIN_DOWNS: Final = 3
"""Link losses within `WINDOW_S`; reseating a cable causes one or two."""
WINDOW_S: Final = 3600.0
READ_EVERY_S: Final = 300.0
"""The shortest time between two reads of a counter that the firmware reports."""
_ARPHRD_INFINIBAND = 32


class Counter(NamedTuple):
    """One counter of link losses; a port may change from one to another."""

    port: str
    source: str
    """The file, or `state`."""


class _FirmwareCount(NamedTuple):
    """The last value of a counter that the firmware reports."""

    inode: int
    """The file's. The driver makes new files when it is bound to the device again."""
    read_at_s: float
    downs: int | None
    """None if the file holds no number, such as `N/A (no PMA)`."""
    is_refused: bool

    def is_current(self, inode: int, now_s: float) -> bool:
        """Return whether the file must not be read again yet."""
        is_recent = self.is_refused or now_s - self.read_at_s < READ_EVERY_S
        return inode == self.inode and is_recent


class DownCounters:
    """Reads how often each port has lost its link. A refused counter is not read again."""

    def __init__(self, root: Sysfs, read: Callable[[str], str] | None = None) -> None:
        """Read nothing yet.

        Args:
            root: the sysfs tree.
            read: returns the text of a counter by its path, or raises OSError; None reads `root`.
        """
        self._root = root
        self._read = root.read_or_raise if read is None else read
        self._firmware: dict[str, _FirmwareCount] = {}
        self._states: dict[str, tuple[PortState, int]] = {}
        """The last known state of each port, and its losses from round to round."""

    @property
    def refused(self) -> tuple[str, ...]:
        """The files that were refused, below the root, sorted. They are not read again."""
        return tuple(sorted(path for path, last in self._firmware.items() if last.is_refused))

    def read(self, ports: Iterable[Port], now_s: float) -> dict[Counter, int]:
        """Return how often each port lost its link since the port was created or first seen.

        Ports without a counter are left out. `carrier_down_count` exists since Linux 4.16. The
        counter of InfiniBand stops at 255.

        Args:
            ports: the ports of this round.
            now_s: monotonic time.
        """
        counts: dict[Counter, int] = {}
        for port in ports:
            if port.medium is Medium.ETHERNET:
                counts.update(self._read_carrier(port.name, port.name))
            elif port.medium is Medium.INFINIBAND:
                counts.update(self._read_infiniband(port, now_s))
        return counts

    def _read_carrier(self, port: str, interface: str) -> dict[Counter, int]:
        """Return the losses of an interface's carrier; the kernel counts them itself."""
        base = f"class/net/{interface}"
        downs = self._root.read_int(f"{base}/carrier_down_count")
        if downs is not None:
            return {Counter(port, f"{base}/carrier_down_count"): downs}
        changes = self._root.read_int(f"{base}/carrier_changes")
        return {} if changes is None else {Counter(port, f"{base}/carrier_changes"): changes // 2}

    def _read_infiniband(self, port: Port, now_s: float) -> dict[Counter, int]:
        device, _, number = port.name.partition("/")
        base = f"{INFINIBAND}/{device}"
        path = f"{base}/ports/{number}/counters/link_downed"
        downs = self._read_firmware(path, now_s)
        losses = self._count_state_changes(port)
        if downs is not None:
            return {Counter(port.name, path): downs}
        for interface in self._root.list_names(f"{base}/device/net"):
            if self._is_ipoib(interface, number):
                return self._read_carrier(port.name, interface)
        return {Counter(port.name, "state"): losses}

    def _read_firmware(self, path: str, now_s: float) -> int | None:
        """Return a counter that the kernel asks the firmware for.

        A file is read at most every `READ_EVERY_S`, and not again after a refusal. None if the file
        is missing, was refused or has no number.
        """
        inode = self._root.find_inode(path)
        if inode is None:
            return None
        last = self._firmware.get(path)
        if last is not None and last.is_current(inode, now_s):
            return last.downs
        try:
            downs, is_refused = parse_number(self._read(path)), False
        except FileNotFoundError:
            return None
        except OSError:
            # EINVAL of mlx5; other drivers answer EOPNOTSUPP, EIO, ENODATA or EREMOTEIO.
            downs, is_refused = None, True
        self._firmware[path] = _FirmwareCount(inode, now_s, downs, is_refused)
        return downs

    def _is_ipoib(self, interface: str, number: str) -> bool:
        """Return whether an interface carries IP over this port, and can lose its carrier."""
        base = f"class/net/{interface}"
        return (
            self._root.read_int(f"{base}/type") == _ARPHRD_INFINIBAND
            and (self._root.read_int(f"{base}/dev_port") or 0) + 1 == parse_number(number)
            and self._root.read_int(f"{base}/carrier") is not None  # EINVAL: switched off
        )

    def _count_state_changes(self, port: Port) -> int:
        before, losses = self._states.get(port.name, (PortState.UNKNOWN, 0))
        if before is PortState.UP and port.state is PortState.DOWN:
            losses += 1
        state = before if port.state is PortState.UNKNOWN else port.state
        self._states[port.name] = state, losses
        return losses


class FlapTracker:
    """Counts the link losses of each port in the last hour."""

    def __init__(self) -> None:
        """Start without ports; link losses before the first round do not count."""
        self._downs: dict[Counter, int] = {}
        self._lost: dict[str, deque[tuple[float, int]]] = {}

    def update(self, downs: Mapping[Counter, int], now_s: float) -> tuple[str, ...]:
        """Add the counters of a round, and return the names of the flapping ports, sorted.

        A counter that is smaller than before was reset; counting goes on from its new value.

        Args:
            downs: the value of each counter, from `DownCounters`.
            now_s: monotonic time.
        """
        for counter, count in downs.items():
            lost = count - self._downs.get(counter, count)
            if lost > 0:
                self._lost.setdefault(counter.port, deque()).append((now_s, lost))
        self._downs = dict(downs)
        for name, rows in list(self._lost.items()):
            while rows and rows[0][0] <= now_s - WINDOW_S:
                rows.popleft()
            if not rows:
                del self._lost[name]
        return tuple(
            sorted(
                name
                for name, rows in self._lost.items()
                if sum(lost for _, lost in rows) >= MIN_DOWNS
            )
        )
