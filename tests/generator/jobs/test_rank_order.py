"""The ranks of a job: their source, how often their ring leaves a domain, and the best order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from random import Random  # noqa: TID251 - seeded
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.jobs.rank_order import (
    ParallelSizes,
    RankAudit,
    TreePlaces,
    audit_ranks,
    list_worlds,
    rank_hosts,
)
from generator.jobs.running_jobs import JobPod, find_job, parse_job_pod
from generator.objects.pods import BoundPod, parse_bound_pod
from generator.simulation.replay.replay import build_tree_of_shape
from tests.effort import examples
from topology.model.errors import ConfigError
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree

SMALL = build_tree_of_shape("2x2x2")
"""Nodes node-1-1-1 to node-2-2-2: spines, leaves, nodes."""
LARGE = build_tree_of_shape("8x8x16")
LONE = build_tree(
    [
        DomainSpec("spine", 2, None),
        DomainSpec("leaf-1", 1, "spine", ("a", "b")),
        DomainSpec("leaf-2", 1, "spine", ("c", "d")),
        DomainSpec("leaf-3", 1, None, ("e",)),
    ],
    tiers=("leaf", "spine"),
    unplaced=[Unplaced("f", "no cable")],
)
"""A leaf without a spine, and a node without a leaf."""


def pod(name: str, node: str, **metadata: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a pod of a job named train; `container` and `spec` are not metadata."""
    container, spec = metadata.pop("container", {}), metadata.pop("spec", {})
    labels = {"batch.kubernetes.io/job-name": "train"} | metadata.pop("labels", {})
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "labels": labels} | metadata,
        "spec": {"nodeName": node, "containers": [container]} | spec,
    }


def worlds_of(documents: Sequence[dict[str, Any]]) -> list[tuple[str, list[str], str]]:
    """Return (name, pods by rank, source of ranks) per world; no pods if the ranks are unknown."""
    job = find_job("train", [row for row in map(parse_job_pod, documents) if row])
    return [
        (world.name, [row.name for row in world.pods] if world.source else [], world.source)
        for world in list_worlds(job.pods)
    ]


def env(**values: str) -> dict[str, Any]:
    return {"env": [{"name": name, "value": value} for name, value in values.items()]}


INDEX = "batch.kubernetes.io/job-completion-index"
KUBEFLOW = "training.kubeflow.org"
LWS = "leaderworkerset.sigs.k8s.io"


