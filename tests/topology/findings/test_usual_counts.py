"""Numbers of cables by design, told apart from lost cables by how many devices have them."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.findings.usual_counts import (
    expected_count,
    find_designed_by_group,
    find_designed_counts,
    find_most_frequent,
)


@pytest.mark.parametrize(
    ("frequencies", "designed"),
    [
        pytest.param({8: 32}, [8], id="all hosts are alike"),
        pytest.param({8: 31, 7: 1}, [8], id="one host lacks a cable"),
        pytest.param({8: 31, 4: 1}, [8], id="one host lacks half of its cables"),
        pytest.param({8: 62, 4: 2}, [8, 4], id="two hosts of 64 lack half of their cables"),
        pytest.param({8: 998, 4: 2}, [8], id="two hosts of 1,000 lack half of their cables"),
        pytest.param({8: 3, 4: 2, 2: 3}, [8, 4, 2], id="a third has four rails, a third has two"),
        pytest.param({2: 60, 1: 40}, [2, 1], id="two of five hosts are single-homed"),
        pytest.param({2: 81, 1: 18}, [2], id="a tenth of the cables of two rails is lost"),
        pytest.param({4: 66, 3: 29, 2: 5}, [4], id="a tenth of the cables of four rails is lost"),
        pytest.param({8: 43, 7: 38, 6: 15, 5: 3, 4: 1}, [8], id="a tenth of eight rails is lost"),
        pytest.param({8: 32, 7: 32}, [8, 7], id="half of the leaves lack a cable, none lacks two"),
        pytest.param({64: 15, 63: 15, 62: 1, 59: 1}, [64], id="some leaves lack two or more"),
        pytest.param({8: 20, 7: 14, 6: 4, 4: 12}, [8, 4], id="four rails of some, and lost cables"),
        pytest.param({1: 5}, [1], id="one rail"),
        pytest.param({}, [0], id="no host"),
    ],
)
def test_it_tells_the_design_from_lost_cables(
    frequencies: dict[int, int], designed: list[int]
) -> None:
    assert find_designed_counts(frequencies, find_most_frequent(frequencies)) == designed


@pytest.mark.parametrize(
    ("count", "expected"), [(9, 9), (8, 8), (7, 8), (5, 8), (4, 4), (3, 4), (1, 4)]
)
def test_a_device_should_have_the_next_number_by_design(count: int, expected: int) -> None:
    assert expected_count(count, [8, 4]) == expected


def test_groups_of_the_same_usual_number_are_one_sample() -> None:
    groups = [{8: 15, 4: 1}, {8: 15, 4: 1}, {4: 16}]
    assert find_designed_by_group(groups, [8, 8, 8]) == [[8, 4], [8, 4], [4]]


def test_the_ports_in_use_decide_unless_nearly_all_have_one_number() -> None:
    groups = [{32: 11, 31: 13, 30: 6, 29: 2}, {16: 32, 15: 32}]
    assert find_designed_by_group(groups, [32, 16]) == [[32], [16, 15]]
    assert find_designed_by_group([{31: 16, 32: 2}], [32]) == [[31]]


@given(st.integers(1, 16), st.integers(1, 500), st.sampled_from((0.01, 0.05, 0.1)))
def test_no_number_that_lost_cables_leave_is_the_design(
    full: int, num_devices: int, share: float
) -> None:
    lost = {
        count: round(
            num_devices * comb(full, count) * (1 - share) ** count * share ** (full - count)
        )
        for count in range(1, full + 1)
    }
    assert find_designed_counts(lost, full) == [full]
