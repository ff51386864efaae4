"""Reasons for an infeasible request, and the changes that would make it feasible."""

from __future__ import annotations

from typing import Any

import pytest

from generator.placement.cluster.nodes import Exclusion, NodeSpec
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.engine import place
from tests.generator.placement.documents import cluster, racks, request, workers
from topology.model.tree import DomainSpec, build_tree

TWO_RACKS = racks(3, 3)
EMPTY_TIER = build_tree([DomainSpec("b", 2, None, ("n0",))], tiers=("rack", "block"))
TAINTED = {f"n{index}": NodeSpec(f"n{index}", taints=("down=x:NoSchedule",)) for index in range(3)}
CORDONED = {"n0": NodeSpec("n0", exclusion=Exclusion.UNSCHEDULABLE)}
HALF_LABELLED = {f"n{index}": NodeSpec(f"n{index}", labels={"gpu": "h100"}) for index in range(2)}


@pytest.mark.parametrize(
    ("snapshot", "spec", "reason"),
    [
        pytest.param(
            cluster(TWO_RACKS),
            {"required": "zone"},
            {
                "kind": "no-level",
                "tier": "zone",
                "known_tiers": ["node", "rack", "block", "cluster"],
            },
            id="a tier that the tree lacks",
        ),
        pytest.param(
            cluster(TWO_RACKS),
            {"groups": workers(5, slices=[{"size": 2}])},
            {"kind": "bad-slice", "size": 2, "count": 5},
            id="a slice size that does not divide",
        ),
        pytest.param(
            cluster(TWO_RACKS),
            {"groups": workers(2, slices=[{"tier": "rack"}])},
            {"kind": "bad-slice", "size": 0, "count": 2},
            id="a slice without a size",
        ),
        pytest.param(
            cluster(TWO_RACKS),
            {"groups": workers(2, required="rack", slices=[{"size": 2, "tier": "block"}])},
            {"kind": "bad-slice", "tier": "block"},
            id="a slice wider than its group",
        ),
        pytest.param(
            cluster(EMPTY_TIER),
            {"required": "rack"},
            {"kind": "no-domain", "tier": "rack"},
            id="a tier without any domain",
        ),
        pytest.param(
            cluster(TWO_RACKS, job=["n0", "n3"]),
            {"gang": "job", "required": "rack"},
            {"kind": "conflict", "tier": "rack"},
            id="running pods that already violate the tier",
        ),
        pytest.param(
            cluster(TWO_RACKS, job=["n0", "n1"]),
            {"gang": "job", "required": "rack"},
            {"kind": "stale", "tier": "rack"},
            id="capacity elsewhere, not beside the running pods",
        ),
        pytest.param(
            cluster(TWO_RACKS, job=["n0"]),
            {
                "gang": "job",
                "groups": [*workers(1), {"name": "odd", "count": 1, "multiple_of": {"rack": 2}}],
            },
            {"kind": "no-fit", "tier": "block"},
            id="pods that make up no multiple, also elsewhere",
        ),
        pytest.param(
            cluster(TWO_RACKS, job=["n0"]),
            {
                "gang": "job",
                "groups": [
                    {"name": "workers", "count": 1},
                    {
                        "name": "apart",
                        "count": 3,
                        "slices": [{"size": 1, "tier": "rack", "placement": "spread"}],
                    },
                ],
            },
            {"kind": "no-fit", "tier": "block"},
            id="more slices than racks, also elsewhere",
        ),
        pytest.param(
            cluster(TWO_RACKS),
            {"groups": workers(4), "max_domains": {"rack": 1}},
            {"kind": "limit", "tier": "rack"},
            id="capacity only beyond the domain limit",
        ),
        pytest.param(
            cluster(TWO_RACKS, TAINTED),
            {"groups": workers(4)},
            {"kind": "excluded", "excluded": {"taint": 3}},
            id="capacity only on a tainted node",
        ),
        pytest.param(
            cluster(TWO_RACKS, CORDONED),
            {"groups": workers(6)},
            {"kind": "excluded", "excluded": {"unschedulable": 1}},
            id="capacity only on a cordoned node",
        ),
        pytest.param(
            cluster(TWO_RACKS, HALF_LABELLED),
            {"groups": workers(3, node_selector={"gpu": ["h100", "b200"]})},
            {"kind": "excluded", "excluded": {"selector": 4}},
            id="capacity only without the selector",
        ),
        pytest.param(
            cluster(TWO_RACKS),
            {"groups": workers(4), "required": "rack"},
            {"kind": "no-fit", "tier": "rack", "fits": 3, "needed": 4, "unit": "pods"},
            id="too little capacity in any rack",
        ),
        pytest.param(
            cluster(TWO_RACKS),
            {"groups": workers(6, slices=[{"size": 2, "tier": "rack"}])},
            {"kind": "no-fit", "tier": "rack", "fits": 2, "needed": 3, "unit": "slices"},
            id="too few whole slices",
        ),
        pytest.param(
            cluster(TWO_RACKS),
            {
                "required": "rack",
                "groups": [*workers(2), {"name": "big", "count": 1, "request": {"slots": 2}}],
            },
            {"kind": "no-fit", "tier": "rack"},
            id="a pod larger than every node",
        ),
    ],
)
def test_it_gives_the_first_reason_that_applies(
    snapshot: Snapshot, spec: dict[str, Any], reason: dict[str, Any]
) -> None:
    found = place(snapshot, request(**spec)).render()
    assert found["reason"] == reason
    assert (found["feasible"], found["assignment"], found["victims"]) == (False, {}, [])


