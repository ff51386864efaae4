"""Small fabrics of every kind for the tests of this folder, and functions to damage them."""

import random  # noqa: TID251 - the only place where tests of this folder seed a source
from dataclasses import replace

from topology.model.facts import Medium, PortName
from topology.synthetic import (
    Cable,
    DamagedFabric,
    FabricKind,
    NamePolicy,
    RandomSource,
    SyntheticSpec,
)

SPECS = {
    "a fat tree of two tiers": SyntheticSpec(FabricKind.FAT_TREE, 30, radix=8),
    "a fat tree of three tiers": SyntheticSpec(FabricKind.FAT_TREE, 16, radix=4),
    "a fat tree of four tiers": SyntheticSpec(FabricKind.FAT_TREE, 32, radix=4, tiers=4),
    "rails in two tiers": SyntheticSpec(FabricKind.RAIL, 16, rails=4, radix=16),
    "rails in three tiers": SyntheticSpec(FabricKind.RAIL, 30, rails=4, radix=8),
    "rails in more tiers than needed": SyntheticSpec(
        FabricKind.RAIL, 16, rails=2, radix=8, tiers=3
    ),
    "rails that do not divide the radix": SyntheticSpec(FabricKind.RAIL, 12, rails=3, radix=8),
    "MLAG pairs with peer links": SyntheticSpec(
        FabricKind.DUAL_HOMED, 21, radix=8, medium=Medium.ETHERNET, peer_links=2
    ),
    "MLAG pairs on Ethernet": SyntheticSpec(
        FabricKind.DUAL_HOMED, 21, radix=8, medium=Medium.ETHERNET
    ),
    "two planes of one port": SyntheticSpec(FabricKind.DUAL_PLANE, 30, rails=1, radix=8),
    "two planes of rails": SyntheticSpec(FabricKind.DUAL_PLANE, 30, rails=2, radix=8),
    "two planes in useless names": SyntheticSpec(
        FabricKind.DUAL_PLANE, 12, rails=3, radix=12, names=NamePolicy.OPAQUE
    ),
    "a dragonfly+ of four groups": SyntheticSpec(FabricKind.DRAGONFLY_PLUS, 60, radix=8),
    "a dragonfly+ of uneven groups": SyntheticSpec(FabricKind.DRAGONFLY_PLUS, 30, radix=8),
    "leaves of one up-link": SyntheticSpec(FabricKind.FAT_TREE, 30, radix=8, tiers=3, uplinks=1),
    "rails with storage leaves": SyntheticSpec(
        FabricKind.RAIL, 30, rails=4, radix=8, storage_leaves=2
    ),
    "NVLink domains below MLAG pairs": SyntheticSpec(
        FabricKind.DUAL_HOMED, 21, radix=8, medium=Medium.ETHERNET, nvlink_hosts=2
    ),
    "one full leaf alone": SyntheticSpec(FabricKind.FAT_TREE, 4, radix=8),
    "a radix that is no power of two": SyntheticSpec(FabricKind.FAT_TREE, 17, radix=12),
    "useless names": SyntheticSpec(FabricKind.RAIL, 30, rails=4, radix=8, names=NamePolicy.OPAQUE),
}


def seeded(seed: int) -> RandomSource:
    return random.Random(seed)  # noqa: S311 - faults are not secrets


def cable_of(damaged: DamagedFabric, device: str, port: str) -> Cable:
    """Return the cable whose lower end is a port."""
    return next(cable for cable in damaged.cables if cable.low == (device, port))


def swap(damaged: DamagedFabric, one: tuple[str, str], other: tuple[str, str]) -> DamagedFabric:
    """Exchange the upper ends of the cables at two ports."""
    first, second = cable_of(damaged, *one), cable_of(damaged, *other)
    now = {first: Cable(first.low, second.high), second: Cable(second.low, first.high)}
    return replace(damaged, cables=tuple(now.get(cable, cable) for cable in damaged.cables))


def cut(damaged: DamagedFabric, *ports: tuple[str, str]) -> DamagedFabric:
    """Remove the cables whose lower ends are some ports."""
    gone = {PortName(*port) for port in ports}
    return replace(
        damaged, cables=tuple(cable for cable in damaged.cables if cable.low not in gone)
    )


def cut_all(damaged: DamagedFabric, device: str) -> DamagedFabric:
    """Remove all cables that go up from a device."""
    return replace(
        damaged, cables=tuple(cable for cable in damaged.cables if cable.low.device != device)
    )


def remove(damaged: DamagedFabric, switch: str) -> DamagedFabric:
    """Remove a switch with its cables."""
    return replace(
        damaged,
        cables=tuple(
            cable for cable in damaged.cables if switch not in (cable.low.device, cable.high.device)
        ),
        lost_switches=damaged.lost_switches | {switch},
    )


def silence(damaged: DamagedFabric, *hosts: str) -> DamagedFabric:
    """Remove the reports of hosts."""
    return replace(damaged, silent=damaged.silent | set(hosts))
