"""The nodes of one sweep to devices: HCAs that share a name form one host, and all names.

The rules are those of `identity`, but only for one sweep and a list of nodes, because a sweep has
tens of thousands of claims. HCAs belong to the node that lists their GUID, else to the host of
their name. A sweep in which two nodes share an id is left to `claim_join`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from typing import NamedTuple, cast

import numpy as np

from topology.identity.device_kinds import resolve_nodes
from topology.identity.device_names import display_names, sort_names
from topology.identity.listed_nodes import ListedNodes
from topology.identity.node_names import (
    NameKey,
    NodeNames,
    build_node_names,
    find_free_texts,
)
from topology.join.sweep_owners import UNLISTED, find_owners
from topology.model.claims import Claim, Origin, duplicate_name_finding
from topology.model.fabric_columns import Flags, Index
from topology.model.facts import DeviceKind, Finding
from topology.model.ids import Id, IdKind
from topology.model.lazy_rows import LazyTuple
from topology.model.pair_counts import count_pairs
from topology.sources.ibnetdiscover.columns import HCA, NO_GUID, ROUTER, SWITCH, SweepColumns
from topology.sources.infiniband.node_names import host_names, switch_name

_new_id = cast("Callable[[Iterable[object]], Id]", partial(tuple.__new__, Id))


@cache
def _join_origins(*, is_listed: bool, is_reported: bool, is_swept: bool) -> frozenset[Origin]:
    flags = {Origin.INVENTORY: is_listed, Origin.REPORT: is_reported, Origin.SWEEP: is_swept}
    return frozenset(origin for origin, has_claim in flags.items() if has_claim)


@dataclass(slots=True)
class SweptDevice:
    """One device under construction, made of sweep nodes; implements `DeviceDraft`."""

    sweep: SweepColumns
    kind: DeviceKind
    names: list[str]
    parts: list[int]
    """Nodes of the sweep, in the order of their claims."""
    node: str | None = None
    silent_node: str | None = None
    is_loose: bool = False
    listed: Claim | None = None
    """The node in the inventory; it may have no part in the sweep."""
    report: Claim | None = None
    """The report of the node."""

    @property
    def origins(self) -> frozenset[Origin]:
        """The origins of its claims."""
        return _join_origins(
            is_listed=self.listed is not None,
            is_reported=self.report is not None,
            is_swept=bool(self.parts),
        )

    @property
    def ids(self) -> set[Id]:
        """All ids of the device."""
        claims = filter(None, (self.listed, self.report))
        return self._swept_ids().union(*(claim.ids for claim in claims))

    def _swept_ids(self) -> set[Id]:
        columns = self.sweep.columns
        node_ids = {Id(IdKind.NODE_GUID, f"{columns.guids[node]:016x}") for node in self.parts}
        images = {columns.images[node] for node in self.parts}
        image_ids = {
            Id(IdKind.SYSTEM_IMAGE_GUID, f"{guid:016x}") for guid in images if guid != NO_GUID
        }
        return node_ids | image_ids

    def sorted_ids(self) -> Sequence[Id]:
        """Return all ids in order; faster than `ids`, because a fabric needs them per device."""
        if self.listed is not None or self.report is not None:
            return _ListedIds(self)
        columns = self.sweep.columns
        guids = [columns.guids.item(node) for node in self.parts]
        images = {columns.images.item(node) for node in self.parts}
        if len(guids) > 1:
            guids.sort()
        ids = [_new_id((IdKind.NODE_GUID, f"{guid:016x}", "")) for guid in guids]
        ids += [
            _new_id((IdKind.SYSTEM_IMAGE_GUID, f"{guid:016x}", ""))
            for guid in sorted(images)
            if guid != NO_GUID
        ]
        return tuple(ids)

    @property
    def model(self) -> str:
        """The first description that is not empty."""
        return next(filter(None, map(self.sweep.description, self.parts)), "")


class _ListedIds(LazyTuple[Id]):
    """The sorted ids of a listed node, built on every access: few rows are asked for theirs."""

    __slots__ = ("_device",)

    def __init__(self, device: SweptDevice) -> None:
        """Store the device."""
        self._device = device

    def _all(self) -> tuple[Id, ...]:
        return tuple(sorted(self._device.ids))


@dataclass(frozen=True, slots=True)
class HcaLabels:
    """The RDMA names of CAs, such as mlx5_0."""

    codes: Index
    """By node: the index of its RDMA name in `texts`; 0 if it has none."""
    texts: Sequence[str]
    """Distinct names; the first is empty."""

    def of(self, node: int) -> str:
        """Return the RDMA name of a node; empty if it has none."""
        return self.texts[self.codes.item(node)]


@dataclass(slots=True)
class JoinedSweep:
    """The devices of a sweep, in the order in which a fabric numbers them."""

    devices: list[SweptDevice]
    names: list[str]
    """Unique, one entry per device."""
    labels: HcaLabels
    claim_order: list[int]
    """One entry per device: its position in the order of claims."""
    findings: list[Finding] = field(default_factory=list)

    def nodes(self) -> Index:
        """Return the nodes of all devices, grouped by device."""
        parts = (device.parts for device in self.devices)
        return np.fromiter(chain.from_iterable(parts), np.intp)


def join_sweep_nodes(sweep: SweepColumns, listed: ListedNodes | None = None) -> JoinedSweep | None:
    """Return the devices of a sweep and of an inventory; None if `claim_join` must join them.

    That is necessary if GUIDs are not unique, a node type is unknown, the sweep contradicts the
    list, or the list finds a node in a description that is not of the usual form.

    Cost: O(nodes log nodes), 2 µs each.
    """
    if not is_plain(sweep):
        return None
    names, labels = describe_nodes(sweep)
    is_host = (sweep.columns.letters == HCA) & ~sweep.aggregation()
    owners = np.full(len(sweep), UNLISTED, np.intp)
    distinct = set(names)
    has_label = (labels.codes > 0).tolist()
    hcas = ((node, names[node], has_label[node]) for node in np.flatnonzero(is_host).tolist())
    texts = find_free_texts(hcas, sweep.description)
    others = distinct.union(texts.values())
    node_names = listed.name_nodes(others) if listed else build_node_names((), others)
    if any(map(node_names.find_rivals, distinct if node_names.rivals else ())):
        return None
    if any(
        node_names.name_host(text, names[node], has_label=has_label[node]) != names[node]
        for node, text in texts.items()
    ):
        return None
    if listed is not None:
        numbers = listed.numbers()
        meant = {name: numbers.get(node_names.find(name) or "", UNLISTED) for name in distinct}
        found = find_owners(sweep, listed, list(map(meant.__getitem__, names)), is_host)
        if found is None or _has_twin_labels(sweep, found, labels):
            return None
        owners = found
    by_name: dict[str, list[int]] = defaultdict(list)
    for node in np.flatnonzero(is_host & (owners == UNLISTED)).tolist():
        by_name[names[node]].append(node)
    alone = [*np.flatnonzero(~is_host).tolist(), *by_name.pop("", ())]
    hosts = _group_hosts(sweep, _group_by_key(by_name, node_names), labels, listed)
    devices = list(_build_single_devices(sweep, alone, names))
    devices += (SweptDevice(sweep, DeviceKind.HOST, [], [node]) for node in hosts.unnamed)
    devices += (
        SweptDevice(sweep, DeviceKind.HOST, [names[parts[0]]], parts) for parts in hosts.named
    )
    devices.sort(key=lambda device: (names[device.parts[0]], device.parts[0]))
    if listed is not None:
        devices = [*_build_listed_devices(sweep, listed, owners, hosts.listed, names), *devices]
    findings = [*hosts.findings, *resolve_nodes(devices, node_names)]
    titles = display_names(devices)
    order = sort_names(titles)
    return JoinedSweep(
        devices=[devices[index] for index in order],
        names=[titles[index] for index in order],
        labels=labels,
        claim_order=order,
        findings=findings,
    )


class _HostGroups(NamedTuple):
    """The CAs that no listed GUID assigns to a node, by what their names say."""

    named: list[list[int]]
    """The CAs of each host outside the list."""
    listed: dict[int, list[int]]
    """By listed node: its CAs."""
    unnamed: list[int]
    """CAs that do not say which host they are in."""
    findings: list[Finding]


def _group_hosts(
    sweep: SweepColumns,
    hosts: Mapping[NameKey, list[int]],
    labels: HcaLabels,
    listed: ListedNodes | None,
) -> _HostGroups:
    """Assign the CAs of each host to its node; a node that lists GUIDs has no further CA."""
    numbers = listed.numbers() if listed is not None else {}
    several = _find_shared_names(sweep, list(hosts.values()), labels).tolist()
    lists_guids = listed.lists_guids().tolist() if listed is not None else []
    groups = _HostGroups([], {}, [], [])
    for (key, parts), is_several in zip(hosts.items(), several, strict=True):
        owner = numbers.get(key.name) if key.is_node else None
        if is_several or (owner is not None and lists_guids[owner]):
            groups.findings.append(duplicate_name_finding(key.name, len(parts)))
            groups.unnamed.extend(parts)
        elif owner is not None:
            groups.listed[owner] = parts
        else:
            groups.named.append(parts)
    return groups


def _build_listed_devices(
    sweep: SweepColumns,
    listed: ListedNodes,
    owners: Index,
    named: Mapping[int, list[int]],
    names: Sequence[str],
) -> Iterator[SweptDevice]:
    """Yield the listed nodes in the order of their claims, each with its CAs."""
    nodes = np.flatnonzero(owners != UNLISTED)
    nodes = nodes[np.argsort(owners[nodes], kind="stable")]
    stops = np.cumsum(np.bincount(owners[nodes], minlength=len(listed.names))).tolist()
    start, ordered = 0, nodes.tolist()
    rows = zip(listed.names, listed.claims, listed.reports, stops, strict=True)
    for number, (name, claim, report, stop) in enumerate(rows):
        parts = sorted(ordered[start:stop], key=names.__getitem__) or named.get(number, [])
        start = stop
        yield SweptDevice(
            sweep, DeviceKind.HOST, [name], parts, node=name, listed=claim, report=report
        )


def _has_twin_labels(sweep: SweepColumns, owners: Index, labels: HcaLabels) -> bool:
    """Return whether two CAs of a listed node have one RDMA name: their ports may be the same."""
    has_label = (owners != UNLISTED) & (labels.codes > 0) & (sweep.columns.num_rows > 0)
    codes = owners[has_label] * len(labels.texts) + labels.codes[has_label]
    return len(np.unique(codes)) < len(codes)


def is_plain(sweep: SweepColumns) -> bool:
    """Return whether every node is of a known type, and no two nodes or ports share a GUID."""
    columns = sweep.columns
    sorted_guids = np.sort(columns.own_guids[columns.own_guids != NO_GUID])
    is_whole = np.isin(columns.letters, (SWITCH, HCA, ROUTER)).all()
    is_unique = (columns.guids[1:] > columns.guids[:-1]).all()
    return bool(is_whole and is_unique and (sorted_guids[1:] > sorted_guids[:-1]).all())


def describe_nodes(sweep: SweepColumns) -> tuple[list[str], HcaLabels]:
    """Return the device name of every node, and the RDMA names of CAs."""
    texts = sweep.descriptions()
    is_ca = sweep.columns.letters == HCA
    names = list(texts)
    codes = np.zeros(len(texts), np.intp)
    label_codes = {"": 0}
    nodes = np.flatnonzero(is_ca).tolist()
    for node, (name, label) in zip(nodes, host_names([texts[node] for node in nodes]), strict=True):
        names[node] = name
        codes[node] = label_codes.setdefault(label, len(label_codes))
    for node in np.flatnonzero(~is_ca).tolist():
        names[node] = switch_name(texts[node])
    return names, HcaLabels(codes, list(label_codes))


def _build_single_devices(
    sweep: SweepColumns, nodes: Iterable[int], names: Sequence[str]
) -> Iterator[SweptDevice]:
    """Yield one device per node."""
    letters, aggregation = sweep.columns.letters.tolist(), sweep.aggregation().tolist()
    kinds = {SWITCH: DeviceKind.SWITCH, ROUTER: DeviceKind.ROUTER, HCA: DeviceKind.HOST}
    for node in nodes:
        kind = DeviceKind.AGGREGATION if aggregation[node] else kinds[letters[node]]
        yield SweptDevice(sweep, kind, [names[node]] if names[node] else [], [node])


def _group_by_key(
    by_name: Mapping[str, list[int]], names: NodeNames
) -> Mapping[NameKey, list[int]]:
    """Return the CAs of each host by the key of its names, in the order of their claims."""
    nodes_by_key: dict[NameKey, list[int]] = defaultdict(list)
    for name in sorted(by_name):
        nodes_by_key[names.key(name)] += by_name[name]
    return dict(sorted(nodes_by_key.items()))


def _find_shared_names(
    sweep: SweepColumns, hosts: Sequence[Sequence[int]], labels: HcaLabels
) -> Flags:
    """Return one flag per host name: whether several hosts share it.

    Two CAs with the same host name and the same RDMA name belong to different hosts. A CA without
    an RDMA name is identified by its GUID, and a CA without ports gives no evidence.

    Args:
        sweep: all nodes.
        hosts: the CAs of each host name.
        labels: the RDMA names of the CAs.
    """
    nodes = np.fromiter(chain.from_iterable(hosts), np.intp)
    sizes = np.fromiter(map(len, hosts), np.intp)
    owners = np.repeat(np.arange(len(hosts)), sizes)
    has_ports = sweep.columns.num_rows[nodes] > 0
    is_named = has_ports & (labels.codes[nodes] > 0)
    shared = count_pairs(owners[is_named], labels.codes[nodes[is_named]])
    are_several: Flags = np.bincount(owners[has_ports], minlength=len(hosts)) == 0
    are_several[shared.left[shared.counts > 1]] = True
    are_several[sizes == 1] = False
    return are_several
