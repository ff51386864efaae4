"""The inventory in both forms: capacity, taints, ids, and the effect of a malformed node."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.objects.inventory import (
    Inventory,
    ListedNode,
    build_node_specs,
    parse_nodes,
)
from generator.placement.cluster.nodes import Exclusion, NodeSpec
from tests.effort import examples
from tests.generator.scenes import kube_node
from topology.model.facts import DeviceKind
from topology.model.ids import Id, IdKind


def parse(document: object) -> Inventory:
    return parse_nodes(json.dumps(document).encode(), source="nodes.json")


def only(document: object) -> ListedNode:
    (node,) = parse(document).nodes
    return node


def test_it_reads_the_output_of_kubectl() -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule", "timeAdded": "x"}
    listed = {
        "kind": "List",
        "items": [kube_node("b", unschedulable=True), kube_node("a", taints=[taint])],
    }
    first, second = parse(listed).nodes
    assert first == ListedNode(
        name="a",
        ids=tuple(
            sorted([Id(IdKind.NODE_NAME, "a"), Id(IdKind.HOSTNAME, "a"), Id(IdKind.IP, "10.0.0.7")])
        ),
        spec=NodeSpec(
            "a",
            capacity={"slots": 1, "cpu": 63_850, "memory": 2113462 * 2**20, "nvidia.com/gpu": 8},
            labels={"zone": "a"},
            taints=("nvidia.com/gpu=present:NoSchedule",),
        ),
    )
    assert (second.name, second.spec.exclusion) == ("b", Exclusion.UNSCHEDULABLE)


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump], ids=["JSON", "YAML"])
@pytest.mark.parametrize("wrap", [True, False], ids=["in a list", "alone"])
def test_it_reads_one_node_alone_or_listed(dump: Any, *, wrap: bool) -> None:  # noqa: ANN401 - two signatures
    node = kube_node("a")
    document = {"kind": "NodeList", "items": [node]} if wrap else node
    found = parse_nodes(dump(document).encode(), source="x")
    assert [node.name for node in found.nodes] == ["a"]
    assert found.problems == ()


def test_it_reads_our_own_form() -> None:
    node = only(
        {
            "nodes": [
                {
                    "name": "a",
                    "ids": [
                        {"type": "node-guid", "value": "0x2c90300a1b2c3d4"},
                        {"type": "mac", "value": "B8-CE-F6-00-00-01"},
                    ],
                    "capacity": {"slots": 8, "memory": "1Ti"},
                    "free": {"slots": 3},
                    "labels": {"gpu": "h100"},
                    "taints": [
                        "reserved",
                        "gpu=h100:NoExecute",
                        {"key": "x", "effect": "NoSchedule"},
                    ],
                    "schedulable": False,
                }
            ]
        }
    )
    assert Id(IdKind.NODE_GUID, "02c90300a1b2c3d4") in node.ids
    assert Id(IdKind.MAC, "b8:ce:f6:00:00:01") in node.ids
    assert node.spec == NodeSpec(
        "a",
        capacity={"slots": 8, "memory": 2**40},
        free={"slots": 3, "memory": 2**40},
        labels={"gpu": "h100"},
        taints=("reserved=:NoSchedule", "gpu=h100:NoExecute", "x=:NoSchedule"),
        exclusion=Exclusion.UNSCHEDULABLE,
    )
    assert (node.device.kind, node.device.name) == (DeviceKind.HOST, "a")


@pytest.mark.parametrize(
    ("capacity", "free", "expected"),
    [
        (None, None, ({"slots": 1}, None)),
        ({"slots": 8}, None, ({"slots": 8}, None)),
        ({"cpu": 64}, None, ({"slots": 1, "cpu": 64_000}, None)),
        ({"slots": 8}, {"slots": 0}, ({"slots": 8}, {"slots": 0})),
        (
            {"slots": 8, "cpu": "3850m"},
            {"cpu": 1},
            ({"slots": 8, "cpu": 3850}, {"slots": 8, "cpu": 1000}),
        ),
    ],
    ids=["one slot", "the capacity given", "one slot beside others", "none free", "the rest free"],
)
def test_it_uses_defaults_for_absent_fields(
    capacity: object, free: object, expected: tuple[object, object]
) -> None:
    row = {"name": "a", "capacity": capacity, "free": free}
    node = only({"nodes": [{key: value for key, value in row.items() if value is not None}]})
    assert (node.spec.capacity, node.spec.free) == expected


def test_it_keeps_the_good_nodes_in_order_and_names_the_bad_ones() -> None:
    rows = [{"name": name} for name in ("c", "a", "NO", "b", "a")]
    found = parse({"nodes": rows})
    assert [node.name for node in found.nodes] == ["a", "b", "c"]
    assert [str(problem) for problem in found.problems] == [
        "nodes.json:1: nodes[2] is left out: name: expected a Kubernetes node name, got 'NO'",
        "nodes.json:1: nodes[4] is left out: a is listed already",
    ]


@pytest.mark.parametrize(
    ("conditions", "spec", "exclusion"),
    [
        pytest.param(None, {}, None, id="no conditions"),
        pytest.param([], {}, None, id="an empty list"),
        pytest.param([{"type": "MemoryPressure", "status": "True"}], {}, None, id="another one"),
        pytest.param([{"type": "Ready", "status": "True"}], {}, None, id="ready"),
        pytest.param([{"type": "Ready", "status": "False"}], {}, Exclusion.NOT_READY, id="no"),
        pytest.param(
            [{"type": "Ready", "status": "Unknown"}], {}, Exclusion.NOT_READY, id="a lost node"
        ),
        pytest.param([{"type": "Ready"}], {}, Exclusion.NOT_READY, id="no status"),
        pytest.param("Ready", {}, Exclusion.NOT_READY, id="no list"),
        pytest.param(
            [{"type": "Ready", "status": "False"}],
            {"unschedulable": True},
            Exclusion.UNSCHEDULABLE,
            id="cordoned too",
        ),
    ],
)
def test_a_node_takes_pods_unless_a_condition_says_that_it_is_not_ready(
    conditions: object, spec: dict[str, bool], exclusion: Exclusion | None
) -> None:
    node = kube_node("a", **spec)
    if conditions is not None:
        node["status"]["conditions"] = conditions
    (read,) = parse({"kind": "List", "items": [node]}).nodes
    assert read.spec.exclusion == exclusion


def test_it_reads_every_name_of_a_node() -> None:
    node = kube_node("10.0.4.1")
    node["metadata"]["labels"] = {"kubernetes.io/hostname": "gpu-1"}
    node["status"]["addresses"] = [
        {"type": kind, "address": address}
        for kind, address in [
            ("Hostname", "gpu-1"),
            ("InternalDNS", "gpu-1.internal"),
            ("ExternalDNS", "gpu-1.example"),
            ("InternalIP", "10.0.4.1"),
            ("ExternalIP", "2001:DB8:0::1"),
            ("Unknown", "x"),
        ]
    ]
    (read,) = parse({"kind": "List", "items": [node]}).nodes
    assert [(one.kind.value, one.value) for one in read.ids] == [
        ("hostname", "gpu-1"),
        ("hostname", "gpu-1.example"),
        ("hostname", "gpu-1.internal"),
        ("ip", "10.0.4.1"),
        ("ip", "2001:db8::1"),
        ("node-name", "10.0.4.1"),
    ]
    assert read.problems == ()


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"type": "ifname", "value": "eth0"}, "ids: ifname identifies a port, and no node"),
        ({"type": "port-id", "value": "1"}, "ids: port-id identifies a port, and no node"),
        ({"type": "chassis-id", "value": "a"}, "ids: expected a subtype of chassis-id: mac, ip, "),
        ({"type": "ip", "value": "10.0.0"}, "ids: expected a usable ip, got '10.0.0'"),
        ({"type": "hostname", "value": " "}, "ids: expected a usable hostname, got ' '"),
    ],
    ids=["an interface", "a port", "a chassis without a subtype", "no address", "a blank"],
)
def test_an_id_that_matches_no_host_is_a_problem(row: dict[str, str], problem: str) -> None:
    (node,) = parse({"nodes": [{"name": "n", "ids": [row]}]}).nodes
    assert node.problems[0].startswith(problem)
    assert [one.value for one in node.ids] == ["n"]


def test_objects_of_other_kinds_beside_nodes_are_named_and_lose_no_node() -> None:
    listed = json.dumps({"kind": "List", "items": [kube_node("a"), _POD, kube_node("b")]})
    found = parse_nodes(listed.encode(), source="x")
    assert [node.name for node in found.nodes] == ["a", "b"]
    assert [str(one) for one in found.problems] == ["x:1: Pod p is no Node: it is left out"]
    assert found.lost == ()


_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def test_it_reads_the_list_of_the_api_server_whose_items_have_no_kind() -> None:
    items = [{key: kube_node(name)[key] for key in ("metadata", "status")} for name in "ab"]
    found = parse({"kind": "NodeList", "apiVersion": "v1", "items": items})
    assert [node.name for node in found.nodes] == ["a", "b"]


def test_a_list_may_have_several_documents_in_both_forms() -> None:
    text = "".join(
        (
            json.dumps(kube_node("a")),
            "\n---\nnodes: [{name: b}]\n",
            "---\nkind: List\nitems:\n- ",
            json.dumps(kube_node("c")),
            "\n",
        )
    )
    found = parse_nodes(text.encode(), source="x")
    assert [node.name for node in found.nodes] == ["a", "b", "c"]
    assert found.problems == ()


def test_it_gives_a_placed_node_one_slot_without_a_list_and_none_if_the_list_lacks_it() -> None:
    assert build_node_specs(None, ["a"]) == {"a": NodeSpec("a")}
    listed = parse({"nodes": [{"name": "b", "capacity": {"slots": 4}}]})
    assert build_node_specs(listed, ["a", "b"]) == {
        "a": NodeSpec("a", exclusion=Exclusion.UNLISTED),
        "b": NodeSpec("b", capacity={"slots": 4}),
    }


ROWS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["nodes", "items", "kind", "name", "ids", "type", "value", "capacity",
                         "free", "slots", "labels", "taints", "key", "metadata", "spec", "status",
                         "allocatable", "addresses"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(ROWS, st.sampled_from(["Node", "List", None]))
@settings(max_examples=examples(60))
def test_it_reads_any_object_without_raising(value: object, kind: str | None) -> None:
    document = {"nodes": [value], "kind": kind} if kind else value
    found = parse(document)
    assert all(str(problem).startswith("nodes.json") for problem in found.problems)
