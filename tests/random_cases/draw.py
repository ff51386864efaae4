"""Draw small cases: a cluster and a request in the form of a placement vector."""

from __future__ import annotations

from random import Random  # noqa: TID251 - seeded by its caller
from typing import Any

Case = dict[str, Any]
TIERS = ("leaf", "spine")


def draw_case(seed: int) -> Case:
    """Return the case of a seed."""
    rng = Random(seed)  # noqa: S311 - test data
    tiers = TIERS[: rng.choice((1, 2, 2))]
    root, nodes = _tree(rng, tiers)
    two = rng.random() < 0.4
    resources = ("cpu", "gpu") if two else ("slots",)
    most = rng.choice((1, 2, 2, 3))
    free = {node: {name: rng.randint(0, most) for name in resources} for node in nodes}
    groups = _groups(rng, resources, tiers)
    leaves = _leaf_groups(groups)
    request: Case = {"preset": "optimal", "groups": groups}
    _add_bounds(rng, request, leaves, tiers)
    case: Case = {
        "id": f"seed-{seed}",
        "tree": {"tiers": list(tiers), "root": root},
        "request": request,
    }
    running = _running(rng, request, leaves, nodes, resources)
    for gang in running:
        for pods in gang["pods"]:
            for name, need in pods["request"].items():
                free[pods["node"]][name] += need * pods["count"]
    if running:
        case["running"] = running
    case["nodes"] = {
        node: {"capacity": row, "labels": {"zone": rng.choice("ab")}} for node, row in free.items()
    }
    return case


def _tree(rng: Random, tiers: tuple[str, ...]) -> tuple[Case, list[str]]:
    root: Case = {}
    nodes: list[str] = []
    num_nodes = rng.randint(3, 6)
    leaf = 0
    while len(nodes) < num_nodes:
        fresh = [f"n{len(nodes) + at}" for at in range(rng.randint(1, 3))]
        nodes += fresh
        if len(tiers) == 1:
            root[f"l{leaf}"] = fresh
        else:
            root.setdefault(f"s{rng.randint(0, 1)}", {})[f"l{leaf}"] = fresh
        leaf += 1
    return root, nodes


def _groups(rng: Random, resources: tuple[str, ...], tiers: tuple[str, ...]) -> list[Case]:
    kind = rng.choice(("one", "one", "slices", "two", "two", "parent", "leader"))
    if kind in {"one", "slices"}:
        group = _leaf(rng, "a", rng.randint(1, 5), resources)
        if kind == "slices":
            size = rng.choice((1, 2, 2))
            layer = {"size": size, "tier": rng.choice(("node", *tiers))}
            layer |= {"placement": "spread"} if rng.random() < 0.3 else {}
            group |= {"count": size * rng.randint(1, 2), "slices": [layer]}
        elif rng.random() < 0.4:
            group["min"] = rng.randint(1, group["count"])
        return [group]
    leaves = [_leaf(rng, name, rng.randint(1, 2), resources) for name in ("a", "b")]
    if kind == "leader":
        leaves[0] |= {"count": 1, "leader_of": "b"}
    if kind == "parent":
        parent: Case = {"name": "p", "children": leaves}
        parent |= {"min": 1} if rng.random() < 0.5 else {}
        parent |= {"required": rng.choice(tiers)} if rng.random() < 0.4 else {}
        parent |= {"preferred": [rng.choice(tiers)]} if rng.random() < 0.3 else {}
        return [parent, _leaf(rng, "c", 1, resources)]
    for leaf in leaves:
        if rng.random() < 0.3:
            leaf["min"] = rng.randint(0, leaf["count"])
    return leaves


def _leaf(rng: Random, name: str, count: int, resources: tuple[str, ...]) -> Case:
    need = {resource: rng.choice((0, 1, 1, 2)) for resource in resources}
    if not any(need.values()):
        need[resources[0]] = 1
    if len(resources) == 1:
        need[resources[0]] = max(1, need[resources[0]] if rng.random() < 0.5 else 1)
    return {"name": name, "count": count, "request": {k: v for k, v in need.items() if v}}


def _leaf_groups(groups: list[Case]) -> list[Case]:
    return [
        leaf
        for group in groups
        for leaf in (_leaf_groups(group["children"]) if "children" in group else [group])
    ]


