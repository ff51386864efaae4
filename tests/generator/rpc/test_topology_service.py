"""TopologyService: pages and changes of the tree, waiting gangs, and findings."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import grpc
import pytest

from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.reconcile.round_results import RoundOutcome
from generator.rpc.messages.requests import encode_request
from generator.rpc.messages.trees import encode_finding
from generator.rpc.published_state import MAX_TREES, PublishedState, hash_tree
from generator.rpc.status_errors import FailureKind
from generator.rpc.toponaut.v1 import topology_pb2 as pb
from tests.generator.rpc.clusters import request_for, snapshot_of, tree_of
from tests.generator.rpc.servers import SOON_S, Stubs, failed, serving
from tests.generator.rpc.trees import read_tree, watch_trees
from topology.model.facts import Finding, FindingKind, PortName, Severity
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree

LEAVES = (("a1", "a2"), ("b1", "b2", "b3"))


def tree_with(*unplaced: str, wide: int = 0) -> TopologyTree:
    specs = [
        DomainSpec("leaf-a", 1, "spine", ("a1", "a2"), switches=("sw1",), margin=0.5),
        DomainSpec("leaf-b", 1, "spine", tuple(f"b{at}" for at in range(1, 4 + wide))),
        DomainSpec("spine", 2, None, switches=("sp1", "sp2")),
        DomainSpec("island", 1, None, ("z1",)),
    ]
    gone = [Unplaced(node, "no cable") for node in unplaced]
    return build_tree(specs, tiers=("leaf", "spine"), plane="compute", unplaced=gone)


@pytest.fixture
def published() -> PublishedState:
    return PublishedState(build_snapshot(tree_with("x1", "x2"), {}))


@pytest.fixture
def stubs(published: PublishedState) -> Iterator[Stubs]:
    with serving(published) as server, grpc.insecure_channel(server.address) as channel:
        yield Stubs(channel)


def test_it_returns_the_whole_tree(stubs: Stubs) -> None:
    found = read_tree(stubs)
    assert found.tree == tree_with("x1", "x2")
    assert found.revision == hash_tree(found.tree)


def test_it_returns_a_domain_of_very_many_nodes(stubs: Stubs, published: PublishedState) -> None:
    wide = tree_with(wide=9000)
    published.snapshot = build_snapshot(wide, {})
    assert read_tree(stubs).tree == wide
    assert next(watch_trees(stubs)).tree == wide


@pytest.mark.parametrize("size", [1, 4, 6, 7])
def test_it_returns_the_same_tree_with_any_page_size(stubs: Stubs, size: int) -> None:
    request = pb.GetTopologyRequest(page_size=size)
    rows: list[str] = []
    while True:
        page = stubs.topology.GetTopology(request, timeout=SOON_S)
        here = [row.name for row in page.domains] + [row.node for row in page.unplaced]
        assert 1 <= len(here) <= size
        rows += here
        request.page_token = page.next_page_token
        if not request.page_token:
            break
    assert rows == ["island", "leaf-a", "leaf-b", "spine", "x1", "x2"]


def test_it_continues_the_pages_of_a_replaced_tree(stubs: Stubs, published: PublishedState) -> None:
    first = stubs.topology.GetTopology(pb.GetTopologyRequest(page_size=4), timeout=SOON_S)
    published.snapshot = snapshot_of(*LEAVES)
    rest = pb.GetTopologyRequest(page_size=4, page_token=first.next_page_token)
    second = stubs.topology.GetTopology(rest, timeout=SOON_S)
    assert [row.node for row in second.unplaced] == ["x1", "x2"]
    assert second.revision == first.revision


def test_it_reports_that_the_tree_of_a_page_is_no_longer_stored(
    stubs: Stubs, published: PublishedState
) -> None:
    first = stubs.topology.GetTopology(pb.GetTopologyRequest(page_size=1), timeout=SOON_S)
    for number in range(MAX_TREES):
        published.snapshot = snapshot_of((f"n{number}",))
    request = pb.GetTopologyRequest(page_size=1, page_token=first.next_page_token)
    code, failure = failed(stubs.topology.GetTopology, request)
    assert (code, failure.kind) == (grpc.StatusCode.ABORTED, FailureKind.PAGE_TOKEN_STALE)


def test_it_accepts_a_page_token_of_a_replica_with_the_same_tree(stubs: Stubs) -> None:
    twin = PublishedState(build_snapshot(tree_with("x1", "x2"), {}))
    with serving(twin) as server, grpc.insecure_channel(server.address) as channel:
        other = Stubs(channel).topology
        token = other.GetTopology(pb.GetTopologyRequest(page_size=5), timeout=SOON_S)
    request = pb.GetTopologyRequest(page_token=token.next_page_token)
    found = stubs.topology.GetTopology(request, timeout=SOON_S)
    assert [row.node for row in found.unplaced] == ["x2"]


TOKENS = [
    pytest.param("x", id="no base64"),
    pytest.param("e30=", id="no list"),
    pytest.param("W10=", id="an empty list"),
    pytest.param("WyJhIiwgImIiLCB0cnVlXQ==", id="a list of other types"),
    pytest.param("W1tbW1tbW1tbW1tb" * 4000, id="very deep lists"),
    pytest.param("é", id="no ASCII"),
]


@pytest.mark.parametrize("row", [-1, 10**30, 1.5, True, None], ids=str)
def test_it_refuses_a_modified_token(stubs: Stubs, row: object) -> None:
    first = stubs.topology.GetTopology(pb.GetTopologyRequest(page_size=1), timeout=SOON_S)
    digest, revision, _ = json.loads(base64.urlsafe_b64decode(first.next_page_token))
    token = base64.urlsafe_b64encode(json.dumps([digest, revision, row]).encode()).decode()
    code, failure = failed(stubs.topology.GetTopology, pb.GetTopologyRequest(page_token=token))
    assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "page_token")


def test_it_ends_with_a_page_beyond_the_last(stubs: Stubs) -> None:
    first = stubs.topology.GetTopology(pb.GetTopologyRequest(page_size=1), timeout=SOON_S)
    digest, revision, _ = json.loads(base64.urlsafe_b64decode(first.next_page_token))
    token = base64.urlsafe_b64encode(json.dumps([digest, revision, 99]).encode()).decode()
    page = stubs.topology.GetTopology(pb.GetTopologyRequest(page_token=token), timeout=SOON_S)
    assert (len(page.domains), len(page.unplaced), page.next_page_token) == (0, 0, "")


@pytest.mark.parametrize("token", TOKENS)
def test_it_refuses_a_token_that_is(stubs: Stubs, token: str) -> None:
    for call, request in (
        (stubs.topology.GetTopology, pb.GetTopologyRequest(page_token=token)),
        (stubs.topology.ListFindings, pb.ListFindingsRequest(page_token=token)),
    ):
        code, failure = failed(call, request)
        assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "page_token")


def test_it_sends_each_newer_tree(stubs: Stubs, published: PublishedState) -> None:
    watch = watch_trees(stubs)
    assert next(watch).tree == tree_with("x1", "x2")
    for tree in (tree_with(), tree_of(*LEAVES), tree_with("x1", wide=9000)):
        published.snapshot = build_snapshot(tree, {})
        assert next(watch).tree == tree


def test_it_sends_only_changes(stubs: Stubs, published: PublishedState) -> None:
    watch = stubs.topology.WatchTopology(pb.WatchTopologyRequest(), timeout=SOON_S)
    kinds = [next(watch).kind, next(watch).kind]
    assert kinds == [pb.WATCH_KIND_INITIAL, pb.WATCH_KIND_SYNCED]
    published.snapshot = build_snapshot(tree_with("x2", "x3", wide=1), {})
    gone, changed, synced = (next(watch) for _ in range(3))
    assert (list(gone.removed_domains), list(gone.removed_unplaced)) == ([], ["x1"])
    assert [row.name for row in changed.domains] == ["leaf-b"]
    assert [row.node for row in changed.unplaced] == ["x3"]
    assert synced.revision == hash_tree(tree_with("x2", "x3", wide=1))
    watch.cancel()


def test_it_resumes_from_a_revision(stubs: Stubs, published: PublishedState) -> None:
    known = hash_tree(tree_with("x1", "x2"))
    published.snapshot = build_snapshot(tree_with("x1"), {})
    request = pb.WatchTopologyRequest(revision=known)
    watch = stubs.topology.WatchTopology(request, timeout=SOON_S)
    step = next(watch)
    assert step.kind == pb.WATCH_KIND_UPDATE
    assert list(step.removed_unplaced) == ["x2"]
    assert next(watch).revision == hash_tree(tree_with("x1"))
    watch.cancel()


def test_it_sends_no_rows_for_a_current_revision(stubs: Stubs) -> None:
    request = pb.WatchTopologyRequest(revision=hash_tree(tree_with("x1", "x2")))
    watch = stubs.topology.WatchTopology(request, timeout=SOON_S)
    assert next(watch).kind == pb.WATCH_KIND_SYNCED
    watch.cancel()


def test_it_reports_that_a_revision_is_no_longer_stored(stubs: Stubs) -> None:
    request = pb.WatchTopologyRequest(revision="0" * 24)
    code, failure = failed(stubs.topology.WatchTopology, request)
    assert (code, failure.kind) == (grpc.StatusCode.OUT_OF_RANGE, FailureKind.REVISION_COMPACTED)


def test_it_wakes_a_waiting_gang(stubs: Stubs, published: PublishedState) -> None:
    published.snapshot = full = snapshot_of(*LEAVES)
    asked = pb.WatchFeasibleRequest(spec=encode_request(request_for(4, required="leaf")))
    watch = stubs.topology.WatchFeasible(asked, timeout=SOON_S)
    assert not next(watch).placement.feasible
    nodes = {name: NodeSpec(name, {"slots": 2}) for name in full.tree.nodes}
    published.snapshot = build_snapshot(full.tree, nodes)
    found = next(watch).placement
    assert (found.feasible, found.tier) == (True, "leaf")
    published.snapshot = snapshot_of(("c1",))
    assert not next(watch).placement.feasible
    watch.cancel()


def test_it_wakes_a_gang_only_after_a_change(stubs: Stubs, published: PublishedState) -> None:
    request = pb.WatchFeasibleRequest(spec=encode_request(request_for(1)))
    watch = stubs.topology.WatchFeasible(request, timeout=SOON_S)
    assert next(watch).placement.feasible
    published.snapshot = snapshot_of(("c1", "c2"))
    published.snapshot = snapshot_of()
    assert not next(watch).placement.feasible
    watch.cancel()


def test_it_ends_watches_when_the_server_stops(published: PublishedState) -> None:
    with serving(published) as server, grpc.insecure_channel(server.address) as channel:
        request = pb.WatchTopologyRequest()
        watch = Stubs(channel).topology.WatchTopology(request, timeout=SOON_S)
        next(watch)
        server.stop(deadline_s=SOON_S)
        _, failure = failed(lambda **_: list(watch))
        assert failure.kind is FailureKind.STOPPING


def finding(kind: FindingKind, device: str, port: str | None, severity: Severity) -> Finding:
    names = (PortName(device, port or ""), PortName("sw2", "2"))
    return Finding(kind, device, port, severity, f"look at {device}", names, (names,), "2026-01-01")


FINDINGS = (
    finding(FindingKind.SWAPPED_CABLE, "n2", "eth0", Severity.ERROR),
    finding(FindingKind.DOWN_PORT, "n1", "eth1", Severity.WARNING),
    finding(FindingKind.ISLAND, "n3", None, Severity.INFO),
    finding(FindingKind.DOWN_PORT, "n1", "eth0", Severity.WARNING),
)


def list_findings(stubs: Stubs, *kinds: str) -> list[pb.Finding]:
    return [
        *stubs.topology.ListFindings(pb.ListFindingsRequest(kinds=kinds), timeout=SOON_S).findings
    ]


def test_it_lists_complete_findings(stubs: Stubs, published: PublishedState) -> None:
    published.on_round(RoundOutcome(0.1, findings=FINDINGS))
    assert list_findings(stubs) == [encode_finding(FINDINGS[at]) for at in (3, 1, 2, 0)]
    found = list_findings(stubs, "island", "swapped-cable")
    assert found == [encode_finding(FINDINGS[at]) for at in (2, 0)]
    own, other = pb.PortName(device="n2", port="eth0"), pb.PortName(device="sw2", port="2")
    assert found[1] == pb.Finding(
        kind="swapped-cable",
        device="n2",
        port="eth0",
        severity=pb.SEVERITY_ERROR,
        message="look at n2",
        ports=[own, other],
        swaps=[pb.Swap(first=own, second=other)],
        since="2026-01-01",
    )
    assert not found[0].HasField("port")


def test_it_keeps_the_findings_of_the_last_successful_round(
    stubs: Stubs, published: PublishedState
) -> None:
    published.on_round(RoundOutcome(0.1, findings=FINDINGS))
    published.on_round(RoundOutcome(0.1, is_failed=True))
    assert len(list_findings(stubs)) == len(FINDINGS)


def test_it_lists_findings_by_severity(stubs: Stubs, published: PublishedState) -> None:
    published.on_round(RoundOutcome(0.1, findings=FINDINGS))
    request = pb.ListFindingsRequest(min_severity=pb.SEVERITY_WARNING)
    found = stubs.topology.ListFindings(request, timeout=SOON_S)
    assert [row.kind for row in found.findings] == ["down-port", "down-port", "swapped-cable"]


def test_it_continues_after_the_last_finding_despite_changes(
    stubs: Stubs, published: PublishedState
) -> None:
    published.on_round(RoundOutcome(0.1, findings=FINDINGS))
    first = stubs.topology.ListFindings(pb.ListFindingsRequest(page_size=2), timeout=SOON_S)
    published.on_round(RoundOutcome(0.1, findings=(FINDINGS[0], FINDINGS[1])))
    request = pb.ListFindingsRequest(page_size=2, page_token=first.next_page_token)
    second = stubs.topology.ListFindings(request, timeout=SOON_S)
    assert [row.device for row in second.findings] == ["n2"]
    assert not second.next_page_token


def test_it_refuses_an_unknown_kind(stubs: Stubs) -> None:
    code, failure = failed(
        stubs.topology.ListFindings, pb.ListFindingsRequest(kinds=["island", "x"])
    )
    assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "kinds[1]")
