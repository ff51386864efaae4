"""Ranks, groups and their units, on weights and links written by hand."""

import random  # noqa: TID251 - shuffles, from the seed that hypothesis draws

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.planes.cables import Edge, EdgeRows
from topology.planes.plane import Plane, PortSet
from topology.tiers.ranks import rank_switches
from topology.tiers.switch_overlap import Side, join_switches
from topology.tiers.tier_groups import TierGroups, group_switches

Weights = dict[int, dict[int, int]]


def even(units: range, count: int = 1) -> dict[int, int]:
    return dict.fromkeys(units, count)


@pytest.mark.parametrize(
    ("weights", "side", "groups"),
    [
        pytest.param({}, Side.BOTH, [], id="no switches"),
        pytest.param(
            {1: even(range(4)), 2: even(range(4)), 3: even(range(4, 8))},
            Side.BOTH,
            [(1, 2), (3,)],
            id="equal reaches are one group",
        ),
        pytest.param(
            {1: even(range(4)), 2: even(range(16))},
            Side.BOTH,
            [(1,), (2,)],
            id="a shared leaf joins no leaf that it contains",
        ),
        pytest.param(
            {1: even(range(4)), 2: even(range(16))},
            Side.SMALLER,
            [(1, 2)],
            id="a core that lost most cables stays a core",
        ),
        pytest.param(
            {1: {0: 4, 1: 4, 2: 1}, 2: {2: 4, 3: 4, 0: 1}},
            Side.SMALLER,
            [(1,), (2,)],
            id="two swapped cables fuse no pods",
        ),
        pytest.param(
            {1: {0: 1, 1: 1, 2: 2}, 2: {0: 1, 1: 1, 2: 1, 3: 1}},
            Side.BOTH,
            [(1, 2)],
            id="a swap in a small pair leaves most units on both",
        ),
        pytest.param(
            {at: even(range(8)) for at in range(12)} | {20: even(range(6, 14))},
            Side.BOTH,
            [tuple(range(12)), (20,)],
            id="a majority outvotes one misplaced switch",
        ),
    ],
)
def test_it_joins(weights: Weights, side: Side, groups: list[tuple[int, ...]]) -> None:
    assert join_switches(weights, side) == groups


@given(
    st.dictionaries(
        st.integers(0, 9),
        st.dictionaries(st.integers(0, 5), st.integers(1, 3), min_size=1),
        max_size=8,
    ),
    st.sampled_from(Side),
    st.randoms(use_true_random=False),
)
def test_it_joins_each_switch_once_in_any_order(
    weights: Weights,
    side: Side,
    rng: random.Random,
) -> None:
    groups = join_switches(weights, side)
    assert sorted(switch for group in groups for switch in group) == sorted(weights)
    again = {
        switch: dict(rng.sample(list(weights[switch].items()), len(weights[switch])))
        for switch in rng.sample(list(weights), len(weights))
    }
    assert join_switches(again, side) == groups


def plane_of(host_links: list[tuple[int, int]], switch_links: list[tuple[int, int]]) -> Plane:
    """Return a plane of (host, switch) and (switch, switch) links; host numbers start at 100."""
    return Plane(
        name="compute",
        hosts=tuple(sorted({host for host, _ in host_links})),
        switches=tuple(sorted({leaf for _, leaf in host_links}.union(*switch_links))),
        host_edges=EdgeRows.of(Edge(host, switch, 0, 0) for host, switch in host_links),
        switch_edges=EdgeRows.of(Edge(switch, peer, 0, 0) for switch, peer in switch_links),
        ports=PortSet(np.zeros(0, np.bool_)),
    )


def attach(switch: int, first: int, count: int) -> list[tuple[int, int]]:
    return [(host, switch) for host in range(first, first + count)]


UP = [(low, high) for low in (1, 2) for high in (11, 12) for _ in range(2)]
HOSTS = [*attach(1, 100, 4), *attach(2, 104, 4)]


