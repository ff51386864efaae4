"""A level that a manifest names is found in the tree, whatever the API and the source of the tree.

Each API writes a bound on a level in its own way. For each tree and each name that the tree, its
source or the labels of its nodes give a tier, a gang that fills a domain of the tier fits, and a
gang with one pod more does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from generator.manifests.manifest_request import translate
from generator.objects.fabric import with_label_keys
from generator.observe.labelled_tree import build_labelled_tree
from generator.outputs.hypernode.forest import build_hypernode_tree
from generator.outputs.hypernode.model import HyperNode, Member, MemberType
from generator.placement.answer import Placement, ReasonKind
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.engine import place
from generator.placement.request import parse_request
from tests.generator.manifests.scenes import job, pod_spec
from tests.generator.placement.documents import racks, request
from topology.model.tree import TopologyTree

KEYS = ("example.com/zone", "example.com/block", "example.com/leaf-switch")
"""Coarsest first. No word of them is the name of a tier in the trees below."""
SIZES = {KEYS[0]: 8, KEYS[1]: 4, KEYS[2]: 2}
"""Nodes in a domain of each key; a pod takes a node."""
LABELS = {
    f"n{at}": {key: f"{key[12:13]}{at // size}" for key, size in SIZES.items()} for at in range(16)
}

BARE: dict[str, dict[str, str]] = {name: {} for name in LABELS}

Build = Callable[[str, int], list[dict[str, Any]]]


def build_job(count: int, of_pods: dict[str, str], **metadata: Any) -> dict[str, Any]:  # noqa: ANN401
    built = job(parallelism=count, completions=count, annotations=of_pods)
    return built | {"metadata": built["metadata"] | metadata}


def kueue(level: str, count: int) -> list[dict[str, Any]]:
    return [build_job(count, {"kueue.x-k8s.io/podset-required-topology": level})]


def kueue_workload(level: str, count: int) -> list[dict[str, Any]]:
    sets = [
        {
            "name": "main",
            "count": count,
            "template": {"spec": pod_spec()},
            "topologyRequest": {"required": level},
        }
    ]
    meta = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w"}}
    return [meta | {"spec": {"podSets": sets}}]


def kai(level: str, count: int) -> list[dict[str, Any]]:
    marks = {"kai.scheduler/topology": "t", "kai.scheduler/topology-required-placement": level}
    return [build_job(count, {}, annotations=marks)]


def kubernetes(level: str, count: int) -> list[dict[str, Any]]:
    built = build_job(count, {})
    policy = {"schedulingPolicy": {"gang": {"minCount": count}}}
    bound = {"schedulingConstraints": {"topology": [{"key": level}]}}
    return [built | {"spec": built["spec"] | {"scheduling": policy | bound}}]


def koordinator(level: str, count: int) -> list[dict[str, Any]]:
    strategy = {"gatherStrategy": [{"layer": level, "strategy": "MustGather"}]}
    key = "gang.scheduling.koordinator.sh/network-topology-spec"
    return [build_job(count, {key: json.dumps(strategy)})]


def job_set(level: str, count: int) -> list[dict[str, Any]]:
    meta = {"name": "s", "annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": level}}
    template = {"spec": build_job(count, {})["spec"]}
    spec = {"replicatedJobs": [{"name": "main", "replicas": 1, "template": template}]}
    return [
        {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": spec}
    ]


def godel(level: str, count: int) -> list[dict[str, Any]]:
    affinity = {"podGroupAffinity": {"required": [{"topologyKey": level}]}}
    group = {
        "apiVersion": "scheduling.godel.kubewharf.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": count, "affinity": affinity},
    }
    return [group, build_job(count, {})]


def volcano(level: str, count: int) -> list[dict[str, Any]]:
    spec = {
        "minAvailable": count,
        "networkTopology": {"mode": "hard", "highestTierName": level},
        "tasks": [{"name": "main", "replicas": count, "template": {"spec": pod_spec()}}],
    }
    meta = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"}}
    return [meta | {"spec": spec}]


APIS: tuple[Build, ...] = (
    kueue,
    kueue_workload,
    kai,
    kubernetes,
    koordinator,
    job_set,
    godel,
    volcano,
)


def build_nodes(labels: dict[str, dict[str, str]]) -> dict[str, NodeSpec]:
    capacity = {"slots": 1, "nvidia.com/gpu": 8}
    return {name: NodeSpec(name, capacity, labels=row) for name, row in labels.items()}


def build_hypernodes(first_tier: int) -> TopologyTree:
    """Return the tree of HyperNodes whose tier names are the keys."""
    rows = []
    below: dict[str, None] = dict.fromkeys(LABELS)
    for tier, key in enumerate(reversed(KEYS), first_tier):
        members: dict[str, list[str]] = {}
        for at, name in enumerate(below):
            members.setdefault(f"h{tier}-{at // 2}", []).append(name)
        kind = MemberType.NODE if tier == first_tier else MemberType.HYPERNODE
        rows += [
            HyperNode(name, tier, key, tuple(Member(kind, inner) for inner in inside), ())
            for name, inside in members.items()
        ]
        below = dict.fromkeys(members)
    return build_hypernode_tree(rows).tree


CABLES = racks(*[2] * 8, per_block=2)
SCENES = [
    pytest.param(
        build_snapshot(build_labelled_tree(LABELS, KEYS).tree, build_nodes(LABELS)),
        KEYS,
        id="the tree of these labels",
    ),
    pytest.param(
        build_snapshot(build_labelled_tree(LABELS, KEYS).tree, build_nodes(BARE)),
        KEYS,
        id="the saved tree of these labels, nodes without labels",
    ),
    pytest.param(
        build_snapshot(build_hypernodes(1), build_nodes(BARE)), KEYS, id="tier names of HyperNodes"
    ),
    pytest.param(
        build_snapshot(CABLES, build_nodes(LABELS)),
        KEYS[1:],
        id="a tree of cables, nodes with labels",
    ),
]


def place_job(snapshot: Snapshot, documents: list[dict[str, Any]]) -> Placement:
    translation = translate(list(enumerate(documents, 1)))
    return place(snapshot, parse_request(translation.document))


@pytest.mark.parametrize("build", APIS, ids=lambda build: build.__name__)
@pytest.mark.parametrize(("snapshot", "keys"), SCENES)
def test_a_gang_fits_exactly_the_domain_of_the_level_that_it_names(
    snapshot: Snapshot, keys: tuple[str, ...], build: Build
) -> None:
    for key in keys:
        whole = place_job(snapshot, build(key, SIZES[key]))
        larger = place_job(snapshot, build(key, SIZES[key] + 1))
        nodes = {node for nodes in whole.assignment.values() for node in nodes if node}
        assert whole.is_feasible
        assert len({LABELS[node][key] for node in nodes}) == 1
        assert not larger.is_feasible
        assert larger.reason is not None
        assert larger.reason.kind is ReasonKind.NO_FIT


@pytest.mark.parametrize("build", APIS, ids=lambda build: build.__name__)
@pytest.mark.parametrize(
    "level",
    [
        pytest.param("example.com/rack", id="a key that ends like a tier of the tree"),
        pytest.param("1", id="a number, which none of these fields holds"),
        pytest.param("topology.k8s.aws/network-node-layer-1", id="a key of another cloud"),
    ],
)
def test_a_level_that_the_tree_lacks_is_refused_with_the_names_that_exist(
    build: Build, level: str
) -> None:
    answer = place_job(build_snapshot(CABLES, build_nodes(BARE)), build(level, 2))
    assert answer.reason is not None
    assert (answer.is_feasible, answer.reason.kind) == (False, ReasonKind.NO_LEVEL)
    assert answer.reason.known_tiers == ("node", "rack", "block", "cluster")


@pytest.mark.parametrize(
    ("tree", "number", "most"),
    [
        pytest.param(build_hypernodes(1), 1, 2, id="the lowest tier"),
        pytest.param(build_hypernodes(1), 3, 8, id="the top tier"),
        pytest.param(build_hypernodes(1), 4, 16, id="above the tree: no bound"),
        pytest.param(build_hypernodes(1), 1000, 16, id="far above the tree: no bound"),
        pytest.param(build_hypernodes(0), 0, 2, id="HyperNodes that begin at 0"),
        pytest.param(build_hypernodes(0), 1, 4, id="the second tier of HyperNodes from 0"),
        pytest.param(build_hypernodes(0), 3, 16, id="above a tree that begins at 0"),
        pytest.param(CABLES, 1, 2, id="a tree of cables, whose HyperNodes begin at 1"),
    ],
)
def test_the_highest_tier_of_volcano_is_an_upper_bound_that_counts_as_hypernodes_do(
    tree: TopologyTree, number: int, most: int
) -> None:
    snapshot = build_snapshot(tree, build_nodes(BARE))

    def place_pods(count: int) -> bool:
        (document,) = volcano("", count)
        document["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": number}
        return place_job(snapshot, [document]).is_feasible

    assert (place_pods(most), place_pods(most + 1)) == (True, False)


@pytest.mark.parametrize("number", ["9" * 5000, "\u00b2", "\u0663", "", "-1", "1.5"])
def test_an_upper_bound_that_is_no_small_number_is_a_tier_that_the_tree_lacks(number: str) -> None:
    answer = place(build_snapshot(CABLES, build_nodes(BARE)), request(required=f"<={number}"))
    assert answer.reason is not None
    assert answer.reason.kind is ReasonKind.NO_LEVEL


def test_the_keys_in_the_status_of_the_fabric_are_names_of_tiers() -> None:
    status = {"labelKeys": ["corp.example/leaf", "corp.example/pod"]}
    snapshot = build_snapshot(with_label_keys(CABLES, {"status": status}), build_nodes(BARE))
    assert place_job(snapshot, kueue("corp.example/pod", 4)).is_feasible
    assert not place_job(snapshot, kueue("corp.example/leaf", 3)).is_feasible


@pytest.mark.parametrize("status", [{}, {"labelKeys": ["corp.example/leaf"]}, {"labelKeys": "x"}])
def test_a_status_of_another_tree_names_no_tier(status: dict[str, Any]) -> None:
    assert with_label_keys(CABLES, {"status": status}) is CABLES


@pytest.mark.parametrize(
    ("zones", "fits"),
    [
        pytest.param(["z"] * 6, True, id="all nodes share it"),
        pytest.param(["z"] * 5 + ["y"], False, id="a node outside the tree has another value"),
        pytest.param(["z"] * 4 + ["y", "z"], False, id="a node of the tree has another value"),
        pytest.param(["z"] * 5 + [""], False, id="a node outside the tree lacks it"),
    ],
)
def test_it_takes_a_label_for_the_cluster_only_if(zones: list[str], *, fits: bool) -> None:
    own = {f"n{at}": {KEYS[2]: f"leaf{at // 2}"} for at in range(5)}
    tree = build_labelled_tree(own, KEYS[2:]).tree
    labels = {f"n{at}": {"zone": zone} if zone else {} for at, zone in enumerate(zones)}
    translation = translate([(1, row) for row in kubernetes("zone", 5)])
    answer = place(build_snapshot(tree, build_nodes(labels)), parse_request(translation.document))
    assert bool(answer.assignment) == fits
