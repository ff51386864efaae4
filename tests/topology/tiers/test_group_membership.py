"""Groups of units, merged groups and shared groups, on weights written by hand."""

import pytest

from topology.tiers.group_membership import (
    UnitAssignment,
    absorb_minor_groups,
    assign_units,
    find_shared_groups,
)

Weights = dict[int, dict[int, int]]


def assign(weights: Weights, *groups: tuple[int, ...]) -> UnitAssignment:
    return assign_units(groups, weights)


def test_it_gives_a_unit_to_the_group_with_most_of_its_links() -> None:
    assignment = assign({1: {0: 3, 1: 1}, 2: {0: 1, 1: 4}}, (1,), (2,))
    assert dict(assignment.group_of_unit) == {0: 0, 1: 1}
    assert dict(assignment.margin) == {0: 0.5, 1: 0.6}
    assert assignment.ties == ()


def test_it_leaves_a_unit_with_equal_links_without_a_group() -> None:
    assignment = assign({1: {0: 2, 1: 4}, 2: {0: 2, 2: 4}}, (1,), (2,))
    assert dict(assignment.group_of_unit) == {1: 0, 2: 1}
    (tie,) = assignment.ties
    assert (tie.unit, tie.groups, tie.counts) == (0, ((1,), (2,)), (2, 2))


def test_it_reports_a_tie_that_a_switch_without_units_could_make() -> None:
    # Switch 3 is tied between both groups; if it were part of the second one, unit 0 would be tied.
    weights = {1: {0: 2, 1: 4}, 2: {0: 1, 2: 4}, 3: {0: 1, 1: 1, 2: 1}}
    assignment = assign(weights, (1,), (2,), (3,))
    (tie,) = assignment.ties
    assert (tie.unit, tie.groups, tie.counts) == (0, ((1,), (2,), (3,)), (2, 1, 1))
    assert dict(assignment.group_of_unit) == {1: 0, 2: 1}


def test_it_reports_no_tie_for_a_switch_without_any_unit_of_the_rival() -> None:
    weights = {1: {0: 2, 1: 4}, 2: {0: 1, 2: 4}, 3: {0: 1, 1: 1}}
    assert assign(weights, (1,), (2,), (3,)).group_of_unit[0] == 0


@pytest.mark.parametrize(
    ("weights", "min_owners", "groups"),
    [
        pytest.param(
            {1: {0: 2, 1: 2, 2: 2}, 2: {0: 1, 1: 1, 5: 1, 6: 1}, 3: {5: 2}, 4: {6: 2}},
            1,
            [(1, 2), (3,), (4,)],
            id="a group that owns half of its links, two others own the rest",
        ),
        pytest.param(
            {1: {0: 2, 1: 2}, 2: {0: 1, 1: 1, 5: 1, 6: 1}, 3: {5: 2, 6: 2}},
            1,
            [(1,), (2,), (3,)],
            id="no group, where two own equally many",
        ),
        pytest.param(
            {1: {0: 4, 1: 1}, 2: {1: 1, 0: 1}},
            1,
            [(1, 2)],
            id="a group that a tied unit confirms",
        ),
        pytest.param(
            {1: {0: 2, 1: 2, 2: 2}, 2: {0: 1, 1: 1, 9: 2}},
            1,
            [(1,), (2,)],
            id="no group, where it owns half of its links itself",
        ),
        pytest.param(
            {1: {0: 2, 1: 2, 2: 2}, 2: {0: 1, 1: 1, 9: 2}},
            2,
            [(1, 2)],
            id="a group, where it owns a single host only",
        ),
    ],
)
def test_it_joins(weights: Weights, min_owners: int, groups: list[tuple[int, ...]]) -> None:
    alone = [(switch,) for switch in weights]
    assert absorb_minor_groups(alone, weights, min_owners=min_owners) == groups


def pods(guests: int) -> Weights:
    """Return two leaves of four hosts, and a third one that `guests` hosts of each share."""
    shared = dict.fromkeys([*range(guests), *range(10, 10 + guests)], 1)
    return {1: dict.fromkeys(range(4), 2), 2: dict.fromkeys(range(10, 14), 2), 3: shared}


@pytest.mark.parametrize(
    ("guests", "shared"),
    [
        pytest.param(4, {2}, id="all hosts of two groups"),
        pytest.param(3, {2}, id="most hosts of two groups"),
        pytest.param(2, set(), id="half of the hosts: not shared, exchanged cables look the same"),
    ],
)
def test_it_marks_a_group_as_shared_by(guests: int, shared: set[int]) -> None:
    assert find_shared_groups([(1,), (2,), (3,)], pods(guests)) == shared


def test_it_marks_no_group_as_shared_where_groups_share_hosts_in_both_directions() -> None:
    ring = {
        1: {0: 1, 1: 1, 4: 1, 5: 1},
        2: {0: 1, 1: 1, 2: 1, 3: 1},
        3: {2: 1, 3: 1, 4: 1, 5: 1},
    }
    assert find_shared_groups([(1,), (2,), (3,)], ring) == set()
