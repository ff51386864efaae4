"""What the generator's token can do on a real API server: change nothing that is not its own."""

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from generator.kube.resources import (
    CONFIG_MAPS,
    FABRICS,
    HYPERNODES,
    LEASES,
    NODES,
    PODS,
    RECORDS,
    REPORTS,
    RESERVATIONS,
)
from generator.objects.tree_record import EMPTY_TREE, RecentChanges, TreeRecord, render_tree_record
from tests.daemonset.callers import Caller, make_node, named, on_node
from tests.daemonset.tools import NAMESPACE
from tests.kube.examples import made
from tests.lab.api_server import APPLY, MERGE, ApiServer
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]
GENERATOR: Final = "toponaut-generator"
SOURCE: Final = "volcano.sh/network-topology-source"
OURS: Final = {SOURCE: "toponaut"}
_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1"
_EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/default/events"
_MANAGED: Final = "fieldManager=toponaut-configmap&force=true"


def hypernode(labels: Mapping[str, str]) -> dict[str, Any]:
    member = {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}
    return {
        "apiVersion": HYPERNODES.api_version,
        "kind": HYPERNODES.kind,
        "metadata": {"labels": dict(labels)},
        "spec": {"tier": 1, "members": [member]},
    }


def report() -> dict[str, Any]:
    head = {"apiVersion": REPORTS.api_version, "kind": REPORTS.kind}
    return head | {"spec": made(REPORTS)["spec"]}


def fabric() -> dict[str, Any]:
    return {"apiVersion": FABRICS.api_version, "kind": FABRICS.kind}


def fresh(prefix: str) -> str:
    return f"{prefix}-{secrets.token_hex(4)}"


@pytest.fixture
def generator(cluster: ApiServer) -> Caller:
    """The generator after its admission policies took effect."""
    caller = on_node(cluster, GENERATOR, make_node(cluster)["metadata"]["name"])
    for path, body in (
        (HYPERNODES.path("probe"), hypernode({})),
        (REPORTS.path("probe"), report()),
        (FABRICS.path("default"), fabric() | {"metadata": {"labels": {"a": "b"}}}),
    ):
        wait_until(
            lambda path=path, body=body: (  # type: ignore[misc]  # defaults bind the loop's values
                caller.apply(path, body, query="&dryRun=All").status != 403
            ),
            deadline_s=30,
            what=f"the policy of {path} is in force",
        )
    return caller


