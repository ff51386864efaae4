"""Gödel's PodGroup with its job-level affinity.

Source: kubewharf/godel-scheduler-api, pkg/apis/scheduling/v1alpha1.
"""

from __future__ import annotations

from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import Manifests
from generator.manifests.pod_groups import find_only_group, find_group_pods
from generator.manifests.pods import parse_priority, parse_selector_terms
from generator.manifests.tier_names import LevelNames, find_lowest_tier
from generator.manifests.workloads import find_workload, group_pods
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError

GROUP: Final = "scheduling.godel.kubewharf.io"
_POD_GROUP_LABEL: Final = "godel.bytedance.com/pod-group-name"
_RESOURCES: Final = {"GPU": "nvidia.com/gpu", "CPU": "cpu", "Memory": "memory"}
_DIMENSIONS: Final = frozenset({"Capacity", "Available"})
_ORDERS: Final = frozenset({"Ascending", "Descending"})


def is_present(manifests: Manifests) -> bool:
    """Return whether its PodGroup is there."""
    return bool(manifests.select("PodGroup", group=GROUP))


def parse_spec(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a field that counts is malformed.
    """
    group = find_only_group(manifests, GROUP)
    if group is None:
        raise PlacementRequestError("the file", "expected a PodGroup")
    workload = find_workload(manifests)
    pods = find_group_pods(manifests, group, _POD_GROUP_LABEL)
    sets = workload.sets if workload else group_pods(pods, lambda _: "")
    groups = [one.render_group() for one in sets]
    least = group.spec.get("minMember").integer(1, minimum=1)
    if not groups:
        group.field.note("no pod of it is in the file: what its pods ask for is not known")
        groups = [{"name": "pods", "count": least}]
    affinity = group.spec.get("affinity", "podGroupAffinity")
    selector = dict(parse_selector_terms(affinity.get("nodeSelector")))
    for row in groups:
        row["min"] = min(least, row["count"]) if len(groups) == 1 else 0
        if selector:
            row["node_selector"] = row.get("node_selector", {}) | selector
    found = _parse_tiers(affinity, manifests.levels) | {
        "preset": Preset.GODEL.value,
        "gang": group.name,
        "priority": max((parse_priority(one.template) for one in sets), default=0),
        "groups": groups,
    }
    total = sum(row["count"] for row in groups)
    return found if len(groups) == 1 else found | {"min": min(least, total)}


def _parse_tiers(affinity: Field, levels: LevelNames) -> dict[str, Any]:
    """Return the tiers; the required keys are one key together, so the finest of them decides."""
    wished = _parse_tier_keys(affinity.get("preferred"), levels)
    must = _parse_tier_keys(affinity.get("required"), levels)
    found: dict[str, Any] = {"required": find_lowest_tier(must)} if must else {}
    if wished:
        found["preferred"] = wished
    rules = [_parse_sort_rule(row) for row in affinity.get("sortRules").items()]
    return found | {"sort": rules} if rules else found


def _parse_tier_keys(field: Field, levels: LevelNames) -> list[str]:
    found = []
    for row in field.items():
        tier = levels.find_tier(row.get("topologyKey"))
        if not tier:
            raise row.build_error("expected a topologyKey")
        found.append(tier)
    return found


def _parse_sort_rule(row: Field) -> dict[str, str]:
    resource = row.get("resource").text("CPU")
    dimension = row.get("dimension").text("Capacity")
    order = row.get("order").text("Ascending")
    if resource not in _RESOURCES or dimension not in _DIMENSIONS or order not in _ORDERS:
        raise row.build_error("expected resource GPU, CPU or Memory, with a dimension and an order")
    return {"resource": _RESOURCES[resource], "dimension": dimension, "order": order}
