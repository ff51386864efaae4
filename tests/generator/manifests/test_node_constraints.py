"""The nodes that the pods of a manifest may use: as kube-scheduler filters them, and what is said.

Random pods and nodes are filtered by rules that are written a second time, on decoded objects.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from generator.manifests.fields import Relevance
from generator.objects.inventory import build_node_specs, parse_nodes
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.engine import place
from generator.placement.request import PlacementRequest, parse_request
from tests.effort import examples
from tests.generator.manifests.scenes import job, translated
from tests.generator.placement.documents import racks, request, workers
from tests.generator.placement.selections import (
    Node,
    nodes,
    passes_filters,
    pod_specs,
    wire_terms,
)
from topology.model.errors import PlacementRequestError


def snapshot_of(listed: list[Node]) -> Snapshot:
    raw = json.dumps({"apiVersion": "v1", "kind": "List", "items": listed}).encode()
    inventory = parse_nodes(raw, source="nodes.json")
    assert not inventory.problems
    return build_snapshot(racks(3), build_node_specs(inventory, ()))


def find_allowed(snapshot: Snapshot, gang: PlacementRequest) -> set[str]:
    """Return the nodes that the masks of a gang of one group leave."""
    masks = snapshot.allowed_by_cause(gang.groups[0]).values()
    return {spec.name for at, spec in enumerate(snapshot.specs) if all(row[at] for row in masks)}


def job_of(spec: dict[str, Any]) -> dict[str, Any]:
    containers = [{"resources": {"requests": {"cpu": 1}}}]
    return job(parallelism=1, template={"spec": {"containers": containers, **spec}})


@settings(max_examples=examples(2000))
@given(nodes(), pod_specs)
def test_it_allows_the_nodes_that_kube_scheduler_allows(
    listed: list[Node], spec: dict[str, Any]
) -> None:
    snapshot = snapshot_of(listed)
    expected = {row["metadata"]["name"] for row in listed if passes_filters(spec, row)}
    found = translated(job_of(spec))
    gang = parse_request(found.document)
    assert find_allowed(snapshot, gang) == expected
    (node,) = place(snapshot, gang).assignment.get("main", (None,))
    assert node in expected if expected else node is None
    assert not [row for row in found.ignored if row.relevance is Relevance.POSSIBLE]


@settings(max_examples=examples(500))
@given(nodes(), pod_specs)
def test_it_reads_the_same_from_a_request(listed: list[Node], spec: dict[str, Any]) -> None:
    row = {
        "node_selector": spec.get("nodeSelector", {}),
        "node_affinity": wire_terms(spec),
        "tolerations": spec.get("tolerations", []),
    }
    gang = request(groups=workers(1, **row))
    expected = {row["metadata"]["name"] for row in listed if passes_filters(spec, row)}
    assert find_allowed(snapshot_of(listed), gang) == expected


def tolerating(**row: object) -> dict[str, Any]:
    return job_of({"tolerations": [row]})


def read_tolerations(document: dict[str, Any]) -> object:
    (group,) = translated(document).document["spec"]["groups"]
    return group.get("tolerations")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param({"key": "a", "operator": "Exists"}, ["a"], id="a key, with every effect"),
        pytest.param({"key": "a", "value": "b"}, ["a=b"], id="a value, with every effect"),
        pytest.param({"key": "a"}, ["a="], id="an empty value"),
        pytest.param({"operator": "Exists"}, [{"operator": "Exists"}], id="every taint"),
        pytest.param(
            {"operator": "Exists", "effect": "NoExecute"},
            [{"operator": "Exists", "effect": "NoExecute"}],
            id="every taint of one effect",
        ),
        pytest.param(
            {"key": "a", "operator": "Exists", "value": "b"}, ["a"], id="no value beside Exists"
        ),
        pytest.param(
            {"key": "a", "operator": "Matches"}, None, id="no operator that it does not know"
        ),
        pytest.param({"key": "a", "effect": "NoVisit"}, None, id="no effect that it does not know"),
    ],
)
def test_it_reads_a_toleration_as(row: dict[str, Any], expected: object) -> None:
    assert read_tolerations(tolerating(**row)) == expected


@pytest.mark.parametrize("key", ["operator", "effect"])
def test_it_lists_what_it_does_not_know_of_a_toleration(key: str) -> None:
    found = translated(tolerating(**{"key": "a", key: "New"}))
    assert any(row.path.endswith(f"tolerations[0].{key}") for row in found.ignored)


@pytest.mark.parametrize("key", ["not-ready", "unreachable"])
def test_it_places_no_pod_for_the_tolerations_that_kubernetes_adds(key: str) -> None:
    row = {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
    assert read_tolerations(tolerating(**row, tolerationSeconds=300)) is None
    assert read_tolerations(tolerating(**row)) == [row]


def test_it_says_when_pods_are_evicted_later() -> None:
    row = {"key": "spot", "operator": "Exists", "effect": "NoExecute"}
    found = translated(tolerating(**row, tolerationSeconds=60))
    assert read_tolerations(tolerating(**row, tolerationSeconds=60)) == [row]
    assert any("evicted after 60 s" in note.text for note in found.notes)
    assert read_tolerations(tolerating(**row, tolerationSeconds=0)) is None


def requiring(*terms: object) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    return job_of({"affinity": {"nodeAffinity": required}})


def expressing(**row: object) -> dict[str, Any]:
    return requiring({"matchExpressions": [row]})


def test_it_skips_a_term_that_matches_no_node_and_says_so() -> None:
    zone = {"key": "zone", "operator": "Exists"}
    found = translated(requiring({}, {"matchExpressions": [zone]}))
    assert found.document["spec"]["groups"][0]["node_affinity"] == [[zone]]
    assert any("matches no node" in note.text for note in found.notes)


def test_it_lists_an_operator_that_it_does_not_know() -> None:
    found = translated(expressing(key="driver", operator="SemverGt", values=["1.2.3"]))
    assert "node_affinity" not in found.document["spec"]["groups"][0]
    assert any("matchExpressions[0]" in row.path for row in found.ignored)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param(requiring(), "nodeSelectorTerms", id="no term"),
        pytest.param(requiring({}), "nodeSelectorTerms", id="a term without requirements"),
        pytest.param(expressing(key="a", operator="In"), "values", id="In without values"),
        pytest.param(
            expressing(key="a", operator="Exists", values=["b"]), "values", id="Exists with a value"
        ),
        pytest.param(
            expressing(key="a", operator="Gt", values=["b"]), "values", id="Gt with a word"
        ),
        pytest.param(
            expressing(key="a", operator="Lt", values=["1", "2"]), "values", id="Lt with two values"
        ),
        pytest.param(
            expressing(operator="Exists"), "matchExpressions[0].key", id="a requirement on no label"
        ),
        pytest.param(
            requiring(
                {"matchFields": [{"key": "spec.x", "operator": "In", "values": ["a"]}]},
            ),
            "matchFields[0]",
            id="a field that Kubernetes does not know",
        ),
        pytest.param(tolerating(value="b"), "tolerations[0]", id="a toleration of no key"),
        pytest.param(
            tolerating(key="a", operator="Gt", value="b"), "value", id="a number that is a word"
        ),
        pytest.param(
            tolerating(key="a", tolerationSeconds="60"), "tolerationSeconds", id="seconds as text"
        ),
    ],
)
def test_it_refuses(document: dict[str, Any], path: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        translated(document)
    assert path in caught.value.field
