"""Shares of GPUs pack as KAI packs them; ports of the host are taken once."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from generator.manifests.fields import Relevance
from generator.manifests.kinds.unlisted_resources import (
    GpuShare,
    list_on_nodes,
    parse_share_name,
    warn_of_unknown_memory,
)
from generator.manifests.resource_units import leave_out_ports
from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from tests.generator.manifests.scenes import GPU, job, manifest, pod_spec, spec_of, translated
from topology.model.errors import PlacementRequestError

MEMORY = "nvidia.com/gpu.memory"
HALVES = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "4"}


def share_job(
    marks: dict[str, str], *, count: int = 4, containers: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return a Job of KAI; marks are annotations of its pods."""
    spec = {"schedulerName": "kai-scheduler", "containers": containers or [{}]}
    return job(parallelism=count, template={"metadata": {"annotations": marks}, "spec": spec})


def request_of(document: dict[str, Any]) -> dict[str, Any]:
    request: dict[str, Any] = spec_of(document)["groups"][0]["request"]
    return request


SHARES = [
    pytest.param({"gpu-fraction": "0.5"}, f"{GPU}.1x0.5", id="half of a GPU"),
    pytest.param({"gpu-fraction": ".50"}, f"{GPU}.1x0.5", id="another spelling of half"),
    pytest.param({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "4"}, f"{GPU}.4x0.5",
                 id="half of four GPUs"),
    pytest.param({"gpu-memory": "2000"}, f"{GPU}.1x2000Mi", id="memory of a GPU"),
    pytest.param({"gpu-memory": "2000", "gpu-fraction-num-devices": "2"}, f"{GPU}.2x2000Mi",
                 id="memory of two GPUs"),
]  # fmt: skip


@pytest.mark.parametrize(("marks", "name"), SHARES)
def test_it_reads_the_share(marks: dict[str, str], name: str) -> None:
    assert request_of(share_job(marks)) == {name: 1}
    share = parse_share_name(name)
    assert share is not None
    assert share.name == name


@pytest.mark.parametrize(
    ("marks", "containers", "problem"),
    [
        pytest.param({"gpu-fraction": "1.5"}, None, "between 0 and 1", id="more than a GPU"),
        pytest.param({"gpu-fraction": "0"}, None, "between 0 and 1", id="nothing"),
        pytest.param({"gpu-fraction": "half"}, None, "between 0 and 1", id="a word"),
        pytest.param({"gpu-fraction": "nan"}, None, "between 0 and 1", id="no number"),
        pytest.param({"gpu-fraction": "1e999999999"}, None, "between 0 and 1", id="very much"),
        pytest.param({"gpu-fraction": "-inf"}, None, "between 0 and 1", id="an infinite number"),
        pytest.param({"gpu-fraction": "1e-999999999"}, None, "at most 9 digits", id="hardly any"),
        pytest.param({"gpu-fraction": "0.1234567891"}, None, "at most 9 digits", id="too fine"),
        pytest.param({"gpu-fraction": "0.5", "gpu-memory": "1"}, None, "beside gpu-fraction",
                     id="two amounts"),
        pytest.param({"gpu-memory": "much"}, None, "expected an integer", id="a wrong memory"),
        pytest.param({"gpu-fraction": "0.5"}, [{"resources": {"limits": {GPU: 1}}}],
                     "beside whole ones", id="a share beside a whole GPU"),
    ],
)  # fmt: skip
def test_it_refuses(
    marks: dict[str, str], containers: list[dict[str, Any]] | None, problem: str
) -> None:
    with pytest.raises(PlacementRequestError, match=problem):
        spec_of(share_job(marks, containers=containers))


def count_in_turn(share: int, memory: int, num_devices: int, num_gpus: int) -> int:
    """Return how many pods KAI puts on a node: each takes the fullest GPUs that have room."""
    free = [memory] * num_gpus
    for count in range(num_gpus * memory + 1):
        fitting = sorted((room, at) for at, room in enumerate(free) if room >= share)
        if len(fitting) < num_devices:
            return count
        for _, at in fitting[:num_devices]:
            free[at] -= share
    raise AssertionError


@pytest.mark.parametrize("num_gpus", [1, 3, 4, 8])
@pytest.mark.parametrize("num_devices", [1, 2, 3, 4])
@pytest.mark.parametrize("percent", [1, 7, 10, 25, 33, 34, 50, 51, 66, 99])
def test_a_node_holds_as_many_shares_as_kai_puts_there(
    percent: int, num_devices: int, num_gpus: int
) -> None:
    fraction = GpuShare(num_devices, Decimal(percent) / 100, None)
    memory = GpuShare(num_devices, None, percent * 10)
    assert fraction.count_pods(num_gpus, None) == count_in_turn(percent, 100, num_devices, num_gpus)
    by_memory = count_in_turn(percent * 10, 1000, num_devices, num_gpus)
    assert memory.count_pods(num_gpus, 1000) == by_memory


