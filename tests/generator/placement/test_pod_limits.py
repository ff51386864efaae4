"""The number of pods that a node may run binds every request.

Each pod takes one of `pods`, whatever it requests. So a cluster with such limits answers as one in
which every pod requests one unit of another resource.
"""

from __future__ import annotations

import copy
from collections import Counter
from itertools import cycle
from random import Random  # noqa: TID251 - seeded by its caller
from typing import Any

from generator.objects.inventory import Inventory, build_node_specs, parse_node
from generator.objects.pods import parse_pod_usage, subtract_usage
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.request import parse_request
from tests.effort import examples
from tests.generator.placement.documents import racks, request, workers
from tests.random_cases.draw import Case, draw_case
from tests.vectors.scenes import document_of, snapshot_of

OTHER = "ephemeral-storage"
"""Any resource that, like `pods`, does not count as a device in use."""
PLENTY = 10**6


def with_limits(case: Case, resource: str, seed: int) -> Case:
    """Return a case with nodes of which some limit a resource, the same for every resource."""
    rng = Random(seed)  # noqa: S311 - test data
    limited = copy.deepcopy(case)
    running = Counter[str]()
    for gang in case.get("running", ()):
        for pods in gang["pods"]:
            running[pods["node"]] += pods["count"]
    for node, row in limited["nodes"].items():
        limit = rng.choice((None, 1, 2, 3))
        if limit is not None:
            row["capacity"][resource] = limit + running[node]
        elif resource == OTHER:
            row["capacity"][resource] = PLENTY
    return limited


def requesting(rows: list[dict[str, Any]]) -> None:
    """Let every pod of groups, or of running gangs, request one unit of the other resource."""
    for row in rows:
        if "children" in row:
            requesting(row["children"])
        elif "pods" in row:
            requesting(row["pods"])
        else:
            row["request"][OTHER] = 1


def test_it_counts_pods_as_a_resource_that_every_pod_requests() -> None:
    differing = []
    presets = (Preset.OPTIMAL, Preset.KUEUE, Preset.KAI, Preset.KUBERNETES)
    for seed, preset in zip(range(examples(600)), cycle(presets), strict=False):
        case = draw_case(seed)
        limited, explicit = with_limits(case, "pods", seed), with_limits(case, OTHER, seed)
        requesting(explicit["request"]["groups"])
        requesting(explicit.get("running", []))
        found, expected = (
            place(snapshot_of(row), parse_request(document_of(row, preset.value)), explains=False)
            for row in (limited, explicit)
        )
        if (found.assignment, found.victims) != (expected.assignment, expected.victims):
            differing.append((seed, preset))
    assert differing == []


def test_a_node_that_allows_three_pods_holds_three() -> None:
    nodes = {"n0": NodeSpec("n0", {"slots": 9, "cpu": 64_000, "pods": 3})}
    snapshot = build_snapshot(racks(1), nodes)
    needs: tuple[dict[str, Any], ...] = ({"slots": 1}, {"slots": 2}, {"cpu": "100m"}, {})
    for need in needs:
        fits, lacks = (request(groups=workers(count, request=need)) for count in (3, 4))
        assert place(snapshot, fits).is_feasible
        assert not place(snapshot, lacks).is_feasible


def test_a_node_that_lists_no_limit_has_none() -> None:
    nodes = {
        "n0": NodeSpec("n0", {"cpu": 4000, "pods": 2}),
        "n1": NodeSpec("n1", {"cpu": 4000}),
    }
    found = place(build_snapshot(racks(2), nodes), request(groups=workers(6, request={"cpu": "1"})))
    assert Counter(found.assignment["workers"]) == {"n0": 2, "n1": 4}
    without = {name: NodeSpec(name, {"cpu": 4000}) for name in nodes}
    asked = request(groups=workers(2, request={"cpu": 1, "pods": 1}))
    assert place(build_snapshot(racks(2), without), asked).is_feasible


def test_every_pod_of_a_cluster_counts_those_of_daemon_sets_too() -> None:
    status = {"allocatable": {"cpu": "8", "pods": "3"}}
    listed = {"kind": "Node", "metadata": {"name": "n0"}, "status": status}
    daemon = {"spec": {"nodeName": "n0", "containers": []}, "status": {"phase": "Running"}}
    ended = daemon | {"status": {"phase": "Succeeded"}}
    inventory = Inventory((parse_node(listed),), ())
    left = subtract_usage(inventory, [parse_pod_usage(row) for row in (daemon, daemon, ended)])
    snapshot = build_snapshot(racks(1), build_node_specs(left, ()))
    asked = {"request": {"cpu": "100m"}}
    assert place(snapshot, request(groups=workers(1, **asked))).is_feasible
    assert not place(snapshot, request(groups=workers(2, **asked))).is_feasible
