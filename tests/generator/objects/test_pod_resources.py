"""The resources that pods use on their nodes, as the scheduler counts them."""

from __future__ import annotations

from typing import Any

import pytest

from generator.objects.inventory import Inventory, parse_node
from generator.objects.pods import FreeInventory, parse_pod_usage, subtract_usage
from tests.generator.scenes import kube_node
from topology.model.errors import ConfigError

GPU = "nvidia.com/gpu"


def container(cpu: str = "0", *, gpus: int = 0, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    requests = {"cpu": cpu, **({GPU: str(gpus)} if gpus else {})}
    return {"name": "c", "resources": {"requests": requests}, **more}


def pod(*containers: dict[str, Any], phase: str = "Running", **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    return {
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"nodeName": "n1", "containers": list(containers), **spec},
        "status": {"phase": phase},
    }


def taken(found: dict[str, Any], resource: str = "cpu") -> int:
    usage = parse_pod_usage(found)
    assert usage is not None
    return usage.units.get(resource, 0)


@pytest.mark.parametrize(
    ("found", "millicores"),
    [
        pytest.param(pod(container("500m"), container("2")), 2500, id="the sum of containers"),
        pytest.param(
            pod(container("1"), initContainers=[container("3"), container("2")]),
            3000,
            id="the greatest init container, where that is more",
        ),
        pytest.param(
            pod(container("4"), initContainers=[container("3"), container("2")]),
            4000,
            id="the containers, where they are more",
        ),
        pytest.param(
            pod(container("1"), initContainers=[container("2", restartPolicy="Always")]),
            3000,
            id="an init container that goes on beside them",
        ),
        pytest.param(
            pod(
                container("1"),
                initContainers=[container("2", restartPolicy="Always"), container("5")],
            ),
            7000,
            id="an init container beside one that goes on",
        ),
        pytest.param(
            pod(
                container("1"),
                initContainers=[container("5"), container("2", restartPolicy="Always")],
            ),
            5000,
            id="an init container before one that goes on",
        ),
        pytest.param(
            pod(container("9"), resources={"requests": {"cpu": "3"}}),
            3000,
            id="what the pod asks for as a whole",
        ),
        pytest.param(pod(container("1"), overhead={"cpu": "250m"}), 1250, id="its overhead"),
        pytest.param(pod({"name": "c"}), 0, id="nothing, where nothing is asked for"),
        pytest.param(pod(container("1"), initContainers=None), 1000, id="no list of others"),
    ],
)
def test_it_counts(found: dict[str, Any], millicores: int) -> None:
    assert taken(found) == millicores


def test_it_counts_a_slot_only_for_a_pod_with_devices() -> None:
    assert taken(pod(container("1", gpus=8)), "slots") == 1
    assert taken(pod(container("1")), "slots") == 0
    assert taken(pod(container("1")), "pods") == 1


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(pod(container("1"), phase="Succeeded"), id="that is done"),
        pytest.param(pod(container("1"), phase="Failed"), id="that failed"),
        pytest.param(pod(container("1"), nodeName=""), id="on no node"),
        pytest.param({}, id="that is none"),
    ],
)
def test_it_counts_nothing_for_a_pod(found: dict[str, Any]) -> None:
    assert parse_pod_usage(found) is None


def test_it_refuses_a_malformed_quantity() -> None:
    with pytest.raises(ConfigError, match="requests: expected a quantity"):
        parse_pod_usage(pod(container("much")))


def test_it_computes_the_free_capacity_of_a_node() -> None:
    nodes = tuple(parse_node(kube_node(name)) for name in ("n1", "n2"))
    pods = [pod(container("500m", gpus=3)), pod(container("250m", gpus=3)), pod(nodeName="gone")]
    found = subtract_usage(Inventory(nodes, ()), map(parse_pod_usage, pods))
    first, second = found.nodes
    assert first.spec.free is not None
    assert (first.spec.free["cpu"], first.spec.free[GPU], first.spec.free["slots"]) == (
        63_100,
        2,
        0,
    )
    assert second.spec.free == second.spec.capacity
    assert first.spec.capacity == nodes[0].spec.capacity


def test_it_clamps_free_capacity_at_zero() -> None:
    node = parse_node(kube_node("n1"))
    found = subtract_usage(Inventory((node,), ()), [parse_pod_usage(pod(container("1", gpus=99)))])
    assert found.nodes[0].spec.initial_free[GPU] == 0


def test_it_recomputes_only_nodes_whose_pods_changed() -> None:
    nodes = tuple(parse_node(kube_node(name)) for name in ("n1", "n2"))
    leavings, listed = FreeInventory(), Inventory(nodes, ())
    before = leavings.subtract(listed, [parse_pod_usage(pod(container("1", gpus=1)))])
    after = leavings.subtract(listed, [parse_pod_usage(pod(container("1", gpus=2)))])
    assert after == subtract_usage(listed, [parse_pod_usage(pod(container("1", gpus=2)))])
    assert after.nodes[0] != before.nodes[0]
    assert after.nodes[1] is before.nodes[1]


def test_it_returns_the_identical_inventory_without_a_change() -> None:
    leavings, listed = FreeInventory(), Inventory((parse_node(kube_node("n1")),), ())
    pods = [parse_pod_usage(pod(container("1", gpus=1)))]
    assert leavings.subtract(listed, pods) is leavings.subtract(listed, pods)


def test_it_follows_a_node_that_returns_with_more_capacity() -> None:
    small, large = kube_node("n1"), kube_node("n1")
    small["status"]["allocatable"][GPU] = "4"
    leavings, pods = FreeInventory(), [parse_pod_usage(pod(container("1", gpus=1)))]
    first, second = (
        leavings.subtract(Inventory((parse_node(found),), ()), pods) for found in (small, large)
    )
    assert (first.nodes[0].spec.initial_free[GPU], second.nodes[0].spec.initial_free[GPU]) == (3, 7)
