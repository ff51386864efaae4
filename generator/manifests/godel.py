"""Translates Gödel's PodGroup with its job-level affinity.

Source: kubewharf/godel-scheduler-api, pkg/apis/scheduling/v1alpha1.
"""

from __future__ import annotations

from typing import Any, Final

from generator.manifests.fields import Field, FieldTable
from generator.manifests.kinds.object_fields import list_object_fields
from generator.manifests.kinds.pod_sets import Workload, build_unknown_pods, share_minimum
from generator.manifests.objects import Manifests
from generator.manifests.pods import join_terms, parse_node_selector
from generator.manifests.tier_names import LevelNames, build_bounds, join_tiers
from generator.manifests.workloads import (
    describe_missing,
    find_group_pods,
    find_only_group,
    find_workload,
    group_pods,
)
from generator.placement.presets import Preset

GROUP: Final = "scheduling.godel.kubewharf.io"
_POD_GROUP_LABEL: Final = "godel.bytedance.com/pod-group-name"
_RESOURCES: Final = {"GPU": "nvidia.com/gpu", "CPU": "cpu", "Memory": "memory"}
FIELDS: Final[dict[tuple[str, str], FieldTable]] = {
    (GROUP, "PodGroup"): list_object_fields(
        {"scheduleTimeoutSeconds": "says when the scheduler gives up"}
    )
}
_DIMENSIONS: Final = frozenset({"Capacity", "Available"})
_ORDERS: Final = frozenset({"Ascending", "Descending"})


def is_present(manifests: Manifests) -> bool:
    """Return whether a file has Gödel's PodGroup."""
    return bool(manifests.select("PodGroup", group=GROUP))


def parse_spec(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a required field is malformed.
    """
    group = find_only_group(manifests, GROUP)
    if group is None:
        raise describe_missing(manifests, "a PodGroup")
    workload = find_workload(manifests)
    pods = find_group_pods(manifests, group, _POD_GROUP_LABEL)
    sets = workload.sets if workload else group_pods(pods)
    groups = [pod_set.render_group() for pod_set in sets]
    minimum = group.spec.get("minMember").integer(1, minimum=1)
    groups = groups or [build_unknown_pods(group.field, minimum)]
    affinity = group.spec.get("affinity", "podGroupAffinity")
    terms = parse_node_selector(affinity.get("nodeSelector"))
    for row in groups if terms else ():
        row["node_affinity"] = join_terms(terms, row.get("node_affinity", []))
    spec = _parse_tiers(affinity, manifests.levels) | {
        "preset": Preset.GODEL.value,
        "gang": group.name,
        "priority": Workload(group, tuple(sets)).priority,
    }
    total = sum(row["count"] for row in groups)
    return spec | share_minimum(groups, min(minimum, total))


def _parse_tiers(affinity: Field, levels: LevelNames) -> dict[str, Any]:
    """Return the tiers; the required keys form one combined key, so the finest key decides."""
    preferred = _parse_tier_keys(affinity.get("preferred"), levels)
    required = _parse_tier_keys(affinity.get("required"), levels)
    tiers = build_bounds(join_tiers(required), preferred)
    rules = [_parse_sort_rule(row) for row in affinity.get("sortRules").items()]
    return tiers | {"sort": rules} if rules else tiers


def _parse_tier_keys(field: Field, levels: LevelNames) -> list[str]:
    tiers = []
    for row in field.items():
        tier = levels.find_tier(row.get("topologyKey"))
        if not tier:
            raise row.build_error("expected a topologyKey")
        tiers.append(tier)
    return tiers


def _parse_sort_rule(row: Field) -> dict[str, str]:
    resource = row.get("resource").text("CPU")
    dimension = row.get("dimension").text("Capacity")
    order = row.get("order").text("Ascending")
    if resource not in _RESOURCES or dimension not in _DIMENSIONS or order not in _ORDERS:
        raise row.build_error("expected resource GPU, CPU or Memory, with a dimension and an order")
    return {"resource": _RESOURCES[resource], "dimension": dimension, "order": order}
