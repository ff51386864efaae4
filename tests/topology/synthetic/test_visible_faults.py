"""Which faults are detectable: each case is one fabric damaged by hand.

The rail fabric has eight groups of four hosts and four leaves, two groups a pod; the MLAG fabric
has groups of four hosts under two leaves; the fat tree has leaves of four hosts in one pod.
"""

from dataclasses import replace

import pytest

from tests.topology.synthetic.fabrics import (
    cable_of,
    cut,
    cut_all,
    remove,
    silence,
    swap,
)
from topology.model.facts import Medium
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
)
from topology.synthetic.visible_faults import SymmetryIndex

RAILS = build_undamaged(build_wiring(SyntheticSpec(FabricKind.RAIL, 16, rails=4, radix=8)))
PAIRS = build_undamaged(
    build_wiring(SyntheticSpec(FabricKind.DUAL_HOMED, 16, radix=8, medium=Medium.ETHERNET))
)
TREE = build_undamaged(build_wiring(SyntheticSpec(FabricKind.FAT_TREE, 16, radix=8)))
PARALLEL = build_undamaged(build_wiring(SyntheticSpec(FabricKind.FAT_TREE, 24, radix=16)))
Ports = tuple[tuple[str, str], tuple[str, str]]


def shows_swap(damaged: DamagedFabric, ports: Ports) -> bool:
    now = swap(damaged, *ports)
    symmetry = SymmetryIndex(now)
    return any(symmetry.shows_misplaced(cable_of(now, *port)) for port in ports)


@pytest.mark.parametrize(
    ("damaged", "ports", "is_seen"),
    [
        pytest.param(
            RAILS,
            (("node-0001", "mlx5_0/1"), ("node-0009", "mlx5_0/1")),
            True,
            id="a host that keeps three of four links at home shows the fourth",
        ),
        pytest.param(
            RAILS,
            (("node-0001", "mlx5_0/1"), ("node-0002", "mlx5_1/1")),
            True,
            id="a rail swap shows against the other hosts of the group",
        ),
        pytest.param(
            RAILS,
            (("node-0001", "mlx5_0/1"), ("node-0001", "mlx5_1/1")),
            True,
            id="a rail swap in one host is detectable too",
        ),
        pytest.param(
            RAILS,
            (("node-0001", "mlx5_0/1"), ("node-0002", "mlx5_0/1")),
            False,
            id="two swapped cables of one leaf and rail are equivalent",
        ),
        pytest.param(
            silence(RAILS, "node-0001"),
            (("node-0001", "mlx5_0/1"), ("node-0001", "mlx5_1/1")),
            True,
            id="rails exchanged on a silent host show by the names of its HCAs",
        ),
        pytest.param(
            TREE,
            (("node-0001", "mlx5_0/1"), ("node-0005", "mlx5_0/1")),
            False,
            id="a host with one link belongs to the group of its cable",
        ),
        pytest.param(
            PAIRS,
            (("node-0001", "eth0"), ("node-0005", "eth0")),
            False,
            id="of two links, neither is the wrong one",
        ),
        pytest.param(
            PAIRS,
            (("node-0001", "eth0"), ("node-0002", "eth1")),
            True,
            id="two links on one leaf of a pair show against the others",
        ),
        pytest.param(
            TREE,
            (("leaf-g01", "5"), ("leaf-g02", "7")),
            False,
            id="up-links exchanged within a pod may be lost and spare ones",
        ),
        pytest.param(
            RAILS,
            (("leaf-p01-g01-r1", "5"), ("leaf-p02-g02-r1", "6")),
            True,
            id="up-links exchanged between pods show",
        ),
    ],
)
def test_it_says_which_swaps_are_detectable(
    *, damaged: DamagedFabric, ports: Ports, is_seen: bool
) -> None:
    assert shows_swap(damaged, ports) is is_seen


def test_it_does_not_decide_between_only_two_hosts() -> None:
    pair = build_undamaged(build_wiring(SyntheticSpec(FabricKind.RAIL, 2, rails=2, radix=8)))
    assert not shows_swap(pair, (("node-0001", "mlx5_0/1"), ("node-0001", "mlx5_1/1")))


def test_one_swap_can_hide_another() -> None:
    ports = (("node-0001", "mlx5_0/1"), ("node-0009", "mlx5_0/1"))
    once = swap(RAILS, ("node-0001", "mlx5_1/1"), ("node-0009", "mlx5_1/1"))
    assert shows_swap(RAILS, ports)
    assert not shows_swap(once, ports), "two links here and two there: both hosts are tied"


@pytest.mark.parametrize(
    ("damaged", "port", "is_seen"),
    [
        pytest.param(RAILS, ("node-0001", "mlx5_0/1"), True, id="a report shows its dark port"),
        pytest.param(
            silence(RAILS, "node-0001"),
            ("node-0001", "mlx5_0/1"),
            True,
            id="a silent host has fewer links than its peers",
        ),
        pytest.param(TREE, ("node-0001", "mlx5_0/1"), True, id="the only link of a reporting host"),
        pytest.param(
            silence(TREE, "node-0001"),
            ("node-0001", "mlx5_0/1"),
            False,
            id="nothing is left of a silent host without links",
        ),
        pytest.param(RAILS, ("leaf-p01-g01-r1", "5"), True, id="the only link to a spine"),
        pytest.param(PARALLEL, ("leaf-g01", "9"), True, id="one of several links to a spine"),
        pytest.param(
            cut_all(RAILS, "leaf-p01-g01-r1"),
            ("leaf-p01-g01-r1", "5"),
            False,
            id="a leaf without any up-link has no peer links to compare with",
        ),
    ],
)
def test_it_says_which_lost_links_are_detectable(
    *, damaged: DamagedFabric, port: tuple[str, str], is_seen: bool
) -> None:
    planned = cable_of(build_undamaged(damaged.wiring), *port)
    assert SymmetryIndex(cut(damaged, port)).shows_missing(planned) is is_seen


def test_it_detects_no_lost_link_if_all_peers_lost_theirs() -> None:
    thin = replace(
        PARALLEL,
        cables=tuple(
            cable
            for cable in PARALLEL.cables
            if cable.low.port not in {"9", "13"} or cable.low.device.startswith("node-")
        ),
    )
    assert not SymmetryIndex(thin).shows_missing(cable_of(PARALLEL, "leaf-g01", "9"))


@pytest.mark.parametrize(
    ("damaged", "switch", "is_seen"),
    [
        pytest.param(RAILS, "leaf-p01-g01-r1", True, id="hosts report dark ports below a leaf"),
        pytest.param(TREE, "leaf-g02", True, id="even where they have no other link"),
        pytest.param(
            silence(TREE, "node-0005", "node-0006", "node-0007", "node-0008"),
            "leaf-g02",
            False,
            id="but silent hosts point at nothing",
        ),
        pytest.param(RAILS, "spine-p01-01", True, id="leaves of one pod have too few up-links"),
        pytest.param(TREE, "spine-02", False, id="all leaves lost the same"),
    ],
)
def test_it_says_which_lost_switches_are_detectable(
    *, damaged: DamagedFabric, switch: str, is_seen: bool
) -> None:
    assert SymmetryIndex(remove(damaged, switch)).shows_lost(switch) is is_seen
