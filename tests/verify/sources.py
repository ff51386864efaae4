"""The sources of a damaged fabric, as `toponaut tree` and `toponaut serve` hold them in memory.

A sweep is columns that are read from its text, and a report is bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Final

from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.facts import Device, DeviceKind, Medium
from topology.model.ids import Id, IdKind
from topology.model.tree import TopologyTree
from topology.reports.packed_reports import PackedClaim, pack_device
from topology.synthetic import (
    DamagedFabric,
    derive_truth,
    render_inventory,
    report_claims,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover


class SourceMix(StrEnum):
    """Sources that are read together."""

    SWEEP = "sweep"
    """The sweeps of all subnets."""
    LISTED_SWEEP = "sweep+nodes"
    """The sweeps of all subnets and the node list."""
    LISTED_REPORTS = "reports+nodes"
    """The reports of hosts and Ethernet switches, and the node list."""
    ALL = "all"
    """The sweeps of all subnets, the reports and the node list."""


MIXES: Final = {
    Medium.INFINIBAND: (SourceMix.LISTED_SWEEP, SourceMix.SWEEP, SourceMix.ALL),
    Medium.ETHERNET: (SourceMix.LISTED_REPORTS,),
}
"""By medium, the mixes that show its cables, the most frequent first. Without a node list, nothing
says that a silent Ethernet host is a node, so that no true tree is defined."""


def collect_sources(damaged: DamagedFabric, mix: SourceMix) -> list[Claim | SweptClaims]:
    """Return the claims of a mix: of the node list, of the reports, then of each sweep."""
    claims: list[Claim | SweptClaims] = []
    if mix is not SourceMix.SWEEP:
        claims += _collect_listed_nodes(damaged)
    if mix in {SourceMix.LISTED_REPORTS, SourceMix.ALL}:
        claims += _collect_reports(damaged)
    if damaged.wiring.spec.medium is Medium.INFINIBAND:
        claims += _collect_sweeps(damaged)
    return claims


def derive_visible_truth(damaged: DamagedFabric, mix: SourceMix) -> TopologyTree:
    """Return the true tree, as far as the sources of a mix can show it.

    Sweeps alone show no host without a cable, and only reports show NVLink domains.
    """
    wiring = damaged.wiring
    if mix is SourceMix.SWEEP:
        cabled = {cable.low.device for cable in damaged.cables}
        hosts = tuple(host for host in wiring.hosts if host.name in cabled)
        wiring = replace(wiring, hosts=hosts)
    if mix in {SourceMix.SWEEP, SourceMix.LISTED_SWEEP}:
        wiring = replace(wiring, spec=replace(wiring.spec, nvlink_hosts=0))
    return derive_truth(replace(damaged, wiring=wiring))


def _collect_listed_nodes(damaged: DamagedFabric) -> Iterator[Claim]:
    """Yield the claims of the node list: every host with the ids of its ports."""
    for row in render_inventory(damaged)["nodes"]:
        ids = [Id(IdKind(item["type"]), item["value"]) for item in row["ids"]]
        ids.append(Id(IdKind.NODE_NAME, row["name"]))
        yield Claim(Device(DeviceKind.HOST, row["name"], tuple(sorted(ids))), Origin.INVENTORY)


def _collect_reports(damaged: DamagedFabric) -> Iterator[Claim]:
    for report, device in report_claims(damaged):
        node = report if device.kind is DeviceKind.HOST else None
        yield PackedClaim(pack_device(device), device.name, node=node)


def _collect_sweeps(damaged: DamagedFabric) -> Iterator[SweptClaims]:
    """Yield the sweep of each subnet, read from its text by the reader of large sweeps."""
    for plane in range(damaged.wiring.spec.num_planes):
        text = render_ibnetdiscover(sweep_devices(damaged, plane))
        devices = parse_ibnetdiscover(text.encode()).devices
        if len(devices):
            yield SweptClaims(devices)
