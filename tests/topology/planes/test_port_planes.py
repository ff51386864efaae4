"""`PortPlanes`, an array, behaves like any mapping."""

import numpy as np
import pytest

from topology.planes.policy import COMPUTE, STORAGE, PlaneReason, PortPlane
from topology.planes.port_planes import PortPlanes

FAST, FAR = PortPlane(COMPUTE, PlaneReason.FAST), PortPlane(STORAGE, PlaneReason.FARTHER)


def shares() -> PortPlanes:
    port_planes = PortPlanes(5)
    port_planes.put(FAST, np.array([4, 1]))
    port_planes.put_each([(3, FAR), (4, FAR)])
    return port_planes


def test_it_is_a_mapping_in_the_order_of_ports() -> None:
    assert list(shares().items()) == [(1, FAST), (3, FAR), (4, FAR)]
    assert shares() == {4: FAR, 3: FAR, 1: FAST}
    assert len(shares()) == 3


def test_it_has_no_entry_for_a_port_without_a_plane() -> None:
    assert 0 not in shares()
    with pytest.raises(KeyError):
        shares()[2]
    assert shares().is_assigned().tolist() == [False, True, False, True, True]


def test_it_returns_the_ports_of_a_plane() -> None:
    assert shares().is_in(COMPUTE).tolist() == [False, True, False, False, False]
    assert not shares().is_in("none").any()


def test_it_returns_only_planes_that_have_ports() -> None:
    port_planes = shares()
    assert port_planes.planes() == {COMPUTE, STORAGE}
    port_planes.put(FAR, np.array([1]))
    assert port_planes.planes() == {STORAGE}
    assert PortPlanes(2).planes() == set()
