"""The ports that a missing cable is named with are those of a cable that was lost.

No end is guessed: on any damaged fabric, each cable that is named with both ports is one of the
undamaged fabric, and where several ports fit, the right ones are among them.
"""

import random  # noqa: TID251 - the seeded random source of faults
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.synthetic.fabrics import seeded
from tests.topology.verdicts import collect_claims, infer_from
from topology.findings.finding_causes import Cause
from topology.model.errors import ConfigError
from topology.model.facts import Finding, FindingKind, Medium, PortName
from topology.synthetic import (
    Cable,
    DamagedFabric,
    FabricKind,
    FaultSpec,
    SyntheticSpec,
    build_wiring,
    damage_fabric,
)

SPECS = {
    "rails of InfiniBand": SyntheticSpec(FabricKind.RAIL, 64, rails=4, radix=16),
    "rails of Ethernet": SyntheticSpec(
        FabricKind.RAIL, 64, rails=4, radix=16, medium=Medium.ETHERNET
    ),
    "a fat tree of three tiers": SyntheticSpec(FabricKind.FAT_TREE, 64, radix=8, tiers=3),
    "two planes": SyntheticSpec(FabricKind.DUAL_PLANE, 32, rails=2, radix=16),
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_named_port_is_one_that_lost_its_cable(spec: SyntheticSpec, seed: int) -> None:
    wiring = build_wiring(spec)
    faults = FaultSpec(lose_links=0.03, num_swaps=seed % 2)
    damaged = damage_fabric(wiring, faults, random.Random(seed))  # noqa: S311 - draws faults
    whole = {end for cable in wiring.cables for end in (cable.low, cable.high)}
    left = {end for cable in damaged.cables for end in (cable.low, cable.high)}
    named = [
        end
        for finding in infer_from(collect_claims(damaged)).findings
        if finding.kind is FindingKind.MISSING_LINK
        for end in finding.ports
        if end.port
    ]
    assert named
    assert [end for end in named if end not in whole - left] == []


class Scene(NamedTuple):
    """The parameters of a damaged fabric."""

    spec: SyntheticSpec
    faults: FaultSpec
    seed: int


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    kind = draw(st.sampled_from(FabricKind))
    spec = SyntheticSpec(
        kind,
        draw(st.integers(8, 96)),
        rails=draw(st.sampled_from((1, 2, 4, 8))),
        radix=draw(st.sampled_from((8, 12, 16, 24))),
        tiers=draw(st.sampled_from((None, 2, 3))),
        medium=draw(st.sampled_from((Medium.INFINIBAND, Medium.ETHERNET))),
        uplinks=draw(st.none() | st.integers(1, 5)),
        peer_links=draw(st.integers(0, 2)) if kind is FabricKind.DUAL_HOMED else 0,
    )
    faults = FaultSpec(
        lose_links=draw(st.sampled_from((0.005, 0.03, 0.1))),
        lose_switches=draw(st.integers(0, 1)),
    )
    return Scene(spec, faults, draw(st.integers(0, 1 << 32)))


def build(scene: Scene) -> DamagedFabric:
    try:
        return damage_fabric(build_wiring(scene.spec), scene.faults, seeded(scene.seed))
    except ConfigError:
        assume(condition=False)
        raise


def find_missing(damaged: DamagedFabric) -> Iterator[Finding]:
    for finding in infer_from(collect_claims(damaged)).findings:
        if finding.kind is FindingKind.MISSING_LINK:
            yield finding


def list_choices(finding: Finding) -> Iterator[tuple[str, set[str]]]:
    """Yield each device of which the message names several ports that fit."""
    for name, ports in re.findall(r"(\S+) \w+ of ports ([^ ,)]+(?:, [^ ,)]+)*)", finding.message):
        yield name, {*ports.split(", ")}


@settings(max_examples=examples(300), deadline=None)
@given(scenes())
def test_a_named_cable_is_one_of_the_undamaged_fabric(scene: Scene) -> None:
    """Of cables and switches that are lost: two that are swapped can make a place look wrong."""
    damaged = build(scene)
    peers = {end: peer for cable in damaged.wiring.cables for end, peer in (cable, cable[::-1])}
    present = {end for cable in damaged.cables for end in cable}
    for finding in find_missing(damaged):
        for near, far in Cause(finding).cables:
            assert not {near, far} & present
            if near.port and far is not None and far.port:
                assert peers[near] == far, finding.message
        devices = {end.device for end in finding.ports}
        for name, ports in list_choices(finding):
            lost = {
                end.port
                for end, peer in peers.items()
                if end.device == name and peer.device in devices and end not in present
            }
            assert lost <= ports, finding.message


def test_the_far_port_of_a_cable_follows_from_its_bundle() -> None:
    """A core has only one peer below the same spines, so no rule of its peers shows the port."""
    wiring = build_wiring(SyntheticSpec(FabricKind.RAIL, 512, rails=4, radix=16))
    low = "core-s01-06"
    lost = [
        cable
        for cable in wiring.cables
        if (cable.low.device, cable.low.port) in {(low, "11"), (low, "16")}
    ]
    left = tuple(cable for cable in wiring.cables if cable not in lost)
    damaged = DamagedFabric(wiring, left)
    named = {frozenset(cable) for row in find_missing(damaged) for cable in Cause(row).cables}
    assert named == {frozenset(cable) for cable in lost}


def test_a_host_with_a_swapped_cable_names_the_far_end_of_another_one_that_is_absent() -> None:
    wiring = build_wiring(SPECS["rails of InfiniBand"])
    by_end = {cable.low: cable for cable in wiring.cables}
    lost = by_end[PortName("node-0001", "mlx5_0/1")]
    first, second = (by_end[PortName(name, "mlx5_2/1")] for name in ("node-0001", "node-0020"))
    moved = {first: Cable(first.low, second.high), second: Cable(second.low, first.high)}
    left = tuple(moved.get(cable, cable) for cable in wiring.cables if cable != lost)
    named = [tuple(finding.ports) for finding in find_missing(DamagedFabric(wiring, left))]
    assert named == [lost]