def listed(name: str, node: NodeSpec, gangs: tuple[RunningGang, ...] = ()) -> int:
    """Return how much of a resource is free on a node."""
    return list_on_nodes({"n": node}, [name], gangs)["n"].initial_free[name]


def gpu_node() -> NodeSpec:
    return NodeSpec("n", {GPU: 8})


@pytest.mark.parametrize(
    ("label", "count"),
    [
        pytest.param("81920", 8 * 4, id="mebibytes"),
        pytest.param(str(81920 << 20), 8 * 4, id="bytes"),
        pytest.param("20099", 8, id="rounded down to hundreds, as KAI rounds"),
        pytest.param("19999", 0, id="less than a share"),
        pytest.param("much", 8, id="no number: a whole GPU"),
    ],
)
def test_the_label_of_a_node_says_how_much_memory_a_gpu_has(label: str, count: int) -> None:
    node = NodeSpec("n", {GPU: 8}, labels={MEMORY: label})
    assert listed(f"{GPU}.1x20000Mi", node) == count


def test_unknown_memory_gives_a_warning() -> None:
    known, unknown = NodeSpec("a", {GPU: 8}, labels={MEMORY: "81920"}), gpu_node()
    name = f"{GPU}.1x2000Mi"
    assert warn_of_unknown_memory([name], [known]) == ()
    (note,) = warn_of_unknown_memory([name], [known, unknown])
    assert (note.path, note.is_warning) == ("nodes n", True)
    assert warn_of_unknown_memory([f"{GPU}.1x0.5"], [unknown]) == ()


def test_running_pods_take_their_gpus_first() -> None:
    running = RunningGang("r", (RunningPods("n", {GPU: 2}, 3), RunningPods("other", {GPU: 8})))
    assert listed(f"{GPU}.1x0.5", gpu_node(), (running,)) == 4
    busy = NodeSpec("n", {GPU: 8}, free={GPU: 1})
    assert listed(f"{GPU}.1x0.5", busy) == 2
    assert listed(f"{GPU}.2x0.5", busy) == 0


def test_a_resource_that_a_node_lists_keeps_its_quantity() -> None:
    name = f"{GPU}.1x0.5"
    assert listed(name, NodeSpec("n", {GPU: 8, name: 3})) == 3


@pytest.mark.parametrize("part", ["", ".shared", ".0x0.5", ".1x1.5", ".x0.5", ".1x5Gi"])
def test_another_resource_is_no_share(part: str) -> None:
    assert parse_share_name(GPU + part) is None


def ray(head: dict[str, str], workers: dict[str, str], gpus: int = 0) -> dict[str, Any]:
    """Return a Ray cluster with shares of GPUs, or whole GPUs for the workers."""

    def template(marks: dict[str, str], count: int) -> dict[str, Any]:
        limits = {"resources": {"limits": {GPU: count}}} if count else {}
        spec = {"schedulerName": "kai-scheduler", "containers": [limits]}
        return {"metadata": {"annotations": marks}, "spec": spec}

    group = {"groupName": "w", "replicas": 2, "template": template(workers, gpus)}
    spec = {"headGroupSpec": {"template": template(head, 0)}, "workerGroupSpecs": [group]}
    return manifest("ray.io/v1", "RayCluster", **spec)


@pytest.mark.parametrize(
    ("head", "workers", "gpus", "parts", "is_exact"),
    [
        pytest.param({"gpu-fraction": "0.5"}, {}, 4, (2, [1, 8]), True,
                     id="a share beside whole GPUs"),
        pytest.param({"gpu-fraction": "0.5"}, {"gpu-fraction": "0.25"}, 0, (4, [2, 1]), True,
                     id="shares that divide each other"),
        pytest.param({"gpu-fraction": "0.5"}, {"gpu-fraction": "0.3"}, 0, (6, [3, 2]), False,
                     id="shares that do not"),
        pytest.param({"gpu-fraction": "0.5"}, HALVES, 0, (2, [1, 4]), False,
                     id="shares of one and of several GPUs"),
        pytest.param({"gpu-fraction": "0.5"}, {"gpu-memory": "2000"}, 0, None, False,
                     id="a fraction and an amount of memory"),
    ],
)  # fmt: skip
def test_pods_with_different_shares_use_the_same_gpus(
    head: dict[str, str],
    workers: dict[str, str],
    gpus: int,
    parts: tuple[int, list[int]] | None,
    *,
    is_exact: bool,
) -> None:
    found = translated(ray(head, workers, gpus))
    warnings = [row.path for row in found.ignored if row.relevance is Relevance.POSSIBLE]
    assert warnings == ([] if is_exact else ["the file"])
    rows = [row["request"] for row in found.document["spec"]["groups"]]
    if parts is not None:
        name = f"{GPU}.parts-of-{parts[0]}"
        assert [row[name] for row in rows] == parts[1]
        assert listed(name, gpu_node()) == 8 * parts[0]


