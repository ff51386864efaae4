"""Fabrics of each kind, and the switches that a test takes from them."""

from __future__ import annotations

import random  # noqa: TID251 - seeded
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.topology.compute_trees import select_compute_plane
from tests.verify.sources import SourceMix, collect_sources
from topology.inference.tree_inference import Inference, infer_tree
from topology.join.fabric_join import build_fabric
from topology.model.fabric import Fabric as JoinedFabric
from topology.model.facts import Finding, FindingKind, Medium
from topology.planes.plane import Plane
from topology.synthetic import (
    FabricKind,
    FaultSpec,
    SyntheticSpec,
    Wiring,
    damage_fabric,
)


class Inferred(NamedTuple):
    fabric: JoinedFabric
    plane: Plane
    inference: Inference


class Fabric(NamedTuple):
    spec: SyntheticSpec
    is_one_pod: bool = False
    """All leaves are cabled to the same spines."""


def fat_tree(num: int, radix: int, tiers: int | None = None) -> SyntheticSpec:
    return SyntheticSpec(FabricKind.FAT_TREE, num, radix=radix, tiers=tiers)


def rails(num: int, rails: int, radix: int = 64) -> SyntheticSpec:
    return SyntheticSpec(FabricKind.RAIL, num, rails=rails, radix=radix)


def planes(num: int) -> SyntheticSpec:
    return SyntheticSpec(FabricKind.DUAL_PLANE, num, rails=4)


def dragonfly(num: int, radix: int) -> SyntheticSpec:
    return SyntheticSpec(FabricKind.DRAGONFLY_PLUS, num, radix=radix)


def pairs(num: int) -> SyntheticSpec:
    kind, ethernet = FabricKind.DUAL_HOMED, Medium.ETHERNET
    return SyntheticSpec(kind, num, radix=32, medium=ethernet, peer_links=2)


FABRICS: Final = (
    Fabric(fat_tree(128, 32), is_one_pod=True),
    Fabric(fat_tree(128, 16, 3)),
    Fabric(rails(128, 8), is_one_pod=True),
    Fabric(rails(96, 4, 16)),
    Fabric(planes(128)),
    Fabric(dragonfly(128, 16)),
    Fabric(pairs(128), is_one_pod=True),
)
LARGE: Final = (
    Fabric(fat_tree(512, 16, 3)),
    Fabric(rails(512, 8)),
    Fabric(planes(512)),
    Fabric(dragonfly(512, 16)),
    Fabric(pairs(512)),
    Fabric(fat_tree(1024, 64), is_one_pod=True),
    Fabric(rails(1024, 4)),
    Fabric(fat_tree(4096, 32, 3)),
    Fabric(rails(4096, 8)),
    Fabric(planes(4096)),
    Fabric(dragonfly(4096, 32)),
    Fabric(pairs(4096)),
)

_MANY_HOSTS: Final = 1000


def name(fabric: Fabric) -> str:
    return f"{fabric.spec.num_hosts} hosts, {fabric.spec.kind.value}, radix {fabric.spec.radix}"


def infer(
    wiring: Wiring,
    *lost: str,
    faults: FaultSpec | None = None,
    mix: SourceMix = SourceMix.ALL,
    seed: int = 0,
) -> Inferred:
    damaged = damage_fabric(wiring, faults or FaultSpec(lost=lost), random.Random(seed))  # noqa: S311
    fabric = build_fabric(collect_sources(damaged, mix))
    plane = select_compute_plane(fabric)
    return Inferred(fabric, plane, infer_tree(fabric, plane))


def find_lost(wiring: Wiring, *lost: str, faults: FaultSpec | None = None) -> list[Finding]:
    findings = infer(wiring, *lost, faults=faults).inference.findings
    return [finding for finding in findings if finding.kind is FindingKind.LOST_SWITCH]


def list_positions(wiring: Wiring) -> Iterator[tuple[int, str, bool]]:
    """Yield the rank of a switch, its name, and whether it is the first or last one.

    Of a large fabric, only the middle one of each rank: an inference takes up to ten seconds.
    """
    is_large = len(wiring.hosts) > _MANY_HOSTS
    for rank in sorted({switch.rank for switch in wiring.switches}):
        names = [switch.name for switch in wiring.switches if switch.rank == rank]
        last = len(names) - 1
        for place in [len(names) // 2] if is_large else sorted({0, 1, len(names) // 2, last}):
            yield rank, names[place], place in (0, last)


def list_neighbors(wiring: Wiring, switch: str) -> set[str]:
    near = (cable for cable in wiring.cables if switch in (cable.low.device, cable.high.device))
    return {end.device for cable in near for end in cable} - {switch}


def check_named(wiring: Wiring, switch: str, finding: Finding) -> None:
    """Check that a finding names half of the neighbors of a lost switch, and no other device."""
    neighbors, named = list_neighbors(wiring, switch), {end.device for end in finding.ports}
    assert named <= neighbors, switch
    assert finding.lost_name in {"", switch}
    assert 2 * len(named) >= len(neighbors), switch
