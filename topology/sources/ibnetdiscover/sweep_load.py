"""What a sweep holds, and what no sweep may hold: limits from the largest real fabrics.

A compromised node may report any text as a sweep. What costs memory after parsing is
counted here: devices, port lines, and above all port lines whose far end does not list the cable,
because each of them becomes a finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.model.errors import ReportError
from topology.sources.ibnetdiscover.columns import NO_GUID, Guids, Index, SweepColumns
from topology.sources.ibnetdiscover.cut_sweep import OneEndedCables

MAX_CABLES: Final = 512
"""Of one device: InfiniBand numbers the ports of a switch from 1 to 254."""
_PORT_NUMBERS: Final = 1024
_Numbers: TypeAlias = NDArray[Any]
_PORT_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_NEAR_FACTOR: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_SHIFT: Final = np.uint64(29)
_LOWER_CASE: Final = 0x20
_Hashes = NDArray[np.uint64]


class SweepLoad(NamedTuple):
    """What a sweep holds, or the most that sweeps may hold."""

    devices: int = 0
    switches: int = 0
    rows: int = 0
    """Port lines."""
    unconfirmed_rows: int = 0
    """Port lines whose far end does not list the cable."""
    texts: int = 0
    """Different descriptions."""
    text_bytes: int = 0
    unusual_lines: int = 0
    """Lines that only the line parser can read, such as the rows of -p: 0.5 KB each."""

    def minus(self, used: SweepLoad) -> SweepLoad:
        """Return what is left of a limit."""
        return SweepLoad(*(limit - part for limit, part in zip(self, used, strict=True)))

    def check(self, limit: SweepLoad) -> None:
        """Refuse a load above a limit.

        Raises:
            ReportError: the load is above the limit; the message names the first such field.
        """
        for name, number, allowed in zip(self._fields, self, limit, strict=True):
            if number > allowed:
                what = name.replace("_", " ")
                raise ReportError(f"sweep refused: the sweeps hold more than {allowed} {what}")


MAX_LOAD: Final = SweepLoad(
    devices=262_144,
    switches=65_536,
    rows=2_000_000,
    unconfirmed_rows=200_000,
    texts=600_000,
    text_bytes=48 << 20,
    unusual_lines=200_000,
)
"""The most that the sweeps of all subnets hold together. 200,000 HCAs in a rail fabric have 24,000
switches and 1.5 million port lines, and with a tenth of the answers lost 150,000 unconfirmed ones.
Each device has one description of at most 64 bytes on the wire."""


def check_loads(loads: Iterable[tuple[int, ...]]) -> None:
    """Refuse sweeps that hold together more than is allowed.

    Raises:
        ReportError: they do; the message names what.
    """
    total = SweepLoad(*(sum(part) for part in zip(*loads, strict=True)))
    total.check(MAX_LOAD)


def compute_free_load(loads: Iterable[tuple[int, ...]]) -> SweepLoad:
    """Return what another sweep may hold beside sweeps with these loads."""
    rest = MAX_LOAD
    for load in loads:
        rest = rest.minus(SweepLoad(*load))
    return rest


def count_unconfirmed(sweep: SweepColumns) -> int:
    """Return the number of port lines whose far end does not list the cable.

    Cost: O(rows log rows), about 0.5 µs each.

    Raises:
        ReportError: more cables end at one device than a device has ports.
    """
    columns = sweep.columns
    if not len(columns.peers):
        return 0
    order = np.argsort(columns.guids, kind="stable")
    far_nodes = _find(columns.guids[order], columns.peers)
    is_known = far_nodes >= 0
    _check_cables(columns.peers[columns.peer_letters != 0])
    near = _number_ports(np.argsort(order)[sweep.row_nodes()], columns.numbers)
    far = _number_ports(far_nodes, columns.far_numbers)
    by_near = np.argsort(near, kind="stable")
    rows = _find(near[by_near], np.where(is_known, far, -1))
    is_confirmed = is_known & (rows >= 0)
    is_confirmed[is_confirmed] = far[by_near[rows[is_confirmed]]] == near[is_confirmed]
    return int((columns.peer_letters != 0).sum() - is_confirmed.sum())


def _check_cables(peers: _Numbers) -> None:
    if len(peers) <= MAX_CABLES:
        return
    ordered = np.sort(peers)
    if (ordered[MAX_CABLES:] == ordered[:-MAX_CABLES]).any():
        raise ReportError(f"sweep refused: more than {MAX_CABLES} cables end at one device")


def _number_ports(nodes: Index, ports: _Numbers) -> Index:
    """Return one number per port, unique in the sweep."""
    return nodes.astype(np.int64) * _PORT_NUMBERS + ports


def _find(ordered: _Numbers, wanted: _Numbers) -> Index:
    """Return the place of each wanted number in an ordered array, -1 if it is not there."""
    places = np.searchsorted(ordered, wanted)
    places[places == len(ordered)] = 0
    return np.where(ordered[places] == wanted, places, -1)


def count_one_ended_rows(sweep: SweepColumns, last_guid: str) -> OneEndedCables:
    """Return how many cables have only one record; as `count_one_ended_cables` does.

    A whole sweep is recognized by one sum over all lines, which is the same if every line is read
    from its other end. Cost: O(port lines), 50 ns each; 0.5 µs each if the sums differ.

    Args:
        sweep: the sweep.
        last_guid: GUID of the last node in the text.
    """
    columns = sweep.columns
    rows = np.flatnonzero(columns.peer_letters != NO_GUID)
    owners = sweep.row_nodes()[rows]
    near = _hash_ends(columns.guids[owners], columns.numbers[rows], columns.letters[owners])
    far = _hash_ends(columns.peers[rows], columns.far_numbers[rows], columns.peer_letters[rows])
    forward, backward = _hash_pairs(near, far), _hash_pairs(far, near)
    last = np.uint64(int(last_guid or "0", 16))
    is_last = columns.guids[owners] == last
    has_other_rate = _has_other_rate(
        forward, backward, rates=columns.rates[rows], is_chosen=is_last
    )
    if np.bitwise_xor.reduce(forward) == np.bitwise_xor.reduce(backward):
        return OneEndedCables(len(rows), 0, 0, has_other_rate=has_other_rate)
    is_single = ~np.isin(backward, forward)
    is_known = np.isin(columns.peers[rows], columns.guids)
    return OneEndedCables(
        len(rows),
        int((is_single & ~is_known).sum()),
        int((is_single & is_known & (columns.peers[rows] == last)).sum()),
        has_other_rate=has_other_rate,
    )


def _hash_ends(guids: Guids, numbers: NDArray[np.uint16], letters: NDArray[np.uint8]) -> _Hashes:
    """Return a number per port; a node that is known by a port GUID has one port."""
    is_port_guid = (letters & _LOWER_CASE) != 0
    ports = np.where(is_port_guid, 0, numbers).astype(np.uint64)
    mixed: _Hashes = (guids ^ (guids >> _SHIFT)) * _PORT_FACTOR + ports
    return mixed


def _hash_pairs(near: _Hashes, far: _Hashes) -> _Hashes:
    mixed = near * _NEAR_FACTOR ^ far
    mixed = (mixed ^ (mixed >> _SHIFT)) * _PORT_FACTOR
    return mixed ^ (mixed >> _SHIFT)


def _has_other_rate(
    forward: _Hashes,
    backward: _Hashes,
    *,
    rates: NDArray[np.uint8],
    is_chosen: NDArray[np.bool_],
) -> bool:
    """Return whether a chosen line has another rate than the same cable at its other end."""
    chosen = np.flatnonzero(is_chosen)
    others = np.flatnonzero(np.isin(forward, backward[chosen]))
    rate_of = dict(zip(forward[others].tolist(), rates[others].tolist(), strict=True))
    pairs = zip(backward[chosen].tolist(), rates[chosen].tolist(), strict=True)
    return any(rate_of.get(pair, rate) != rate for pair, rate in pairs)
