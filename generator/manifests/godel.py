"""Gödel's PodGroup with its job-level affinity.

Source: kubewharf/godel-scheduler-api, pkg/apis/scheduling/v1alpha1.
"""

from __future__ import annotations

from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import Manifests
from generator.manifests.pod_groups import lone_group, pods_of_group
from generator.manifests.pods import priority_of, selector_terms
from generator.manifests.tier_names import Levels, finest
from generator.manifests.workloads import find_workload, sets_of_pods
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError

GROUP: Final = "scheduling.godel.kubewharf.io"
_MEMBER: Final = "godel.bytedance.com/pod-group-name"
_RESOURCES: Final = {"GPU": "nvidia.com/gpu", "CPU": "cpu", "Memory": "memory"}
_DIMENSIONS: Final = frozenset({"Capacity", "Available"})
_ORDERS: Final = frozenset({"Ascending", "Descending"})


def is_mine(manifests: Manifests) -> bool:
    """Return whether its PodGroup is there."""
    return bool(manifests.of("PodGroup", group=GROUP))


def read(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a field that counts is malformed.
    """
    group = lone_group(manifests, GROUP)
    if group is None:
        raise PlacementRequestError("the file", "expected a PodGroup")
    workload = find_workload(manifests)
    pods = pods_of_group(manifests, group, _MEMBER)
    sets = workload.sets if workload else sets_of_pods(pods, lambda _: "")
    groups = [one.row() for one in sets]
    least = group.spec.at("minMember").whole(1, least=1)
    if not groups:
        group.field.note("no pod of it is in the file: what its pods ask for is not known")
        groups = [{"name": "pods", "count": least}]
    affinity = group.spec.at("affinity", "podGroupAffinity")
    selector = dict(selector_terms(affinity.at("nodeSelector")))
    for row in groups:
        row["min"] = min(least, row["count"]) if len(groups) == 1 else 0
        if selector:
            row["node_selector"] = row.get("node_selector", {}) | selector
    found = _wish(affinity, manifests.levels) | {
        "preset": Preset.GODEL.value,
        "gang": group.name,
        "priority": max((priority_of(one.template) for one in sets), default=0),
        "groups": groups,
    }
    total = sum(row["count"] for row in groups)
    return found if len(groups) == 1 else found | {"min": min(least, total)}


def _wish(affinity: Field, levels: Levels) -> dict[str, Any]:
    """Return the tiers; the required keys are one key together, so the finest of them decides."""
    wished = _keys(affinity.at("preferred"), levels)
    must = _keys(affinity.at("required"), levels)
    found: dict[str, Any] = {"required": finest(must)} if must else {}
    if wished:
        found["preferred"] = wished
    rules = [_rule(row) for row in affinity.at("sortRules").items()]
    return found | {"sort": rules} if rules else found


def _keys(field: Field, levels: Levels) -> list[str]:
    found = []
    for row in field.items():
        tier = levels.tier(row.at("topologyKey"))
        if not tier:
            raise row.fault("expected a topologyKey")
        found.append(tier)
    return found


def _rule(row: Field) -> dict[str, str]:
    resource = row.at("resource").text("CPU")
    dimension = row.at("dimension").text("Capacity")
    order = row.at("order").text("Ascending")
    if resource not in _RESOURCES or dimension not in _DIMENSIONS or order not in _ORDERS:
        raise row.fault("expected resource GPU, CPU or Memory, with a dimension and an order")
    return {"resource": _RESOURCES[resource], "dimension": dimension, "order": order}
