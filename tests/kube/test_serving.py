"""`toponaut serve --kube` on a real server: as cabled, quiet at rest, guarded, whatever fails.

One replica follows one cluster through all tests: all is well when a test begins and ends.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import FABRICS, HYPERNODES, NODES, RECORDS, REPORTS
from generator.kube.transport import KubeRequest
from generator.objects.write_policy import APPROVED_PLAN_ANNOTATION
from tests.generator.scenes import run
from tests.kube.conftest import WRITER, connecting
from tests.kube.days import BUDGET, Day, create_all, day_of
from tests.kube.proxy import Fault, status_body
from tests.lab.api_server import ApiServer
from topology.model.errors import KubeError

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

STATUS = "fabrics/status"
REPAIR_S = 3.0
"""Promised in docs/operations.md."""
NO_CHANGES = BUDGET | {"nodesPercent": 0, "domainsPercent": 0}
WRITES = "^(POST|PUT|PATCH|DELETE) .*hypernodes"
KINDS = ("neighborreports", "nodes", "hypernodes", "fabrics", "pods")
NUM_REPORTS = 5000
CROWD = "crowd"


@pytest.fixture(scope="module")
def whole_day(spare_api: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    spare_api.revive()
    with day_of(spare_api, tmp_path_factory.mktemp("day")) as found:
        yield found


@pytest.fixture
def day(whole_day: Day) -> Iterator[Day]:
    yield whole_day
    whole_day.proxy.relent()
    whole_day.cluster.api.resume()
    whole_day.cluster.want(changeBudget=BUDGET)
    whole_day.await_tree()
    assert whole_day.generator.program.poll() is None, "it lives"


def test_it_writes_what_is_cabled_and_nothing_at_rest(day: Day) -> None:
    cluster = day.cluster
    status = cluster.fabric()["status"]
    assert {one["nodes"] for one in status["tiers"]} == {len(day.scene.hosts)}
    assert status["unplaced"] == 0
    assert cluster.conditions()["ChangeBlocked"] == "-WithinBudget"
    cluster.touch(1)
    cluster.check_rest(day.ports)
    before, versions = cluster.num_writes(), cluster.versions()
    day.move()
    day.await_tree()
    cluster.await_that(
        lambda: cluster.fabric()["status"]["generation"] > status["generation"], "a new generation"
    )
    written = [one for one in cluster.writes(before) if one.resource != "events"]
    changed = {name for name, version in cluster.versions().items() if version != versions[name]}
    assert len(changed) == 2
    others = {RECORDS.plural, STATUS}
    assert {one.resource for one in written} == {HYPERNODES.plural, *others}
    assert {one.name for one in written if one.resource not in others} == changed


def test_it_undoes_wrong_edits_within_moments_whatever_the_budget(day: Day) -> None:
    cluster = day.cluster
    cluster.want(changeBudget=NO_CHANGES)
    before = cluster.hypernodes()
    leaf, other = (day.home(host) for host in day.next_pair())
    spine = next(one.name for one in before.values() if leaf in one.children)
    objects = {
        name: cluster.api.expect("GET", HYPERNODES.path(name)) for name in (leaf, other, spine)
    }
    members = {name: found["spec"]["members"] for name, found in objects.items()}
    edits: dict[str, tuple[str, list[object]]] = {
        "the nodes of another leaf": (leaf, members[other]),
        "a node in a second leaf": (leaf, members[leaf] + members[other][:1]),
        "a spine with one child": (spine, members[spine][:1]),
    }
    took_s = {}
    for what, (name, wrong) in edits.items():
        edited = cluster.api.expect("GET", HYPERNODES.path(name))
        edited["spec"]["members"] = wrong
        cluster.api.expect("PUT", HYPERNODES.path(name), edited)
        started_s = time.monotonic()
        cluster.await_that(lambda: cluster.hypernodes() == before, what)
        took_s[what] = time.monotonic() - started_s
    assert max(took_s.values()) < REPAIR_S, took_s
    labels = objects[leaf]["metadata"]["labels"]
    orphan = objects[leaf] | {"metadata": {"name": "orphan", "labels": labels}}
    cluster.api.expect("POST", HYPERNODES.path(), orphan)
    cluster.api.expect("DELETE", HYPERNODES.path(other))
    cluster.await_that(lambda: cluster.hypernodes() == before, "an orphan and a lost leaf")


def test_it_never_writes_foreign_hypernodes_and_names_them(day: Day) -> None:
    """One that lost our label, and so contains our nodes, and one that lists a leaf of ours."""
    cluster, api = day.cluster, day.cluster.api
    listed, lost = [one for one in cluster.hypernodes().values() if one.tier == 1][-2:]
    edited = api.expect("GET", HYPERNODES.path(lost.name))
    edited["metadata"]["labels"] = {}
    edited["spec"]["members"] = edited["spec"]["members"][:1]
    member = {"type": "HyperNode", "selector": {"exactMatch": {"name": listed.name}}}
    parent = {
        "apiVersion": HYPERNODES.api_version,
        "kind": HYPERNODES.kind,
        "metadata": {"name": "parent"},
        "spec": {"tier": 2, "members": [member]},
    }
    foreign = {
        lost.name: api.expect("PUT", HYPERNODES.path(lost.name), edited),
        "parent": api.expect("POST", HYPERNODES.path(), parent),
    }
    said = (
        f"the foreign HyperNode {lost.name} has the same name",
        f"the foreign HyperNode {lost.name} also contains {lost.nodes[0]}",
        f"HyperNode {listed.name} is left out: the foreign HyperNode parent",
    )
    cluster.await_that(
        lambda: (
            cluster.conditions()["Ready"] == "-ForeignHyperNodes"
            and all(text in cluster.message("Ready") for text in said)
        ),
        "they are named",
    )
    parents = [one.name for one in cluster.hypernodes().values() if listed.name in one.children]
    assert parents == ["parent"]
    planned = cluster.toponaut("plan")
    assert all(text in planned.err for text in said)
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    cluster.await_that(
        lambda: [
            one
            for one in api.expect("GET", events)["items"]
            if one["reason"] == "ForeignHyperNodes" and "parent" in one["note"]
        ],
        "an Event names the parent",
    )
    for name, found in foreign.items():
        assert api.expect("GET", HYPERNODES.path(name)) == found
        api.expect("DELETE", HYPERNODES.path(name))
    day.await_tree()


def test_it_holds_a_change_until_a_person_approves_it(day: Day) -> None:
    cluster = day.cluster
    cluster.want(changeBudget=NO_CHANGES)
    before = cluster.versions()
    day.move()
    cluster.await_that(cluster.held, "the plan is held")
    assert cluster.conditions()["ChangeBlocked"] == "TooManyNodes"
    held = cluster.toponaut("apply", "-o", "json")
    assert (held.code, held.document) == (ExitCode.CHECK_FAILED, [])
    assert f"plan {cluster.held()} is held" in held.err
    refused = cluster.toponaut("approve", "0" * 16)
    assert refused.code == ExitCode.USAGE
    assert cluster.held() in refused.err
    wrong = {"metadata": {"annotations": {APPROVED_PLAN_ANNOTATION: "0" * 16}}}
    cluster.api.merge(FABRICS.path("default"), wrong)
    cluster.await_that(
        lambda: not cluster.fabric()["metadata"].get("annotations"),
        "the approval of a plan that is not held is removed",
    )
    assert cluster.versions() == before
    assert cluster.toponaut("approve", cluster.held()).code == ExitCode.OK
    day.await_tree()
    cluster.await_that(lambda: not cluster.held(), "nothing is held")
    cluster.await_that(
        lambda: not cluster.fabric()["metadata"].get("annotations"), "the approval is used up"
    )


def test_it_splits_no_domain_under_a_running_gang(day: Day) -> None:
    cluster = day.cluster
    pair = day.next_pair()
    home = day.home(pair[0])
    pods = cluster.run_gang(*cluster.hypernodes()[home].nodes[:2])
    before = cluster.versions()
    day.move(pair)
    cluster.await_that(cluster.held, "the plan is held")
    assert cluster.conditions()["ChangeBlocked"] == "RunningGang"
    assert cluster.versions() == before
    assert f"{cluster.namespace}/llm" in cluster.toponaut("plan").err
    cluster.end_gang(pods)
    day.await_tree()


def test_it_writes_nothing_while_it_is_paused(day: Day) -> None:
    cluster = day.cluster
    cluster.want(changeBudget=BUDGET, paused=True)
    before = cluster.versions()
    day.move()
    cluster.await_that(lambda: cluster.conditions()["Ready"] == "-Paused", "the pause is told")
    cluster.await_rounds(day.ports)
    assert cluster.toponaut("apply").code == ExitCode.CHECK_FAILED
    assert cluster.versions() == before, "only the status may change"
    cluster.want(changeBudget=BUDGET)
    day.await_tree()


def test_it_drops_a_deleted_node_and_takes_it_back(day: Day) -> None:
    gone, new = day.scene.hosts[-1], "renamed-by-hand"
    day.cluster.forget([gone])
    day.cluster.api.expect("DELETE", NODES.path(gone))
    day.cluster.add_node(new)
    day.cluster.await_tree(day.scene, but_for=[gone])
    told = (f"1 listed node has no host: {new}", f"1 host has no listed node: {gone}")
    day.await_that(lambda: all(text in unmatched_nodes(day) for text in told), "they are named")
    assert "unmatched-nodes" in str(day.cluster.fabric()["status"]["findings"])
    day.cluster.api.expect("DELETE", NODES.path(new))
    day.cluster.add_node(gone)
    day.cluster.report(day.scene)
    day.await_tree()
    day.await_that(lambda: not unmatched_nodes(day), "the finding is gone")


def unmatched_nodes(day: Day) -> str:
    """Return the message of the finding; empty without one."""
    asked = day.generator.log_file.with_name("findings.yaml")
    asked.write_text("{kinds: [unmatched-nodes]}")
    ran = run("rpc", "ListFindings", "--server", day.generator.address, "-f", asked)
    assert ran.code == ExitCode.OK, ran.err
    return "".join(row["message"] for row in ran.document.get("findings", []))


def test_it_deletes_nothing_when_all_agents_vanish(day: Day) -> None:
    before = day.cluster.versions()
    day.cluster.api.expect("DELETE", REPORTS.path())
    day.await_that(lambda: day.cluster.conditions().get("Ready") == "-NoData", "it is told")
    assert day.cluster.versions() == before
    day.cluster.report(day.scene)
    day.await_tree()
    assert day.cluster.versions() == before, "what came back is what stood"


def test_it_limits_false_claims_to_the_claimant(day: Day) -> None:
    victim, claimant = day.scene.hosts[20], day.scene.hosts[40]
    path = REPORTS.path(claimant)
    stolen, honest = (
        day.cluster.api.expect("GET", REPORTS.path(name)) for name in (victim, claimant)
    )
    before = day.cluster.versions()
    ids = [one for one in stolen["spec"]["device"]["ids"] if one["type"] == "mac"]
    assert ids
    device = honest["spec"]["device"] | {"ids": [*honest["spec"]["device"]["ids"], *ids]}
    day.cluster.api.expect("PUT", path, honest | {"spec": honest["spec"] | {"device": device}})
    day.await_that(lambda: ("duplicate-id", claimant) in day.findings(), "the claim is told")
    assert ("duplicate-id", victim) not in day.findings()
    day.await_tree()
    assert day.cluster.versions() == before, "everybody keeps their place"
    now = day.cluster.api.expect("GET", path)
    day.cluster.api.expect("PUT", path, now | {"spec": honest["spec"]})
    day.await_that(lambda: ("duplicate-id", claimant) not in day.findings(), "it is gone")


def test_it_lists_again_after_its_watches_expired(day: Day) -> None:
    gone = {"type": "ERROR", "object": json.loads(status_body(410, "Expired", "too old"))}
    for kind in KINDS:
        day.proxy.fail(f"{kind}.*watch=1", Fault(lines=(json.dumps(gone).encode() + b"\n",)))
    since = day.num_lines
    day.proxy.cut()
    day.move()
    day.await_tree()
    for kind in KINDS:
        day.await_line("watch expired, listing again", kind, since)


def test_it_repeats_a_write_whose_answer_was_lost(day: Day) -> None:
    day.proxy.fail(WRITES, *[Fault(is_lost=True)] * 2)
    day.move()
    day.await_tree()


def test_it_follows_a_slow_server(day: Day) -> None:
    day.proxy.plague("", Fault(delay_s=1.0))
    day.proxy.cut()
    day.move()
    day.await_tree()


def test_it_continues_when_its_token_is_valid_again(day: Day) -> None:
    since = day.num_lines
    day.proxy.plague("", Fault(401, body=status_body(401, "Unauthorized", "Unauthorized")))
    day.proxy.cut()
    day.await_line("cannot follow objects", "401", since)
    day.move()
    day.proxy.relent()
    day.await_tree()


def test_it_reports_denied_writes_and_writes_once_they_are_admitted(day: Day) -> None:
    cluster, reason = day.cluster, "nobody writes HyperNodes today"
    path = HYPERNODES.path(min(cluster.versions()))
    is_ours = f"request.userInfo.username == '{WRITER}'"
    with connecting(cluster.api) as other:

        def is_denied() -> bool:
            try:
                other.ask(KubeRequest("DELETE", path, (("dryRun", "All"),)), timeout_s=30)
            except KubeError:
                return True
            return False

        with cluster.denied_writes(HYPERNODES, is_ours, is_denied, reason=reason):
            before = cluster.versions()
            day.move()
            day.await_that(
                lambda: cluster.conditions()["Ready"] == "-WriteFailed", "the denial is told"
            )
            assert reason in cluster.message("Ready")
            assert cluster.versions() == before
    day.await_tree()


@pytest.mark.long
def test_it_loses_leadership_while_the_server_hangs_and_regains_it(day: Day) -> None:
    since = day.num_lines
    day.cluster.api.suspend()
    day.await_line("leadership lost", "", since)
    day.cluster.api.resume()
    day.move()
    day.await_tree()


@pytest.mark.long
def test_it_handles_5000_reports_at_once(day: Day) -> None:
    def num_fresh() -> float:
        return float(day.ports.metric("reports")[("fresh",)])

    before = day.cluster.versions()
    reports = (crowd_report(f"{CROWD}-{at:04}") for at in range(NUM_REPORTS))
    with connecting(day.cluster.api) as other:
        create_all(other, REPORTS.path(), reports)
        day.await_that(lambda: num_fresh() >= NUM_REPORTS, "all are read")
        day.await_tree()
        assert day.cluster.versions() == before
        crowd = KubeRequest("DELETE", REPORTS.path(), (("labelSelector", CROWD),))
        other.ask(crowd, timeout_s=120)
    day.await_that(lambda: num_fresh() < NUM_REPORTS, "all are gone")


def crowd_report(name: str) -> dict[str, Any]:
    device = {"kind": "host", "name": name, "ids": [{"type": "node-name", "value": name}]}
    ports = [{"name": "eth0", "medium": "ethernet", "state": "up"}]
    return {
        "apiVersion": REPORTS.api_version,
        "kind": REPORTS.kind,
        "metadata": {"name": name, "labels": {CROWD: "true"}},
        "spec": {"device": device, "ports": ports},
    }
