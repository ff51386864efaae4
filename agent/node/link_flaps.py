"""Links that go down again and again: the kernel's counters, read each round, over the last hour.

A round sees only whether a port is up at its time; the counters tell what happened between two
rounds. Only the names of ports that flap are told, so at rest nothing changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from agent.node.sysfs import Sysfs
from topology.model.facts import Medium, Port

MIN_DOWNS: Final = 3
"""In `WINDOW_S`; a cable that is reseated goes down once or twice."""
WINDOW_S: Final = 3600.0


def read_down_counts(root: Sysfs, ports: Iterable[Port]) -> dict[str, int]:
    """Return how often each port has lost its link since it is there; ports that tell none lack.

    `carrier_down_count` is there since Linux 4.16, InfiniBand's counter stops at 255.
    """
    found = ((port.name, _read_down_count(root, port)) for port in ports)
    return {name: downs for name, downs in found if downs is not None}


def _read_down_count(root: Sysfs, port: Port) -> int | None:
    if port.medium is Medium.ETHERNET:
        downs = root.read_int(f"class/net/{port.name}/carrier_down_count")
        changes = root.read_int(f"class/net/{port.name}/carrier_changes")
        return downs if downs is not None or changes is None else changes // 2
    if port.medium is Medium.INFINIBAND:
        device, _, number = port.name.partition("/")
        return root.read_int(f"class/infiniband/{device}/ports/{number}/counters/link_downed")
    return None


class FlapTracker:
    """What the counters did in the last hour."""

    def __init__(self) -> None:
        """Know of no port yet; what happened before the first round does not count."""
        self._downs: dict[str, int] = {}
        self._lost: dict[str, deque[tuple[float, int]]] = {}

    def update(self, downs: Mapping[str, int], now_s: float) -> tuple[str, ...]:
        """Take in the counters of a round, and return the names of the ports that flap, sorted.

        A counter that is smaller than before was reset, and counts from there.

        Args:
            downs: by port, as `read_down_counts` returns them.
            now_s: of a clock that only goes forward.
        """
        for name, count in downs.items():
            lost = count - self._downs.get(name, count)
            if lost > 0:
                self._lost.setdefault(name, deque()).append((now_s, lost))
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
