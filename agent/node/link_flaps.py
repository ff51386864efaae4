"""Finds links that go down again and again, from the kernel's counters over the last hour.

A round sees only whether a port is up at that moment; the counters show what happened between two
rounds. The tracker returns only the names of flapping ports, not their counters, so a report does
not change while no port starts or stops flapping.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from agent.node.sysfs import Sysfs
from topology.model.facts import Medium, Port

MIN_DOWNS: Final = 3
"""Link losses within `WINDOW_S`; reseating a cable causes one or two."""
WINDOW_S: Final = 3600.0


def read_down_counts(root: Sysfs, ports: Iterable[Port]) -> dict[str, int]:
    """Return how often each port has lost its link since it was created, by name.

    Ports without a counter are left out. `carrier_down_count` exists since Linux 4.16. The counter
    of InfiniBand stops at 255.
    """
    counts = ((port.name, _read_down_count(root, port)) for port in ports)
    return {name: downs for name, downs in counts if downs is not None}


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
    """Counts the link losses of each port in the last hour."""

    def __init__(self) -> None:
        """Start without ports; link losses before the first round do not count."""
        self._downs: dict[str, int] = {}
        self._lost: dict[str, deque[tuple[float, int]]] = {}

    def update(self, downs: Mapping[str, int], now_s: float) -> tuple[str, ...]:
        """Add the counters of a round, and return the names of the flapping ports, sorted.

        A counter that is smaller than before was reset; counting goes on from its new value.

        Args:
            downs: the counter of each port, from `read_down_counts`.
            now_s: monotonic time.
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
