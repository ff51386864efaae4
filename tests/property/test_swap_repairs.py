"""Each exchange of plugs that a finding proposes repairs something, on any damaged fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.synthetic.fabrics import seeded
from tests.topology.verdicts import collect_claims, infer_from
from topology.model.errors import ConfigError
from topology.model.facts import Finding, FindingKind, Medium, PortName
from topology.synthetic import (
    Cable,
    DamagedFabric,
    FabricKind,
    FaultSpec,
    NamePolicy,
    SyntheticSpec,
    build_wiring,
    damage_fabric,
)


class Scene(NamedTuple):
    """The parameters of a damaged fabric."""

    spec: SyntheticSpec
    faults: FaultSpec
    seed: int


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    kind, num_hosts = draw(st.sampled_from(FabricKind)), draw(st.integers(8, 64))
    spec = SyntheticSpec(
        kind,
        num_hosts,
        rails=draw(st.sampled_from((1, 2, 4, 8))),
        radix=draw(st.sampled_from((8, 10, 12, 16, 24))),
        tiers=draw(st.sampled_from((None, 2, 3))),
        medium=draw(st.sampled_from((Medium.INFINIBAND, Medium.ETHERNET))),
        names=draw(st.sampled_from(NamePolicy)),
        uplinks=draw(st.none() | st.integers(1, 5)),
        storage_leaves=draw(st.integers(0, 2)),
        peer_links=draw(st.integers(0, 2)) if kind is FabricKind.DUAL_HOMED else 0,
    )
    faults = FaultSpec(
        num_swaps=draw(st.integers(1, min(4, num_hosts // 8))),
        lose_links=draw(st.sampled_from((0.0, 0.01, 0.05))),
        lose_switches=draw(st.integers(0, 1)),
        silent=draw(st.sampled_from((0.0, 0.05))),
    )
    return Scene(spec, faults, draw(st.integers(0, 1 << 32)))


def find_problems(damaged: DamagedFabric) -> Sequence[Finding]:
    return infer_from(collect_claims(damaged)).findings


def count_swap_findings(findings: Sequence[Finding]) -> int:
    kinds = {FindingKind.SWAPPED_CABLE, FindingKind.WRONG_RAIL}
    return sum(finding.kind in kinds for finding in findings)


def count_misplaced(damaged: DamagedFabric) -> int:
    return len(set(damaged.cables).difference(damaged.wiring.cables))


def exchange(damaged: DamagedFabric, plugs: tuple[PortName, PortName]) -> DamagedFabric:
    first, second = (next(cable for cable in damaged.cables if plug in cable) for plug in plugs)
    now = {first: Cable(first.low, second.high), second: Cable(second.low, first.high)}
    return replace(damaged, cables=tuple(now.get(cable, cable) for cable in damaged.cables))


@settings(max_examples=examples(300), deadline=None)
@given(scenes())
def test_each_proposed_exchange_puts_a_cable_in_place_or_settles_more_than_it_raises(
    scene: Scene,
) -> None:
    """Of two hosts with as many cables to each other's groups, either may have moved.

    An exchange then moves both hosts whole, and the resulting fabric is as good as the planned one.
    """
    try:
        damaged = damage_fabric(build_wiring(scene.spec), scene.faults, seeded(scene.seed))
    except ConfigError:
        assume(condition=False)
        raise
    findings = find_problems(damaged)
    for plugs in (pair for finding in findings for pair in finding.swap):
        exchanged = exchange(damaged, plugs)
        if count_misplaced(exchanged) >= count_misplaced(damaged):
            after = find_problems(exchanged)
            assert len(after) < len(findings)
            assert count_swap_findings(after) <= count_swap_findings(findings)
