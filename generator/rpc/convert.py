"""Placement requests and answers as protobuf messages, both ways.

A request from outside becomes a document first, so that one parser judges all requests and names
their faults by the same paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from generator.placement.answer import (
    Alternative,
    DomainVerdict,
    Placement,
    Reason,
    ReasonKind,
    Verdict,
)
from generator.placement.presets import Preset
from generator.placement.request import (
    Eviction,
    Group,
    Options,
    PlacementRequest,
    Roles,
    SliceLayer,
    UnsupportedRequest,
    parse_request,
)
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from topology.errors import InvariantError, PlacementRequestError, show
from topology.tree import API_VERSION

_PRESETS: Final = {preset: pb.Preset.Value(f"PRESET_{preset.name}") for preset in Preset}
_PRESET_NAMES: Final = {number: preset.value for preset, number in _PRESETS.items()} | {
    pb.PRESET_UNSPECIFIED: Preset.OPTIMAL.value
}
_KINDS: Final = {kind: pb.ReasonKind.Value(f"REASON_KIND_{kind.name}") for kind in ReasonKind}
_KINDS_BACK: Final[Mapping[int, ReasonKind]] = {number: kind for kind, number in _KINDS.items()}
_VERDICTS: Final = {verdict: pb.Verdict.Value(f"VERDICT_{verdict.name}") for verdict in Verdict}
_VERDICTS_BACK: Final[Mapping[int, Verdict]] = {
    number: verdict for verdict, number in _VERDICTS.items()
}
KindT = TypeVar("KindT", ReasonKind, Verdict)

_REASON_FIELDS: Final = ("tier", "size", "count", "fits", "needed", "unit")


def request_message(request: PlacementRequest) -> pb.PlaceRequest:
    """Return a request as a message.

    Raises:
        UnsupportedRequest: it asks for what messages have no field for.
        PlacementRequestError: it holds what no message can, such as a number beyond 64 bits.
    """
    _check_sendable(request)
    try:
        return pb.PlaceRequest(spec=_spec_message(request))
    except ValueError as error:
        raise PlacementRequestError("spec", f"cannot be sent: {show(str(error))}") from error


def _check_sendable(request: PlacementRequest) -> None:
    """Refuse what would be lost on the way, so that nobody gets an answer to another question."""
    groups = request.groups
    unsent = {
        "groups.children": bool(request.sets),
        "groups.node_preference": any(group.wishes for group in groups),
        "groups.slices.min": any(layer.least for group in groups for layer in group.slices),
        "preemption": request.eviction is not Eviction.NEVER,
        "sort": bool(request.sort),
        "affinity": request.roles != Roles(),
        "traffic": bool(request.traffic),
        "options": request.options != Options(),
    }
    for field, is_asked in unsent.items():
        if is_asked:
            raise UnsupportedRequest(field, "cannot be sent to a server yet")


def request_of(message: pb.PlaceRequest) -> PlacementRequest:
    """Return the request of a message.

    Raises:
        UnsupportedRequest: it asks for what the engine does not do yet.
        PlacementRequestError: it is malformed; paths are relative to `spec`.
    """
    spec = message.spec
    if spec.preset not in _PRESET_NAMES:
        raise PlacementRequestError("preset", f"{spec.preset} is no preset of this version")
    document = {
        "preset": _PRESET_NAMES[spec.preset],
        "priority": spec.priority,
        "min": spec.min,
        "groups": [_group_document(group, at) for at, group in enumerate(spec.groups)],
        "preferred": list(spec.preferred),
        "strategies": [[bound.job_tier, bound.part_tier] for bound in spec.strategies],
        "max_domains": dict(spec.max_domains),
        "across_islands": spec.across_islands,
        **_given(spec, "gang", "plane"),
        **_present(spec, "required", "deadline_s"),
    }
    return parse_request(
        {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": document},
    )


def placement_message(placement: Placement) -> pb.Placement:
    """Return an answer as a message."""
    message = pb.Placement(
        feasible=placement.is_feasible,
        assignment=[
            pb.Assignment(group=group, nodes=[node or "" for node in nodes])
            for group, nodes in placement.assignment.items()
        ],
        tier=placement.tier,
        objective=[_term_message(name, value) for name, value in placement.objective.items()],
        proved=placement.is_proved,
        victims=placement.victims,
        alternatives=[
            pb.Alternative(change=row.change, tier=row.tier, feasible=row.is_feasible)
            for row in placement.alternatives
        ],
        domains=[
            pb.DomainVerdict(name=row.name, verdict=_VERDICTS[row.verdict], needs=row.needs)
            for row in placement.domains
        ],
    )
    if placement.reason is not None:
        message.reason.CopyFrom(_reason_message(placement.reason))
    return message


def placement_of(message: pb.Placement) -> Placement:
    """Return the answer of a message.

    Raises:
        ValueError: it holds a kind that this version does not know.
    """
    return Placement(
        is_feasible=message.feasible,
        assignment=MappingProxyType(
            {row.group: tuple(node or None for node in row.nodes) for row in message.assignment}
        ),
        tier=message.tier if message.HasField("tier") else None,
        objective=MappingProxyType({term.name: _term_value(term) for term in message.objective}),
        is_proved=message.proved,
        victims=tuple(message.victims),
        reason=_reason_of(message.reason) if message.HasField("reason") else None,
        alternatives=tuple(
            Alternative(row.change, row.tier if row.HasField("tier") else None, row.feasible)
            for row in message.alternatives
        ),
        domains=tuple(
            DomainVerdict(row.name, _known(row.verdict, _VERDICTS_BACK), row.needs)
            for row in message.domains
        ),
    )


def _spec_message(request: PlacementRequest) -> pb.PlacementSpec:
    return pb.PlacementSpec(
        preset=_PRESETS[request.preset],
        gang=request.gang,
        priority=request.priority,
        min=request.least,
        groups=[_group_message(group) for group in request.groups],
        required=request.required,
        preferred=request.preferred,
        strategies=[pb.Strategy(job_tier=job, part_tier=part) for job, part in request.strategies],
        max_domains=dict(request.limits),
        plane=request.plane,
        across_islands=request.across_islands,
        deadline_s=request.deadline_s,
    )


def _group_message(group: Group) -> pb.Group:
    return pb.Group(
        name=group.name,
        count=group.count,
        min=group.least,
        request=pb.Resources(quantities=dict(group.request)),
        node_selector=[pb.LabelSelector(key=key, values=values) for key, values in group.selector],
        tolerations=sorted(group.tolerations),
        required=group.required,
        preferred=group.preferred,
        slices=[_layer_message(layer) for layer in group.slices],
        multiple_of=dict(group.multiples),
    )


def _layer_message(layer: SliceLayer) -> pb.SliceLayer:
    return pb.SliceLayer(
        size=layer.size,
        tier=layer.tier,
        short_remainder=layer.has_short,
        spread=layer.is_spread,
        indexed=layer.is_indexed,
    )


def _group_document(group: pb.Group, at: int) -> dict[str, Any]:
    selector: dict[str, list[str]] = {}
    for row, wanted in enumerate(group.node_selector):
        if wanted.key in selector:
            path = f"groups[{at}].node_selector[{row}].key"
            raise PlacementRequestError(path, f"{show(wanted.key)} is given twice")
        selector[wanted.key] = list(wanted.values)
    return {
        "name": group.name,
        "count": group.count,
        "node_selector": selector,
        "tolerations": list(group.tolerations),
        "preferred": list(group.preferred),
        "slices": [_layer_document(layer) for layer in group.slices],
        "multiple_of": dict(group.multiple_of),
        **({"request": dict(group.request.quantities)} if group.HasField("request") else {}),
        **_present(group, "min", "required"),
    }


def _layer_document(layer: pb.SliceLayer) -> dict[str, Any]:
    return {
        "size": layer.size,
        "remainder": "short" if layer.short_remainder else "reject",
        "placement": "spread" if layer.spread else "any",
        "indexed": layer.indexed,
        **_present(layer, "tier"),
    }


def _given(message: pb.PlacementSpec, *names: str) -> dict[str, Any]:
    """Return the texts that are not empty; the others have a default."""
    return {name: getattr(message, name) for name in names if getattr(message, name)}


def _present(message: pb.PlacementSpec | pb.Group | pb.SliceLayer, *names: str) -> dict[str, Any]:
    """Return the optional fields that are set."""
    return {field.name: value for field, value in message.ListFields() if field.name in names}


def _reason_message(reason: Reason) -> pb.Reason:
    fields = {name: getattr(reason, name) for name in _REASON_FIELDS}
    excluded = [
        pb.Exclusion(cause=cause, nodes=nodes) for cause, nodes in (reason.excluded or {}).items()
    ]
    return pb.Reason(kind=_KINDS[reason.kind], excluded=excluded, **fields)


def _reason_of(message: pb.Reason) -> Reason:
    fields = {
        name: getattr(message, name) if message.HasField(name) else None for name in _REASON_FIELDS
    }
    excluded = {row.cause: row.nodes for row in message.excluded}
    return Reason(_known(message.kind, _KINDS_BACK), excluded=excluded or None, **fields)


def _known(number: int, kinds: Mapping[int, KindT]) -> KindT:
    if number not in kinds:
        raise ValueError(f"{number} is no kind of this version")
    return kinds[number]


def _term_message(name: str, value: object) -> pb.ObjectiveTerm:
    if isinstance(value, str):
        return pb.ObjectiveTerm(name=name, tier=value)
    if isinstance(value, int):
        return pb.ObjectiveTerm(name=name, number=value)
    if isinstance(value, list):
        return pb.ObjectiveTerm(name=name, numbers=pb.Numbers(numbers=value))
    if isinstance(value, dict):
        rows = [pb.TierCount(tier=tier, count=count) for tier, count in value.items()]
        return pb.ObjectiveTerm(name=name, counts=pb.TierCounts(counts=rows))
    raise InvariantError(f"objective {name} has a {type(value).__name__}")


def _term_value(term: pb.ObjectiveTerm) -> object:
    match term.WhichOneof("value"):
        case "tier":
            return term.tier
        case "counts":
            return {row.tier: row.count for row in term.counts.counts}
        case "numbers":
            return list(term.numbers.numbers)
        case _:
            return term.number
