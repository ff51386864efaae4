"""What one sweep says, as arrays: its cables and GUIDs, and how the sweeps of two nodes differ.

Pure. Two whole sweeps of 65,536 HCAs are compared in about a second, so callers compare the hashes
of the sweeps first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.model.claims import Claim, SweptClaims, expand_claims
from topology.model.facts import Device, DeviceKind
from topology.model.ids import Id, IdKind
from topology.sources.ibnetdiscover.columns import NO_GUID, SWITCH, Guids
from topology.sources.ibnetdiscover.lazy_devices import SweptDevices

Cables: TypeAlias = NDArray[np.uint64]
"""One row per cable: GUID and port number of one end, then of the other; the lower end first."""
ALLOWED_CABLES: Final = 1
"""So many cables of one switch to others may differ: a flapping link moves no leaf."""
ALLOWED_PERCENT: Final = 10
"""Or this share of its cables to other switches."""
ALLOWED_ABSENT: Final = 2
"""So many cables may be in only one of two sweeps, as links go up and down between them."""
ALLOWED_ABSENT_PERCENT: Final = 1
"""Or this share of all cables."""
_GUIDS: Final = (IdKind.NODE_GUID, IdKind.PORT_GUID)


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
    """CAs with different names."""
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


def read_view(claims: Iterable[Claim | SweptClaims]) -> SweepView:
    """Return the view of the claims of one sweep. Cost: O(port lines), 0.3 µs each."""
    claims = tuple(claims)
    if len(claims) == 1 and isinstance(claims[0], SweptClaims):
        devices = claims[0].devices
        if isinstance(devices, SweptDevices):
            return _read_columns(devices)
    return _read_devices([claim.device for claim in expand_claims(claims)])


def compare_views(first: SweepView, second: SweepView) -> SweepDifference:
    """Return how two sweeps differ. Cost: O(cables log cables)."""
    rows = np.concatenate((first.cables, second.cables))
    sources = np.repeat([0, 1], (len(first.cables), len(second.cables)))
    order = np.lexsort(rows.T[::-1])
    rows, sources = rows[order], sources[order]
    is_second = np.zeros(len(rows), bool)
    is_second[1:] = (rows[1:] == rows[:-1]).all(axis=1)
    is_shared = is_second | np.append(is_second[1:], np.False_)[: len(rows)]
    only = rows[~is_shared]
    switches = np.union1d(first.switch_guids, second.switch_guids)
    is_switch = np.isin(only[:, (0, 2)], switches)
    is_host = ~is_switch.reshape(-1)
    renamed = _find_renamed(first, second)
    ends, end_sources = only.reshape(-1, 2)[is_host], np.repeat(sources[~is_shared], 2)[is_host]
    return SweepDifference(
        num_cables=len(only),
        num_all=len(rows) - int(is_second.sum()),
        num_moved=_count_shared(ends[end_sources == 0], ends[end_sources == 1]),
        host_guids=frozenset([*ends[:, 0].tolist(), *renamed]),
        num_renamed=len(renamed),
        num_switches=_count_switches(only[is_switch.all(axis=1)], rows[~is_second], switches),
    )


def _find_renamed(first: SweepView, second: SweepView) -> list[int]:
    """Return the GUIDs of the CAs that have different names."""
    guids = np.setdiff1d(np.intersect1d(first.guids, second.guids), first.switch_guids)
    names = zip(first.find_names(guids), second.find_names(guids), strict=True)
    rows = zip(guids.tolist(), names, strict=True)
    return [guid for guid, (name, other) in rows if name != other]


def _count_switches(only: Cables, cables: Cables, switches: Guids) -> int:
    """Return how many switches differ in more cables to other switches than is usual."""
    between = cables[np.isin(cables[:, (0, 2)], switches).all(axis=1)]
    changed, num_changed = np.unique(only[:, (0, 2)], return_counts=True)
    if not len(changed):
        return 0
    known, num_known = np.unique(between[:, (0, 2)], return_counts=True)
    total = num_known[np.searchsorted(known, changed)]
    allowed = np.maximum(ALLOWED_CABLES, total * ALLOWED_PERCENT // 100)
    return int((num_changed > allowed).sum())


def _count_shared(first: Cables, second: Cables) -> int:
    """Return how many ends are in both."""
    return len(set(map(tuple, first.tolist())) & set(map(tuple, second.tolist())))


def _read_columns(devices: SweptDevices) -> SweepView:
    sweep = devices.sweep
    columns = sweep.columns
    is_cabled = columns.peer_letters != NO_GUID
    near = columns.guids[sweep.row_nodes()]
    rows = np.column_stack((near, columns.numbers, columns.peers, columns.far_numbers))
    return SweepView(
        guids=columns.guids,
        names=devices.names(),
        switch_guids=columns.guids[columns.letters == SWITCH],
        port_guids=np.unique(columns.own_guids[columns.own_guids != NO_GUID]),
        cables=_order_cables(rows[is_cabled].astype(np.uint64)),
    )


def _order_cables(rows: Cables) -> Cables:
    """Return each cable once, the lower end first."""
    is_turned = (rows[:, 0] > rows[:, 2]) | ((rows[:, 0] == rows[:, 2]) & (rows[:, 1] > rows[:, 3]))
    rows = np.where(is_turned[:, None], rows[:, [2, 3, 0, 1]], rows)
    rows = rows[np.lexsort(rows.T[::-1])]
    is_new = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)]
    ordered: Cables = rows[is_new]
    return ordered


def _read_devices(devices: list[Device]) -> SweepView:
    named = sorted((guid, device) for device in devices for guid in _find_node_guid(device.ids))
    rows = [row for _, device in named for row in _read_cables(device)]
    own_guids = (
        int(id_.value, 16)
        for device in devices
        for port in device.ports
        for id_ in port.ids
        if id_.kind is IdKind.PORT_GUID
    )
    is_switch = [device.kind is DeviceKind.SWITCH for _, device in named]
    guids = np.array([guid for guid, _ in named], np.uint64)
    return SweepView(
        guids=guids,
        names=[device.name for _, device in named],
        switch_guids=guids[np.array(is_switch, bool)],
        port_guids=np.array(sorted(set(own_guids)), np.uint64),
        cables=_order_cables(np.array(rows, np.uint64).reshape(-1, 4)),
    )


def _find_node_guid(ids: Iterable[Id]) -> list[int]:
    """Return the GUID that a sweep knows a device by, if it has one."""
    by_kind = {id_.kind: int(id_.value, 16) for id_ in ids if id_.kind in _GUIDS}
    return [by_kind[kind] for kind in _GUIDS if kind in by_kind][:1]


def _read_cables(device: Device) -> Iterator[tuple[int, int, int, int]]:
    """Yield the cables of a device: its GUID and port number, and those of the other end."""
    for port in device.ports:
        number = _find_number(port.ids, port.name)
        for neighbor in port.neighbors:
            far_number = _find_number(neighbor.port_ids, neighbor.port_name)
            for guid in _find_node_guid(device.ids):
                for far in _find_node_guid(neighbor.device_ids):
                    yield guid, number, far, far_number


def _find_number(ids: Iterable[Id], name: str) -> int:
    """Return the number of a port."""
    numbers = [id_.subtype for id_ in ids if id_.kind is IdKind.NODE_GUID]
    number = next(iter(numbers), name.rpartition("/")[2])
    return int(number) if number.isdecimal() else 0