def labelled(name: str, **labels: object) -> dict[str, Any]:
    return pod(name, "node-1-1-1", labels={key: str(value) for key, value in labels.items()})


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        pytest.param(
            [labelled("x", **{INDEX: 1}), labelled("y", **{INDEX: 0})],
            [("pods", ["y", "x"])],
            id="an Indexed Job by its completion index",
        ),
        pytest.param(
            [
                labelled(
                    "a", **{f"{KUBEFLOW}/replica-type": "worker", f"{KUBEFLOW}/replica-index": 1}
                ),
                labelled(
                    "b", **{f"{KUBEFLOW}/replica-type": "worker", f"{KUBEFLOW}/replica-index": 0}
                ),
                labelled(
                    "c", **{f"{KUBEFLOW}/replica-type": "master", f"{KUBEFLOW}/replica-index": 0}
                ),
            ],
            [("worker", ["c", "b", "a"])],
            id="a PyTorchJob: the master before the workers",
        ),
        pytest.param(
            [
                labelled("l1", **{f"{LWS}/group-index": 1, f"{LWS}/worker-index": 0}),
                labelled("w1", **{f"{LWS}/group-index": 1, f"{LWS}/worker-index": 1}),
                labelled("w0", **{f"{LWS}/group-index": 0, f"{LWS}/worker-index": 1}),
                labelled("l0", **{f"{LWS}/group-index": 0, f"{LWS}/worker-index": 0}),
            ],
            [("0", ["l0", "w0"]), ("1", ["l1", "w1"])],
            id="each group of a LeaderWorkerSet by itself",
        ),
        pytest.param(
            [
                labelled("b", **{"jobset.sigs.k8s.io/job-index": 1, INDEX: 0}),
                labelled("a", **{"jobset.sigs.k8s.io/job-index": 0, INDEX: 1}),
                labelled("c", **{"jobset.sigs.k8s.io/job-index": 0, INDEX: 0}),
            ],
            [("pods", ["c", "a", "b"])],
            id="a JobSet by job, then by completion index",
        ),
        pytest.param(
            [
                pod("a", "node-1-1-1", container=env(RANK="1"), labels={INDEX: "0"}),
                pod("b", "node-1-1-2", container=env(RANK="0"), labels={INDEX: "1"}),
            ],
            [("pods", ["b", "a"])],
            id="a variable with the rank before any label",
        ),
        pytest.param(
            [
                pod("w-2", "n", container={"args": ["--rdzv-backend=c10d"]}, labels={INDEX: "2"}),
                pod("w-10", "n", container={"args": ["--rdzv-backend=c10d"]}, labels={INDEX: "10"}),
            ],
            [("pods", ["w-10", "w-2"])],
            id="torchrun with c10d by the text of host names, whatever the labels say",
        ),
        pytest.param(
            [
                pod(
                    "p",
                    "n",
                    container=env(PET_RDZV_BACKEND="c10d"),
                    spec={"hostname": "w-1", "subdomain": "z"},
                ),
                pod("q", "a9", container=env(PET_RDZV_BACKEND="c10d"), spec={"hostNetwork": True}),
            ],
            [("pods", ["q", "p"])],
            id="torchrun on the network of the host by the name of the node",
        ),
        pytest.param(
            [
                pod("a", "n", container={"command": ["torchrun", "--rdzv-backend", "static"]}),
                pod("b", "n", container={"command": ["torchrun", "--rdzv-backend", "static"]}),
            ],
            [("pods", [])],
            id="unknown where nothing gives a rank",
        ),
        pytest.param(
            [labelled("a", **{INDEX: 0}), labelled("b", **{INDEX: 0})],
            [("pods", [])],
            id="unknown where two pods have one rank",
        ),
    ],
)
def test_ranks_come_from_what_the_pods_say(
    documents: list[dict[str, Any]], expected: list[tuple[str, list[str]]]
) -> None:
    assert [(name, pods) for name, pods, _ in worlds_of(documents)] == expected


def audit(tree: TopologyTree, nodes: Sequence[str], **settings: Any) -> RankAudit[JobPod]:  # noqa: ANN401
    return audit_ranks(TreePlaces(tree), rank_hosts(nodes), **settings)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (["node-1-1-1", "node-1-1-2"], [(0, 0), (0, 0)]),
        (["node-1-1-1", "node-2-1-1", "node-1-1-2", "node-2-1-2"], [(4, 2), (4, 2)]),
        (["node-1-1-1", "node-1-2-1", "node-1-1-2", "node-1-2-2"], [(4, 2), (0, 0)]),
        (["node-1-1-1", "node-1-1-1", "gone", "node-1-1-2"], [(2, 2), (2, 2)]),
    ],
    ids=["one leaf", "two spines in turn", "two leaves in turn", "a node outside of the tree"],
)
def test_a_ring_counts_each_pair_of_neighbors_in_different_domains(
    nodes: list[str], expected: list[tuple[int, int]]
) -> None:
    assert [(tier.now, tier.fewest) for tier in audit(SMALL, nodes).tiers] == expected


@given(st.sampled_from([SMALL, LONE]), st.data())
@settings(max_examples=examples(200))
def test_no_order_of_a_few_nodes_crosses_less_in_any_tier(
    tree: TopologyTree, data: st.DataObject
) -> None:
    names = [*tree.nodes, *(gone.node for gone in tree.unplaced), "gone"]
    nodes = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=5))
    fewest = [tier.fewest for tier in audit(tree, nodes).tiers]
    tried = [[tier.now for tier in audit(tree, order).tiers] for order in permutations(nodes)]
    assert fewest == [min(counts) for counts in zip(*tried, strict=True)]


