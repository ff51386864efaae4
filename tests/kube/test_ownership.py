"""Whether an apply would change anything, by the object's own account of who owns what.

`test_applier` has the real server as referee; this is the table of cases.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from generator.kube.ownership import is_applied

OURS = "toponaut-generator"
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
            observed(SPEC | {"rows": []}),
            id="we own an item that is wanted no more",
        ),
        pytest.param(
            wanted(SPEC | {"tags": []}),
            observed(SPEC | {"tags": []}),
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
