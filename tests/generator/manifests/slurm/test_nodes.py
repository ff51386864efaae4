"""Which nodes a job gets: how many, of which size, and by which names."""

from __future__ import annotations

from typing import Any

import pytest

from generator.manifests.manifest_request import translate_job
from generator.manifests.slurm.batch_job import parse_batch_job
from generator.manifests.slurm.loads import build_node_capacity
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from generator.placement.request import parse_request
from tests.generator.manifests.slurm.clusters import (
    EQUAL,
    GIB,
    GPU,
    MIXED,
    Cluster,
    NodeKind,
    groups_of,
    notes_of,
    placed,
    risks_of,
    translated,
    used_nodes,
)
from topology.model.errors import PlacementRequestError

COUNTS = [
    pytest.param("-N 2k", 0, id="units of 1024"),
    pytest.param("-N 8", 8, id="a number"),
    pytest.param("-N 9", 0, id="a number that is too large"),
    pytest.param("-N 4-20", 8, id="the most of a range"),
    pytest.param("-N 9-20", 0, id="a range that is too large"),
    pytest.param("-N 4-20 --use-min-nodes", 4, id="the fewest of a range"),
    pytest.param("-N 4,8", 8, id="the most of a list"),
    pytest.param("-N 3,9", 3, id="the most of a list that fits"),
    pytest.param("-N 9,10", 0, id="a list that does not fit"),
    pytest.param("-N 1-15:4", 5, id="the most steps that fit"),
    pytest.param("-N 2,3,7,12", 7, id="the most of an uneven list"),
    pytest.param("-N 2,3,12,40", 3, id="an uneven list of which little fits"),
    pytest.param("-N 1-3,7", 7, id="a list with a range"),
    pytest.param("-n 3 -N 5", 3, id="no more nodes than tasks"),
    pytest.param("-N 6 --gpus=6", 6, id="a GPU on each node"),
    pytest.param("-w n[1-2]", 2, id="the listed nodes"),
    pytest.param("-w n[1-2] -N 5", 5, id="more nodes than are listed"),
    pytest.param("-w n[1-4] -N 2", 2, id="fewer nodes than are listed"),
    pytest.param("-w n[1-4] -n 3", 3, id="fewer tasks than nodes are listed"),
    pytest.param("-w n[1-2] --gpus=24", 3, id="GPUs for more nodes than are listed"),
    pytest.param("-w n[1-3] -n 8 --ntasks-per-node=4", 3, id="more nodes than tasks need"),
    pytest.param("-x n[1-4] -N 4", 4, id="the nodes that are not excluded"),
    pytest.param("-x n[1-4] -N 5", 0, id="too many excluded nodes"),
    pytest.param("-w n1 -x n1 -N 1", 0, id="a node that is listed and excluded"),
    pytest.param("--switches=1 -N 4", 4, id="a leaf"),
    pytest.param("--switches=1 -N 5", 0, id="more than a leaf"),
    pytest.param("--switches=2 -N 5", 5, id="two leaves"),
    pytest.param("--segment=2 -N 8", 8, id="segments"),
    pytest.param("--segment=4 --ntasks=64 --ntasks-per-node=8", 8, id="segments of tasks"),
    pytest.param("--segment=4 --gpus=64", 8, id="segments of GPUs"),
    pytest.param("--segment=3 -N 4", 0, id="nodes that are no whole segments"),
    pytest.param("-n 64 --ntasks-per-node=8 --gpus=33", 8, id="uneven GPUs"),
    pytest.param("-n 500 -O", 1, id="overcommitted tasks"),
    pytest.param("-n 500 -O -N 2", 2, id="overcommitted tasks on two nodes"),
    pytest.param("-c 4", 1, id="one task"),
    pytest.param("", 1, id="nothing"),
]


@pytest.mark.parametrize(("options", "num_nodes"), COUNTS)
def test_it_uses(options: str, num_nodes: int) -> None:
    assert len(used_nodes(placed(options, EQUAL))) == num_nodes


def pods_per_node(options: str, cluster: Cluster) -> list[int]:
    nodes = [node for row in placed(options, cluster).assignment.values() for node in row if node]
    return sorted((nodes.count(node) for node in set(nodes)), reverse=True)


