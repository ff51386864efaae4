"""`toponaut serve --kube` on a real server: HyperNodes as cabled, quiet at rest, guarded."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import FABRICS, HYPERNODES, NODES, RECORDS
from generator.objects.write_policy import APPROVED_PLAN_ANNOTATION
from tests.generator.scenes import PAIRS, Ran, Scene, run
from tests.kube.conftest import WRITER
from tests.kube.servers import Cluster, Generator, serving
from tests.lab.api_server import ApiServer
from tests.topology.synthetic.fabrics import swap

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

STATUS = "fabrics/status"
REPAIR_S = 3.0
"""Promised in docs/operations.md."""


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    made.clear()


@pytest.fixture
def generator(cluster: Cluster, tmp_path: Path) -> Iterator[Generator]:
    """One replica, once its HyperNodes exist."""
    with serving(cluster, tmp_path) as running:
        cluster.await_tree()
        yield running


def find(generator: Generator, kind: str) -> list[dict[str, Any]]:
    """Return the findings of a kind that a replica lists."""
    asked = generator.log_file.with_name("findings.yaml")
    asked.write_text(f"{{kinds: [{kind}]}}")
    ran = run("rpc", "ListFindings", "--server", generator.address, "-f", asked)
    assert ran.code == ExitCode.OK, ran.err
    rows: list[dict[str, Any]] = ran.document.get("findings", [])
    return rows


def toponaut(cluster: Cluster, command: str, *words: str) -> Ran:
    return run(command, *words, "--kube", "--kubeconfig", cluster.api.kubeconfig(WRITER))


def traded(cluster: Cluster, one: str, other: str) -> Scene:
    """Return the scene with the cables of two hosts exchanged."""
    found = cluster.scene.damaged
    for port in ("eth0", "eth1"):
        found = swap(found, (one, port), (other, port))
    return Scene(cluster.scene.root, found)


@pytest.mark.usefixtures("generator")
def test_it_writes_what_is_cabled_and_nothing_at_rest(cluster: Cluster) -> None:
    status = cluster.fabric()["status"]
    assert [(one["tier"], one["nodes"]) for one in status["tiers"]] == [(1, 16), (2, 16)]
    assert (status["generation"], status["unplaced"]) == (1, 0)
    assert cluster.conditions()["ChangeBlocked"] == "-WithinBudget"
    before, versions = cluster.num_writes(), cluster.versions()
    cluster.touch(1)
    moved = traded(cluster, cluster.scene.hosts[0], cluster.scene.hosts[-1])
    cluster.report(moved)
    cluster.await_tree(moved)
    # Reports come one after another, and a round may begin between two of them.
    cluster.await_that(lambda: cluster.fabric()["status"]["generation"] > 1, "a new generation")
    written = [one for one in cluster.writes(before) if one.resource != "events"]
    changed = {name for name, version in cluster.versions().items() if version != versions[name]}
    assert len(changed) == 2
    others = {RECORDS.plural, STATUS}
    assert {one.resource for one in written} == {HYPERNODES.plural, *others}
    assert {one.name for one in written if one.resource not in others} == changed


def test_it_finds_a_node_of_the_cluster_that_is_no_host(
    cluster: Cluster, generator: Generator
) -> None:
    host, kind = cluster.scene.hosts[0], "unmatched-nodes"
    assert find(generator, kind) == []
    cluster.forget({host})
    cluster.api.expect("DELETE", NODES.path(host))
    cluster.add_node("renamed-by-hand")
    cluster.await_that(lambda: find(generator, kind), "the finding")
    (row,) = find(generator, kind)
    assert row["severity"] == "SEVERITY_WARNING"
    assert "1 listed node has no host: renamed-by-hand" in row["message"]
    assert f"1 host has no listed node: {host}" in row["message"]
    shown = [one["kind"] for one in cluster.fabric()["status"]["findings"]]
    assert kind in shown
    cluster.api.expect("DELETE", NODES.path("renamed-by-hand"))
    cluster.add_node(host)
    cluster.await_that(lambda: not find(generator, kind), "the finding is gone")


@pytest.mark.long
@pytest.mark.usefixtures("generator")
def test_it_restores_its_hypernodes_after_foreign_changes(cluster: Cluster) -> None:
    leaf, other, *_ = (one for one in cluster.hypernodes().values() if one.tier == 1)
    path = HYPERNODES.path(leaf.name)
    edited = cluster.api.expect("GET", path)
    edited["spec"]["members"] = edited["spec"]["members"][1:]
    cluster.api.expect("PUT", path, edited)
    cluster.api.expect("DELETE", HYPERNODES.path(other.name))
    orphan = edited | {"metadata": {"name": "orphan", "labels": edited["metadata"]["labels"]}}
    orphan["spec"] = edited["spec"] | {"members": edited["spec"]["members"][:1]}
    cluster.api.expect("POST", HYPERNODES.path(), orphan)
    cluster.await_that(lambda: cluster.hypernodes().get("orphan") is None, "the orphan is gone")
    cluster.await_tree()


def edit(cluster: Cluster, name: str, members: list[object]) -> float:
    """Replace the members of a HyperNode as a person does; return the time of it."""
    path = HYPERNODES.path(name)
    edited = cluster.api.expect("GET", path)
    edited["spec"]["members"] = members
    cluster.api.expect("PUT", path, edited)
    return time.monotonic()


@pytest.mark.usefixtures("generator")
def test_it_undoes_wrong_edits_within_moments_whatever_the_budget(cluster: Cluster) -> None:
    cluster.want(changeBudget={"nodesPercent": 0, "domainsPercent": 0})
    before = cluster.hypernodes()
    leaf, other, *_ = (one for one in before.values() if one.tier == 1)
    spine = next(one for one in before.values() if one.tier == 2)
    members = {
        name: cluster.api.expect("GET", HYPERNODES.path(name))["spec"]["members"]
        for name in (leaf.name, other.name, spine.name)
    }
    edits: dict[str, tuple[str, list[object]]] = {
        "the nodes of another leaf": (leaf.name, members[other.name]),
        "a node in a second leaf": (leaf.name, members[leaf.name] + members[other.name][:1]),
        "a spine with one child": (spine.name, members[spine.name][:1]),
    }
    took_s = {}
    for what, (name, wrong) in edits.items():
        started_s = edit(cluster, name, wrong)
        cluster.await_that(lambda: cluster.hypernodes() == before, what)
        took_s[what] = time.monotonic() - started_s
    assert max(took_s.values()) < REPAIR_S, took_s


@pytest.mark.usefixtures("generator")
def test_it_never_writes_a_hypernode_that_lost_our_label(cluster: Cluster) -> None:
    leaf = next(one for one in cluster.hypernodes().values() if one.tier == 1)
    path = HYPERNODES.path(leaf.name)
    edited = cluster.api.expect("GET", path)
    edited["metadata"]["labels"] = {}
    version = cluster.api.expect("PUT", path, edited)["metadata"]["resourceVersion"]
    cluster.await_that(
        lambda: cluster.conditions()["Ready"] == "-ForeignHyperNodes", "the object is named"
    )
    moved = traded(cluster, cluster.scene.hosts[-1], cluster.scene.hosts[0])
    cluster.report(moved)
    cluster.await_that(lambda: cluster.fabric()["status"]["generation"] > 1, "a new generation")
    (ready,) = (one for one in cluster.fabric()["status"]["conditions"] if one["type"] == "Ready")
    assert f"the foreign HyperNode {leaf.name} has the same name" in ready["message"]
    assert cluster.api.expect("GET", path)["metadata"]["resourceVersion"] == version
    planned = toponaut(cluster, "plan")
    assert f"the foreign HyperNode {leaf.name} has the same name" in planned.err
    cluster.api.expect("DELETE", path)
    cluster.await_tree(moved)


@pytest.mark.usefixtures("generator")
def test_it_reports_a_foreign_parent_of_a_leaf(cluster: Cluster) -> None:
    cluster.want(changeBudget={"nodesPercent": 0, "domainsPercent": 0})
    leaf = next(one for one in cluster.hypernodes().values() if one.tier == 1)
    theirs = {
        "apiVersion": HYPERNODES.api_version,
        "kind": HYPERNODES.kind,
        "metadata": {"name": "theirs"},
        "spec": {
            "tier": 2,
            "members": [{"type": "HyperNode", "selector": {"exactMatch": {"name": leaf.name}}}],
        },
    }
    cluster.api.expect("POST", HYPERNODES.path(), theirs)
    cluster.await_that(
        lambda: cluster.conditions()["Ready"] == "-ForeignHyperNodes", "the parent is named"
    )
    (ready,) = (one for one in cluster.fabric()["status"]["conditions"] if one["type"] == "Ready")
    assert f"HyperNode {leaf.name} is left out: the foreign HyperNode theirs" in ready["message"]
    parents = [one.name for one in cluster.hypernodes().values() if leaf.name in one.children]
    assert parents == ["theirs"]
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    cluster.await_that(
        lambda: [
            one
            for one in cluster.api.expect("GET", events)["items"]
            if one["reason"] == "ForeignHyperNodes" and "theirs" in one["note"]
        ],
        "an Event names the parent",
    )
    cluster.api.expect("DELETE", HYPERNODES.path("theirs"))
    cluster.await_tree()


@pytest.mark.usefixtures("generator")
def test_it_removes_its_hypernodes_when_nobody_wants_them(cluster: Cluster) -> None:
    cluster.want(outputs=[])
    cluster.await_that(lambda: not cluster.hypernodes(), "no HyperNode is left")
    cluster.await_that(lambda: cluster.conditions()["Ready"] == "-NotWanted", "the reason is told")


@pytest.mark.long
@pytest.mark.usefixtures("generator")
def test_it_removes_only_its_hypernodes_and_writes_them_again(cluster: Cluster) -> None:
    """Outputs that were listed before can be applied away, and no budget counts either way."""
    budget = {"nodesPercent": 0, "domainsPercent": 0}
    ours = cluster.hypernodes()
    member = {"type": "Node", "selector": {"exactMatch": {"name": cluster.scene.hosts[0]}}}
    theirs = {
        "apiVersion": HYPERNODES.api_version,
        "kind": HYPERNODES.kind,
        "metadata": {"name": "theirs"},
        "spec": {"tier": 1, "members": [member]},
    }
    version = cluster.api.expect("POST", HYPERNODES.path(), theirs)["metadata"]["resourceVersion"]
    for _ in range(2):
        cluster.want(outputs=[{"type": "hypernode"}], changeBudget=budget)
        cluster.await_that(
            lambda: {**cluster.hypernodes(), "theirs": None} == {**ours, "theirs": None},
            "ours as before",
        )
        cluster.want(outputs=[], changeBudget=budget)
        cluster.await_that(lambda: set(cluster.versions()) == {"theirs"}, "only theirs is left")
    assert cluster.versions() == {"theirs": version}


@pytest.mark.long
@pytest.mark.usefixtures("generator")
def test_it_keeps_foreign_hypernodes_and_reports_them(cluster: Cluster) -> None:
    theirs = {
        "apiVersion": HYPERNODES.api_version,
        "kind": HYPERNODES.kind,
        "metadata": {"name": "theirs"},
        "spec": {
            "tier": 1,
            "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": cluster.scene.hosts[0]}}}
            ],
        },
    }
    made = cluster.api.expect("POST", HYPERNODES.path(), theirs)
    cluster.await_that(
        lambda: cluster.conditions()["Ready"] == "-ForeignHyperNodes", "the overlap is told"
    )
    (ready,) = (one for one in cluster.fabric()["status"]["conditions"] if one["type"] == "Ready")
    assert f"foreign HyperNode theirs also contains {cluster.scene.hosts[0]}" in ready["message"]
    assert cluster.api.expect("GET", HYPERNODES.path("theirs")) == made
    cluster.api.expect("DELETE", HYPERNODES.path("theirs"))
    cluster.await_tree()


def test_it_reports_that_there_is_nothing_to_approve(cluster: Cluster) -> None:
    ran = toponaut(cluster, "approve", "0" * 16)
    assert ran.code == ExitCode.INTERNAL
    assert "nothing to approve: there is no Fabric default in the cluster" in ran.err


@pytest.mark.long
@pytest.mark.usefixtures("generator")
def test_it_holds_a_large_change_until_a_person_approves_it(cluster: Cluster) -> None:
    before = cluster.versions()
    lost = cluster.scene.hosts[::2]
    cluster.lose(lost)
    cluster.await_that(cluster.held, "the plan is held")
    assert cluster.conditions()["ChangeBlocked"] == "TooManyNodes"
    assert cluster.versions() == before
    held = toponaut(cluster, "apply", "-o", "json")
    assert (held.code, held.document) == (ExitCode.CHECK_FAILED, [])
    assert f"plan {cluster.held()} is held" in held.err
    refused = toponaut(cluster, "approve", "0" * 16)
    assert refused.code == ExitCode.USAGE
    assert cluster.held() in refused.err
    wrong = {"metadata": {"annotations": {APPROVED_PLAN_ANNOTATION: "0" * 16}}}
    cluster.api.merge(FABRICS.path("default"), wrong)
    cluster.await_that(
        lambda: not cluster.fabric()["metadata"].get("annotations"),
        "the approval of a plan that is not held is removed",
    )
    assert cluster.versions() == before
    assert toponaut(cluster, "approve", cluster.held()).code == ExitCode.OK
    cluster.await_tree(but_for=lost)
    cluster.await_that(lambda: not cluster.held(), "nothing is held")
    cluster.await_that(
        lambda: not cluster.fabric()["metadata"].get("annotations"), "the approval is used up"
    )


@pytest.mark.long
@pytest.mark.usefixtures("generator")
def test_it_writes_nothing_while_it_is_paused(cluster: Cluster) -> None:
    before = cluster.versions()
    cluster.want(paused=True)
    moved = traded(cluster, cluster.scene.hosts[0], cluster.scene.hosts[-1])
    cluster.report(moved)
    cluster.await_that(lambda: cluster.conditions()["Ready"] == "-Paused", "the pause is told")
    assert cluster.versions() == before
    assert toponaut(cluster, "apply").code == ExitCode.CHECK_FAILED
    cluster.want(paused=False, tierNames=["rack", "row"])
    cluster.await_tree(moved)
    cluster.await_that(
        lambda: {one.tier_name for one in cluster.hypernodes().values()} == {"rack", "row"},
        "tiers have the names that are wanted",
    )


@pytest.mark.long
@pytest.mark.usefixtures("generator")
def test_it_splits_no_domain_under_a_running_gang(cluster: Cluster) -> None:
    leaf = next(one for one in cluster.hypernodes().values() if one.tier == 1)
    stranger = next(host for host in cluster.scene.hosts if host not in leaf.nodes)
    pods = cluster.run_gang(*leaf.nodes[:2])
    before = cluster.versions()
    moved = traded(cluster, leaf.nodes[0], stranger)
    cluster.report(moved)
    cluster.await_that(cluster.held, "the plan is held")
    assert cluster.conditions()["ChangeBlocked"] == "RunningGang"
    assert cluster.versions() == before
    assert f"{cluster.namespace}/llm" in toponaut(cluster, "plan").err
    cluster.end_gang(pods)
    cluster.await_tree(moved)


def test_it_writes_nothing_in_a_dry_run_and_reports_the_plan(
    cluster: Cluster, tmp_path: Path
) -> None:
    with serving(cluster, tmp_path, "--dry-run") as running:
        cluster.await_that(
            lambda: cluster.conditions().get("Ready") == "-DryRun", "the dry run is told"
        )
        assert cluster.hypernodes() == {}
        planned = [row for row in running.log if row["event"] == "planned change appeared"]
    document = json.loads(toponaut(cluster, "plan", "-o", "json").out)
    assert [row["hypernode"] for row in planned] == [row["name"] for row in document]


def test_it_applies_a_plan_without_a_server(cluster: Cluster) -> None:
    cluster.want(tierNames=["rack", "row"])
    done = toponaut(cluster, "apply", "-o", "json")
    assert done.code == ExitCode.OK
    assert {row["op"] for row in done.document} == {"create"}
    assert {one.tier_name for one in cluster.hypernodes().values()} == {"rack", "row"}
    assert toponaut(cluster, "apply", "-o", "json").document == []