PORTS = [
    pytest.param([{"hostPort": 80}], {}, {"host-port.TCP.80": 1}, id="a port of the host"),
    pytest.param([{"hostPort": 80, "protocol": "UDP"}], {}, {"host-port.UDP.80": 1},
                 id="its protocol"),
    pytest.param([{"containerPort": 80}], {}, {}, id="no port of the host"),
    pytest.param([{"containerPort": 80}], {"hostNetwork": True}, {"host-port.TCP.80": 1},
                 id="every port on the network of the host"),
    pytest.param([{"hostPort": 80}, {"hostPort": 81}], {},
                 {"host-port.TCP.80": 1, "host-port.TCP.81": 1}, id="several ports"),
]  # fmt: skip


@pytest.mark.parametrize(("ports", "fields", "request_"), PORTS)
def test_a_pod_takes(
    ports: list[dict[str, Any]], fields: dict[str, Any], request_: dict[str, int]
) -> None:
    container = {"ports": ports, "resources": {"requests": {GPU: 1}}}
    spec = pod_spec(containers=[container], **fields)
    assert request_of(job(template={"spec": spec})) == {GPU: 1} | request_


def test_a_port_of_an_ended_container_is_free() -> None:
    ended = {"name": "i", "ports": [{"hostPort": 80}]}
    sidecar = {"restartPolicy": "Always", "ports": [{"hostPort": 81}]}
    template = {"spec": pod_spec(initContainers=[ended, sidecar])}
    assert request_of(job(template=template)) == {GPU: 8, "host-port.TCP.81": 1}


def test_a_node_has_every_port_once() -> None:
    assert listed("host-port.TCP.80", gpu_node()) == 1


def test_a_pod_that_a_node_list_counts_keeps_its_port() -> None:
    name = "host-port.TCP.80"
    running = RunningGang("g", (RunningPods("n", {GPU: 1, name: 1}),))
    found = list_on_nodes({"n": gpu_node(), "m": gpu_node()}, [name], (), counted=running)
    assert [found[node].initial_free for node in "nm"] == [{GPU: 8, name: 0}, {GPU: 8, name: 1}]


def test_ports_that_are_not_counted_give_a_warning() -> None:
    rows: list[dict[str, Any]] = [
        {"name": "a", "count": 1, "request": {"host-port.TCP.80": 1}},
        {"name": "b", "children": [{"name": "c", "count": 1, "request": {GPU: 1}}]},
    ]
    spec, (note,) = leave_out_ports({"groups": rows})
    assert spec["groups"] == [rows[0] | {"request": {"slots": 1}}, rows[1]]
    assert (note.path, note.is_warning) == ("groups[0]", True)


DEVICES = [
    pytest.param("nvidia.com/mig-1g.10gb", True, "", id="a part of a GPU that nodes list"),
    pytest.param("amd.com/gpu", True, "", id="a GPU of another maker"),
    pytest.param("nvidia.com/gpumem", False, "nodes do not list it", id="memory of HAMi"),
    pytest.param("nvidia.com/gpumem-percentage", False, "nodes do not list it",
                 id="a share of memory of HAMi"),
    pytest.param("nvidia.com/gpucores", False, "nodes do not list it", id="cores of HAMi"),
    pytest.param("volcano.sh/vgpu-memory", True, "is counted by node", id="memory of Volcano"),
    pytest.param("volcano.sh/vgpu-cores", True, "is counted by node", id="cores of Volcano"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "is_requested", "reason"), DEVICES)
def test_it_requests_or_reports(name: str, reason: str, *, is_requested: bool) -> None:
    containers = [{"resources": {"limits": {GPU: 1, name: 2}}}]
    found = translated(job(template={"spec": pod_spec(containers=containers)}))
    request = found.document["spec"]["groups"][0]["request"]
    expected = {GPU: 1, name: 2} if is_requested else {GPU: 1}
    assert request == expected
    warnings = [row.reason for row in found.ignored if row.relevance is Relevance.POSSIBLE]
    assert len(warnings) == bool(reason)
    assert all(row.startswith(reason) for row in warnings)


@pytest.mark.parametrize("level", ["pod", "container"])
def test_a_claim_of_devices_may_matter(level: str) -> None:
    spec = pod_spec()
    if level == "pod":
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    else:
        spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    (row,) = translated(job(template={"spec": spec})).ignored
    assert (row.relevance, "laims" in row.path) == (Relevance.POSSIBLE, True)
