from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.synthetic.fabrics import SPECS, seeded
from topology.model.errors import ConfigError
from topology.model.facts import PortName
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    FaultKind,
    FaultSpec,
    SyntheticSpec,
    build_wiring,
    damage_fabric,
)

RAILS = build_wiring(SPECS["rails in three tiers"])


def damaged(faults: FaultSpec, seed: int = 0) -> DamagedFabric:
    return damage_fabric(RAILS, faults, seeded(seed))


def num_faults(found: DamagedFabric) -> Counter[FaultKind]:
    return Counter(fault.kind for fault in found.faults)


@settings(max_examples=examples(25))
@given(
    seed=st.integers(0, 2**16),
    lose_links=st.sampled_from([0.0, 0.01, 0.3]),
    num_swaps=st.integers(0, 6),
    lose_switches=st.integers(0, 3),
)
def test_it_keeps_one_cable_per_port(
    seed: int, lose_links: float, num_swaps: int, lose_switches: int
) -> None:
    found = damaged(FaultSpec(lose_links, num_swaps, 0.1, lose_switches), seed)
    ends = [end for cable in found.cables for end in cable]
    assert len(set(ends)) == len(ends)
    assert set(ends) <= {end for cable in RAILS.cables for end in cable}
    assert not {end.device for end in ends} & found.lost_switches


def test_it_loses_the_share_of_all_cables_and_names_each() -> None:
    found = damaged(FaultSpec(lose_links=0.02))
    lost = set(RAILS.cables) - set(found.cables)
    assert len(lost) == round(0.02 * len(RAILS.cables))
    assert {fault.ports for fault in found.faults} == lost
    assert num_faults(found) == {FaultKind.LOST_LINK: len(lost)}


def test_it_loses_a_switch_with_all_of_its_cables() -> None:
    found = damaged(FaultSpec(lose_switches=1))
    (name,) = found.lost_switches
    gone = {cable for cable in RAILS.cables if name in (cable.low.device, cable.high.device)}
    assert set(RAILS.cables) - set(found.cables) == gone
    assert set(found.faults[0].ports) == {end for cable in gone for end in cable}


def test_it_loses_named_devices_in_addition_to_drawn_ones() -> None:
    found = damaged(FaultSpec(lose_switches=1, lose_hosts=1, lost=("node-0003", "core-01")))
    assert (len(found.lost_switches), len(found.lost_hosts)) == (2, 2)
    assert "core-01" in found.lost_switches
    assert "node-0003" in found.lost_hosts & found.silent
    assert not {"node-0003", "core-01"} & {end.device for cable in found.cables for end in cable}


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_it_loses_switches_of_the_given_rank(rank: int) -> None:
    ranks = {switch.name: switch.rank for switch in RAILS.switches}
    found = damaged(FaultSpec(lose_switches=3, lose_rank=rank))
    assert [ranks[name] for name in found.lost_switches] == [rank] * 3


def test_it_puts_hosts_with_their_hcas_in_the_places_of_others() -> None:
    found = damaged(FaultSpec(shuffle=True)).wiring
    assert set(found.hosts) == set(RAILS.hosts)
    assert found.hosts != RAILS.hosts
    assert [cable.high for cable in found.cables] == [cable.high for cable in RAILS.cables]
    nics = [PortName(host.name, nic.port) for host in found.hosts for nic in host.nics]
    assert [cable.low for cable in found.cables[: len(nics)]] == nics
    assert found.cables[len(nics) :] == RAILS.cables[len(nics) :]


def test_it_exchanges_one_end_of_two_cables() -> None:
    found = damaged(FaultSpec(num_swaps=5))
    before, after = set(RAILS.cables), set(found.cables)
    assert len(after - before) == len(before - after) == 10
    assert num_faults(found) == {FaultKind.SWAPPED_CABLE: 5}
    for fault in found.faults:
        old = {cable for cable in before - after if set(cable) <= set(fault.ports)}
        new = {cable for cable in after - before if set(cable) <= set(fault.ports)}
        assert (len(old), len(new), len(set(fault.ports))) == (2, 2, 4)
        assert {cable.low for cable in old} == {cable.low for cable in new}


def test_it_mixes_swaps_of_hosts_of_rails_and_of_up_links() -> None:
    found = damaged(FaultSpec(num_swaps=3))
    paths = {switch.name: switch for switch in RAILS.switches}
    sorts = set()
    for fault in found.faults:
        ups = [paths[end.device] for end in fault.ports if end.device in paths]
        groups = {switch.path for switch in ups}
        sorts.add((len(ups), len(groups)) if len(ups) == 2 else "uplink")
    assert sorts == {(2, 1), (2, 2), "uplink"}


@pytest.mark.parametrize(
    ("title", "ranks"),
    [("rails in three tiers", (2, 3)), ("a dragonfly+ of four groups", (2, 2))],
)
def test_it_swaps_cables_above_the_spines_too(title: str, ranks: tuple[int, int]) -> None:
    wiring = build_wiring(SPECS[title])
    rank = {switch.name: switch.rank for switch in wiring.switches}
    found = damage_fabric(wiring, FaultSpec(num_swaps=4), seeded(0))
    moved = set(found.cables) - set(wiring.cables)
    assert ranks in {(rank.get(low.device, 0), rank[high.device]) for low, high in moved}


def test_it_silences_the_share_of_hosts_and_leaves_their_cables() -> None:
    found = damaged(FaultSpec(silent=0.1))
    assert len(found.silent) == round(0.1 * len(RAILS.hosts))
    assert found.cables == RAILS.cables
    assert {fault.ports[0].device for fault in found.faults} == found.silent
    assert all(fault.is_detectable for fault in found.faults)


@pytest.mark.parametrize(
    ("faults", "problem"),
    [
        pytest.param(FaultSpec(lose_links=1.5), "0 to 100 %", id="more cables than the fabric has"),
        pytest.param(FaultSpec(silent=-0.1), "0 to 100 %", id="a negative share of hosts"),
        pytest.param(FaultSpec(num_swaps=-1), "0 or more swaps", id="a negative number of swaps"),
        pytest.param(
            FaultSpec(lose_switches=1000), "to lose 0 to", id="more switches than the fabric has"
        ),
        pytest.param(FaultSpec(lost=("sw",)), "to lose, got sw", id="an unknown device"),
        pytest.param(
            FaultSpec(lose_switches=1, lose_rank=4),
            "of rank 4, got 1",
            id="a rank without switches",
        ),
        pytest.param(FaultSpec(num_swaps=500), "only 188 of 500", id="more swaps than cables"),
    ],
)
def test_it_refuses_faults_that_the_fabric_cannot_have(faults: FaultSpec, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        damaged(faults)


def test_it_finds_nothing_to_swap_under_one_leaf() -> None:
    wiring = build_wiring(SyntheticSpec(FabricKind.FAT_TREE, 4, radix=8))
    with pytest.raises(ConfigError, match="only 0 of 1"):
        damage_fabric(wiring, FaultSpec(num_swaps=1), seeded(0))