@contextlib.contextmanager
def every_right_on(cluster: ApiServer, group: str, *resources: str) -> Iterator[None]:
    """Give the generator every right on some kinds, as a careless edit of its role would."""
    name = fresh("careless")
    rule = {"apiGroups": [group], "resources": resources, "verbs": ["*"]}
    cluster.expect("POST", f"{_ROLES}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": GENERATOR, "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    cluster.expect("POST", f"{_ROLES}/clusterrolebindings", binding)
    yield
    cluster.expect("DELETE", f"{_ROLES}/clusterrolebindings/{name}")


@pytest.fixture
def may_write_configmaps(cluster: ApiServer, generator: Caller) -> Iterator[None]:
    with every_right_on(cluster, "", "configmaps"):
        wait_until(
            lambda: generator.ask("GET", CONFIG_MAPS.path(namespace=NAMESPACE)).status != 200,
            deadline_s=30,
            what="the right is in force",
        )
        yield


@pytest.fixture
def may_write_nodes(cluster: ApiServer, generator: Caller) -> Iterator[None]:
    with every_right_on(cluster, "", "nodes", "nodes/status"):
        wait_for_the_policy_of_nodes(cluster, generator)
        yield


def wait_for_the_policy_of_nodes(cluster: ApiServer, generator: Caller) -> None:
    node = NODES.path(make_node(cluster)["metadata"]["name"])
    own = {"metadata": {"labels": {"toponaut.io/leaf": "a"}}}
    foreign = {"metadata": {"labels": {"rack": "r2"}}}
    query = f"{node}?dryRun=All"
    wait_until(
        lambda: (
            generator.ask("PATCH", query, own, form=MERGE).status != 200
            or generator.ask("PATCH", query, foreign, form=MERGE).status != 403
        ),
        deadline_s=30,
        what="the right and the policy are in force",
    )


def test_it_writes_its_own_hypernodes(generator: Caller) -> None:
    path = HYPERNODES.path(fresh("leaf"))
    assert generator.apply(path, hypernode(OURS)).status == 201
    assert generator.apply(path, hypernode(OURS | {"toponaut.io/padding": "true"})).status == 200
    assert generator.ask("DELETE", path).status == 200


def test_it_leaves_hypernodes_of_others_alone(generator: Caller, cluster: ApiServer) -> None:
    for labels in ({}, {SOURCE: "ufm"}):
        path = HYPERNODES.path(fresh("foreign"))
        assert generator.apply(path, hypernode(labels)).status == 403
        cluster.apply(f"{path}?fieldManager=other", named(path, hypernode(labels)))
        for answer in (
            generator.apply(path, hypernode(OURS)),
            generator.ask("PATCH", path, {"metadata": {"labels": OURS}}, form=MERGE),
            generator.ask("DELETE", path),
        ):
            assert answer.status == 403
            assert "may change only HyperNodes labelled" in answer.message
        assert cluster.expect("GET", path)["metadata"].get("labels", {}) == labels


def test_it_cannot_disown_a_hypernode(generator: Caller) -> None:
    path = HYPERNODES.path(fresh("leaf"))
    assert generator.apply(path, hypernode(OURS)).status == 201
    answer = generator.ask("PATCH", path, {"metadata": {"labels": {SOURCE: None}}}, form=MERGE)
    assert answer.status == 403
    assert "the generator must label its HyperNodes" in answer.message


def test_it_sets_no_finalizer_and_no_owner_of_a_hypernode(
    generator: Caller, cluster: ApiServer
) -> None:
    path, other = HYPERNODES.path(fresh("leaf")), HYPERNODES.path(fresh("leaf"))
    assert generator.apply(path, hypernode(OURS)).status == 201
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "1"}
    for metadata in ({"finalizers": ["a.org/b"]}, {"ownerReferences": [owner]}):
        answer = generator.ask("PATCH", path, {"metadata": metadata}, form=MERGE)
        assert (answer.status, "finalizers and owners" in answer.message) == (403, True)
        marked = hypernode(OURS)
        marked["metadata"] |= metadata
        assert generator.apply(other, marked).status == 403
    kept = {"metadata": {"finalizers": ["a.org/b"]}}
    assert cluster.request("PATCH", path, kept, content_type=MERGE).status == 200
    assert generator.apply(path, hypernode(OURS | {"toponaut.io/padding": "true"})).status == 200
    freed = {"metadata": {"finalizers": None}}
    assert cluster.request("PATCH", path, freed, content_type=MERGE).status == 200


def test_it_neither_changes_the_settings_nor_approves_a_plan(
    generator: Caller, cluster: ApiServer
) -> None:
    path, approval = FABRICS.path("default"), {"toponaut.io/approved-plan": "0" * 16}
    cluster.request("DELETE", path)
    wider = {"spec": {"changeBudget": {"nodesPercent": 100}}}
    assert generator.apply(path, fabric() | wider).status == 403
    assert generator.apply(path, fabric() | {"metadata": {"annotations": approval}}).status == 403
    assert generator.apply(path, fabric()).status == 201
    for change in (
        wider,
        {"spec": {"paused": True}},
        {"metadata": {"annotations": approval}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"finalizers": ["a.org/b"]}},
    ):
        answer = generator.ask("PATCH", path, change, form=MERGE)
        assert (answer.status, "the generator may" in answer.message) == (403, True)
    person = {"metadata": {"annotations": approval | {"note": "x"}}, "spec": {"paused": True}}
    assert cluster.request("PATCH", path, person, content_type=MERGE).status == 200
    for mark, status in (("note", 403), ("toponaut.io/approved-plan", 200)):
        used = {"metadata": {"annotations": {mark: None}}}
        assert generator.ask("PATCH", path, used, form=MERGE).status == status
    generation = {"status": {"generation": 1}}
    assert generator.ask("PATCH", f"{path}/status", generation, form=MERGE).status == 200
    cluster.request("DELETE", path)


def test_it_writes_reports_of_switches_and_no_others(generator: Caller, cluster: ApiServer) -> None:
    replaced = REPORTS.path(fresh("switch"))
    assert generator.apply(replaced, report()).status == 201
    assert generator.ask("DELETE", replaced).status == 200
    path = REPORTS.path(fresh("node"))
    assert generator.apply(path, report()).status == 403
    cluster.apply(f"{path}?fieldManager=other", named(path, report()))
    answer = generator.apply(path, report())
    assert (answer.status, "reports of switches only" in answer.message) == (403, True)
    assert generator.ask("GET", path).status == 200
    answer = generator.ask("DELETE", path)
    assert (answer.status, "reports of switches only" in answer.message) == (403, True)