@pytest.mark.parametrize(
    "options", ["-N 4 --gpus-per-node=4", "-N 8 -c 1", "-N 5 --mem=1G", "-N 3"]
)
def test_a_node_has_one_share(options: str) -> None:
    assert set(pods_per_node(options, EQUAL)) == {1}


MIXED_COUNTS = [
    pytest.param("-n 448", True, id="tasks of the large nodes"),
    pytest.param("-n 512", True, id="tasks of all nodes"),
    pytest.param("-n 513", False, id="one task too many"),
    pytest.param("-N 2 -n 256", True, id="tasks of the two largest nodes"),
    pytest.param("-N 2 -n 257", False, id="tasks of no two nodes"),
    pytest.param("-N 3 -n 300", True, id="tasks of three nodes of different sizes"),
    pytest.param("-N 9 -n 512", True, id="tasks of all nodes, in uneven shares"),
    pytest.param("-n 300 --mem=100G", True, id="tasks of nodes with memory"),
    pytest.param("-n 300 --mem=300G", False, id="tasks of too few nodes with memory"),
    pytest.param("-n 256 --gres=gpu:1", True, id="tasks of nodes with GPUs"),
    pytest.param("-n 257 --gres=gpu:1", False, id="tasks of too few nodes with GPUs"),
    pytest.param("-n 192 --gres=gpu:8", True, id="tasks of nodes with eight GPUs"),
    pytest.param("-n 193 --gres=gpu:8", False, id="tasks of too few nodes with eight GPUs"),
    pytest.param("--gpus=40", True, id="all GPUs"),
    pytest.param("--gpus=41", False, id="one GPU too many"),
    pytest.param("-N 7 --gpus=40", True, id="all GPUs, in uneven shares"),
    pytest.param("-N 5 --gpus=33", False, id="GPUs of no five nodes"),
    pytest.param("-N 5 --gpus=32", True, id="GPUs of five nodes of different sizes"),
    pytest.param("--gpus=40 -n 16 -c 16", True, id="GPUs and tasks of all nodes"),
    pytest.param("--gpus=40 -n 17 -c 16", False, id="all GPUs and one task too many"),
    pytest.param("--gpus=24 -n 4 -c 33", False, id="a task more than nodes that hold one"),
    pytest.param("-n 256 --gpus=1", True, id="tasks of all nodes with GPUs"),
    pytest.param("-n 257 --gpus=8", False, id="a task more than nodes with GPUs hold"),
    pytest.param("--gpus=20 -n 22 -c 9", True, id="tasks that bind before GPUs"),
    pytest.param("-N 2 --mincpus=64", True, id="nodes with many CPUs"),
    pytest.param("-N 6 --mincpus=64", False, id="too few nodes with many CPUs"),
    pytest.param("-n 100 --mem-per-cpu=10G", True, id="memory for each CPU"),
    pytest.param("-n 174 --mem-per-cpu=10G", True, id="as much memory as there is"),
    pytest.param("-n 217 --mem-per-cpu=10G", False, id="memory for one CPU too many"),
    pytest.param("--gpus=24 --mem-per-gpu=60G", True, id="memory for each GPU"),
    pytest.param("--gpus=29 --mem-per-gpu=60G", False, id="memory for one GPU too many"),
    pytest.param("--exclusive --mem-per-cpu=3G -N 7", True, id="memory for all CPUs"),
    pytest.param("--exclusive --mem-per-cpu=3G -N 8", False, id="memory for all CPUs of too few"),
    pytest.param("--exclusive --gpus=16 --cpus-per-gpu=8", True, id="CPUs for all GPUs"),
    pytest.param("--exclusive --gpus=16 --cpus-per-gpu=12", False, id="CPUs for too many GPUs"),
    pytest.param("--exclusive --gpus-per-node=8 -N 4", False, id="whole nodes with eight GPUs"),
    pytest.param("-n 20 --ntasks-per-node=20", True, id="nodes that hold all tasks of a node"),
    pytest.param("-n 101 --ntasks-per-node=20", False, id="too few such nodes"),
]


