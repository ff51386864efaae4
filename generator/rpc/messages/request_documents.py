"""Requests as the documents that they could have been parsed from: the inverse of parse_request.

Groups of pods and sets come as flat lists; here they are put into each other again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from generator.placement.groups import GangGroup, GroupSet, SliceLayer
from generator.placement.request import PresetOptions, PlacementRequest, RoleAffinity, SortRule
from topology.model.tree import API_VERSION


def render_request(request: PlacementRequest) -> dict[str, Any]:
    """Return a document that `parse_request` makes the same request of; every field is said."""
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
        **_drop_empty(required=request.required, deadline_s=request.deadline_s),
    }
    return {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}


class _GroupNester:
    """Puts groups and sets of a request into each other."""

    def __init__(self, request: PlacementRequest) -> None:
        self._groups = request.groups
        self._sets = request.sets
        self._first_pods: list[int] = []
        for found in request.sets:  # inner ones first
            inner = [self._first_pods[at] for at in found.sets]
            self._first_pods.append(min((*found.groups, *inner)))

    def render_rows(self) -> list[dict[str, Any]]:
        """Return the rows of the groups that are in no other."""
        inner_groups = {at for found in self._sets for at in found.groups}
        inner_sets = {at for found in self._sets for at in found.sets}
        groups = [at for at in range(len(self._groups)) if at not in inner_groups]
        sets = [at for at in range(len(self._sets)) if at not in inner_sets]
        return self._render_members(groups, sets)

    def _render_members(self, groups: Sequence[int], sets: Sequence[int]) -> list[dict[str, Any]]:
        """Return rows in the order in which they were written: that of their first pods."""
        rows = [(at, _render_group(self._groups[at])) for at in groups]
        for at in sets:
            found = self._sets[at]
            if self._has_leader(found):
                rows += [(one, _render_group(self._groups[one])) for one in found.groups]
            else:
                rows.append((self._first_pods[at], self._render_set(found)))
        return [row for _, row in sorted(rows, key=lambda pair: pair[0])]

    def _render_set(self, found: GroupSet) -> dict[str, Any]:
        led = sum(
            len(self._sets[at].groups) - 1 for at in found.sets if self._has_leader(self._sets[at])
        )
        return {
            "name": found.name,
            "min": found.least + led,
            "preferred": list(found.preferred),
            "children": self._render_members(found.groups, found.sets),
            **_drop_empty(required=found.required),
        }

    def _has_leader(self, found: GroupSet) -> bool:
        """Return whether a set is a leader with its workers: it has the leader's name."""
        return bool(found.groups) and self._groups[found.groups[0]].name == found.name


def _render_group(group: GangGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        "count": group.count,
        "min": group.least,
        "request": dict(group.request),
        "preferred": list(group.preferred),
        "slices": [_render_layer(layer) for layer in group.slices],
        "multiple_of": dict(group.multiples),
        "node_selector": {key: list(values) for key, values in group.selector},
        "tolerations": sorted(group.tolerations),
        "node_preference": dict(group.wishes),
        **_drop_empty(required=group.required, leader_of=group.leader_of),
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
        **_drop_empty(weight=weight),
    }


def _drop_empty(**fields: object) -> dict[str, object]:
    """Return the fields that say something."""
    return {name: value for name, value in fields.items() if value is not None}
