"""Requests as the documents that they could have been parsed from: the inverse of parse_request.

Groups of pods and sets come as flat lists; here they are put into each other again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from generator.placement.groups import Group, GroupSet, SliceLayer
from generator.placement.request import Options, PlacementRequest, Roles, SortRule
from topology.model.tree import API_VERSION


def render_request(request: PlacementRequest) -> dict[str, Any]:
    """Return a document that `parse_request` makes the same request of; every field is said."""
    spec = {
        "preset": request.preset.value,
        "gang": request.gang,
        "priority": request.priority,
        "preemption": request.eviction.value,
        "min": request.least,
        "groups": _Nesting(request).rows(),
        "preferred": list(request.preferred),
        "strategies": [list(pair) for pair in request.strategies],
        "sort": [_sort_row(rule) for rule in request.sort],
        "affinity": _affinity_row(request.roles),
        "traffic": [list(row) for row in request.traffic],
        "max_domains": dict(request.limits),
        "options": _options_row(request.options),
        "plane": request.plane,
        "across_islands": request.across_islands,
        **_said(required=request.required, deadline_s=request.deadline_s),
    }
    return {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}


class _Nesting:
    """Puts groups and sets of a request into each other."""

    def __init__(self, request: PlacementRequest) -> None:
        self._groups = request.groups
        self._sets = request.sets
        self._firsts: list[int] = []
        for found in request.sets:  # inner ones first
            inner = [self._firsts[at] for at in found.sets]
            self._firsts.append(min((*found.groups, *inner)))

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the groups that are in no other."""
        inner_groups = {at for found in self._sets for at in found.groups}
        inner_sets = {at for found in self._sets for at in found.sets}
        groups = [at for at in range(len(self._groups)) if at not in inner_groups]
        sets = [at for at in range(len(self._sets)) if at not in inner_sets]
        return self._members(groups, sets)

    def _members(self, groups: Sequence[int], sets: Sequence[int]) -> list[dict[str, Any]]:
        """Return rows in the order in which they were written: that of their first pods."""
        rows = [(at, _group_row(self._groups[at])) for at in groups]
        for at in sets:
            found = self._sets[at]
            if self._is_led(found):
                rows += [(one, _group_row(self._groups[one])) for one in found.groups]
            else:
                rows.append((self._firsts[at], self._set_row(found)))
        return [row for _, row in sorted(rows, key=lambda pair: pair[0])]

    def _set_row(self, found: GroupSet) -> dict[str, Any]:
        led = sum(
            len(self._sets[at].groups) - 1 for at in found.sets if self._is_led(self._sets[at])
        )
        return {
            "name": found.name,
            "min": found.least + led,
            "preferred": list(found.preferred),
            "children": self._members(found.groups, found.sets),
            **_said(required=found.required),
        }

    def _is_led(self, found: GroupSet) -> bool:
        """Return whether a set is a leader with its workers: it has the leader's name."""
        return bool(found.groups) and self._groups[found.groups[0]].name == found.name


def _group_row(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "count": group.count,
        "min": group.least,
        "request": dict(group.request),
        "preferred": list(group.preferred),
        "slices": [_layer_row(layer) for layer in group.slices],
        "multiple_of": dict(group.multiples),
        "node_selector": {key: list(values) for key, values in group.selector},
        "tolerations": sorted(group.tolerations),
        "node_preference": dict(group.wishes),
        **_said(required=group.required, leader_of=group.leader_of),
    }


def _layer_row(layer: SliceLayer) -> dict[str, Any]:
    return {
        "size": layer.size,
        "remainder": "short" if layer.has_short else "reject",
        "min": layer.least,
        "placement": "spread" if layer.is_spread else "any",
        "indexed": layer.is_indexed,
        **_said(tier=layer.tier),
    }


def _sort_row(rule: SortRule) -> dict[str, Any]:
    return {
        "resource": rule.resource,
        "dimension": "Available" if rule.counts_free else "Capacity",
        "order": "Descending" if rule.is_descending else "Ascending",
    }


def _affinity_row(roles: Roles) -> dict[str, Any]:
    return {
        "attract": [list(names) for names in roles.attract],
        "repel": [list(names) for names in roles.repel],
        "order": list(roles.order),
    }


def _options_row(options: Options) -> dict[str, Any]:
    weight = dict(options.node_weights) if options.node_weights else options.score_weight
    return {
        "preferred_nodes": list(options.preferred_nodes),
        "ever_scheduled": options.has_run_before,
        "spare_islands": options.spares_islands,
        **_said(weight=weight),
    }


def _said(**fields: object) -> dict[str, object]:
    """Return the fields that say something."""
    return {name: value for name, value in fields.items() if value is not None}