@pytest.mark.parametrize(("options", "is_feasible"), MIXED_COUNTS)
def test_it_fits_nodes_of_several_sizes(options: str, *, is_feasible: bool) -> None:
    assert placed(options, MIXED).is_feasible is is_feasible


REFUSED = [
    pytest.param("-N 0", "--nodes: expected a number or a range such as 4-8", id="no node"),
    pytest.param("-N 8-4", "--nodes: expected a number or a range", id="a range downwards"),
    pytest.param("-N x", "--nodes: expected a number or a range", id="nodes in words"),
    pytest.param("-N 4,x", "--nodes: expected a number or a range", id="a list with a word"),
    pytest.param("-N 1-99999999", "--nodes: expected a number or a range", id="a huge range"),
    pytest.param("-N 4 --switches=x", "--switches: expected an integer", id="switches in words"),
    pytest.param("-N 4 --mem=lots", "--mem: expected a size such as 64G", id="memory in words"),
    pytest.param("-N 4 --gres=gpu:a:b", "--gres: expected an integer", id="GPUs in words"),
    pytest.param("-N 4 --gpus=h100:x", "--gpus: expected an integer", id="GPUs of a type in words"),
    pytest.param("-N 4 -n 1e9", "--ntasks: expected an integer from 1", id="tasks in words"),
    pytest.param("-N 4 --segment=0", "--segment: expected an integer from 1", id="empty segments"),
    pytest.param("--exclusive=x", "--exclusive: expected user, mcs or topo", id="a word"),
    pytest.param(
        "--mem=1G --mem-per-cpu=1G", "--mem: not allowed with --mem-per-cpu", id="memory twice"
    ),
    pytest.param(
        "-c 2 --cpus-per-gpu=2 -G 2", "--cpus-per-task: not allowed with", id="CPUs twice"
    ),
    pytest.param("--exclusive -s", "--exclusive: not allowed with --oversubscribe", id="both"),
    pytest.param(
        "--ntasks-per-gpu=2 --gpus-per-task=1 -n 2",
        "--ntasks-per-gpu: not allowed",
        id="tasks and GPUs",
    ),
    pytest.param(
        "--gpus=8 --gpus-per-node=3", "--gpus: expected a multiple of 3", id="GPUs of nodes"
    ),
    pytest.param(
        "--gpus=8 --gpus-per-task=3", "--gpus: expected a multiple of 3", id="GPUs of tasks"
    ),
    pytest.param(
        "--gpus=8 --gpus-per-node=2 -N 2",
        "--nodes: expected 4, which the GPUs need",
        id="nodes of GPUs",
    ),
    pytest.param("-N 5 --gpus=4", "--gpus: expected at least 5, one for each node", id="few GPUs"),
    pytest.param("-n 5 --gpus=8 --gpus-per-task=2", "--ntasks: expected 4", id="other tasks"),
    pytest.param(
        "-N 2 -n 9 --ntasks-per-node=3", "--ntasks: expected at most 6: 3 on each", id="many tasks"
    ),
    pytest.param("-n 7 --ntasks-per-gpu=2", "--ntasks: expected a multiple of 2", id="half a GPU"),
    pytest.param(
        "--ntasks-per-gpu=2",
        "--ntasks-per-gpu: expected tasks, GPUs or nodes",
        id="tasks of no GPU",
    ),
    pytest.param(
        "--gpus-per-task=2", "--gpus-per-task: expected --ntasks or --gpus", id="GPUs of no task"
    ),
    pytest.param(
        "-N 2 --gpus-per-task=2 -c 3", "--gpus-per-task: expected --ntasks", id="GPUs of any tasks"
    ),
    pytest.param(
        "-N 2 --cpus-per-gpu=2", "--cpus-per-gpu: expected GPUs beside it", id="CPUs of no GPU"
    ),
    pytest.param(
        "-N 2 --mem-per-gpu=2G", "--mem-per-gpu: expected GPUs beside it", id="memory of no GPU"
    ),
    pytest.param(
        "--gpus-per-socket=2", "--gpus-per-socket: expected --sockets-per-node", id="sockets"
    ),
    pytest.param("-w n[1-", "--nodelist: expected names such as n[1-4,7]", id="half a bracket"),
    pytest.param(
        "-w n[1-9999999]", "--nodelist: expected names such as n[1-4,7]", id="names without end"
    ),
    pytest.param(
        "-w n[1-2],zz", "--nodelist: no node is named zz", id="a node that does not exist"
    ),
    pytest.param(
        "-N 1,2,4,8,16,32,64,128", "--nodes: expected at most 7 numbers", id="many numbers"
    ),
]


