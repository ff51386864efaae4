"""The nodes of one sweep to devices: HCAs that only a name joins to one host, and all names.

The same rules as `identity` has for claims of any origin, for the one origin whose claims come by
the ten thousand. What those rules decide by more than a name is not for here: a sweep in which an
id stands for two is handed over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from topology.device_names import display_names, sort_names
from topology.facts import DeviceKind, Finding
from topology.identity import Origin, same_name
from topology.ids import Id, IdKind, short_name
from topology.kinds import settle_nodes
from topology.sources.ibnetdiscover_columns import HCA, NOBODY, ROUTER, SWITCH, SweepColumns
from topology.sources.ibnetdiscover_names import HostNames, switch_name

_new_id = cast("Callable[[Iterable[object]], Id]", partial(tuple.__new__, Id))
_SWEPT = frozenset({Origin.SWEEP})


@dataclass(slots=True)
class SweptDevice:
    """One device while it is put together: what `identity.Named` wants, made of nodes."""

    sweep: SweepColumns
    kind: DeviceKind
    names: list[str]
    parts: list[int]
    """Nodes of the sweep, in the order of their claims."""
    node: str | None = None
    origins: frozenset[Origin] = _SWEPT

    @property
    def ids(self) -> set[Id]:
        """All its ids."""
        found = self.sweep.columns
        own = {Id(IdKind.NODE_GUID, f"{found.guids[at]:016x}") for at in self.parts}
        images = (found.images[at] for at in self.parts)
        boxes = {Id(IdKind.SYSTEM_IMAGE_GUID, f"{guid:016x}") for guid in images if guid != NOBODY}
        return own | boxes

    def sorted_ids(self) -> tuple[Id, ...]:
        """Return all its ids in order, more quickly: a fabric wants those of every device."""
        found = self.sweep.columns
        guids = sorted([found.guids.item(at) for at in self.parts])
        images = {found.images.item(at) for at in self.parts} - {NOBODY}
        own = [_new_id((IdKind.NODE_GUID, f"{guid:016x}", "")) for guid in guids]
        boxes = [_new_id((IdKind.SYSTEM_IMAGE_GUID, f"{guid:016x}", "")) for guid in sorted(images)]
        return (*own, *boxes)

    @property
    def model(self) -> str:
        """The first description that is not empty."""
        return next(filter(None, map(self.sweep.description, self.parts)), "")


@dataclass(slots=True)
class SweptDevices:
    """The devices of a sweep, in the order in which a fabric numbers them."""

    devices: list[SweptDevice]
    names: list[str]
    """Unique, one entry per device."""
    labels: dict[int, str]
    """RDMA names of CAs, by node; nodes without one are missing."""
    age: list[int]
    """One entry per device: its place in the order of claims."""
    findings: list[Finding] = field(default_factory=list)

    def nodes(self) -> NDArray[np.intp]:
        """Return the nodes of all devices, one device after the other."""
        return np.array([at for device in self.devices for at in device.parts], np.intp)


def join_nodes(sweep: SweepColumns) -> SweptDevices | None:
    """Return the devices of a sweep; None where an id stands for two, or is no node GUID.

    Cost: O(nodes), 1 µs each.
    """
    if not _is_plain(sweep):
        return None
    names, labels = _describe(sweep)
    findings: list[Finding] = []
    found = list(_singles(sweep, names))
    hosts = _by_short_name(sweep, names)
    for name in sorted(hosts):
        parts = hosts[name]
        if _is_one_host(sweep, parts, labels):
            found.append(SweptDevice(sweep, DeviceKind.HOST, [names[parts[0]]], parts))
        else:
            findings.append(same_name(name, len(parts)))
            found += (SweptDevice(sweep, DeviceKind.HOST, [], [at]) for at in parts)
    found.sort(key=lambda device: (names[device.parts[0]], device.parts[0]))
    findings += settle_nodes(found)
    titles = display_names(found)
    order = sort_names(titles)
    return SweptDevices(
        devices=[found[at] for at in order],
        names=[titles[at] for at in order],
        labels=labels,
        age=order,
        findings=findings,
    )


def _is_plain(sweep: SweepColumns) -> bool:
    """Return whether every node has a node GUID, and every GUID of a node or port has one node."""
    found = sweep.columns
    told = np.sort(found.own_guids[found.own_guids != NOBODY])
    is_whole = np.isin(found.letters, (SWITCH, HCA, ROUTER)).all()
    is_unique = (found.guids[1:] > found.guids[:-1]).all()
    return bool(is_whole and is_unique and (told[1:] > told[:-1]).all())


def _describe(sweep: SweepColumns) -> tuple[list[str], dict[int, str]]:
    """Return the name of every node, and the RDMA names of CAs."""
    found = sweep.columns
    texts = sweep.descriptions()
    host_names = HostNames()
    names: list[str] = []
    labels: dict[int, str] = {}
    for at, (is_ca, text) in enumerate(zip((found.letters == HCA).tolist(), texts, strict=True)):
        if is_ca:
            name, label = host_names[text]
            names.append(name)
            if label:
                labels[at] = label
        else:
            names.append(switch_name(text))
    return names, labels


def _singles(sweep: SweepColumns, names: Sequence[str]) -> Iterator[SweptDevice]:
    """Yield the devices that are one node: all but hosts with a name."""
    letters = sweep.columns.letters.tolist()
    aggregation = sweep.aggregation().tolist()
    kinds = {SWITCH: DeviceKind.SWITCH, ROUTER: DeviceKind.ROUTER, HCA: DeviceKind.HOST}
    for at, (letter, is_inside, name) in enumerate(zip(letters, aggregation, names, strict=True)):
        kind = DeviceKind.AGGREGATION if is_inside else kinds[letter]
        if not (kind is DeviceKind.HOST and name):
            yield SweptDevice(sweep, kind, [name] if name else [], [at])


def _by_short_name(sweep: SweepColumns, names: Sequence[str]) -> Mapping[str, list[int]]:
    """Return the CAs of hosts by the name that joins them, in the order of their claims."""
    by_name: dict[str, list[int]] = defaultdict(list)
    is_host = (sweep.columns.letters == HCA) & ~sweep.aggregation()
    for at in np.flatnonzero(is_host).tolist():
        by_name[names[at]].append(at)
    by_name.pop("", None)
    found: dict[str, list[int]] = defaultdict(list)
    for name in sorted(by_name):
        found[short_name(name)] += by_name[name]
    return found


def _is_one_host(sweep: SweepColumns, parts: Iterable[int], labels: Mapping[int, str]) -> bool:
    """Return whether what carries one name is one host: its CAs then differ in their own names."""
    parts = list(parts)
    if len(parts) == 1:
        return True
    told = [_label(sweep, at, labels) for at in parts if sweep.columns.num_rows[at]]
    return 0 < len(told) == len(set(told))


def _label(sweep: SweepColumns, at: int, labels: Mapping[int, str]) -> str:
    if at in labels:
        return labels[at]
    first = int(sweep.row_starts[at])
    return f"{sweep.columns.guids[at]:016x}/{sweep.columns.numbers[first]}"
