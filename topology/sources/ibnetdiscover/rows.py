"""A sweep as rows of arrays: one row per node, and one per port line. Needs no numpy.

The parser fills them in the order of the text, on a node as in the generator. A sweep of 65,536
HCAs has 400,000 port lines: as arrays they take 15 MB, as objects a gigabyte.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Final, NamedTuple, TypeAlias

from topology.sources.infiniband.link_rates import RATES_BPS

Ints: TypeAlias = "array[int]"

RATES: Final[tuple[int | None, ...]] = (None, *sorted(set(RATES_BPS.values())))
"""Bits per second by rate code; code 0 is an unknown rate."""
RATE_CODES: Final = {rate: code for code, rate in enumerate(RATES)}
SWITCH, HCA, ROUTER = b"SHR"
"""Letters of nodes, as numbers; a lower-case letter means a CA or router with a port GUID, its only
GUID in the rows of -p."""
LOWER_CASE: Final = 0x20
"""The bit that makes a letter lower-case."""
NO_GUID: Final = 0
"""A missing GUID, and the letter of the peer of a port without a peer."""
EVERY_BIT: Final = (1 << 64) - 1
"""A GUID of all ones, which identifies nothing."""
MAX_PORT: Final = 999
_BYTES, _SHORTS, _INTS, _LONGS = (partial(array, typecode) for typecode in "BHIQ")


class PortLine(NamedTuple):
    """One port of a node."""

    number: int
    own_guid: int
    peer_letter: int
    """NO_GUID for a port without a peer."""
    peer: int
    far_number: int
    far_guid: int
    text: int
    """The description of the peer, as this end prints it."""
    rate: int
    """A rate code."""


@dataclass(frozen=True, slots=True, eq=False)
class SweepRows:
    """Nodes and port lines, in the order of the text; a node is its index."""

    letters: Ints = field(default_factory=_BYTES)
    guids: Ints = field(default_factory=_LONGS)
    images: Ints = field(default_factory=_LONGS)
    """System image GUIDs."""
    device_ids: Ints = field(default_factory=_LONGS)
    texts: Ints = field(default_factory=_INTS)
    """Descriptions of nodes, as numbers of `descriptions`."""
    nodes: Ints = field(default_factory=_INTS)
    """The node of each port line; the columns of `PortLine` follow."""
    numbers: Ints = field(default_factory=_SHORTS)
    own_guids: Ints = field(default_factory=_LONGS)
    peer_letters: Ints = field(default_factory=_BYTES)
    peers: Ints = field(default_factory=_LONGS)
    far_numbers: Ints = field(default_factory=_SHORTS)
    far_guids: Ints = field(default_factory=_LONGS)
    peer_texts: Ints = field(default_factory=_INTS)
    rates: Ints = field(default_factory=_BYTES)
    descriptions: defaultdict[bytes, int] = field(
        default_factory=lambda: defaultdict(count(1).__next__, {b"": 0})
    )
    """The number of each distinct description, in order; the empty one has number 0."""

    def columns(self) -> tuple[Ints, ...]:
        """Return all columns but `nodes`: those of nodes, then those of port lines."""
        return *self.node_columns(), *self.line_columns()

    def node_columns(self) -> tuple[Ints, ...]:
        """Return the columns of nodes: letters, GUIDs, images, device ids and texts."""
        return self.letters, self.guids, self.images, self.device_ids, self.texts

    def line_columns(self) -> tuple[Ints, ...]:
        """Return the columns of port lines, in the order of the fields of `PortLine`."""
        return (
            self.numbers,
            self.own_guids,
            self.peer_letters,
            self.peers,
            self.far_numbers,
            self.far_guids,
            self.peer_texts,
            self.rates,
        )

    def add_line(self, node: int, line: PortLine) -> None:
        """Add a port line; `node` is the index of its node."""
        self.nodes.append(node)
        for column, number in zip(self.line_columns(), line, strict=True):
            column.append(number)

    def line_at(self, index: int) -> PortLine:
        """Return a port line."""
        return PortLine(
            self.numbers[index],
            self.own_guids[index],
            self.peer_letters[index],
            self.peers[index],
            self.far_numbers[index],
            self.far_guids[index],
            self.peer_texts[index],
            self.rates[index],
        )

    def set_line(self, index: int, line: PortLine) -> None:
        """Replace a port line."""
        for column, number in zip(self.line_columns(), line, strict=True):
            column[index] = number