def test_it_deletes_reservations_that_have_ended_and_no_others(
    generator: Caller, cluster: ApiServer
) -> None:
    wanted = made(RESERVATIONS)
    path = RESERVATIONS.path(wanted["metadata"]["name"])
    assert generator.ask("POST", RESERVATIONS.path(), wanted).status == 201
    head = {"apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind}
    status = head | {"status": wanted["status"]}
    assert generator.apply(f"{path}/status", status).status == 200
    answer = generator.ask("DELETE", path)
    assert (answer.status, "only reservations that have ended" in answer.message) == (403, True)
    assert generator.ask("PATCH", path, {"metadata": {"labels": {}}}, form=MERGE).status == 403
    assert generator.ask("GET", path).status == 403, "lists and watches are enough"
    status["status"] = {"phase": "released", "epoch": 3}
    assert generator.apply(f"{path}/status", status).status == 200
    assert generator.ask("DELETE", path).status == 200
    assert cluster.request("GET", path).status == 404


def test_it_writes_no_lease_but_its_own(generator: Caller) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "1"}
    for metadata in (
        {"name": fresh("election-of-others")},
        {"name": "kube-scheduler"},
        {"name": GENERATOR, "finalizers": ["a.org/b"]},
        {"name": GENERATOR, "ownerReferences": [owner]},
    ):
        lease = {"metadata": metadata, "spec": {"holderIdentity": "pod-1"}}
        answer = generator.ask("POST", f"{LEASES.path(namespace=NAMESPACE)}?dryRun=All", lease)
        assert (answer.status, "no Lease but its own" in answer.message) == (403, True)


@pytest.mark.parametrize(
    "change",
    [{"reportingController": "kubelet"}, {"finalizers": ["a.org/b"]}],
    ids=["in the name of others", "with a finalizer"],
)
def test_it_creates_no_event(change: dict[str, Any], generator: Caller) -> None:
    event = make_event()
    event["metadata"] |= {key: change[key] for key in change if key == "finalizers"}
    event |= {key: change[key] for key in change if key != "finalizers"}
    answer = generator.ask("POST", _EVENTS, event)
    assert (answer.status, "Events of its own" in answer.message) == (403, True)


@pytest.mark.usefixtures("may_write_configmaps")
def test_it_keeps_outputs_of_its_own(generator: Caller) -> None:
    path = CONFIG_MAPS.path(fresh("own"), namespace=NAMESPACE)
    own = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    own["metadata"] = {"name": path.rpartition("/")[2]}
    for status in (201, 200):
        answer = generator.ask("PATCH", f"{path}?{_MANAGED}", own, form=APPLY)
        assert answer.status == status, answer.message
    marked = {"metadata": {"finalizers": ["a.org/b"]}}
    answer = generator.ask("PATCH", path, marked, form=MERGE)
    assert (answer.status, "finalizers and owners" in answer.message) == (403, True)
    assert generator.ask("DELETE", path).status == 200


@pytest.mark.usefixtures("may_write_configmaps")
def test_it_leaves_objects_of_others_alone(generator: Caller, cluster: ApiServer) -> None:
    path = CONFIG_MAPS.path(fresh("foreign"), namespace=NAMESPACE)
    name = {"name": path.rpartition("/")[2]}
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}, "metadata": name}
    cluster.apply(f"{path}?fieldManager=other", foreign)
    ours = foreign | {"data": {"c": "d"}}
    for answer in (
        generator.ask("PATCH", f"{path}?{_MANAGED}", ours, form=APPLY),
        generator.ask("PATCH", path, {"data": {"c": "d"}}, form=MERGE),
        generator.ask("DELETE", path),
    ):
        assert (answer.status, "no outputs but its own" in answer.message) == (403, True)
    assert cluster.expect("GET", path)["data"] == {"a": "b"}


def make_event() -> dict[str, Any]:
    return {
        "metadata": {"generateName": "toponaut-generator-", "namespace": "default"},
        "eventTime": "2026-11-05T10:00:00.000000Z",
        "reportingController": "toponaut.io/generator",
        "reportingInstance": "pod-1",
        "action": "Held",
        "reason": "ChangeBlocked",
        "type": "Normal",
        "regarding": {"apiVersion": FABRICS.api_version, "kind": "Fabric", "name": "default"},
    }


