"""The sweep election: one elected node and one spare per subnet, changed only when needed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from generator.ingest.named_sweepers import NamedSweepers
from generator.ingest.sweep_choice import UsedSweep
from generator.observe.sweep_election import confirm_sweeps, elect_sweepers
from tests.generator.sweep_reports import ABLE, NOW, PERIOD, A, B, hca, node
from tests.packed_reports import packed
from topology.model.facts import DeviceKind, Port, PortState
from topology.model.ids import Id, IdKind
from topology.reports.fabric_status import CountedSweep, FabricStatus, SweepWitness
from topology.reports.neighbor_report import NeighborReport, SweepStanding

STALE = timedelta(minutes=4)
FAILED = SweepStanding(able=True, failed=(A,))
REFUSED = SweepStanding(able=True, refused=(A,))


def elected(
    *reports: NeighborReport, previous: FabricStatus | None = None
) -> tuple[FabricStatus, list[str]]:
    named = NamedSweepers(previous or FabricStatus())
    found = elect_sweepers(packed(reports), named=named, now=NOW, period=PERIOD)
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
    status = structs.replace(odd.status, observed_at=observed_at)
    assert elected(structs.replace(odd, status=status))[1] == []


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


COUNTED = FabricStatus(
    sweepers=elected(node("n1"), node("n2"))[0].sweepers,
    sweeps=(CountedSweep(subnet=A, node="n0"),),
)


@pytest.mark.parametrize(
    ("used", "is_in_sync", "counted"),
    [
        pytest.param(UsedSweep(A, "n1", is_confirmed=True), False, "n1", id="confirmed"),
        pytest.param(UsedSweep(A, "n1", is_confirmed=False), True, "n1", id="in the HyperNodes"),
        pytest.param(UsedSweep(A, "n1", is_confirmed=False), False, "n0", id="neither"),
        pytest.param(UsedSweep(B, "n1", is_confirmed=True), True, "n0", id="of another subnet"),
        pytest.param(None, True, "n0", id="absent"),
    ],
)
def test_the_sweep_of_a_new_node_counts_if_it_is(
    used: UsedSweep | None,
    is_in_sync: bool,  # noqa: FBT001 - a table's column
    counted: str,
) -> None:
    status = confirm_sweeps(COUNTED, [used] if used else [], is_in_sync=is_in_sync)
    assert [(one.subnet, one.node) for one in status.sweeps] == [(A, counted)]
    assert status.sweepers == COUNTED.sweepers


WITNESSED = COUNTED.model_copy(update={"witnesses": (SweepWitness(subnet=A, node="n7"),)})


@pytest.mark.parametrize(
    ("witness", "is_in_sync", "kept"),
    [
        pytest.param("n8", False, ["n8"], id="is replaced by one that was compared"),
        pytest.param(None, False, ["n7"], id="stays although its sweep is gone"),
        pytest.param(
            None, True, [], id="ends when its sweep is gone and nothing is left to change"
        ),
    ],
)
def test_a_witness(
    witness: str | None,
    is_in_sync: bool,  # noqa: FBT001 - a table's column
    kept: list[str],
) -> None:
    used = UsedSweep(A, "n1", is_confirmed=True, witness=witness)
    status = confirm_sweeps(WITNESSED, [used], is_in_sync=is_in_sync)
    assert [one.node for one in status.witnesses] == kept


def test_a_witness_stays_while_no_sweep_is_used() -> None:
    assert confirm_sweeps(WITNESSED, [], is_in_sync=True).witnesses == WITNESSED.witnesses


def test_it_keeps_the_nodes_whose_sweeps_count_and_the_witnesses() -> None:
    found, _ = elected(node("n1"), previous=WITNESSED)
    assert (found.sweeps, found.witnesses) == (WITNESSED.sweeps, WITNESSED.witnesses)


def in_cluster(
    *reports: NeighborReport, listed: tuple[str, ...] = (), status: FabricStatus | None = None
) -> list[tuple[str, str]]:
    """Return the elected nodes of a cluster, where agents have tokens of their own."""
    named = NamedSweepers(status or FabricStatus(), listed, has_agent_tokens=True)
    found = elect_sweepers(packed(reports), named=named, now=NOW, period=None)
    return [(one.subnet, one.node) for one in found.sweepers]


def test_in_a_cluster_a_node_cannot_elect_itself_for_a_subnet_of_its_own() -> None:
    liar = node("n0", hca(B), hca("fe80000000000bad", "mlx5_1/1"))
    assert in_cluster(liar, node("n1"), node("n2")) == [(A, "n1"), (A, "n2")]


def test_in_a_cluster_a_listed_node_may_sweep_a_subnet_alone() -> None:
    reports = [node("n0", hca(B)), node("n1"), node("n2")]
    assert in_cluster(*reports, listed=("n0", "n2")) == [(A, "n2"), (B, "n0")]


def test_in_a_cluster_a_subnet_that_was_swept_before_stays_elected() -> None:
    status = FabricStatus(sweeps=(CountedSweep(subnet=B, node="n0"),))
    reports = [node("n0", hca(B)), node("n1"), node("n2")]
    assert (B, "n0") in in_cluster(*reports, status=status)


def test_only_listed_nodes_stay_elected() -> None:
    before, _ = elected(node("n1"), node("n2"))
    reports = [node("n1"), node("n2"), node("n3")]
    assert in_cluster(*reports, listed=("n3",), status=before) == [(A, "n3")]
    assert in_cluster(*reports, listed=("n9",), status=before) == []


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
