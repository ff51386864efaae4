"""What one sweep says, as arrays: its cables and GUIDs, and how the sweeps of two nodes differ.

Pure. Two whole sweeps of 65,536 HCAs are compared in about a second, so callers compare the hashes
of the sweeps first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.sources.ibnetdiscover.columns import Guids
from topology.sources.ibnetdiscover.devices import SweptDevices
from topology.sources.ibnetdiscover.rows import NO_GUID, SWITCH

Cables: TypeAlias = NDArray[np.uint64]
"""One row per cable: GUID and port number of one end, then of the other; the lower end first."""
Descriptions: TypeAlias = NDArray[np.uint64]
"""One row per node: GUID, letter of its kind, system image GUID (or 0), hash of its name."""
ALLOWED_CABLES: Final = 1
"""So many cables of one switch to others may differ, if they are less than half of them."""
ALLOWED_PERCENT: Final = 10
"""Or this share of its cables to other switches."""
ALLOWED_ABSENT: Final = 2
"""So many cables may be in only one of two sweeps, as links go up and down between them."""
ALLOWED_ABSENT_PERCENT: Final = 1
"""Or this share of all cables."""
_LOWER_A: Final = ord("a")
_CASE: Final = 32
"""Distance of a lower-case letter from its upper-case one."""


@dataclass(frozen=True, slots=True, eq=False)
class SweepView:
    """The nodes and cables of one sweep."""

    guids: Guids
    """Node GUIDs, ascending."""
    names: list[str]
    """The name of each node, in the order of `guids`."""
    switch_guids: Guids
    port_guids: Guids
    """Ascending."""
    cables: Cables
    descriptions: Descriptions
    """One row per node, in order."""

    @property
    def host_names(self) -> frozenset[str]:
        """Return the names of all nodes but switches."""
        is_switch = np.isin(self.guids, self.switch_guids).tolist()
        rows = zip(self.names, is_switch, strict=True)
        return frozenset(name for name, switch in rows if name and not switch)

    def find_names(self, guids: Guids) -> list[str]:
        """Return the name of the node of each GUID; empty if the sweep lacks it."""
        if not len(self.guids):
            return [""] * len(guids)
        places = np.minimum(np.searchsorted(self.guids, guids), len(self.guids) - 1)
        is_known = self.guids[places] == guids
        rows = zip(places.tolist(), is_known.tolist(), strict=True)
        return [self.names[place] if known else "" for place, known in rows]


class SweepDifference(NamedTuple):
    """The cables that only one of two sweeps contains, and other differences."""

    num_cables: int
    """Cables that only one of them contains."""
    num_all: int
    """Cables of either."""
    num_moved: int
    """Ends of CAs that both see cabled, but to different ports."""
    host_guids: frozenset[int]
    """Node GUIDs of the CAs at these cables."""
    num_renamed: int
    """Devices that both contain, but with another name, kind or system image."""
    num_switches: int
    """Switches with many cables to other switches that only one of the sweeps contains."""

    @property
    def is_empty(self) -> bool:
        """Whether the sweeps agree."""
        return not (self.num_cables or self.num_renamed)

    @property
    def is_large(self) -> bool:
        """Whether the sweeps differ in more than links that came up or went down in between."""
        allowed = max(ALLOWED_ABSENT, self.num_all * ALLOWED_ABSENT_PERCENT // 100)
        is_contradiction = self.num_moved or self.num_renamed or self.num_switches
        return bool(is_contradiction) or self.num_cables > allowed


NO_DIFFERENCE: Final = SweepDifference(0, 0, 0, frozenset(), 0, 0)


def read_view(devices: SweptDevices) -> SweepView:
    """Return the view of the devices of one sweep. Cost: O(port lines), 0.3 µs each."""
    sweep = devices.sweep
    columns = sweep.columns
    is_cabled = columns.peer_letters != NO_GUID
    near = columns.guids[sweep.row_nodes()]
    rows = np.column_stack((near, columns.numbers, columns.peers, columns.far_numbers))
    names = devices.names()
    letters = np.where(columns.letters >= _LOWER_A, columns.letters - _CASE, columns.letters)
    return SweepView(
        guids=columns.guids,
        names=names,
        switch_guids=columns.guids[columns.letters == SWITCH],
        port_guids=np.unique(columns.own_guids[columns.own_guids != NO_GUID]),
        cables=_order_cables(rows[is_cabled].astype(np.uint64)),
        descriptions=_build_descriptions(columns.guids, letters, columns.images, names),
    )


def compare_views(first: SweepView, second: SweepView) -> SweepDifference:
    """Return the differences between two sweeps of a subnet. Cost: O(cables log cables)."""
    only, sources = _find_unshared(first.cables, second.cables)
    num_shared = (len(first.cables) + len(second.cables) - len(only)) // 2
    switches = np.union1d(first.switch_guids, second.switch_guids)
    is_switch = np.isin(only[:, (0, 2)], switches)
    is_host = ~is_switch.reshape(-1)
    renamed = _find_renamed(first, second, only[:, (0, 2)])
    ends, end_sources = only.reshape(-1, 2)[is_host], np.repeat(sources, 2)[is_host]
    return SweepDifference(
        num_cables=len(only),
        num_all=len(only) + num_shared,
        num_moved=_count_shared(ends[end_sources == 0], ends[end_sources == 1]),
        host_guids=frozenset([*ends[:, 0].tolist(), *np.setdiff1d(renamed, switches).tolist()]),
        num_renamed=len(renamed),
        num_switches=_count_switches(only[is_switch.all(axis=1)], (first, second), switches),
    )


def _find_unshared(
    first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Return the rows that only one table has, and which of the two: 0 or 1. Rows are unique."""
    rows = np.concatenate((first, second))
    sources = np.repeat([0, 1], (len(first), len(second)))
    order = np.lexsort(rows.T[::-1])
    rows, sources = rows[order], sources[order]
    is_second = np.zeros(len(rows), bool)
    is_second[1:] = (rows[1:] == rows[:-1]).all(axis=1)
    is_shared = is_second | np.append(is_second[1:], np.False_)[: len(rows)]
    return rows[~is_shared], sources[~is_shared]