def test_it_has_what_its_work_needs(generator: Caller) -> None:
    followed = (NODES, PODS, REPORTS, FABRICS, HYPERNODES, RECORDS, RESERVATIONS)
    for path in (one.path() for one in followed):
        assert generator.ask("GET", f"{path}?watch=1&timeoutSeconds=1&limit=1").status == 200, path
    fabric = {"apiVersion": FABRICS.api_version, "kind": FABRICS.kind}
    assert generator.apply(FABRICS.path("default"), fabric | {"spec": {}}).status in (200, 201)
    status = fabric | {"status": {"generation": 1}}
    assert generator.apply(f"{FABRICS.path('default')}/status", status).status == 200
    lease = {"metadata": {"name": GENERATOR}, "spec": {"holderIdentity": "pod-1"}}
    made_lease = generator.ask("POST", LEASES.path(namespace=NAMESPACE), lease)
    assert made_lease.status in (201, 409), made_lease.message
    answer = generator.ask("POST", _EVENTS, make_event())
    assert answer.status == 201, answer.message
    review = {"spec": {"token": "nobody's", "audiences": ["toponaut"]}}
    asked = generator.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert (asked.status, asked.body["status"].get("authenticated", False)) == (201, False)


def test_it_writes_the_record_of_the_tree_and_cannot_delete_it(generator: Caller) -> None:
    path = RECORDS.path("default")
    records = [
        render_tree_record(TreeRecord(EMPTY_TREE, RecentChanges({f"n{num}": num})))
        for num in (1, 2)
    ]
    for record in records:
        assert generator.apply(path, record).status in (200, 201)
    assert generator.ask("GET", path).body["spec"] == records[-1]["spec"]
    assert generator.ask("DELETE", path).status == 403
    assert generator.ask("DELETE", RECORDS.path()).status == 403


def test_it_has_no_right_to_write_nodes(generator: Caller, cluster: ApiServer) -> None:
    path = NODES.path(make_node(cluster)["metadata"]["name"])
    labels = {"metadata": {"labels": {"toponaut.io/leaf": "a"}}}
    # The right that another test took away may live for a moment.
    wait_until(
        lambda: generator.ask("PATCH", f"{path}?dryRun=All", labels, form=MERGE).status != 403,
        deadline_s=30,
        what="writing a node is refused",
    )


@pytest.mark.usefixtures("may_write_nodes")
def test_it_could_write_its_own_labels_on_nodes(generator: Caller, cluster: ApiServer) -> None:
    path = NODES.path(make_node(cluster)["metadata"]["name"])
    labels = {"toponaut.io/leaf": "a", "toponaut.io/old": None}
    answer = generator.ask("PATCH", path, {"metadata": {"labels": labels}}, form=MERGE)
    assert answer.status == 200, answer.message
    found = cluster.expect("GET", path)["metadata"]["labels"]
    assert found == {"rack": "r1", "toponaut.io/leaf": "a"}


FOREIGN: Final[Mapping[str, Mapping[str, Any]]] = {
    "a label that is new": {"metadata": {"labels": {"zone": "a"}}},
    "a label that is there": {"metadata": {"labels": {"rack": "r2"}}},
    "a label taken away": {"metadata": {"labels": {"rack": None}}},
    "a label that only begins like ours": {"metadata": {"labels": {"toponaut.iox/a": "b"}}},
    "an annotation": {"metadata": {"annotations": {"toponaut.io/a": "b"}}},
    "a finalizer": {"metadata": {"finalizers": ["toponaut.io/a"]}},
    "a taint": {"spec": {"taints": [{"key": "toponaut.io/a", "effect": "NoSchedule"}]}},
    "a cordon": {"spec": {"unschedulable": True}},
}


@pytest.mark.usefixtures("may_write_nodes")
@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN)
def test_it_writes_nothing_else_on_nodes(
    change: Mapping[str, Any], generator: Caller, cluster: ApiServer
) -> None:
    node = make_node(cluster)
    answer = generator.ask("PATCH", NODES.path(node["metadata"]["name"]), change, form=MERGE)
    assert answer.status == 403, answer.message
    assert "the generator may change labels" in answer.message


@pytest.mark.usefixtures("may_write_nodes")
def test_it_neither_makes_nor_removes_nodes_nor_writes_their_status(
    generator: Caller, cluster: ApiServer
) -> None:
    path = NODES.path(make_node(cluster)["metadata"]["name"])
    status = {"status": {"allocatable": {"cpu": "1"}}}
    answers = [
        generator.ask("POST", NODES.path(), {"metadata": {"name": fresh("node")}}),
        generator.ask("PATCH", f"{path}/status", status, form=MERGE),
        generator.ask("DELETE", path),
    ]
    for answer in answers:
        assert (answer.status, "may change labels of nodes" in answer.message) == (403, True)