@pytest.mark.parametrize(("options", "why"), REFUSED)
def test_it_refuses(options: str, why: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        translated(options, EQUAL)
    assert why in str(caught.value)


def test_it_uses_each_listed_node_and_no_excluded_one() -> None:
    nodes = used_nodes(placed("-w n4,m1 -x n[1-3] -N 4", EQUAL))
    assert {"n4", "m1"} <= set(nodes)
    assert not {"n1", "n2", "n3"} & set(nodes)


def test_it_takes_the_first_listed_nodes_as_slurm_does() -> None:
    found = translated("-w n3,n1,n2 -N 2", EQUAL)
    assert used_nodes(placed("-w n3,n1,n2 -N 2", EQUAL)) == ["n1", "n2"]
    assert "--nodelist: the first 2 of 3 nodes" in notes_of(found)


FILES = [
    pytest.param("-w ./hosts", id="a list with a slash"),
    pytest.param("-F hosts", id="a file"),
]


@pytest.mark.parametrize("option", FILES)
def test_it_reads_nodes_from_a_file(option: str) -> None:
    text = "# hosts\nn[1-2]*2, n4\n\nm1\n"
    found = translated(option, EQUAL, files={"./hosts": text, "hosts": text})
    (group,) = found.document["spec"]["groups"]
    assert group["node_affinity"][0][0]["values"] == ["m1", "n1", "n2", "n4"]
    assert risks_of(found) == []


def test_it_says_that_a_file_that_it_cannot_read_may_matter() -> None:
    assert risks_of(translated("-x ./hosts -N 2")) == ["--exclude=./hosts: the file cannot be read"]


def test_it_finds_nodes_by_the_first_label_of_their_names() -> None:
    names = ("n1.example", "n2.example")
    capacity = build_node_capacity([NodeSpec(name) for name in names], names)
    (group,) = translate_job(parse_batch_job(["-w", "n2"]), capacity).document["spec"]["groups"]
    assert group["node_affinity"] == [
        [{"field": "metadata.name", "operator": "In", "values": ["n2.example"]}]
    ]


def test_it_says_that_no_node_is_excluded() -> None:
    found = translated("-N 2 -x zz", EQUAL)
    assert notes_of(found) == ["--exclude: no node is named zz"]
    (group,) = found.document["spec"]["groups"]
    assert "node_affinity" not in group


def test_an_exclusive_job_shares_no_node() -> None:
    assert translated("-N 2 --exclusive").document["spec"]["exclusive"] == "node"
    assert "exclusive" not in translated("-N 2").document["spec"]


def test_components_share_no_node() -> None:
    for cluster in (None, EQUAL):
        groups = groups_of("-n 4 : -N 2", cluster)
        assert [row.get("exclusive") for row in groups] == ["node", "node"]
    assert len(used_nodes(placed("-n 4 : -N 7", EQUAL))) == 8
    assert not placed("-n 4 : -N 8", EQUAL).is_feasible


UNKNOWN_NODES = [
    pytest.param("-n 8", {"cpu": 1, "pods": 0}, [], id="tasks"),
    pytest.param("-n 8 --mem=9G", {"cpu": 1, "pods": 0}, ["--mem"], id="memory of each node"),
    pytest.param("-G 8 -c 2", {GPU: 1, "pods": 0}, ["--cpus-per-task"], id="CPUs of each node"),
    pytest.param(
        "-n 8 --gres=gpu:2", {"cpu": 1, "pods": 0}, ["--gpus-per-node"], id="GPUs of each"
    ),
    pytest.param("-n 8 --mincpus=9", {"cpu": 1, "pods": 0}, ["--mincpus"], id="CPUs at least"),
    pytest.param("-N 2 -n 8 --mem=9G", {"cpu": 4, "memory": 9 * GIB}, [], id="shares"),
    pytest.param("-n 8 -N 2,4", {"cpu": 1, "pods": 0}, ["--nodes"], id="a list of numbers"),
    pytest.param("-G 8 --segment=2", {GPU: 1, "pods": 0}, ["--segment"], id="segments"),
]


@pytest.mark.parametrize(("options", "request_", "risks"), UNKNOWN_NODES)
def test_it_says_what_the_nodes_would_show(
    options: str, request_: dict[str, Any], risks: list[str]
) -> None:
    found = translated(options)
    (group,) = found.document["spec"]["groups"]
    assert (group["request"], risks_of(found)) == (request_, risks)


SLOTS = [
    pytest.param(1, "-N 2 --gpus-per-node=8", {"slots": 1}, [], id="a slot a node"),
    pytest.param(8, "-N 2 --gpus-per-node=4", {"slots": 4}, [], id="a slot a GPU"),
    pytest.param(8, "-N 2", {"slots": 8}, [], id="all slots of a whole node"),
    pytest.param(8, "-N 2 -c 4", {"slots": 1}, [], id="a slot of a node for other shares"),
    pytest.param(8, "--gpus=12", {"slots": 1}, [], id="a slot for each GPU"),
    pytest.param(1, "--gpus=2", {"slots": 1}, ["--gpus"], id="GPUs that no node lists"),
    pytest.param(8, "-n 12", {"slots": 1}, ["--ntasks"], id="CPUs that no node lists"),
]


@pytest.mark.parametrize(("num_slots", "options", "request_", "risks"), SLOTS)
def test_it_counts_slots_if_nodes_list_nothing_else(
    num_slots: int, options: str, request_: dict[str, int], risks: list[str]
) -> None:
    specs = [NodeSpec(f"n{number}", {"slots": num_slots}) for number in range(1, 3)]
    capacity = build_node_capacity(specs, [spec.name for spec in specs])
    found = translate_job(parse_batch_job(options.split()), capacity)
    (group,) = found.document["spec"]["groups"]
    assert (group["request"], risks_of(found)) == (request_, risks)


def test_a_whole_node_may_have_any_number_of_slots() -> None:
    kinds = {"n1": 4, "n2": 8}
    specs = [NodeSpec(name, {"slots": num}) for name, num in kinds.items()]
    (group,) = translate_job(
        parse_batch_job(["-N2"]), build_node_capacity(specs, list(kinds))
    ).document["spec"]["groups"]
    assert (group["request"], group["max_per_node"]) == ({"slots": 4}, 1)


def test_gpus_are_those_that_nodes_list() -> None:
    specs = [NodeSpec("n1", {"slots": 1, "cpu": 8000, "amd.com/gpu": 8})]
    found = translate_job(
        parse_batch_job(["--gpus=4", "--mem=1G"]), build_node_capacity(specs, ["n1"])
    )
    (group,) = found.document["spec"]["groups"]
    assert group["request"] == {"amd.com/gpu": 1}
    assert "groups[0]: no node lists memory: not checked" in notes_of(found)


def test_nodes_without_gpus_hold_no_gpus() -> None:
    cluster = Cluster((NodeKind("c", 4, 64, 1000),))
    assert not placed("--gpus=1", cluster).is_feasible


def test_tasks_take_no_pods_of_nodes() -> None:
    cluster = Cluster((NodeKind("c", 1, 512, 1_000_000),))
    assert placed("-n 512", cluster).is_feasible
    assert groups_of("-n 512", cluster)[0]["request"] == {"cpu": 1, "pods": 0}


def test_busy_nodes_hold_the_rest_of_a_total() -> None:
    specs = [
        NodeSpec(spec.name, spec.capacity, free={**spec.capacity, GPU: 3}) for spec in EQUAL.specs
    ]
    capacity = build_node_capacity(specs, EQUAL.tree.nodes)
    for options, num_nodes in (("--gpus=8", 3), ("-N 4 --gpus=12", 4), ("-N 4 --gpus=13", 0)):
        document = translate_job(parse_batch_job(options.split()), capacity).document
        snapshot = build_snapshot(EQUAL.tree, {spec.name: spec for spec in specs})
        assert len(used_nodes(place(snapshot, parse_request(document)))) == num_nodes
