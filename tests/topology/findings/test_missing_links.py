"""Missing up-links of a large fabric: all of them, in memory that grows with its cables."""

import tracemalloc

import pytest

from tests.topology.compute_trees import select_compute_plane
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from tests.topology.synthetic.fabrics import seeded
from tests.topology.verdicts import collect_claims, infer_from
from topology.findings.missing_links import find_missing_links
from topology.join.fabric_join import build_fabric
from topology.model.claims import SweptClaims
from topology.synthetic import (
    FabricKind,
    FaultKind,
    FaultSpec,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    damage_fabric,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover
from topology.tiers.domain_links import find_domain_links
from topology.tiers.ranks import rank_switches
from topology.tiers.tier_groups import group_switches


def measure_bytes(num_hosts: int) -> int:
    """Return the peak of the search in a fabric in which each leaf reaches few of the spines."""
    spec = SyntheticSpec(FabricKind.RAIL, num_hosts, rails=8, radix=16)
    text = render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(spec))))
    fabric = build_fabric([SweptClaims(parse_ibnetdiscover(text.encode()).devices)])
    plane = select_compute_plane(fabric)
    grouping = group_switches(plane, rank_switches(plane))
    domain_links = find_domain_links(plane, grouping)
    tracemalloc.start()
    try:
        found = list(
            find_missing_links(
                fabric,
                plane,
                grouping=grouping,
                domain_links=domain_links,
                misplaced=set(),
            )
        )
        assert found == []
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_its_memory_grows_with_the_cables_and_not_with_all_pairs_of_switches() -> None:
    small, large = measure_bytes(128), measure_bytes(512)
    assert large < 8 * small


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("radix", "lost"), [(64, 0.01), (64, 0.02), (128, 0.01), (128, 0.02)])
def test_lost_up_links_are_named_where_most_leaves_have_lost_one(
    radix: int, lost: float, seed: int
) -> None:
    spec = SyntheticSpec(FabricKind.RAIL, 16 * radix, rails=1, radix=radix)
    damaged = damage_fabric(build_wiring(spec), FaultSpec(lose_links=lost), seeded(seed))
    findings = infer_from(collect_claims(damaged)).findings
    named = {end for finding in findings for end in finding.ports}
    faults = [fault for fault in damaged.faults if fault.kind is FaultKind.LOST_LINK]
    assert [fault.ports for fault in faults if named.isdisjoint(fault.ports)] == []
