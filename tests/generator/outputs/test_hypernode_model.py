from typing import Any

import pytest

from generator.outputs.hypernode.model import (
    SOURCE_LABEL,
    HyperNode,
    Member,
    MemberType,
    parse_manifest,
)
from generator.outputs.owned_object import is_object_name
from topology.model.errors import ConfigError


def manifest(**spec: Any) -> dict[str, Any]:  # noqa: ANN401 - any decoded document
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "leaf", "uid": "4f", "labels": {SOURCE_LABEL: "toponaut"}},
        "spec": {"tier": 1} | spec,
        "status": {"nodeCount": 3},
    }


def exact(kind: str, name: object) -> dict[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def test_it_reads_the_used_fields_and_drops_those_that_the_server_adds() -> None:
    document = manifest(members=[exact("Node", "n10"), exact("Node", "n9")])
    found = parse_manifest(document)
    assert found == HyperNode(
        "leaf",
        1,
        "",
        (Member(MemberType.NODE, "n9"), Member(MemberType.NODE, "n10")),
        ((SOURCE_LABEL, "toponaut"),),
    )
    assert found.is_ours


@pytest.mark.parametrize(
    "member",
    [
        pytest.param({"type": "Node", "selector": {"regexMatch": {"pattern": ".*"}}}, id="regex"),
        pytest.param({"type": "Node", "selector": {"labelMatch": {}}}, id="labels"),
        pytest.param({"type": "HyperNode"}, id="no selector"),
    ],
)
def test_it_counts_members_that_have_no_exact_name(member: dict[str, Any]) -> None:
    found = parse_manifest(manifest(members=[member, exact("Node", "n1")]))
    assert (found.nodes, found.children, found.num_inexact_members) == (("n1",), (), 1)


def test_it_treats_an_object_without_labels_as_foreign() -> None:
    document = manifest(members=[exact("HyperNode", "a")])
    del document["metadata"]["labels"]
    assert not parse_manifest(document).is_ours


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "expected a HyperNode object, got list"),
        (manifest() | {"kind": "Node"}, "expected HyperNode of .*, got Node of"),
        (manifest() | {"apiVersion": "v9"}, "expected HyperNode of .*, got HyperNode of v9"),
        (manifest() | {"spec": None}, "metadata, spec: expected objects"),
        (manifest() | {"metadata": {"name": "../x"}}, r"metadata.name: not a DNS-1123 .*'\.\./x'"),
        (manifest() | {"metadata": {"name": 7}}, "metadata.name: not a DNS-1123"),
        (manifest() | {"metadata": {"name": "a", "labels": 1}}, "a: metadata.labels: expected"),
        (manifest(tier=None), "leaf: spec.tier: expected an integer from 0, got 'None'"),
        (manifest(tier=True), "leaf: spec.tier: expected an integer"),
        (manifest(tier=-1), "leaf: spec.tier: expected an integer"),
        (manifest(tierName=4), "leaf: spec.tierName: expected text"),
        (manifest(members={}), "leaf: spec.members: expected a list"),
        (manifest(members=["n1"]), r"leaf: spec.members\[0\].type: expected Node or HyperNode"),
        (manifest(members=[{"type": "Rack"}]), r"leaf: spec.members\[0\].type: expected"),
        (manifest(members=[{"type": []}]), r"leaf: spec.members\[0\].type: expected"),
        (manifest(members=[exact("Node", "")]), r"members\[0\].selector.exactMatch.name: exp"),
        (manifest(members=[exact("Node", 7)]), r"members\[0\].selector.exactMatch.name: exp"),
    ],
    ids=lambda value: value[:45] if isinstance(value, str) else "",
)
def test_it_refuses_other_objects_and_names_the_field(document: object, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_manifest(document)


@pytest.mark.parametrize(
    ("name", "is_name"),
    [
        ("a", True),
        ("leaf-01.rack", True),
        ("9", True),
        ("a" * 253, True),
        ("a" * 254, False),
        ("", False),
        ("A", False),
        ("a_b", False),
        ("-a", False),
        ("a-", False),
        ("a..b", False),
        ("../a", False),
        ("a/b", False),
        ("a\n", False),
        ("\u0661", False),
    ],
)
def test_it_accepts_the_names_that_kubernetes_accepts(name: str, is_name: bool) -> None:  # noqa: FBT001 - a table's column
    assert is_object_name(name) is is_name