def _find_renamed(first: SweepView, second: SweepView, cabled: Guids) -> Guids:
    """Return the GUIDs of the nodes that both sweeps describe, but not alike.

    A node that only one of them contains differs in its cables already, unless it has none.
    """
    only, _ = _find_unshared(first.descriptions, second.descriptions)
    guids = np.unique(only[:, 0])
    is_shared = np.isin(guids, first.guids) & np.isin(guids, second.guids)
    renamed: Guids = guids[is_shared | ~np.isin(guids, cabled)]
    return renamed


def _count_switches(only: Cables, views: Iterable[SweepView], switches: Guids) -> int:
    """Return how many switches differ in more cables to other switches than is usual."""
    changed, num_changed = np.unique(only[:, (0, 2)], return_counts=True)
    if not len(changed):
        return 0
    cables = np.unique(np.concatenate([view.cables for view in views]), axis=0)
    between = cables[np.isin(cables[:, (0, 2)], switches).all(axis=1)]
    known, num_known = np.unique(between[:, (0, 2)], return_counts=True)
    total = num_known[np.searchsorted(known, changed)]
    allowed = np.maximum(ALLOWED_CABLES, total * ALLOWED_PERCENT // 100)
    allowed = np.minimum(allowed, (total - 1) // 2)
    return int((num_changed > allowed).sum())


def _count_shared(first: Cables, second: Cables) -> int:
    """Return the number of cable ends that both sweeps have."""
    return len(set(map(tuple, first.tolist())) & set(map(tuple, second.tolist())))


def _build_descriptions(
    guids: Guids, letters: NDArray[np.uint8], images: Guids, names: list[str]
) -> Descriptions:
    """Return one row per node; equal names have equal hashes in this process."""
    hashes = np.array(list(map(hash, names)), np.int64).view(np.uint64)
    return np.column_stack((guids, letters.astype(np.uint64), images, hashes))


def _order_cables(rows: Cables) -> Cables:
    """Return each cable once, the lower end first."""
    is_turned = (rows[:, 0] > rows[:, 2]) | ((rows[:, 0] == rows[:, 2]) & (rows[:, 1] > rows[:, 3]))
    rows = np.where(is_turned[:, None], rows[:, [2, 3, 0, 1]], rows)
    rows = rows[np.lexsort(rows.T[::-1])]
    is_new = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)]
    ordered: Cables = rows[is_new]
    return ordered
