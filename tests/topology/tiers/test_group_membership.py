"""Who holds a unit, who joins whom, and who is only a guest: on weights written down by hand."""

import pytest

from topology.tiers.group_membership import (
    UnitAssignment,
    absorb_minor_groups,
    assign_units,
    find_shared_groups,
)

Weights = dict[int, dict[int, int]]


def homes(weights: Weights, *groups: tuple[int, ...]) -> UnitAssignment:
    return assign_units(groups, weights)


def test_it_gives_a_unit_to_the_group_with_most_of_its_links() -> None:
    found = homes({1: {0: 3, 1: 1}, 2: {0: 1, 1: 4}}, (1,), (2,))
    assert dict(found.group_of_unit) == {0: 0, 1: 1}
    assert dict(found.margin) == {0: 0.5, 1: 0.6}
    assert found.ties == ()


def test_it_gives_a_unit_with_equal_links_to_nobody() -> None:
    found = homes({1: {0: 2, 1: 4}, 2: {0: 2, 2: 4}}, (1,), (2,))
    assert dict(found.group_of_unit) == {1: 0, 2: 1}
    (tie,) = found.ties
    assert (tie.unit, tie.groups, tie.counts) == (0, ((1,), (2,)), (2, 2))


def test_it_doubts_a_home_that_a_switch_of_no_group_could_overturn() -> None:
    # Switch 3 hangs between both groups; if it were of the second one, unit 0 would be tied.
    weights = {1: {0: 2, 1: 4}, 2: {0: 1, 2: 4}, 3: {0: 1, 1: 1, 2: 1}}
    found = homes(weights, (1,), (2,), (3,))
    (tie,) = found.ties
    assert (tie.unit, tie.groups, tie.counts) == (0, ((1,), (2,), (3,)), (2, 1, 1))
    assert dict(found.group_of_unit) == {1: 0, 2: 1}


def test_it_does_not_doubt_a_home_over_a_switch_that_has_none_of_the_rival_s_units() -> None:
    weights = {1: {0: 2, 1: 4}, 2: {0: 1, 2: 4}, 3: {0: 1, 1: 1}}
    assert homes(weights, (1,), (2,), (3,)).group_of_unit[0] == 0


@pytest.mark.parametrize(
    ("weights", "min_owners", "groups"),
    [
        pytest.param(
            {1: {0: 2, 1: 2, 2: 2}, 2: {0: 1, 1: 1, 5: 1, 6: 1}, 3: {5: 2}, 4: {6: 2}},
            1,
            [(1, 2), (3,), (4,)],
            id="half of its links with one group, the rest with two others",
        ),
        pytest.param(
            {1: {0: 2, 1: 2}, 2: {0: 1, 1: 1, 5: 1, 6: 1}, 3: {5: 2, 6: 2}},
            1,
            [(1,), (2,), (3,)],
            id="no group, where two hold as much",
        ),
        pytest.param(
            {1: {0: 4, 1: 1}, 2: {1: 1, 0: 1}},
            1,
            [(1, 2)],
            id="where its tied unit is a second witness",
        ),
        pytest.param(
            {1: {0: 2, 1: 2, 2: 2}, 2: {0: 1, 1: 1, 9: 2}},
            1,
            [(1,), (2,)],
            id="no group, where it is home to half itself",
        ),
        pytest.param(
            {1: {0: 2, 1: 2, 2: 2}, 2: {0: 1, 1: 1, 9: 2}},
            2,
            [(1, 2)],
            id="a group, where one host alone makes it a home",
        ),
    ],
)
def test_it_joins(weights: Weights, min_owners: int, groups: list[tuple[int, ...]]) -> None:
    alone = [(switch,) for switch in weights]
    assert absorb_minor_groups(alone, weights, min_owners=min_owners) == groups


def pods(guests: int) -> Weights:
    """Return two leaves of four hosts, and one on which so many hosts of each are guests."""
    shared = dict.fromkeys([*range(guests), *range(10, 10 + guests)], 1)
    return {1: dict.fromkeys(range(4), 2), 2: dict.fromkeys(range(10, 14), 2), 3: shared}


@pytest.mark.parametrize(
    ("guests", "shared"),
    [
        pytest.param(4, {2}, id="all hosts of two groups"),
        pytest.param(3, {2}, id="most hosts of two groups"),
        pytest.param(2, set(), id="half of them: as exchanged cables may look"),
    ],
)
def test_it_takes_for_shared_what_has_for_guests(guests: int, shared: set[int]) -> None:
    assert find_shared_groups([(1,), (2,), (3,)], pods(guests)) == shared


def test_it_takes_nothing_for_shared_where_groups_are_guests_of_each_other() -> None:
    ring = {
        1: {0: 1, 1: 1, 4: 1, 5: 1},
        2: {0: 1, 1: 1, 2: 1, 3: 1},
        3: {2: 1, 3: 1, 4: 1, 5: 1},
    }
    assert find_shared_groups([(1,), (2,), (3,)], ring) == set()
