"""Placement requests as documents: the inverse of `parse_request`.

A request holds groups of pods and sets as flat lists; the document nests them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from generator.placement.groups import GangGroup, GroupSet, SliceLayer, is_leader_with_workers
from generator.placement.node_selection import NodeRequirement, Toleration
from generator.placement.quantities import render_quantities
from generator.placement.request import PlacementRequest, PresetOptions, RoleAffinity, SortRule
from topology.model.tree import API_VERSION


def render_request(request: PlacementRequest) -> dict[str, Any]:
    """Return a document that `parse_request` turns into the same request; every field is set."""
    spec = {
        "preset": request.preset.value,
        "gang": request.gang,
        "priority": request.priority,
        "preemption": request.eviction.value,
        "min": request.least,
        "groups": _GroupNester(request).render_rows(),
        "preferred": list(request.preferred),
        "strategies": [list(pair) for pair in request.strategies],
        "sort": [_render_sort_rule(rule) for rule in request.sort],
        "affinity": _render_affinity(request.roles),
        "traffic": [list(row) for row in request.traffic],
        "max_domains": dict(request.limits),
        "options": _render_options(request.options),
        "plane": request.plane,
        "across_islands": request.across_islands,
        **_drop_empty(
            required=request.required, exclusive=request.exclusive, deadline_s=request.deadline_s
        ),
    }
    return {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}


class _GroupNester:
    """Nests the groups and sets of a request."""

    def __init__(self, request: PlacementRequest) -> None:
        self._groups = request.groups
        self._sets = request.sets
        self._first_pods: list[int] = []
        for pod_set in request.sets:  # inner sets come first
            inner = [self._first_pods[set_index] for set_index in pod_set.sets]
            self._first_pods.append(min((*pod_set.groups, *inner)))

    def render_rows(self) -> list[dict[str, Any]]:
        """Return the rows of the groups and sets that are in no other set."""
        inner_groups = {index for pod_set in self._sets for index in pod_set.groups}
        inner_sets = {index for pod_set in self._sets for index in pod_set.sets}
        groups = [index for index in range(len(self._groups)) if index not in inner_groups]
        sets = [index for index in range(len(self._sets)) if index not in inner_sets]
        return self._render_members(groups, sets)

    def _render_members(self, groups: Sequence[int], sets: Sequence[int]) -> list[dict[str, Any]]:
        """Return rows in their original order, which is the order of their first pods."""
        rows = [(index, _render_group(self._groups[index])) for index in groups]
        for index in sets:
            pod_set = self._sets[index]
            if is_leader_with_workers(pod_set, self._groups):
                rows += [
                    (group_index, _render_group(self._groups[group_index]))
                    for group_index in pod_set.groups
                ]
            else:
                rows.append((self._first_pods[index], self._render_set(pod_set)))
        return [row for _, row in sorted(rows, key=lambda pair: pair[0])]

    def _render_set(self, pod_set: GroupSet) -> dict[str, Any]:
        num_workers = sum(
            len(self._sets[index].groups) - 1
            for index in pod_set.sets
            if is_leader_with_workers(self._sets[index], self._groups)
        )
        return {
            "name": pod_set.name,
            "min": pod_set.least + num_workers,
            "preferred": list(pod_set.preferred),
            "children": self._render_members(pod_set.groups, pod_set.sets),
            **_drop_empty(required=pod_set.required, exclusive=pod_set.exclusive),
        }


def _render_group(group: GangGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        "count": group.count,
        "min": group.least,
        "request": render_quantities(group.request),
        "preferred": list(group.preferred),
        "slices": [_render_layer(layer) for layer in group.slices],
        "multiple_of": dict(group.multiples),
        "node_selector": {key: list(values) for key, values in group.selector},
        "node_affinity": [[_render_requirement(row) for row in term] for term in group.affinity],
        "tolerations": [_render_toleration(row) for row in sorted(group.tolerations)],
        "node_preference": dict(group.preferred_labels),
        "spread": {
            bound.tier: {"min": bound.least, **_drop_empty(max=bound.most)}
            for bound in group.spread
        },
        **_drop_empty(
            required=group.required,
            leader_of=group.leader_of,
            exclusive=group.exclusive,
            max_per_node=group.max_per_node,
        ),
    }


def _render_requirement(row: NodeRequirement) -> dict[str, Any]:
    name = "field" if row.is_field else "key"
    return {name: row.key, "operator": row.operator.value, "values": list(row.values)}


def _render_toleration(row: Toleration) -> str | dict[str, Any]:
    """Return a toleration as text if possible: earlier versions know no other form."""
    if row.text is not None:
        return row.text
    return {
        "key": row.key,
        "operator": row.operator.value,
        "value": row.value,
        **_drop_empty(effect=row.effect or None),
    }


def _render_layer(layer: SliceLayer) -> dict[str, Any]:
    return {
        "size": layer.size,
        "remainder": "short" if layer.has_short else "reject",
        "min": layer.least,
        "placement": "spread" if layer.is_spread else "any",
        "indexed": layer.is_indexed,
        **_drop_empty(tier=layer.tier),
    }


def _render_sort_rule(rule: SortRule) -> dict[str, Any]:
    return {
        "resource": rule.resource,
        "dimension": "Available" if rule.counts_free else "Capacity",
        "order": "Descending" if rule.is_descending else "Ascending",
    }


def _render_affinity(roles: RoleAffinity) -> dict[str, Any]:
    return {
        "attract": [list(names) for names in roles.attract],
        "repel": [list(names) for names in roles.repel],
        "order": list(roles.order),
    }


def _render_options(options: PresetOptions) -> dict[str, Any]:
    weight = dict(options.node_weights) if options.node_weights else options.score_weight
    return {
        "preferred_nodes": list(options.preferred_nodes),
        "ever_scheduled": options.has_run_before,
        "spare_islands": options.spares_islands,
        "sample": options.sample,
        **_drop_empty(weight=weight),
    }


def _drop_empty(**fields: object) -> dict[str, object]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
