"""AppWrappers of CodeFlare: jobs of other kinds, which are admitted together.

Source: project-codeflare/appwrapper v1.2.2, api/v1beta2 and pkg/utils.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from generator.manifests.fields import Field, FieldTable, Row
from generator.manifests.kinds.object_fields import (
    COMPANIONS,
    POD,
    find_key_row,
    list_object_fields,
)
from generator.manifests.kinds.pod_sets import PodSet, WorkloadKind
from generator.manifests.objects import KubeObject, Manifests, parse_object
from topology.model.errors import PlacementRequestError, show

_POD: Final = ("", "Pod")

_STEP: Final = re.compile(r"\.(?P<key>[^.\[\]]+)|\[(?P<index>[0-9]{1,6})\]")
_PATH: Final = re.compile(r"template(?:\.[^.\[\]]+|\[[0-9]{1,6}\])*\Z")
Kinds: TypeAlias = Mapping[tuple[str, str], WorkloadKind]


def build_app_wrapper(kinds: Kinds) -> WorkloadKind:
    """Return the kind of AppWrappers, whose components are of other kinds."""

    def find_row(key: str, field: Field) -> Row:
        if key == "annotations":
            return find_key_row
        return _find_object_row(field, kinds) if key == "template" else None

    spec: FieldTable = {"components": find_row, "suspend": "says when the jobs start, not where"}
    return WorkloadKind(
        lambda owner, manifests: _parse_components(owner, manifests, kinds),
        list_object_fields(spec),
    )


def _find_object_row(field: Field, kinds: Kinds) -> Row:
    inner = parse_object(field)
    key = (inner.group, inner.kind)
    if key == _POD:
        return POD
    return kinds[key].fields if key in kinds else COMPANIONS.get(key)


def _parse_components(owner: KubeObject, manifests: Manifests, kinds: Kinds) -> list[PodSet]:
    rows = owner.spec.get("components").items()
    sets = []
    for row in rows:
        inner = parse_object(row.get("template"))
        found = _parse_component(row, inner, manifests, kinds)
        prefix = f"{inner.name}-" if len(rows) > 1 else ""
        sets += [replace(pods, name=f"{prefix}{pods.name}") for pods in found]
    return sets


def _parse_component(
    row: Field, inner: KubeObject, manifests: Manifests, kinds: Kinds
) -> list[PodSet]:
    """Return the pods of a component: as its kind says, else as the AppWrapper declares them."""
    key, declared = (inner.group, inner.kind), row.get("podSets")
    if key not in kinds and key != _POD:
        if key in COMPANIONS and not declared.items():
            return []
        if not declared.items():
            problem = (
                f"Toponaut does not read {show(inner.kind)}; expected podSets that say its pods"
            )
            raise PlacementRequestError(row.get("template").path, problem)
        return [
            _parse_declared(pods, row.get("template"), at)
            for at, pods in enumerate(declared.items())
        ]
    sets = (
        [PodSet("pod", 1, inner.field)] if key == _POD else kinds[key].parse_sets(inner, manifests)
    )
    counts = [pods.get("replicas").integer(1) for pods in declared.items()]
    for pods in declared.items():
        pods.get("path").text()
    if counts and sum(counts) != sum(pods.count for pods in sets):
        declared.warn(f"says {sum(counts)} pods, but the {inner.kind} has others")
    return sets


def _parse_declared(pods: Field, template: Field, index: int) -> PodSet:
    path = pods.get("path").text()
    if not _PATH.match(path):
        raise pods.get("path").build_error("expected a path such as template.spec.template")
    found = template
    for step in _STEP.finditer(path):
        rows = found.items() if step["index"] else []
        if step["index"] and int(step["index"]) >= len(rows):
            raise pods.get("path").build_error("expected the path of a pod template")
        found = rows[int(step["index"])] if step["index"] else found.get(step["key"])
    return PodSet(f"pods-{index}", pods.get("replicas").integer(1), found)
