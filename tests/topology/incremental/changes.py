"""Reports of synthetic fabrics, and random changes to one report."""

from __future__ import annotations

import random  # noqa: TID251 - its callers seed it
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState
from topology.model.ids import Id, IdKind
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    FaultSpec,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    damage_fabric,
    report_claims,
    sweep_devices,
)

Claims = tuple[Claim | SweptClaims, ...]
FAULTS = FaultSpec(lose_links=0.1, swap=0.05, silent=0.2, shuffle=True)
SPECS = {
    "rails": SyntheticSpec(FabricKind.RAIL, 64, rails=4, radix=16),
    "more rails": SyntheticSpec(FabricKind.RAIL, 32, rails=4, radix=8),
    "a fat tree": SyntheticSpec(FabricKind.FAT_TREE, 32, radix=8),
    "a deeper fat tree": SyntheticSpec(FabricKind.FAT_TREE, 32, radix=8, tiers=3),
    "leaf pairs": SyntheticSpec(FabricKind.DUAL_HOMED, 32, radix=8),
    "two planes": SyntheticSpec(FabricKind.DUAL_PLANE, 32, rails=2, radix=8),
    "groups of a dragonfly": SyntheticSpec(FabricKind.DRAGONFLY_PLUS, 32, radix=8),
    "storage leaves": SyntheticSpec(FabricKind.RAIL, 32, rails=4, radix=8, storage_leaves=2),
    "NVLink domains": SyntheticSpec(FabricKind.RAIL, 32, rails=2, radix=8, nvlink_hosts=4),
}


def dice(seed: object) -> random.Random:
    """Return the random source of a test."""
    return random.Random(str(seed))  # noqa: S311 - a test, not a secret


def built(spec: SyntheticSpec, rng: random.Random | None = None) -> DamagedFabric:
    """Return an Ethernet fabric, undamaged or with random damage."""
    wiring = build_wiring(replace(spec, medium=Medium.ETHERNET))
    return damage_fabric(wiring, FAULTS, rng) if rng else build_undamaged(wiring)


def all_reports(fabric: DamagedFabric) -> Claims:
    """Return the reports of hosts and switches."""
    return tuple(Claim(report.device, Origin.REPORT) for report in report_claims(fabric))


def host_reports(fabric: DamagedFabric) -> Claims:
    """Return the reports of hosts alone, as without SNMP."""
    return tuple(claim for claim in all_reports(fabric) if is_host(claim))


def listed(fabric: DamagedFabric) -> Claims:
    """Return the claims of an inventory."""
    names = (host.name for host in fabric.wiring.hosts)
    ids = ((name, (Id(IdKind.NODE_NAME, name),)) for name in names)
    return tuple(
        Claim(Device(DeviceKind.HOST, name, device_ids), Origin.INVENTORY)
        for name, device_ids in ids
    )


def renamed(fabric: DamagedFabric) -> Claims:
    """Return an inventory whose nodes have other names than their hosts, and reports.

    Two hosts each have the same first label, and every third host has no agent.
    """
    hosts = [host.name for host in fabric.wiring.hosts]
    called = {
        host: f"gpu{number // 2}.{'ab'[number % 2]}.example" for number, host in enumerate(hosts)
    }
    nodes = {host: f"10.0.4.{number}" for number, host in enumerate(hosts)}
    inventory = (
        Claim(_host_device(nodes[host], Id(IdKind.HOSTNAME, called[host])), Origin.INVENTORY)
        for host in hosts
    )
    silent = frozenset(hosts[::3])
    reports = (
        Claim(_rename_device(claim.device, called, nodes), Origin.REPORT)
        for claim in all_reports(fabric)
        if isinstance(claim, Claim) and claim.device.name not in silent
    )
    return (*inventory, *reports)


def _host_device(node: str, *ids: Id) -> Device:
    return Device(DeviceKind.HOST, node, tuple(sorted((*ids, Id(IdKind.NODE_NAME, node)))))


def _rename_device(device: Device, called: Mapping[str, str], nodes: Mapping[str, str]) -> Device:
    ids = (
        found._replace(value=nodes[found.value]) if found.kind is IdKind.NODE_NAME else found
        for found in device.ids
    )
    ports = (
        port._replace(
            neighbors=tuple(
                one._replace(device_name=called.get(one.device_name, one.device_name))
                for one in port.neighbors
            )
        )
        for port in device.ports
    )
    name = called.get(device.name, device.name)
    return replace(device, name=name, ids=tuple(sorted(ids)), ports=tuple(ports))