@pytest.mark.parametrize(
    ("snapshot", "spec", "change", "tier"),
    [
        pytest.param(
            cluster(racks(3, 3)),
            {"groups": workers(4), "required": "rack"},
            "required tier block instead of rack",
            "block",
            id="the next wider tier",
        ),
        pytest.param(
            cluster(racks(3, 3, 3)),
            {"groups": workers(8), "strategies": [["rack", "rack"]]},
            "required tier cluster instead of rack",
            "cluster",
            id="across islands, if no island is large enough",
        ),
        pytest.param(
            cluster(racks(3, 3)),
            {"groups": workers(4), "required": "rack"},
            "min 3 instead of 4",
            "rack",
            id="fewer pods",
        ),
        pytest.param(
            cluster(racks(3, 3), TAINTED),
            {"groups": workers(4)},
            "without node exclusions",
            "block",
            id="the excluded nodes",
        ),
        pytest.param(
            cluster(racks(3, 3)),
            {"groups": workers(4), "max_domains": {"rack": 1}},
            "without max_domains",
            "block",
            id="without the domain limit",
        ),
    ],
)
def test_it_offers_feasible_alternatives(
    snapshot: Snapshot, spec: dict[str, Any], change: str, tier: str
) -> None:
    offered = place(snapshot, request(**spec)).render()["alternatives"]
    assert {"change": change, "tier": tier, "feasible": True} in offered


def test_it_offers_the_nearest_wider_tier_only() -> None:
    snapshot = cluster(racks(3, 3, 3))
    offered = place(snapshot, request(groups=workers(4), required="rack")).alternatives
    assert [row.change for row in offered if "tier" in row.change] == [
        "required tier block instead of rack"
    ]


def test_it_offers_nothing_where_a_node_is_too_small_for_one_pod() -> None:
    snapshot = cluster(racks(3, 3))
    found = place(snapshot, request(groups=workers(1, request={"slots": 9})))
    assert found.alternatives == ()


def test_it_reports_the_missing_slots_of_each_rack() -> None:
    found = place(cluster(racks(3, 2)), request(groups=workers(4), required="rack"))
    assert [(row.name, row.verdict.value, row.needs) for row in found.domain_verdicts] == [
        ("r0", "infeasible", "r0: 3 of 4 slots; needs 1 more"),
        ("r1", "infeasible", "r1: 2 of 4 slots; needs 2 more"),
    ]


def test_the_verdict_counts_the_minimum_of_the_gang() -> None:
    groups = [{"name": name, "count": 3, "min": 0} for name in "ab"]
    found = place(cluster(racks(3, 2)), request(required="rack", groups=groups, min=4))
    assert [row.needs for row in found.domain_verdicts] == [
        "r0: 3 of 4 slots; needs 1 more",
        "r1: 2 of 4 slots; needs 2 more",
    ]


SLOTS_NOT_LISTED = "nodes list no slots, and an unused node counts as one; they list cpu, gpu"
FREE_N0 = "would fit if room for 4 pods were freed on n0"
FREE_ALL = "would fit if room for 4 pods were freed on n0, n1, n2, n3"
FULL = {"slots": 8, "cpu": 64_000, "gpu": 8}
KUBE = FULL | {"slots": 1}
"""A Node of a cluster, which lists no slots: it counts as one."""


