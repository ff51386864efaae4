"""Candidates and Capacity, for schedulers that decide themselves."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from generator.placement.answer import ReasonKind
from generator.placement.cluster.nodes import Exclusion, NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from generator.placement.request import parse_request
from generator.rpc.messages.answers import encode_placement
from generator.rpc.messages.requests import encode_request
from generator.rpc.published_state import PublishedState
from generator.rpc.status_errors import FailureKind
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.generator.rpc.clusters import request_for, snapshot_of, tree_of
from tests.generator.rpc.servers import SOON_S, Stubs, failed, serving

SNAPSHOT = snapshot_of(("a1", "a2", "a3"), ("b1", "b2", "b3", "b4"), ("c1",))


@pytest.fixture
def published() -> PublishedState:
    return PublishedState(SNAPSHOT)


@pytest.fixture
def stubs(published: PublishedState) -> Iterator[Stubs]:
    with serving(published) as server, grpc.insecure_channel(server.address) as channel:
        yield Stubs(channel)


def candidates(stubs: Stubs, count: int, max_candidates: int = 0) -> list[pb.Candidate]:
    spec = encode_request(request_for(count))
    asked = pb.CandidatesRequest(spec=spec, max_candidates=max_candidates)
    return [*stubs.placement.Candidates(asked, timeout=SOON_S).candidates]


def test_it_lists_sets_of_nodes_best_first(stubs: Stubs) -> None:
    found = candidates(stubs, 2)
    assert [[*row.nodes] for row in found] == [
        ["a1", "a2"],
        ["b1", "b2"],
        ["b3", "b4"],
        ["a3", "c1"],
    ]
    assert [row.tier for row in found] == ["leaf", "leaf", "leaf", "spine"]
    assert all(row.proved for row in found)


def test_it_lists_first_what_place_answers(stubs: Stubs) -> None:
    first = candidates(stubs, 4)[0]
    answer = encode_placement(place(SNAPSHOT, parse_request(request_for(4))))
    assert (first.assignment, first.tier) == (answer.assignment, answer.tier)
    assert first.objective == answer.objective


def test_it_puts_no_node_in_two_sets(stubs: Stubs) -> None:
    nodes = [node for row in candidates(stubs, 1, 64) for node in row.nodes]
    assert sorted(nodes) == sorted(SNAPSHOT.tree.nodes)


def test_it_reports_whether_there_are_more_sets(stubs: Stubs) -> None:
    spec = encode_request(request_for(2))
    ask = stubs.placement.Candidates
    short = ask(pb.CandidatesRequest(spec=spec, max_candidates=2), timeout=SOON_S)
    assert (len(short.candidates), short.has_more) == (2, True)
    whole = ask(pb.CandidatesRequest(spec=spec, max_candidates=5), timeout=SOON_S)
    assert (len(whole.candidates), whole.has_more) == (4, False)


def test_it_explains_why_there_is_no_set(stubs: Stubs) -> None:
    spec = encode_request(request_for(9))
    found = stubs.placement.Candidates(pb.CandidatesRequest(spec=spec), timeout=SOON_S)
    assert not found.candidates
    assert found.infeasible.reason.kind == ReasonKind.NO_FIT


@pytest.mark.parametrize("number", [-1, 65])
def test_it_refuses_a_number_of_sets(stubs: Stubs, number: int) -> None:
    request = pb.CandidatesRequest(spec=encode_request(request_for(1)), max_candidates=number)
    code, failure = failed(stubs.placement.Candidates, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert failure.field == "max_candidates"


def capacity(stubs: Stubs, **fields: object) -> pb.CapacityResponse:
    found: pb.CapacityResponse = stubs.placement.Capacity(
        pb.CapacityRequest(**fields),  # type: ignore[arg-type]  # any field
        timeout=SOON_S,
    )
    return found


def test_it_counts_pods_by_domain_and_tier(stubs: Stubs) -> None:
    found = capacity(stubs)
    assert [(row.domain, row.nodes, row.pods) for row in found.domains] == [
        ("leaf-1", 3, 3),
        ("leaf-2", 4, 4),
        ("leaf-3", 1, 1),
    ]
    assert [(row.tier, row.domains, row.pods, row.most_pods) for row in found.tiers] == [
        ("node", 8, 8, 1),
        ("leaf", 3, 8, 4),
        ("spine", 1, 8, 8),
        ("cluster", 1, 8, 8),
    ]


@pytest.mark.parametrize(
    ("tier", "names"),
    [
        ("node", ["a1", "a2", "a3", "b1", "b2", "b3", "b4", "c1"]),
        ("1", ["leaf-1", "leaf-2", "leaf-3"]),
        ("spine", ["spine"]),
        ("cluster", ["cluster"]),
    ],
)
def test_it_lists_the_domains_of_a_tier(stubs: Stubs, tier: str, names: list[str]) -> None:
    assert [row.domain for row in capacity(stubs, tier=tier).domains] == names


def test_it_counts_only_nodes_that_the_pods_may_use(
    stubs: Stubs, published: PublishedState
) -> None:
    nodes = {
        "a1": NodeSpec("a1", {"gpu": 8}, labels={"zone": "x"}),
        "a2": NodeSpec("a2", {"gpu": 8}, labels={"zone": "x"}, exclusion=Exclusion.UNSCHEDULABLE),
        "a3": NodeSpec("a3", {"gpu": 8}, labels={"zone": "x"}, taints=("gpu=yes:NoSchedule",)),
        "b1": NodeSpec("b1", {"gpu": 8}),
    }
    published.snapshot = build_snapshot(tree_of(("a1", "a2", "a3"), ("b1",)), nodes)
    selector = {"zone": pb.LabelValues(values=["x"])}
    gpus, gpu = {"gpu": "3"}, pb.Toleration(key="gpu", operator="Exists")
    found = capacity(stubs, request=gpus, node_selector=selector)
    assert [(row.usable_nodes, row.pods) for row in found.domains] == [(1, 2), (0, 0)]
    found = capacity(stubs, request=gpus, node_selector=selector, tolerations=[gpu])
    assert [(row.usable_nodes, row.pods) for row in found.domains] == [(2, 4), (0, 0)]
    tolerated = [pb.Toleration(operator="Exists", effect="NoSchedule")]
    named = pb.NodeRequirement(field="metadata.name", operator="NotIn", values=["a1"])
    term = pb.NodeTerm(requirements=[named])
    found = capacity(stubs, request=gpus, tolerations=tolerated, node_affinity=[term])
    assert [(row.usable_nodes, row.pods) for row in found.domains] == [(1, 2), (1, 2)]


def test_it_counts_reserved_nodes_as_taken(stubs: Stubs, published: PublishedState) -> None:
    kept = RunningGang("llama", (RunningPods("a1"), RunningPods("a2")), priority=5)
    published.snapshot = build_snapshot(SNAPSHOT.tree, {}, nominated=[kept])
    assert capacity(stubs).domains[0].pods == 1
    assert capacity(stubs, priority=6).domains[0].pods == 3


def test_it_pages_through_domains(stubs: Stubs) -> None:
    names, token = [], ""
    while True:
        page = capacity(stubs, tier="node", page_size=3, page_token=token)
        names.append([row.domain for row in page.domains])
        token = page.next_page_token
        if not token:
            break
    assert names == [["a1", "a2", "a3"], ["b1", "b2", "b3"], ["b4", "c1"]]


def test_it_refuses_a_page_token_after_the_tree_changed(
    stubs: Stubs, published: PublishedState
) -> None:
    token = capacity(stubs, tier="node", page_size=3).next_page_token
    nodes = {name: NodeSpec(name, {"slots": 2}) for name in SNAPSHOT.tree.nodes}
    published.snapshot = build_snapshot(SNAPSHOT.tree, nodes)
    assert capacity(stubs, tier="node", page_size=3, page_token=token).domains[0].pods == 2
    published.snapshot = snapshot_of(("a1", "a2", "a3", "a4"))
    request = pb.CapacityRequest(tier="node", page_size=3, page_token=token)
    code, failure = failed(stubs.placement.Capacity, request)
    assert (code, failure.kind) == (grpc.StatusCode.ABORTED, FailureKind.PAGE_TOKEN_STALE)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        pytest.param(pb.CapacityRequest(tier="rack"), "tier", id="a tier that the tree lacks"),
        pytest.param(pb.CapacityRequest(tier=""), "tier", id="a tier without a name"),
        pytest.param(pb.CapacityRequest(page_size=-1), "page_size", id="a negative size"),
        pytest.param(pb.CapacityRequest(page_size=5000), "page_size", id="a large size"),
        pytest.param(
            pb.CapacityRequest(request={"gpu": "-1"}), "request.gpu", id="a negative quantity"
        ),
        pytest.param(
            pb.CapacityRequest(request={"slots": "0"}), "request", id="pods without resources"
        ),
        pytest.param(
            pb.CapacityRequest(node_affinity=[pb.NodeTerm()]),
            "node_affinity[0].requirements",
            id="a term without requirements",
        ),
    ],
)
def test_it_names_the_field_of(stubs: Stubs, request_: pb.CapacityRequest, field: str) -> None:
    code, failure = failed(stubs.placement.Capacity, request_)
    assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, field)


def test_it_refuses_a_token_of_another_query(stubs: Stubs) -> None:
    token = capacity(stubs, tier="node", page_size=3).next_page_token
    request = pb.CapacityRequest(tier="node", priority=7, page_size=3, page_token=token)
    code, failure = failed(stubs.placement.Capacity, request)
    assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "page_token")
