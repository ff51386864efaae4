"""Which part of an object is ours; the real server is the referee in `test_outputs`."""

from typing import Any

import pytest

from generator.kube.owned_parts import find_owned_parts, render_part

OURS = "toponaut-labels"


def node(*rows: dict[str, Any], labels: dict[str, str] | None = None) -> dict[str, Any]:
    found = {"t/leaf": "a", "rack": "r1"} if labels is None else labels
    return {"metadata": {"name": "n", "uid": "u", "labels": found, "managedFields": list(rows)}}


def row(fields: object, **more: str) -> dict[str, Any]:
    return {"manager": OURS, "operation": "Apply", "fieldsV1": fields, **more}


LEAF: dict[str, Any] = {"f:metadata": {"f:labels": {".": {}, "f:t/leaf": {}}}}
LISTS: dict[str, Any] = {"f:spec": {"f:levels": {}, "f:rows": {'k:{"a":1}': {".": {}}}}}


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
            node(row(LISTS)) | {"spec": {"levels": [1, 2], "rows": [{"a": 1}], "other": 3}},
            {"spec": {"levels": [1, 2], "rows": [{"a": 1}]}},
            id="a list is ours as a whole",
        ),
    ],
)
def test_it_finds_what_the_manager_applied(
    document: dict[str, Any], part: dict[str, Any] | None
) -> None:
    found = find_owned_parts(document, {OURS})
    assert found == ({} if part is None else {OURS: render_part(part)})


def test_a_part_has_neither_kind_nor_name_nor_empty_objects() -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "namespace": "s", "labels": {}},
        "spec": {"a": {"b": {}}, "c": [{}]},
    }
    assert render_part(document) == '{"spec":{"c":[{}]}}'
