"""Simulated switches: tables of rows, and a session that reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field

from generator.switches.targets import SnmpCredentials, Target
from topology.model.errors import SwitchError, SwitchRefused
from topology.sources.lldp_mib.tables import IF_NAME, LLDP, SYS_NAME, ColumnSpan, Value, WalkRow

CREDENTIALS = SnmpCredentials(community="cables")
REMOTE = (*LLDP, 4, 1, 1)


def target(address: str) -> Target:
    return Target(address, 161, CREDENTIALS)


def mac(number: int) -> bytes:
    """Return a locally administered address."""
    return bytes((2, 0, 0, 0, number >> 8, number & 0xFF))


def switch_rows(number: int, peers: Iterable[tuple[int, str]] = ()) -> list[WalkRow]:
    """Return the tables of switch `number`, a port per peer: the peer's number and address."""
    rows: list[WalkRow] = [
        ((*SYS_NAME, 0), f"switch-{number}".encode()),
        ((*LLDP, 3, 1, 0), 4),
        ((*LLDP, 3, 2, 0), mac(number)),
    ]
    for port, (peer, address) in enumerate(peers, 1):
        cells: tuple[Value, ...] = (
            4,
            mac(peer),
            5,
            f"swp{number}".encode(),
            b"",
            f"switch-{peer}".encode(),
        )
        rows.append(((*IF_NAME, port), f"swp{peer}".encode()))
        rows += [((*REMOTE, 4 + at, 0, port, 1), cell) for at, cell in enumerate(cells)]
        if address:
            octets = map(int, address.split("."))
            rows.append(((*LLDP, 4, 2, 1, 3, 0, port, 1, 1, 4, *octets), 2))
    return sorted(rows, key=lambda row: row[0])


@dataclass
class FakeSession:
    """Answers from tables, by address."""

    tables: Mapping[str, list[WalkRow]]
    failures: Mapping[str, SwitchError] = field(default_factory=dict)
    """Raised at the end of an address's tables; at once if it has none."""
    hanging: frozenset[str] = frozenset()
    """Addresses that never answer."""
    hanging_spans: frozenset[ColumnSpan] = frozenset()
    """Tables that no address answers for."""
    refused_spans: frozenset[ColumnSpan] = frozenset()
    spans: list[tuple[str, ColumnSpan]] = field(default_factory=list)
    """The requests so far."""
    most_at_once: int = 0
    _running: int = 0

    @property
    def walked(self) -> list[str]:
        """Addresses in the order in which their walks began."""
        return list(dict.fromkeys(address for address, _ in self.spans))

    async def fetch_rows(self, target: Target, span: ColumnSpan) -> AsyncIterator[WalkRow]:
        """Yield the rows of a span."""
        self.spans.append((target.address, span))
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        try:
            await asyncio.sleep(0)  # lets the other walks go on, as a request would
            if span in self.refused_spans:
                raise SwitchRefused("no access")
            if target.address in self.hanging or span in self.hanging_spans:
                await asyncio.Event().wait()
            for row in self.tables.get(target.address, []):
                if span.contains(row[0]):
                    yield row
            if target.address in self.failures and span.first[: len(REMOTE)] == REMOTE:
                raise self.failures[target.address]
            if target.address not in self.tables and target.address in self.failures:
                raise self.failures[target.address]
        finally:
            self._running -= 1
