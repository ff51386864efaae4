"""`PortSet`, an array of flags, behaves like any set."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topology.planes.plane import PortSet

flags = st.lists(st.booleans(), max_size=40)


@given(flags)
def test_it_equals_the_set_of_its_ports(are_in: list[bool]) -> None:
    ports = PortSet(np.array(are_in, np.bool_))
    plain: AbstractSet[int] = {number for number, is_in in enumerate(are_in) if is_in}
    assert ports == plain
    assert (list(ports), len(ports), bool(ports)) == (sorted(plain), len(plain), bool(plain))
    assert all((number in ports) == (number in plain) for number in range(-2, len(are_in) + 2))


@given(flags, flags)
def test_its_operators_are_those_of_sets(one: list[bool], other: list[bool]) -> None:
    left, right = (PortSet(np.array(found, np.bool_)) for found in (one, other))
    assert (left & right, left | right, left - right) == (
        set(left) & set(right),
        set(left) | set(right),
        set(left) - set(right),
    )
    assert (left == right) == (set(left) == set(right))


def test_it_contains_array_numbers_and_no_other_values() -> None:
    ports = PortSet(np.array([False, True]))
    assert np.intp(1) in ports
    name: object = "1"
    assert name not in ports