@pytest.mark.parametrize(
    ("capacity", "free", "per_pod", "why"),
    [
        pytest.param(KUBE, KUBE, {"slots": 2}, SLOTS_NOT_LISTED, id="slots that are not listed"),
        pytest.param(
            KUBE, KUBE | {"slots": 0}, {"slots": 1}, SLOTS_NOT_LISTED, id="slots of used nodes"
        ),
        pytest.param(
            KUBE, KUBE, {"cpu": 1, "tpu": 1}, "no node lists tpu; nodes list cpu, gpu", id="others"
        ),
        pytest.param(
            FULL, FULL, {"gpu": 9}, "a pod needs 9 gpu, and the largest node lists 8", id="too much"
        ),
        pytest.param({"slots": 1}, None, {"gpu": 1}, "no node lists gpu; nodes list slots", id="-"),
        pytest.param(FULL, {"gpu": 0}, {"gpu": 1}, FREE_N0, id="no shortage of capacity"),
        pytest.param(FULL, FULL | {"slots": 0}, {"slots": 8}, FREE_ALL, id="slots that are listed"),
    ],
)
def test_it_says_which_resources_nodes_list(
    capacity: dict[str, int], free: dict[str, int] | None, per_pod: dict[str, int], why: str
) -> None:
    tree = racks(4)
    nodes = {name: NodeSpec(name, capacity, free) for name in tree.nodes}
    found = place(cluster(tree, nodes), request(groups=workers(4, request=per_pod)))
    assert {row.needs for row in found.domain_verdicts} == {
        f"{row.name}: 0 of 4 {'slots' if per_pod == {'slots': 1} else 'pods'}; {why}"
        for row in found.domain_verdicts
    }


def test_it_names_the_fewest_nodes_that_make_room_if_they_are_freed() -> None:
    tree = racks(4, 2)
    used = {"n0": 1, "n1": 3, "n2": 4, "n3": 0, "n4": 4, "n5": 4}
    nodes = {name: NodeSpec(name, {"slots": 4}, {"slots": 4 - num}) for name, num in used.items()}

    def explain(count: int) -> list[str]:
        gang = request(groups=workers(count), required="rack")
        return [row.needs for row in place(cluster(tree, nodes), gang).domain_verdicts]

    assert explain(10) == [
        "r0: 8 of 10 slots; would fit if room for 2 pods were freed on n2",
        "r1: 0 of 10 slots; needs 10 more",  # more than its nodes have
    ]
    assert explain(14)[0] == "r0: 8 of 14 slots; would fit if room for 6 pods were freed on n1, n2"


@pytest.mark.parametrize("count", [4, 20])
def test_at_most_one_rack_has_the_verdicts_of_a_required_rack(count: int) -> None:
    snapshot = cluster(racks(3, 2, 3), job=["n0"])
    limited = place(snapshot, request(groups=workers(count), max_domains={"rack": 1}))
    required = place(snapshot, request(groups=workers(count), required="rack"))
    assert limited.domain_verdicts == required.domain_verdicts


def test_a_verdict_names_the_bounds_that_a_domain_with_room_breaks() -> None:
    limits, spread = {"max_domains": {"node": 2}}, {"spread": {"rack": {"min": 1, "max": 1}}}
    for spec, group, names in (
        (limits, {}, "max_domains"),
        ({}, spread, "spread"),
        (limits, spread, "max_domains and spread"),
    ):
        asked = request(groups=workers(4, **group), **spec)
        found = place(cluster(racks(3, 3)), asked).domain_verdicts[0]
        assert found.needs.endswith(f"needs 4, but no placement in it meets {names}")


def test_it_says_so_for_any_group() -> None:
    tree = racks(4)
    groups = [
        {"name": "a", "count": 1},
        {"name": "b", "count": 1, "request": {"tpu": 1}},
    ]
    found = place(cluster(tree), request(groups=groups))
    assert all("no node lists tpu" in row.needs for row in found.domain_verdicts)


def test_it_reports_the_chosen_domain_and_why_no_lower_one_fits() -> None:
    found = place(cluster(racks(3, 2, 4, 4)), request(groups=workers(5)))
    assert [(row.name, row.verdict.value) for row in found.domain_verdicts] == [
        ("b0", "chosen"),
        ("b1", "rejected"),
        ("r2", "infeasible"),
        ("r3", "infeasible"),
        ("r0", "infeasible"),
        ("r1", "infeasible"),
    ]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"groups": workers(5)}, id="a gang that fits above"),
        pytest.param({"groups": workers(5), "required": "rack"}, id="a gang that does not fit"),
    ],
)
def test_a_node_outside_the_tree_is_no_domain_that_comes_near(spec: dict[str, Any]) -> None:
    tree = racks(3, 2, 4)
    nodes = {name: NodeSpec(name) for name in (*tree.nodes, "a0", "z9")}
    rows = place(cluster(tree, nodes), request(**spec)).domain_verdicts
    assert {"r0", "r1", "r2"} <= {row.name for row in rows} <= {"b0", "b1", "r0", "r1", "r2"}


def test_it_counts_the_domains_that_it_does_not_list() -> None:
    found = place(cluster(racks(*[1] * 40, per_block=40)), request(required="rack"))
    assert len(found.domain_verdicts) == 17
    assert (found.domain_verdicts[-1].name, found.domain_verdicts[-1].needs) == (
        "24 more",
        "room for 1 of 2 slots",
    )