def swept(spec: SyntheticSpec) -> Claims:
    """Return the host reports of an InfiniBand fabric and a sweep of it."""
    fabric = build_undamaged(build_wiring(spec))
    reports = (Claim(report.device, Origin.REPORT) for report in report_claims(fabric))
    return (*reports, *(Claim(device, Origin.SWEEP) for device in sweep_devices(fabric)))


def is_host(claim: Claim | SweptClaims) -> bool:
    """Return whether a claim is a host's report."""
    return (
        isinstance(claim, Claim)
        and claim.origin is Origin.REPORT
        and claim.device.kind is DeviceKind.HOST
    )


def reports_in(claims: Claims) -> list[int]:
    """Return the indexes of the reports that have ports."""
    return [
        index
        for index, claim in enumerate(claims)
        if isinstance(claim, Claim) and claim.origin is Origin.REPORT and claim.device.ports
    ]


def with_port(claims: Claims, index: int, number: int, port: Port) -> Claims:
    """Return the claims with one port of one claim replaced."""
    claim = claims[index]
    assert isinstance(claim, Claim)
    ports = (*claim.device.ports[:number], port, *claim.device.ports[number + 1 :])
    changed = replace(claim, device=replace(claim.device, ports=ports))
    return (*claims[:index], changed, *claims[index + 1 :])


def restated(claims: Claims, rng: random.Random) -> Claims:
    """Return the claims with another state, rate or attribute of one port."""
    index = rng.choice(reports_in(claims))
    number, port = _some_port(claims, index, rng)
    rate = port.rate_bps or 0
    neighbors = tuple(neighbor._replace(ttl_s=rng.randrange(120)) for neighbor in port.neighbors)
    return with_port(
        claims,
        index,
        number,
        rng.choice(
            [
                port._replace(rate_bps=rate // rng.choice((2, 8))),
                port._replace(state=rng.choice(list(PortState))),
                port._replace(neighbors=neighbors),
                port._replace(numa_node=rng.randrange(4)),
            ]
        ),
    )


def moved(claims: Claims, rng: random.Random) -> Claims:
    """Return the claims with one host cable moved to a free port of another device."""
    indexes = reports_in(claims)
    chosen = rng.choice([index for index in indexes if is_host(claims[index])])
    number, port = _some_port(claims, chosen, rng)
    neighbors = list(_host_neighbors(claims, indexes))
    if not neighbors:
        return unplugged(claims, rng)
    name = f"swp{rng.randrange(200, 900)}"
    ids = tuple(sorted((Id(IdKind.IFNAME, name), Id(IdKind.PORT_ID, name, "ifname"))))
    new_neighbor = rng.choice(neighbors)._replace(port_ids=ids, port_name=name)
    return with_port(
        claims, chosen, number, port._replace(neighbors=(new_neighbor,), state=PortState.UP)
    )


def entangled(claims: Claims, rng: random.Random) -> Claims:
    """Return the claims with one port that reports the same neighbor as another port."""
    indexes = reports_in(claims)
    index = rng.choice(indexes)
    number, port = _some_port(claims, index, rng)
    others_neighbors = list(_host_neighbors(claims, indexes))
    neighbors = (rng.choice(others_neighbors),) if others_neighbors else ()
    return with_port(claims, index, number, port._replace(neighbors=neighbors))


def unplugged(claims: Claims, rng: random.Random) -> Claims:
    """Return the claims with one port that is down and without a neighbor."""
    index = rng.choice(reports_in(claims))
    number, port = _some_port(claims, index, rng)
    return with_port(claims, index, number, port._replace(neighbors=(), state=PortState.DOWN))


def without_report(claims: Claims, rng: random.Random) -> Claims:
    """Return claims without one of the reports."""
    index = rng.choice(reports_in(claims))
    return (*claims[:index], *claims[index + 1 :])


def _some_port(claims: Claims, index: int, rng: random.Random) -> tuple[int, Port]:
    claim = claims[index]
    assert isinstance(claim, Claim)
    number = rng.randrange(len(claim.device.ports))
    return number, claim.device.ports[number]


def _host_neighbors(claims: Claims, indexes: Sequence[int]) -> Iterator[Neighbor]:
    for index in indexes:
        claim = claims[index]
        if isinstance(claim, Claim) and is_host(claim):
            yield from (neighbor for port in claim.device.ports for neighbor in port.neighbors)
