"""Reports of synthetic fabrics, and what becomes of one of them from one minute to the next."""

from __future__ import annotations

import random  # noqa: TID251 - its callers seed it
from collections.abc import Iterator, Sequence
from dataclasses import replace

from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState
from topology.model.ids import Id, IdKind
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    SyntheticSpec,
    FaultSpec,
    build_wiring,
    damage_fabric,
    report_claims,
    sweep_devices,
    build_undamaged,
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
    """Return what changes are drawn from."""
    return random.Random(str(seed))  # noqa: S311 - a test, not a secret


def built(spec: SyntheticSpec, rng: random.Random | None = None) -> DamagedFabric:
    """Return an Ethernet fabric, whole or with damage as the dice have it."""
    wiring = build_wiring(replace(spec, medium=Medium.ETHERNET))
    return damage_fabric(wiring, FAULTS, rng) if rng else build_undamaged(wiring)


def all_reports(fabric: DamagedFabric) -> Claims:
    """Return what hosts and switches report."""
    return tuple(Claim(found.device, Origin.REPORT) for found in report_claims(fabric))


def host_reports(fabric: DamagedFabric) -> Claims:
    """Return what hosts report where nobody walks switches."""
    return tuple(claim for claim in all_reports(fabric) if is_host(claim))


def listed(fabric: DamagedFabric) -> Claims:
    """Return what an inventory says."""
    names = (host.name for host in fabric.wiring.hosts)
    ids = ((name, (Id(IdKind.NODE_NAME, name),)) for name in names)
    return tuple(Claim(Device(DeviceKind.HOST, name, own), Origin.INVENTORY) for name, own in ids)


def swept(spec: SyntheticSpec) -> Claims:
    """Return what hosts of an InfiniBand fabric report, and a sweep of it."""
    fabric = build_undamaged(build_wiring(spec))
    own = (Claim(found.device, Origin.REPORT) for found in report_claims(fabric))
    return (*own, *(Claim(device, Origin.SWEEP) for device in sweep_devices(fabric)))


def is_host(claim: Claim | SweptClaims) -> bool:
    """Return whether a claim is a host's report."""
    return (
        isinstance(claim, Claim)
        and claim.origin is Origin.REPORT
        and claim.device.kind is DeviceKind.HOST
    )


def reports_in(claims: Claims) -> list[int]:
    """Return the places of the reports that have ports."""
    return [
        at
        for at, claim in enumerate(claims)
        if isinstance(claim, Claim) and claim.origin is Origin.REPORT and claim.device.ports
    ]


def with_port(claims: Claims, at: int, number: int, port: Port) -> Claims:
    """Return claims of which one has another port in place of one."""
    claim = claims[at]
    assert isinstance(claim, Claim)
    ports = (*claim.device.ports[:number], port, *claim.device.ports[number + 1 :])
    changed = replace(claim, device=replace(claim.device, ports=ports))
    return (*claims[:at], changed, *claims[at + 1 :])


def restated(claims: Claims, rng: random.Random) -> Claims:
    """Return claims of which one report tells another state, rate or text of a port."""
    at = rng.choice(reports_in(claims))
    number, port = _some_port(claims, at, rng)
    rate = port.rate_bps or 0
    heard = tuple(one._replace(ttl_s=rng.randrange(120)) for one in port.neighbors)
    return with_port(
        claims,
        at,
        number,
        rng.choice(
            [
                port._replace(rate_bps=rate // rng.choice((2, 8))),
                port._replace(state=rng.choice(list(PortState))),
                port._replace(neighbors=heard),
                port._replace(numa_node=rng.randrange(4)),
            ]
        ),
    )


def moved(claims: Claims, rng: random.Random) -> Claims:
    """Return claims of which one report has a cable in a free port of another device."""
    places = reports_in(claims)
    at = rng.choice([place for place in places if is_host(claims[place])])
    number, port = _some_port(claims, at, rng)
    others = list(_heard(claims, places))
    if not others:
        return unplugged(claims, rng)
    name = f"swp{rng.randrange(200, 900)}"
    ids = tuple(sorted((Id(IdKind.IFNAME, name), Id(IdKind.PORT_ID, name, "ifname"))))
    there = rng.choice(others)._replace(port_ids=ids, port_name=name)
    return with_port(claims, at, number, port._replace(neighbors=(there,), state=PortState.UP))


def entangled(claims: Claims, rng: random.Random) -> Claims:
    """Return claims of which one report hears on a port what another one hears as well."""
    places = reports_in(claims)
    at = rng.choice(places)
    number, port = _some_port(claims, at, rng)
    others = list(_heard(claims, places))
    heard = (rng.choice(others),) if others else ()
    return with_port(claims, at, number, port._replace(neighbors=heard))


def unplugged(claims: Claims, rng: random.Random) -> Claims:
    """Return claims of which one report hears nobody on a port."""
    at = rng.choice(reports_in(claims))
    number, port = _some_port(claims, at, rng)
    return with_port(claims, at, number, port._replace(neighbors=(), state=PortState.DOWN))


def gone(claims: Claims, rng: random.Random) -> Claims:
    """Return claims without one of the reports."""
    at = rng.choice(reports_in(claims))
    return (*claims[:at], *claims[at + 1 :])


def _some_port(claims: Claims, at: int, rng: random.Random) -> tuple[int, Port]:
    claim = claims[at]
    assert isinstance(claim, Claim)
    number = rng.randrange(len(claim.device.ports))
    return number, claim.device.ports[number]


def _heard(claims: Claims, places: Sequence[int]) -> Iterator[Neighbor]:
    for at in places:
        claim = claims[at]
        if isinstance(claim, Claim) and is_host(claim):
            yield from (near for port in claim.device.ports for near in port.neighbors)