def _add_bounds(rng: Random, request: Case, leaves: list[Case], tiers: tuple[str, ...]) -> None:
    for leaf in leaves:
        _add_group_bounds(rng, leaf, tiers)
    leaf_and_above = ("node", *tiers)
    resource = next(iter(leaves[0]["request"]))
    required = min((_allowed_tiers(leaf, tiers) for leaf in leaves), key=len)
    pair = [rng.choice(leaves)["name"], rng.choice(leaves)["name"], rng.randint(1, 3)]
    rule = {
        "resource": resource,
        "dimension": rng.choice(("Capacity", "Available")),
        "order": rng.choice(("Ascending", "Descending")),
    }
    strategies = [[rng.choice(tiers), rng.choice(leaf_and_above)], ["cluster", "cluster"]]
    options = (
        (0.2, "required", rng.choice(required)),
        (0.2, "preferred", [rng.choice(tiers)]),
        (0.12, "max_domains", {rng.choice(leaf_and_above): rng.randint(1, 2)}),
        (0.12, "strategies", strategies),
        (0.12, "sort", [rule]),
        (0.15, "traffic", [pair]),
        (0.1, "affinity", {rng.choice(("attract", "repel")): [[leaf["name"] for leaf in leaves]]}),
        (0.12, "exclusive", rng.choice(leaf_and_above)),
    )
    request |= {name: value for share, name, value in options if rng.random() < share}


def _add_group_bounds(rng: Random, leaf: Case, tiers: tuple[str, ...]) -> None:
    options = (
        (0.25, "required", rng.choice(_allowed_tiers(leaf, tiers))),
        (0.2, "preferred", [rng.choice(tiers)]),
        (0.1, "node_selector", {"zone": "a"}),
        (0.1, "node_preference", {"zone": "a"}),
        (0.0 if "slices" in leaf else 0.12, "multiple_of", {rng.choice(("node", *tiers)): 2}),
        (0.15, "spread", {rng.choice(("node", *tiers)): _draw_spread(rng, leaf["count"])}),
        (0.12, "exclusive", rng.choice(("node", *tiers))),
    )
    leaf |= {name: value for share, name, value in options if rng.random() < share}


def _draw_spread(rng: Random, num_pods: int) -> Case:
    least = rng.randint(1, min(num_pods, 3))
    return {"min": least} | ({"max": least + rng.randint(0, 1)} if rng.random() < 0.5 else {})


def _allowed_tiers(leaf: Case, tiers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tiers that are not below the slices of a group: those would be refused."""
    if "slices" not in leaf or leaf["slices"][0]["tier"] not in tiers:
        return tiers
    return tiers[tiers.index(leaf["slices"][0]["tier"]) :]


def _running(
    rng: Random,
    request: Case,
    leaves: list[Case],
    nodes: list[str],
    resources: tuple[str, ...],
) -> list[Case]:
    kind = rng.choice(("none", "none", "none", "growth", "evict", "evict"))
    if kind == "growth":
        leaf = rng.choice(leaves)
        if leaf.get("slices") or leaf.get("multiple_of"):
            return []
        # One pod alone breaks no required tier.
        is_bound = any("required" in row for row in (request, *request["groups"], *leaves))
        pods = [
            {"node": node, "request": leaf["request"], "count": 1, "group": leaf["name"]}
            for node in rng.sample(nodes, 1 if is_bound else rng.randint(1, 2))
        ]
        return [{"gang": "self", "pods": pods}]
    if kind == "none":
        return []
    policy = rng.choice(("topologyFirst", "fewestVictims"))
    request |= {"priority": 5, "preemption": policy}
    gangs = []
    for name in ("x", "y", "z")[: rng.randint(1, 3)]:
        on = [rng.choice(nodes) for _ in range(rng.randint(1, 2))]
        need = {rng.choice(resources): 1}
        pods = [{"node": node, "request": need, "count": 1} for node in on]
        gangs.append(
            {
                "gang": name,
                "priority": rng.choice((1, 1, 2, 9)),
                "min": rng.randint(0, len(on)),
                **({"exclusive": "leaf"} if rng.random() < 0.2 else {}),
                "pods": pods,
            }
        )
    return gangs
