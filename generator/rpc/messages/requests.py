"""Placement requests as protobuf messages, both ways.

A request from a client becomes a document first, so that one parser validates all requests and uses
the same paths for problems. Oversized messages are refused before that parser runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from google.protobuf.message import Message

from generator.placement.presets import Preset
from generator.placement.request import EvictionPolicy, PlacementRequest, parse_request
from generator.placement.wire import MAX_GROUPS, MAX_PODS
from generator.rpc.messages.request_documents import render_request
from generator.rpc.messages.resources import decode_resources, encode_resources
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from topology.model.errors import PlacementRequestError, show
from topology.model.tree import API_VERSION

_PRESETS: Final = {preset.value: pb.Preset.Value(f"PRESET_{preset.name}") for preset in Preset}
_PRESET_NAMES: Final[dict[int, str]] = {
    pb.PRESET_UNSPECIFIED: Preset.OPTIMAL.value,
    **{int(number): name for name, number in _PRESETS.items()},
}
_PREEMPTION_BY_NAME: Final = {
    eviction.value: pb.Preemption.Value(f"PREEMPTION_{eviction.name}")
    for eviction in EvictionPolicy
}
_PREEMPTION_NAMES: Final[dict[int, str]] = {
    pb.PREEMPTION_UNSPECIFIED: EvictionPolicy.NEVER.value,
    **{int(number): name for name, number in _PREEMPTION_BY_NAME.items()},
}
_TOLERATION_FIELDS: Final = ("key", "operator", "value", "effect")
_UNCHECKED_BYTES: Final = 16_384
"""Smaller messages cannot contain a list that is too long."""
_MAX_SCORE: Final = 1_000_000
MAX_NAME_CHARS: Final = 4096
"""Of any name in a larger message."""
MAX_LIST_ROWS: Final = 4096
"""Rows of any list except those of nodes."""


def encode_request(request: PlacementRequest) -> pb.PlacementSpec:
    """Return a request as a message.

    Raises:
        PlacementRequestError: no message can hold it, for example a number beyond 64 bits.
    """
    try:
        return _encode_spec(render_request(request)["spec"])
    except ValueError as error:
        raise PlacementRequestError("spec", f"cannot be sent: {show(str(error))}") from error


def decode_request(spec: pb.PlacementSpec) -> PlacementRequest:
    """Return the request of a message.

    Raises:
        PlacementRequestError: the request is malformed; paths are relative to the message.
    """
    if spec.ByteSize() > _UNCHECKED_BYTES:
        _check_sizes(spec)
    document = {
        "preset": _decode_enum(_PRESET_NAMES, spec.preset, "preset"),
        "priority": spec.priority,
        "preemption": _decode_enum(_PREEMPTION_NAMES, spec.preemption, "preemption"),
        "min": spec.min,
        "groups": [
            _decode_group(group, f"groups[{index}]") for index, group in enumerate(spec.groups)
        ],
        "preferred": list(spec.preferred),
        "strategies": [[bound.job_tier, bound.part_tier] for bound in spec.strategies],
        "sort": [_decode_sort_rule(rule) for rule in spec.sort],
        "traffic": [[row.first, row.second, row.weight] for row in spec.traffic],
        "max_domains": dict(spec.max_domains),
        "across_islands": spec.across_islands,
        **_select_nonempty(spec, "gang", "plane"),
        **_select_set_fields(spec, "required", "exclusive", "deadline_s"),
    }
    if spec.HasField("affinity"):
        document["affinity"] = _decode_affinity(spec.affinity)
    if spec.HasField("options"):
        document["options"] = _decode_options(spec.options)
    return parse_request(
        {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": document},
    )


def _decode_enum(names: Mapping[int, str], number: int, field: str) -> str:
    if number not in names:
        raise PlacementRequestError(field, f"{number} is not a {field} of this version")
    return names[number]


def _check_sizes(spec: pb.PlacementSpec) -> None:
    """Refuse long names, and lists so long that validating them would take long."""
    num_groups = 0
    pending: list[tuple[str, Message]] = [("", spec)]
    while pending:
        path, message = pending.pop()
        for field, value in message.ListFields():
            field_path = f"{path}{field.name}"
            if not field.is_repeated:
                if isinstance(value, Message):
                    pending.append((f"{field_path}.", value))
                elif isinstance(value, str) and len(value) > MAX_NAME_CHARS:
                    problem = f"expected at most {MAX_NAME_CHARS} characters, got {len(value)}"
                    raise PlacementRequestError(field_path, problem)
                continue
            if field.message_type is pb.Group.DESCRIPTOR:
                num_groups += len(value)
                if num_groups > MAX_GROUPS:
                    raise _build_count_error(field_path, num_groups, MAX_GROUPS)
            elif len(value) > (MAX_PODS if path == "options." else MAX_LIST_ROWS):
                raise _build_count_error(field_path, len(value), MAX_LIST_ROWS)
            if field.message_type is not None and not field.message_type.GetOptions().map_entry:
                pending += [(f"{field_path}[{index}].", child) for index, child in enumerate(value)]


def _build_count_error(field: str, count: int, limit: int) -> PlacementRequestError:
    return PlacementRequestError(field, f"expected at most {limit}, got {count}")


def _encode_spec(spec: Mapping[str, Any]) -> pb.PlacementSpec:
    affinity = spec["affinity"]
    return pb.PlacementSpec(
        preset=_PRESETS[spec["preset"]],
        gang=spec["gang"],
        priority=spec["priority"],
        min=spec["min"],
        groups=[_encode_group(row) for row in spec["groups"]],
        required=spec.get("required"),
        preferred=spec["preferred"],
        strategies=[pb.Strategy(job_tier=job, part_tier=part) for job, part in spec["strategies"]],
        max_domains=spec["max_domains"],
        plane=spec["plane"],
        across_islands=spec["across_islands"],
        deadline_s=spec.get("deadline_s"),
        exclusive=spec.get("exclusive"),
        preemption=_PREEMPTION_BY_NAME[spec["preemption"]],
        sort=[_encode_sort_rule(row) for row in spec["sort"]],
        affinity=pb.Affinity(
            attract=[pb.Roles(groups=names) for names in affinity["attract"]],
            repel=[pb.Roles(groups=names) for names in affinity["repel"]],
            order=affinity["order"],
        ),
        traffic=[
            pb.Traffic(first=first, second=second, weight=weight)
            for first, second, weight in spec["traffic"]
        ],
        options=_encode_options(spec["options"]),
    )


def _encode_group(row: Mapping[str, Any]) -> pb.Group:
    if "children" in row:
        return pb.Group(
            name=row["name"],
            min=row["min"],
            required=row.get("required"),
            preferred=row["preferred"],
            exclusive=row.get("exclusive"),
            children=[_encode_group(child) for child in row["children"]],
        )
    return pb.Group(
        name=row["name"],
        count=row["count"],
        min=row["min"],
        request=encode_resources(row["request"]),
        node_selector=[
            pb.LabelSelector(key=key, values=values) for key, values in row["node_selector"].items()
        ],
        node_affinity=[
            pb.NodeTerm(requirements=[pb.NodeRequirement(**entry) for entry in term])
            for term in row["node_affinity"]
        ],
        tolerations=[entry for entry in row["tolerations"] if isinstance(entry, str)],
        taint_tolerations=[
            pb.Toleration(**entry) for entry in row["tolerations"] if not isinstance(entry, str)
        ],
        required=row.get("required"),
        preferred=row["preferred"],
        slices=[_encode_layer(layer) for layer in row["slices"]],
        multiple_of=row["multiple_of"],
        node_preference=row["node_preference"],
        leader_of=row.get("leader_of"),
        spread=[
            pb.DomainSpread(tier=tier, min=bound["min"], max=bound.get("max"))
            for tier, bound in row["spread"].items()
        ],
        exclusive=row.get("exclusive"),
        max_per_node=row.get("max_per_node"),
    )


def _encode_layer(row: Mapping[str, Any]) -> pb.SliceLayer:
    return pb.SliceLayer(
        size=row["size"],
        tier=row.get("tier"),
        short_remainder=row["remainder"] == "short",
        spread=row["placement"] == "spread",
        indexed=row["indexed"],
        min=row["min"],
    )


def _encode_sort_rule(row: Mapping[str, Any]) -> pb.SortRule:
    return pb.SortRule(
        resource=row["resource"],
        available=row["dimension"] == "Available",
        descending=row["order"] == "Descending",
    )


def _encode_options(row: Mapping[str, Any]) -> pb.Options:
    weight = row.get("weight")
    is_of_nodes = isinstance(weight, Mapping)
    return pb.Options(
        node_weights=weight if is_of_nodes else None,
        score_weight=None if is_of_nodes else weight,
        preferred_nodes=row["preferred_nodes"],
        ever_scheduled=row["ever_scheduled"],
        spare_islands=row["spare_islands"],
        sample=row["sample"],
    )


def _decode_group(group: pb.Group, path: str) -> dict[str, Any]:
    document = {
        "name": group.name,
        "preferred": list(group.preferred),
        "slices": [_decode_layer(layer) for layer in group.slices],
        "multiple_of": dict(group.multiple_of),
        "node_selector": decode_selector(group.node_selector, f"{path}.node_selector"),
        "node_affinity": [
            [_decode_requirement(row) for row in term.requirements] for term in group.node_affinity
        ],
        "tolerations": [
            *group.tolerations,
            *(_select_nonempty(row, *_TOLERATION_FIELDS) for row in group.taint_tolerations),
        ],
        "node_preference": dict(group.node_preference),
        "spread": _decode_spread(group.spread, f"{path}.spread"),
        **_select_set_fields(group, "min", "required", "leader_of", "exclusive", "max_per_node"),
    }
    if group.HasField("request"):
        document["request"] = decode_resources(group.request)
    if group.children:
        document["children"] = [
            _decode_group(child, f"{path}.children[{index}]")
            for index, child in enumerate(group.children)
        ]
    if group.count or not group.children:
        document["count"] = group.count
    return document


def _decode_spread(rows: Iterable[pb.DomainSpread], path: str) -> dict[str, Any]:
    spread: dict[str, Any] = {}
    for index, row in enumerate(rows):
        if not row.tier or row.tier in spread:
            problem = f"{show(row.tier)} is given twice" if row.tier else "expected a name"
            raise PlacementRequestError(f"{path}[{index}].tier", problem)
        spread[row.tier] = {"min": row.min or 1, **_select_set_fields(row, "max")}
    return spread


def decode_selector(rows: Iterable[pb.LabelSelector], path: str) -> dict[str, list[str]]:
    """Return the accepted values by label.

    Raises:
        PlacementRequestError: a label is named twice.
    """
    selector: dict[str, list[str]] = {}
    for index, row in enumerate(rows):
        if row.key in selector:
            problem = f"{show(row.key)} is given twice"
            raise PlacementRequestError(f"{path}[{index}].key", problem)
        selector[row.key] = list(row.values)
    return selector


def _decode_requirement(row: pb.NodeRequirement) -> dict[str, Any]:
    return {"values": list(row.values), **_select_nonempty(row, "key", "field", "operator")}


def _decode_layer(layer: pb.SliceLayer) -> dict[str, Any]:
    return {
        "size": layer.size,
        "remainder": "short" if layer.short_remainder else "reject",
        "min": layer.min,
        "placement": "spread" if layer.spread else "any",
        "indexed": layer.indexed,
        **_select_set_fields(layer, "tier"),
    }


def _decode_sort_rule(rule: pb.SortRule) -> dict[str, Any]:
    return {
        "resource": rule.resource,
        "dimension": "Available" if rule.available else "Capacity",
        "order": "Descending" if rule.descending else "Ascending",
    }


def _decode_affinity(affinity: pb.Affinity) -> dict[str, Any]:
    return {
        "attract": [list(row.groups) for row in affinity.attract],
        "repel": [list(row.groups) for row in affinity.repel],
        "order": list(affinity.order),
    }


def _decode_options(options: pb.Options) -> dict[str, Any]:
    document: dict[str, Any] = {
        "preferred_nodes": list(options.preferred_nodes),
        "ever_scheduled": options.ever_scheduled,
        "spare_islands": options.spare_islands,
        "sample": options.sample,
    }
    if options.HasField("score_weight"):
        if options.node_weights:
            raise PlacementRequestError(
                "options.score_weight", "cannot be combined with node weights"
            )
        if not 0 < options.score_weight <= _MAX_SCORE:
            problem = f"expected above 0 to {_MAX_SCORE}, got {options.score_weight}"
            raise PlacementRequestError("options.score_weight", problem)
        document["weight"] = options.score_weight
    elif options.node_weights:
        document["weight"] = _decode_weights(options)
    if "" in options.preferred_nodes:
        index = list(options.preferred_nodes).index("")
        raise PlacementRequestError(f"options.preferred_nodes[{index}]", "expected a name")
    return document


def _decode_weights(options: pb.Options) -> dict[str, int]:
    """Return the weights of nodes; only the first invalid weight is reported."""
    for node, weight in options.node_weights.items():
        if not node or not 0 <= weight <= MAX_PODS:
            problem = f"expected names with weights from 0 to {MAX_PODS}, got {weight}"
            raise PlacementRequestError(f"options.node_weights.{show(node)}", problem)
    return dict(options.node_weights)


def _select_nonempty(message: Message, *names: str) -> dict[str, Any]:
    """Return the strings that are not empty; the others have a default."""
    return {name: getattr(message, name) for name in names if getattr(message, name)}


def _select_set_fields(
    message: pb.PlacementSpec | pb.Group | pb.SliceLayer | pb.DomainSpread, *names: str
) -> dict[str, Any]:
    """Return the optional fields that are set."""
    return {field.name: value for field, value in message.ListFields() if field.name in names}