@pytest.mark.parametrize(
    ("host_links", "switch_links", "rank"),
    [
        pytest.param(HOSTS, UP, {1: 1, 2: 1, 11: 2, 12: 2}, id="leaves and spines"),
        pytest.param(
            [*HOSTS, (120, 11)], UP, {1: 1, 2: 1, 11: 2, 12: 2}, id="a misplaced host makes no leaf"
        ),
        pytest.param(
            [*HOSTS, (120, 3)],
            [*UP, (3, 11), (3, 11), (3, 12), (3, 12)],
            {1: 1, 2: 1, 3: 1, 11: 2, 12: 2},
            id="a last leaf with one host is a leaf",
        ),
        pytest.param(HOSTS, [], {1: 1, 2: 1}, id="leaves alone"),
        pytest.param(HOSTS, [(1, 2)], {1: 1, 2: 1}, id="leaves cabled to each other"),
        pytest.param([], UP, {}, id="no hosts, no ranks"),
    ],
)
def test_it_ranks(
    host_links: list[tuple[int, int]], switch_links: list[tuple[int, int]], rank: dict[int, int]
) -> None:
    assert dict(rank_switches(plane_of(host_links, switch_links)).rank) == rank


def test_it_returns_the_switches_of_a_rank_and_the_highest_rank() -> None:
    ranks = rank_switches(plane_of([*HOSTS, (120, 11)], UP))
    assert (ranks.by_rank[2], ranks.highest) == ([11, 12], 2)
    assert ranks.hosts_on_spines == ((120, 11),)
    assert rank_switches(plane_of([], [])).highest == 0


def test_it_ranks_a_core_above_spines_despite_a_swapped_cable() -> None:
    spines = [(leaf, spine) for leaf in (1, 2) for spine in (11, 12)]
    cores = [(spine, core) for spine in (11, 12) for core in (21, 22) for _ in range(3)]
    ranks = rank_switches(plane_of(HOSTS, [*spines, *cores, (1, 21)]))
    assert ranks.rank[21] == 3


def grouped(host_links: list[tuple[int, int]], switch_links: list[tuple[int, int]]) -> TierGroups:
    plane = plane_of(host_links, switch_links)
    return group_switches(plane, rank_switches(plane))


def test_it_measures_the_distance_of_a_group_from_a_tie() -> None:
    torn = [(100, 1), (100, 1), (100, 1), (100, 2)]
    tier_groups = grouped([*HOSTS, *torn], UP)
    assert [group.margin for group in tier_groups.groups] == [0.6, 1.0, 1.0]


def test_it_attaches_a_rail_leaf_that_only_some_hosts_use() -> None:
    rails = [(host, leaf) for leaf in (1, 2, 3) for host in range(100, 108)]
    tier_groups = grouped([*rails, *((host, 4) for host in (100, 101, 102))], [])
    assert [group.switches for group in tier_groups.groups] == [(1, 2, 3, 4)]


def test_it_attaches_no_leaf_because_of_a_single_host() -> None:
    tier_groups = grouped([*attach(1, 100, 8), *attach(1, 100, 8), (100, 2)], [])
    assert [group.switches for group in tier_groups.groups] == [(1,)]
    assert tier_groups.set_aside == ((1, (2,)),)


def test_it_sets_aside_storage_leaves_that_pods_share() -> None:
    pods = [*HOSTS, *attach(3, 108, 4)]
    storage = [(host, 9) for host in range(100, 112)]
    tier_groups = grouped([*pods, *storage], [])
    assert [group.switches for group in tier_groups.groups] == [(1,), (2,), (3,)]
    assert tier_groups.set_aside == ((1, (9,)),)
    assert tier_groups.host_ties == ()


def test_it_guesses_nothing_where_all_leaves_are_tied() -> None:
    ring = [(100 + at, 1 + at % 3) for at in range(12)]
    ring += [(100 + at, 1 + (at + 1) % 3) for at in range(12)]
    tier_groups = grouped(ring, [])
    assert len(tier_groups.host_ties) == 12
    assert tier_groups.groups == ()
