"""Which part of an object is ours, and whether an apply would change it.

`test_applier` and `test_outputs` have the real server as referee; this is the table of cases.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from generator.kube.ownership import find_owned_parts, is_applied, render_part

OURS, LABELS = "toponaut-generator", "toponaut-labels"
SPEC_FIELDS = {
    "f:spec": {
        ".": {},
        "f:tier": {},
        "f:tags": {".": {}, 'v:"a"': {}},
        "f:rows": {'k:{"type":"x"}': {".": {}, "f:type": {}, "f:value": {}}},
    }
}
SPEC = {"tier": 1, "tags": ["a"], "rows": [{"type": "x", "value": 1}]}


def observed(
    spec: Mapping[str, Any], fields: Mapping[str, Any] | None = None, **row: str
) -> dict[str, Any]:
    owned = {"manager": OURS, "operation": "Apply", "fieldsV1": fields or SPEC_FIELDS, **row}
    other = {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:x": {}}}}
    metadata = {"name": "a", "resourceVersion": "7", "managedFields": [other, owned]}
    return {"apiVersion": "v1", "kind": "X", "metadata": metadata, "spec": dict(spec)}


def wanted(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "spec": dict(spec)}


@pytest.mark.parametrize(
    ("desired", "seen"),
    [
        pytest.param(SPEC, SPEC, id="all of it is there"),
        pytest.param(SPEC, SPEC | {"x": "theirs"}, id="others own more"),
        pytest.param(SPEC | {"none": []}, SPEC, id="an empty list is as good as none"),
        pytest.param(SPEC | {"none": {}}, SPEC, id="an empty map is as good as none"),
    ],
)
def test_it_is_applied_if(desired: Mapping[str, Any], seen: Mapping[str, Any]) -> None:
    assert is_applied(wanted(desired), observed(seen), field_manager=OURS)


@pytest.mark.parametrize(
    ("desired", "seen"),
    [
        pytest.param(wanted(SPEC), {}, id="there is no object"),
        pytest.param(wanted(SPEC | {"tier": 2}), observed(SPEC), id="a value differs"),
        pytest.param(wanted(SPEC | {"new": 1}), observed(SPEC), id="a field is missing"),
        pytest.param(wanted(SPEC | {"new": {"a": 1}}), observed(SPEC), id="a map is missing"),
        pytest.param(wanted(SPEC | {"new": [1]}), observed(SPEC), id="a list is missing"),
        pytest.param(wanted(SPEC | {"tags": ["a", "b"]}), observed(SPEC), id="a list is shorter"),
        pytest.param(
            wanted({"tier": 1, "tags": ["a"]}), observed(SPEC), id="we own a field too many"
        ),
        pytest.param(
            wanted(SPEC | {"rows": [{"type": "x"}]}),
            observed(SPEC),
            id="we own a field too many of an item",
        ),
        pytest.param(
            wanted(SPEC | {"rows": []}),
            observed(SPEC),
            id="we own an item that is wanted no more",
        ),
        pytest.param(
            wanted(SPEC | {"tags": []}),
            observed(SPEC),
            id="we own a word that is wanted no more",
        ),
        pytest.param(wanted(SPEC), observed(SPEC, manager="other"), id="we own nothing"),
        pytest.param(wanted(SPEC), observed(SPEC, operation="Update"), id="we never applied it"),
        pytest.param(
            wanted(SPEC), observed(SPEC, subresource="status"), id="we own its status only"
        ),
        pytest.param(
            wanted(SPEC), observed(SPEC, {"f:spec": {"i:0": {}}}), id="we own an item by index"
        ),
    ],
)
def test_it_is_not_applied_if(desired: Mapping[str, Any], seen: Mapping[str, Any]) -> None:
    assert not is_applied(desired, seen, field_manager=OURS)


def node(*rows: dict[str, Any], labels: dict[str, str] | None = None) -> dict[str, Any]:
    found = {"t/leaf": "a", "rack": "r1"} if labels is None else labels
    return {"metadata": {"name": "n", "uid": "u", "labels": found, "managedFields": list(rows)}}


def row(fields: object, **more: str) -> dict[str, Any]:
    return {"manager": LABELS, "operation": "Apply", "fieldsV1": fields, **more}


LEAF: dict[str, Any] = {"f:metadata": {"f:labels": {".": {}, "f:t/leaf": {}}}}
LISTS: dict[str, Any] = {"f:spec": {"f:levels": {}, "f:rows": {'k:{"a":1}': {".": {}, "f:a": {}}}}}


@pytest.mark.parametrize(
    ("document", "part"),
    [
        pytest.param(
            node(row(LEAF)),
            {"metadata": {"labels": {"t/leaf": "a"}}},
            id="a label that it applied is ours, the others are not",
        ),
        pytest.param(node(), None, id="without a row nothing is ours"),
        pytest.param(
            node(row(LEAF) | {"operation": "Update"}), None, id="an update is not an apply"
        ),
        pytest.param(node(row(LEAF, subresource="status")), None, id="a status is not the object"),
        pytest.param(
            node(row(LEAF), labels={"rack": "r1"}), {}, id="a label that is gone has no value"
        ),
        pytest.param(node(row({})), {}, id="a manager may own nothing"),
        pytest.param(node(row("odd")), None, id="fields of an unknown form count as none"),
        pytest.param(
            node(row(LISTS))
            | {"spec": {"levels": [1, 2], "rows": [{"a": 1, "b": 2}, {"a": 3}], "other": 3}},
            {"spec": {"levels": [1, 2], "rows": [{"a": 1}]}},
            id="a list is ours as a whole, or item by item",
        ),
    ],
)
def test_it_finds_what_the_manager_applied(
    document: dict[str, Any], part: dict[str, Any] | None
) -> None:
    found = find_owned_parts(document, {LABELS})
    assert found == ({} if part is None else {LABELS: render_part(part)})


def test_a_part_has_neither_kind_nor_name_nor_empty_objects() -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "namespace": "s", "labels": {}},
        "spec": {"a": {"b": {}}, "c": [{}]},
    }
    assert render_part(document) == '{"spec":{"c":[{}]}}'
