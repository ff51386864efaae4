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
from itertools import chain
from typing import cast

import numpy as np

from topology.identity.device_kinds import resolve_nodes
from topology.identity.device_names import display_names, sort_names
from topology.model.claims import Origin, duplicate_name_finding
from topology.model.fabric_columns import Flags, Index
from topology.model.facts import DeviceKind, Finding
from topology.model.ids import Id, IdKind, short_name
from topology.model.pair_counts import count_pairs
from topology.sources.ibnetdiscover.columns import HCA, NO_GUID, ROUTER, SWITCH, SweepColumns
from topology.sources.infiniband.node_names import host_names, switch_name

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
        boxes = {Id(IdKind.SYSTEM_IMAGE_GUID, f"{guid:016x}") for guid in images if guid != NO_GUID}
        return own | boxes

    def sorted_ids(self) -> tuple[Id, ...]:
        """Return all its ids in order, more quickly: a fabric wants those of every device."""
        found = self.sweep.columns
        guids = [found.guids.item(at) for at in self.parts]
        images = {found.images.item(at) for at in self.parts}
        if len(guids) > 1:
            guids.sort()
        own = [_new_id((IdKind.NODE_GUID, f"{guid:016x}", "")) for guid in guids]
        own += [
            _new_id((IdKind.SYSTEM_IMAGE_GUID, f"{guid:016x}", ""))
            for guid in sorted(images)
            if guid != NO_GUID
        ]
        return tuple(own)

    @property
    def model(self) -> str:
        """The first description that is not empty."""
        return next(filter(None, map(self.sweep.description, self.parts)), "")


@dataclass(frozen=True, slots=True)
class HcaLabels:
    """The RDMA names of CAs."""

    codes: Index
    """By node the place of its name among the texts; 0 without one."""
    texts: Sequence[str]
    """Different ones; the first is empty."""

    def of(self, node: int) -> str:
        """Return a node's RDMA name, empty without one."""
        return self.texts[self.codes.item(node)]


@dataclass(slots=True)
class JoinedSweep:
    """The devices of a sweep, in the order in which a fabric numbers them."""

    devices: list[SweptDevice]
    names: list[str]
    """Unique, one entry per device."""
    labels: HcaLabels
    claim_order: list[int]
    """One entry per device: its place in the order of claims."""
    findings: list[Finding] = field(default_factory=list)

    def nodes(self) -> Index:
        """Return the nodes of all devices, one device after the other."""
        parts = (device.parts for device in self.devices)
        return np.fromiter(chain.from_iterable(parts), np.intp)


def join_sweep_nodes(sweep: SweepColumns) -> JoinedSweep | None:
    """Return the devices of a sweep; None where an id stands for two, or is no node GUID.

    Cost: O(nodes log nodes), 2 µs each.
    """
    if not _is_plain(sweep):
        return None
    names, labels = _describe(sweep)
    is_host = (sweep.columns.letters == HCA) & ~sweep.aggregation()
    by_name: dict[str, list[int]] = defaultdict(list)
    for at in np.flatnonzero(is_host).tolist():
        by_name[names[at]].append(at)
    alone = [*np.flatnonzero(~is_host).tolist(), *by_name.pop("", ())]
    found = list(_build_single_devices(sweep, alone, names))
    findings: list[Finding] = []
    hosts = _by_short_name(by_name)
    several = _find_shared_names(sweep, list(hosts.values()), labels).tolist()
    for (name, parts), is_several in zip(hosts.items(), several, strict=True):
        if is_several:
            findings.append(duplicate_name_finding(name, len(parts)))
            found += (SweptDevice(sweep, DeviceKind.HOST, [], [at]) for at in parts)
        else:
            found.append(SweptDevice(sweep, DeviceKind.HOST, [names[parts[0]]], parts))
    found.sort(key=lambda device: (names[device.parts[0]], device.parts[0]))
    findings += resolve_nodes(found)
    titles = display_names(found)
    order = sort_names(titles)
    return JoinedSweep(
        devices=[found[at] for at in order],
        names=[titles[at] for at in order],
        labels=labels,
        claim_order=order,
        findings=findings,
    )


def _is_plain(sweep: SweepColumns) -> bool:
    """Return whether every node has a node GUID, and every GUID of a node or port has one node."""
    found = sweep.columns
    told = np.sort(found.own_guids[found.own_guids != NO_GUID])
    is_whole = np.isin(found.letters, (SWITCH, HCA, ROUTER)).all()
    is_unique = (found.guids[1:] > found.guids[:-1]).all()
    return bool(is_whole and is_unique and (told[1:] > told[:-1]).all())


def _describe(sweep: SweepColumns) -> tuple[list[str], HcaLabels]:
    """Return the name of every node, and the RDMA names of CAs."""
    texts = sweep.descriptions()
    is_ca = sweep.columns.letters == HCA
    names = list(texts)
    codes = np.zeros(len(texts), np.intp)
    known = {"": 0}
    nodes = np.flatnonzero(is_ca).tolist()
    for at, (name, label) in zip(nodes, host_names([texts[at] for at in nodes]), strict=True):
        names[at] = name
        codes[at] = known.setdefault(label, len(known))
    for at in np.flatnonzero(~is_ca).tolist():
        names[at] = switch_name(texts[at])
    return names, HcaLabels(codes, list(known))


def _build_single_devices(
    sweep: SweepColumns, nodes: Iterable[int], names: Sequence[str]
) -> Iterator[SweptDevice]:
    """Yield the devices that are one node each."""
    letters, aggregation = sweep.columns.letters.tolist(), sweep.aggregation().tolist()
    kinds = {SWITCH: DeviceKind.SWITCH, ROUTER: DeviceKind.ROUTER, HCA: DeviceKind.HOST}
    for at in nodes:
        kind = DeviceKind.AGGREGATION if aggregation[at] else kinds[letters[at]]
        yield SweptDevice(sweep, kind, [names[at]] if names[at] else [], [at])


def _by_short_name(by_name: Mapping[str, list[int]]) -> Mapping[str, list[int]]:
    """Return the CAs of hosts by the name that joins them, in the order of their claims."""
    found: dict[str, list[int]] = defaultdict(list)
    for name in sorted(by_name):
        found[short_name(name)] += by_name[name]
    return dict(sorted(found.items()))


def _find_shared_names(
    sweep: SweepColumns, hosts: Sequence[Sequence[int]], labels: HcaLabels
) -> Flags:
    """Tell which names are those of several hosts: some CAs there share their own names, too.

    Those without a name of their own go by their GUIDs; those without ports tell nothing.

    Args:
        sweep: all nodes.
        hosts: the CAs of each name.
        labels: their own names.
    """
    nodes = np.fromiter(chain.from_iterable(hosts), np.intp)
    sizes = np.fromiter(map(len, hosts), np.intp)
    owners = np.repeat(np.arange(len(hosts)), sizes)
    tells = sweep.columns.num_rows[nodes] > 0
    is_named = tells & (labels.codes[nodes] > 0)
    shared = count_pairs(owners[is_named], labels.codes[nodes[is_named]])
    are_several: Flags = np.bincount(owners[tells], minlength=len(hosts)) == 0
    are_several[shared.left[shared.counts > 1]] = True
    are_several[sizes == 1] = False
    return are_several
