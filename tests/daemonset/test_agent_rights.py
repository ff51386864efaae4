"""What an agent's token can do on a real API server: its own reports and no others."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pytest

from generator.kube.resources import FABRICS, HYPERNODES, NODES, RECORDS, REPORTS
from generator.objects.tree_record import EMPTY_TREE, TreeRecord, render_tree_record
from tests.daemonset.callers import (
    Caller,
    make_node,
    named,
    on_no_node,
    on_node,
)
from tests.kube.examples import made
from tests.lab.api_server import APPLY, MERGE, ApiServer
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]
AGENT: Final = "toponaut-agent"
Object = dict[str, Any]


class Placed(NamedTuple):
    """An agent, the node it runs on, and another node."""

    agent: Caller
    node: Object
    other: Object

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])


def report(owner: Mapping[str, Any] | None = None, **owners: str) -> Object:
    """Return a report to apply, owned by a node if given, with other fields of its owner."""
    metadata: Object = {}
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "Node"}
        own = {key: owner["metadata"][key] for key in ("name", "uid")}
        metadata["ownerReferences"] = [reference | own | owners]
    head = {"apiVersion": REPORTS.api_version, "kind": REPORTS.kind}
    return head | {"metadata": metadata, "spec": made(REPORTS)["spec"]}


def twice_owned(owner: Mapping[str, Any]) -> Object:
    """Return a report with two owner references to one node."""
    content = report(owner)
    (reference,) = content["metadata"]["ownerReferences"]
    other = reference | {"uid": "00000000-0000-0000-0000-000000000000"}
    content["metadata"]["ownerReferences"] = [reference, other]
    return content


def part(owner: Mapping[str, Any] | None = None) -> Object:
    """Return a part of a sweep to apply."""
    sweep = {"subnet": "fe80000000000001", "sweepId": "a", "part": 0, "of": 2, "facts": "eJw="}
    return report(owner) | {"spec": {"sweep": sweep}}


def crowded(*sizes: int) -> Object:
    """Return a report with a port of each number of neighbors."""
    ports = [
        {"name": f"eth{at}", "medium": "ethernet", "neighbors": [{"source": "lldp"}] * size}
        for at, size in enumerate(sizes)
    ]
    return report() | {"spec": {"device": {"kind": "host", "name": "a"}, "ports": ports}}


@pytest.fixture
def placed(cluster: ApiServer) -> Placed:
    """An agent after its admission policy took effect."""
    node, other = make_node(cluster), make_node(cluster)
    agent = on_node(cluster, AGENT, node["metadata"]["name"], pod="toponaut-sweeper")
    probe = REPORTS.path(other["metadata"]["name"])
    wait_until(
        lambda: agent.apply(probe, report(), query="&dryRun=All").status != 403,
        deadline_s=30,
        what="the policy is in force",
    )
    return Placed(agent, node, other)


def test_it_writes_the_reports_of_its_node(placed: Placed) -> None:
    for name in (placed.name, f"{placed.name}.sweep.0", f"{placed.name}.sweep.255"):
        path = REPORTS.path(name)
        content = part(placed.node) if ".sweep." in name else report(placed.node)
        assert placed.agent.apply(path, content).status == 201
        assert placed.agent.apply(path, content).status == 200
        head = {"apiVersion": REPORTS.api_version, "kind": REPORTS.kind}
        status = head | {"status": made(REPORTS)["status"]}
        assert placed.agent.apply(f"{path}/status", status).status == 200


@pytest.mark.parametrize(
    "name",
    [
        "{other}",
        "{other}.sweep.0",
        "{own}.sweep.0x",
        "{own}.sweep.1.2",
        "{own}.sweep.00",
        "{own}.sweep.256",
        "{own}.sweep.1000",
        "{own}-b",
    ],
)
def test_it_writes_no_report_of_another(name: str, placed: Placed, cluster: ApiServer) -> None:
    named = name.format(own=placed.name, other=placed.other["metadata"]["name"])
    content = part() if re.search("[.]sweep[.][0-9]+$", named) else report()
    answer = placed.agent.apply(REPORTS.path(named), content)
    assert answer.status == 403, answer.message
    assert f"reports of its own node {placed.name} only" in answer.message
    assert cluster.request("GET", REPORTS.path(named)).status == 404


def test_it_changes_no_report_of_another(placed: Placed, cluster: ApiServer) -> None:
    path = REPORTS.path(placed.other["metadata"]["name"])
    cluster.apply(f"{path}?fieldManager=other", named(path, report()))
    before = cluster.expect("GET", path)["metadata"]["resourceVersion"]
    head = {"apiVersion": REPORTS.api_version, "kind": REPORTS.kind}
    for answer in (
        placed.agent.apply(path, report()),
        placed.agent.apply(f"{path}/status", head | {"status": made(REPORTS)["status"]}),
        placed.agent.ask("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, form=MERGE),
        placed.agent.ask("DELETE", path),
    ):
        assert answer.status == 403, answer.message
    assert cluster.expect("GET", path)["metadata"]["resourceVersion"] == before


def test_it_reports_no_switch(placed: Placed) -> None:
    content = report(placed.node)
    content["spec"] = {"device": {"kind": "switch", "name": "leaf1"}}
    answer = placed.agent.apply(REPORTS.path(placed.name), content)
    assert answer.status == 403, answer.message
    assert "no device but its own host" in answer.message


BAD_METADATA: Final[dict[str, tuple[Object, str]]] = {
    "finalizers": ({"finalizers": ["example.org/stay"]}, "finalizers"),
    "labels": ({"labels": {"a": "b"}}, "labels"),
    "annotations": ({"annotations": {"a": "b" * 250_000}}, "annotations"),
}
JSON_PATCH: Final = "application/json-patch+json"


@pytest.mark.parametrize("bad", BAD_METADATA)
@pytest.mark.parametrize("subresource", ["", "/status"])
def test_it_sets_no_metadata_but_its_owner(bad: str, subresource: str, placed: Placed) -> None:
    path, (metadata, word) = REPORTS.path(placed.name), BAD_METADATA[bad]
    if not subresource:
        answer = placed.agent.apply(path, report() | {"metadata": metadata})
        assert (
            answer.status,
            f"may not {'add' if bad == 'finalizers' else 'set'} {word}" in answer.message,
        ) == (403, True)
        made = report() | {"metadata": metadata | {"name": placed.name}}
        assert placed.agent.ask("POST", REPORTS.path(), made).status == 403
    assert placed.agent.apply(path, report()).status == 201
    at = path + subresource
    asked = [
        placed.agent.apply(at, report() | {"metadata": metadata}),
        placed.agent.ask("PATCH", at, {"metadata": metadata}, form=MERGE),
        placed.agent.ask(
            "PATCH",
            at,
            [
                {"op": "add", "path": f"/metadata/{key}", "value": value}
                for key, value in metadata.items()
            ],
            form=JSON_PATCH,
        ),
    ]
    kept = placed.agent.ask("PATCH", f"{path}?dryRun=All", {}, form=MERGE).body["metadata"]
    assert bad not in kept
    assert subresource or [answer.status for answer in asked] == [403] * 3


def test_it_keeps_the_metadata_that_others_set(placed: Placed, cluster: ApiServer) -> None:
    path = REPORTS.path(placed.name)
    assert placed.agent.apply(path, report()).status == 201
    metadata = {"labels": {"team": "net"}, "annotations": {"note": "x"}, "finalizers": ["a.org/b"]}
    assert cluster.request("PATCH", path, {"metadata": metadata}, content_type=MERGE).status == 200
    changed = report() | {"spec": {"device": {"kind": "host", "name": "other"}}}
    answer = placed.agent.apply(path, changed)
    assert answer.status == 200, answer.message
    assert answer.body["metadata"]["labels"] == {"team": "net"}
    edited = placed.agent.ask("PATCH", path, {"metadata": {"labels": {"team": "x"}}}, form=MERGE)
    assert edited.status == 403
    freed = {"metadata": {"finalizers": None}}
    assert cluster.request("PATCH", path, freed, content_type=MERGE).status == 200


def test_it_writes_a_part_under_the_name_of_a_part_only(placed: Placed) -> None:
    for name, content in ((placed.name, part()), (f"{placed.name}.sweep.1", report())):
        assert placed.agent.apply(REPORTS.path(name), content).status in {403, 422}


def test_it_reports_a_bounded_number_of_neighbors(placed: Placed) -> None:
    path = REPORTS.path(placed.name)
    assert placed.agent.apply(path, crowded(1024, 1024, 1024, 1024)).status == 201
    answer = placed.agent.apply(path, crowded(1024, 1024, 1024, 1024, 1))
    assert (answer.status, "4096 neighbors" in answer.message) == (403, True)


def test_it_uses_a_bounded_number_of_field_managers(placed: Placed) -> None:
    path = REPORTS.path(placed.name)
    statuses = [
        placed.agent.ask(
            "PATCH",
            f"{path}?fieldManager=m{number}&force=true",
            named(path, report()),
            form=APPLY,
        ).status
        for number in range(40)
    ]
    assert statuses[:32] == [201, *[200] * 31]
    assert set(statuses[33:]) == {403}


def managed(fields: Mapping[str, Any], number: int = 1) -> Object:
    """Return a change that makes up what field managers own."""
    rows = [
        {
            "manager": f"m{at}",
            "operation": "Update",
            "apiVersion": REPORTS.api_version,
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        for at in range(number)
    ]
    return {"metadata": {"managedFields": rows}}


DEEP: Final[Object] = {"f:a": {"f:b": {"f:c": {"f:d": {"f:e": {"f:f": {}}}}}}}
WEIGHTS: Final = {
    "many fields": managed({f"f:{at}": {} for at in range(600)}),
    "many fields further down": managed(
        {"f:spec": {f"f:{at}": {f"f:{to}": {} for to in range(30)} for at in range(30)}}
    ),
    "fields of many managers": managed({f"f:{at}": {} for at in range(60)}, number=10),
    "long names": managed({"f:spec": {"f:" + "x" * 1000: {}}}),
    "deep fields": managed(DEEP),
}


@pytest.mark.parametrize("change", WEIGHTS)
@pytest.mark.parametrize("subresource", ["", "/status"])
def test_it_makes_no_report_heavy_by_what_managers_own(
    change: str, subresource: str, placed: Placed, cluster: ApiServer
) -> None:
    """These fields are in no schema: one small report would weigh a megabyte."""
    path = REPORTS.path(placed.name)
    assert placed.agent.apply(path, report(placed.node)).status == 201
    answer = placed.agent.ask("PATCH", path + subresource, WEIGHTS[change], form=MERGE)
    kept = cluster.expect("GET", path)["metadata"]["managedFields"]
    assert [row["manager"] for row in kept] == ["test"]
    is_refused = (answer.status, "may not own" in answer.message) == (403, True)
    assert is_refused is not bool(subresource), "there, the server keeps the fields as they are"


def test_no_made_up_name_gets_through(placed: Placed) -> None:
    for prefix in (f"{placed.name}.sweep.1", f"{placed.name}.sweep.1-", placed.name):
        made = part() | {"metadata": {"generateName": prefix}}
        assert placed.agent.ask("POST", REPORTS.path(), made).status in {403, 422}


def test_it_reads_its_own_reports_and_no_others(placed: Placed, cluster: ApiServer) -> None:
    """A patch that changes nothing returns the object, and the policy checks it as a write."""
    own, other = (REPORTS.path(node["metadata"]["name"]) for node in (placed.node, placed.other))
    assert placed.agent.apply(own, report()).status == 201
    cluster.apply(f"{other}?fieldManager=other", named(other, report()))
    version = cluster.expect("GET", own)["metadata"]["resourceVersion"]
    for query in ("?dryRun=All", ""):
        read = placed.agent.ask("PATCH", own + query, {}, form=MERGE)
        assert (read.status, read.body["metadata"]["resourceVersion"]) == (200, version)
        for path in (other, f"{other}/status"):
            refused = placed.agent.ask("PATCH", path + query, {}, form=MERGE)
            assert (refused.status, "spec" in refused.body) == (403, False)
    for path in (own, other, f"{own}/status", f"{other}/status", REPORTS.path()):
        assert placed.agent.ask("GET", path).status == 403


def test_it_is_owned_by_its_node_or_by_nobody(placed: Placed) -> None:
    path = REPORTS.path(placed.name)
    for wrong in (
        report(placed.other),
        report(placed.node, uid=placed.other["metadata"]["uid"]),
        report(placed.node, kind="Namespace", name="default"),
        twice_owned(placed.node),
    ):
        answer = placed.agent.apply(path, wrong)
        assert answer.status == 403
        assert "must be its node" in answer.message
    assert placed.agent.apply(path, report()).status == 201


def test_it_writes_nothing_with_a_token_that_names_no_node(
    placed: Placed, cluster: ApiServer
) -> None:
    unbound = on_no_node(cluster, AGENT)
    answer = unbound.apply(REPORTS.path(placed.name), report())
    assert answer.status == 403
    assert "must be bound to a pod" in answer.message


def test_it_reads_the_fabric_and_nothing_else(placed: Placed, cluster: ApiServer) -> None:
    head = {"apiVersion": FABRICS.api_version, "kind": FABRICS.kind}
    fabric = FABRICS.path("default")
    cluster.apply(f"{fabric}?fieldManager=other", named(fabric, head | {"spec": {}}))
    assert placed.agent.ask("GET", fabric).status == 200
    for path in (
        FABRICS.path("another"),
        FABRICS.path(),
        REPORTS.path(),
        HYPERNODES.path(),
        HYPERNODES.path("leaf-1"),
        NODES.path(),
        NODES.path(placed.name),
        "/api/v1/pods",
        "/api/v1/namespaces/toponaut-system/secrets",
        "/apis/toponaut.io/v1alpha1/placementreservations",
        RECORDS.path(),
        RECORDS.path("default"),
    ):
        assert placed.agent.ask("GET", path).status == 403, path


def test_it_writes_no_label_no_hypernode_and_no_fabric(placed: Placed) -> None:
    labels = {"metadata": {"labels": {"toponaut.io/a": "b"}}}
    asked = [
        placed.agent.ask("PATCH", NODES.path(placed.name), labels, form=MERGE),
        placed.agent.ask("PATCH", f"{NODES.path(placed.name)}/status", labels, form=MERGE),
        placed.agent.ask("PATCH", FABRICS.path("default"), labels, form=MERGE),
        placed.agent.ask("PATCH", f"{FABRICS.path('default')}/status", labels, form=MERGE),
        placed.agent.ask("DELETE", REPORTS.path(placed.name)),
        placed.agent.ask("DELETE", REPORTS.path()),
        placed.agent.ask("DELETE", RECORDS.path("default")),
        placed.agent.apply(RECORDS.path("default"), render_tree_record(TreeRecord(EMPTY_TREE))),
        placed.agent.apply(
            HYPERNODES.path("leaf-1"),
            {"apiVersion": HYPERNODES.api_version, "kind": HYPERNODES.kind, "spec": {"tier": 1}},
        ),
    ]
    assert [answer.status for answer in asked] == [403] * len(asked)