def test_random_gangs_cross_as_often_as_they_have_domains() -> None:
    draw = Random(7)  # noqa: S311 - no secret
    for _ in range(200):
        nodes = draw.sample(LARGE.nodes, draw.randint(2, 300))
        found = audit(LARGE, nodes)
        for number, tier in enumerate(found.tiers, 1):
            domains = [
                domain
                for domain in LARGE.domains
                if domain.tier == number and not set(LARGE.nodes_of(domain)).isdisjoint(nodes)
            ]
            assert tier.fewest == (len(domains) if len(domains) > 1 else 0)
        best = audit(LARGE, [row.node for row in found.order])
        assert best.is_best
        assert [tier.now for tier in best.tiers] == [tier.fewest for tier in found.tiers]


def follow(documents: Sequence[dict[str, Any]]) -> list[BoundPod]:
    """Return pods as a server keeps them."""
    return [row for row in map(parse_bound_pod, documents) if row is not None]


@given(st.sampled_from([SMALL, LONE]), st.data())
@settings(max_examples=examples(200))
def test_the_ring_of_pods_that_a_server_follows_is_counted_one_by_one(
    tree: TopologyTree, data: st.DataObject
) -> None:
    names = [*tree.nodes, *(gone.node for gone in tree.unplaced), "gone"]
    nodes = data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=5))
    marks = {"scheduling.k8s.io/group-name": "train"}
    documents = [
        pod(f"w{rank}", node, labels={INDEX: str(rank)}, annotations=marks)
        for rank, node in enumerate(nodes)
    ]
    shuffled = data.draw(st.permutations(documents))
    (world,) = list_worlds(follow(shuffled))
    assert [row.node for row in world.pods] == nodes
    found = audit_ranks(TreePlaces(tree), world)
    for number, tier in enumerate(found.tiers, 1):
        homes = {
            node: domain.name
            for domain in tree.domains
            if domain.tier == number
            for node in tree.nodes_of(domain)
        }
        rings = [
            sum(
                homes.get(order[at - 1], order[at - 1]) != homes.get(node, node)
                for at, node in enumerate(order)
            )
            for order in permutations(nodes)
        ]
        assert (tier.now, tier.fewest) == (rings[0], min(rings))


def test_a_server_ranks_random_gangs_as_the_command_does() -> None:
    draw = Random(8)  # noqa: S311 - no secret
    places = TreePlaces(LARGE)
    for number in range(200):
        nodes = draw.sample(LARGE.nodes, draw.randint(2, 300))
        documents = [
            pod(f"w{rank}", node, **random_marks(rank, number)) for rank, node in enumerate(nodes)
        ]
        draw.shuffle(documents)
        job = find_job("train", [row for row in map(parse_job_pod, documents) if row])
        (listed,) = (audit_ranks(places, world) for world in list_worlds(job.pods))
        (followed,) = (audit_ranks(places, world) for world in list_worlds(follow(documents)))
        assert followed.world.source == listed.world.source != ""
        assert [row.name for row in followed.world.pods] == [row.name for row in listed.world.pods]
        assert followed.tiers == listed.tiers
        assert [row.node for row in followed.order] == [row.node for row in listed.order]


def random_marks(rank: int, number: int) -> dict[str, Any]:
    """Return what says the rank of a pod: a label, a variable or the rendezvous of torchrun."""
    group = {"annotations": {"scheduling.k8s.io/group-name": "train"}}
    marks = (
        {"labels": {INDEX: str(rank)}},
        {"container": env(PET_NODE_RANK=str(rank))},
        {"container": {"command": ["torchrun", "--rdzv-backend=c10d"]}},
    )
    return group | marks[number % len(marks)]


def test_groups_of_each_parallelism_are_rings_of_their_own() -> None:
    nodes = ["node-1-1-1", "node-2-1-1", "node-1-1-2", "node-2-1-2"]
    sizes = ParallelSizes(tensor=2, pipeline=2, data=2)
    found = audit(SMALL, nodes, sizes=sizes, per_pod=2)
    assert [tuple(group) for group in found.groups] == [
        ("tensor", 4, 2, 0, 0),
        ("data", 4, 2, 8, 0),
        ("pipeline", 4, 2, 0, 8),
    ]


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        (ParallelSizes(tensor=3), "tensor 3 x data 1 x pipeline 1 is 3, but the gang has 4"),
        (ParallelSizes(data=4, expert=3), "expert: expected a divisor of data 4, got 3"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: ParallelSizes, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        audit(SMALL, SMALL.nodes[:4], sizes=sizes)
