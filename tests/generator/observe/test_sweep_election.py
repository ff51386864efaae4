"""The sweep election: one elected node and one spare per subnet, changed only when needed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.observe.sweep_election import elect_sweepers
from tests.generator.sweep_reports import ABLE, NOW, PERIOD, A, B, hca, node, swept
from topology.model.facts import DeviceKind, Port, PortState
from topology.model.ids import Id, IdKind
from topology.reports.fabric_status import FabricStatus
from topology.reports.neighbor_report import NeighborReport, SweepStanding

STALE = timedelta(minutes=4)
FAILED = SweepStanding(able=True, failed=(A,))
REFUSED = SweepStanding(able=True, refused=(A,))


def elected(
    *reports: NeighborReport, previous: FabricStatus | None = None
) -> tuple[FabricStatus, list[str]]:
    found = elect_sweepers(reports, previous=previous or FabricStatus(), now=NOW, period=PERIOD)
    return found, [
        f"{one.subnet[-1]} {one.node} {one.device}/{one.port} {one.role}" for one in found.sweepers
    ]


def test_it_elects_one_node_and_one_spare_of_each_subnet() -> None:
    _, rows = elected(
        node("n10", hca(A), hca(B, "mlx5_1/1")),
        node("n2", hca(A, "mlx5_3/2"), hca(A, "mlx5_10/1")),
        node("n3", hca(B)),
    )
    assert rows == [
        "1 n2 mlx5_3/2 elected",
        "1 n10 mlx5_0/1 spare",
        "2 n3 mlx5_0/1 elected",
        "2 n10 mlx5_1/1 spare",
    ]


def test_it_elects_a_lone_node_without_a_spare() -> None:
    assert elected(node("n1"))[1] == ["1 n1 mlx5_0/1 elected"]


ETHERNET = Port("eth0", (Id(IdKind.IFNAME, "eth0"),))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(node("n0", sweeping=None), id="takes no part in sweeping"),
        pytest.param(node("n0", sweeping=SweepStanding()), id="has no program to sweep with"),
        pytest.param(node("n0", age=STALE), id="has been silent for three periods"),
        pytest.param(node("n0", age=-STALE), id="has a clock that is ahead"),
        pytest.param(node("n0", hca(A, state=PortState.DOWN)), id="has its port down"),
        pytest.param(node("n0", hca(None)), id="does not know its subnet"),
        pytest.param(node("n0", ETHERNET), id="has Ethernet alone"),
        pytest.param(node("n0", kind=DeviceKind.SWITCH), id="is a switch"),
        pytest.param(node("n0", hca(A, "--help; reboot/1")), id="has a port with an unsafe name"),
        pytest.param(node("n0", hca(A, "mlx5_0/x")), id="has a port without a number"),
        pytest.param(node("n0", hca(A, "mlx5_0/0")), id="has a port with number 0"),
    ],
)
def test_it_elects_no_node_that(other: NeighborReport) -> None:
    assert elected(other, node("n1"))[1] == ["1 n1 mlx5_0/1 elected"]


@pytest.mark.parametrize("observed_at", [None, "yesterday", "2026-01-02T03:00:00"])
def test_it_elects_no_node_with_an_unreadable_time(observed_at: str | None) -> None:
    odd = node("n0")
    status = odd.status.model_copy(update={"observed_at": observed_at})
    assert elected(odd.model_copy(update={"status": status}))[1] == []


@pytest.mark.parametrize(
    ("reports", "rows"),
    [
        pytest.param(
            [node("n0"), node("n1"), node("n2")],
            ["1 n1 mlx5_0/1 elected", "1 n2 mlx5_0/1 spare"],
            id="both stay when a node comes that sorts first",
        ),
        pytest.param(
            [node("n0"), node("n1", age=STALE), node("n2")],
            ["1 n2 mlx5_0/1 elected", "1 n0 mlx5_0/1 spare"],
            id="the spare takes over from one that is silent",
        ),
        pytest.param(
            [node("n0"), node("n2")],
            ["1 n2 mlx5_0/1 elected", "1 n0 mlx5_0/1 spare"],
            id="the spare takes over from one that is gone",
        ),
        pytest.param(
            [node("n0"), node("n1", sweeping=FAILED), node("n2")],
            ["1 n2 mlx5_0/1 elected", "1 n0 mlx5_0/1 spare"],
            id="the spare takes over from one that failed",
        ),
        pytest.param(
            [node("n1", sweeping=REFUSED), node("n2")],
            ["1 n1 mlx5_0/1 elected", "1 n2 mlx5_0/1 spare"],
            id="a refused sweep changes nothing",
        ),
        pytest.param(
            [node("n0", sweeping=FAILED), node("n1", sweeping=FAILED), node("n2", sweeping=FAILED)],
            ["1 n1 mlx5_0/1 elected", "1 n2 mlx5_0/1 spare"],
            id="failures of all nodes change nothing",
        ),
        pytest.param(
            [node("n1"), node("n2", age=STALE), node("n3")],
            ["1 n1 mlx5_0/1 elected", "1 n3 mlx5_0/1 spare"],
            id="a silent spare is replaced",
        ),
        pytest.param(
            [node("n1", age=STALE), node("n2", age=STALE)],
            ["1 n1 mlx5_0/1 elected", "1 n2 mlx5_0/1 spare"],
            id="all stay when every node is silent",
        ),
        pytest.param(
            [node("n1", hca(B)), node("n2", hca(B))],
            ["2 n1 mlx5_0/1 elected", "2 n2 mlx5_0/1 spare"],
            id="a subnet without any node is forgotten",
        ),
        pytest.param(
            [node("n1", hca(A, "mlx5_7/1")), node("n2")],
            ["1 n2 mlx5_0/1 elected", "1 n1 mlx5_7/1 spare"],
            id="the spare takes over when the elected port is gone",
        ),
    ],
)
def test_it_changes_sweepers_only_when_needed(
    reports: list[NeighborReport], rows: list[str]
) -> None:
    before, first = elected(node("n1"), node("n2"))
    assert first == ["1 n1 mlx5_0/1 elected", "1 n2 mlx5_0/1 spare"]
    after, found = elected(*reports, previous=before)
    assert found == rows
    assert elected(*reports, previous=after)[0] == after


def test_it_names_the_node_whose_sweep_counts() -> None:
    half = swept("n3", text="half")
    assert half.spec.sweep is not None
    part = half.spec.sweep.model_copy(update={"of": 2})
    half = half.model_copy(update={"spec": half.spec.model_copy(update={"sweep": part})})
    status, _ = elected(
        node("n1"),
        swept("n1", age=timedelta(hours=1)),
        swept("n2", text="newer"),
        half,
        swept("n9", B),
    )
    assert [(one.subnet, one.node) for one in status.sweeps] == [(A, "n2")]


nodes = st.builds(
    lambda number, subnets, standing, age: node(
        f"n{number}",
        *(hca(subnet, f"mlx5_{at}/1") for at, subnet in enumerate(subnets)),
        sweeping=standing,
        age=timedelta(minutes=age),
    ),
    st.integers(0, 12),
    st.lists(st.sampled_from([A, B, None]), min_size=1, max_size=3),
    st.sampled_from([ABLE, FAILED, REFUSED, None]),
    st.sampled_from([0, 5]),
)
clusters = st.lists(nodes, max_size=8, unique_by=lambda one: one.metadata.name)


@given(clusters, clusters.flatmap(lambda after: st.tuples(st.just(after), st.permutations(after))))
def test_it_elects_the_same_in_any_order_and_keeps_the_result(
    before: list[NeighborReport], orders: tuple[list[NeighborReport], list[NeighborReport]]
) -> None:
    after, shuffled = orders
    previous, _ = elected(*before)
    found, _ = elected(*after, previous=previous)
    assert elected(*shuffled, previous=previous)[0] == found
    assert elected(*after, previous=found)[0] == found
    for subnet in (A, B):
        roles = [one.role for one in found.sweepers if one.subnet == subnet]
        assert roles in ([], ["elected"], ["elected", "spare"])
        assert len({one.node for one in found.sweepers if one.subnet == subnet}) == len(roles)
