"""Placements as protobuf messages, both ways.

A message has the fields of the document of `Placement.render`. Where the document has an object
whose order counts, the message has rows, because a map of protobuf has no order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from generator.placement.answer import (
    NO_DETAILS,
    Alternative,
    DomainVerdict,
    Placement,
    Reason,
    ReasonKind,
    VerdictKind,
)
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from topology.model.errors import InvariantError
from topology.model.tree import Unplaced


def encode_placement(placement: Placement) -> pb.Placement:
    """Return a placement as a message."""
    document = placement.render()
    for name in placement.preset_details:
        del document[name]
    document["assignment"] = encode_assignments(placement)
    document["objective"] = encode_objective(placement)
    if placement.reason is not None:
        excluded = (placement.reason.excluded or {}).items()
        document["reason"]["excluded"] = [
            {"cause": cause, "nodes": nodes} for cause, nodes in excluded
        ]
    return pb.Placement(**document, **_encode_preset_details(placement.preset_details))


def encode_brief_placement(placement: Placement) -> pb.Placement:
    """Return the nodes of a gang, or why it is infeasible, without the explanation of a placement.

    The explanation is computed on demand, which takes longer than the placement itself.
    """
    if not placement.is_feasible:
        return encode_placement(placement)
    return pb.Placement(
        feasible=True,
        assignment=encode_assignments(placement),
        tier=placement.tier,
        proved=placement.is_proved,
        victims=placement.victims,
    )


def decode_placement(message: pb.Placement) -> Placement:
    """Return the placement of a message.

    Raises:
        ValueError: this version does not know one of its kinds.
    """
    return Placement(
        is_feasible=message.feasible,
        assignment=_decode_assignments(message.assignment),
        tier=message.tier if message.HasField("tier") else None,
        objective=_decode_objective(message.objective),
        is_proved=message.proved,
        victims=tuple(message.victims),
        reason=_decode_reason(message.reason) if message.HasField("reason") else None,
        alternatives=tuple(
            Alternative(row.change, row.tier if row.HasField("tier") else None, row.feasible)
            for row in message.alternatives
        ),
        domain_verdicts=tuple(
            DomainVerdict(row.name, VerdictKind(row.verdict), row.needs) for row in message.domains
        ),
        preset_details=_decode_preset_details(message),
        unplaced=tuple(Unplaced(row.node, row.reason) for row in message.unplaced),
    )


def encode_assignments(placement: Placement) -> list[pb.Assignment]:
    """Return the nodes of each group as messages."""
    return [
        pb.Assignment(group=group, nodes=[node or "" for node in nodes])
        for group, nodes in placement.assignment.items()
    ]


def _decode_assignments(rows: Iterable[pb.Assignment]) -> Mapping[str, tuple[str | None, ...]]:
    """Return the node of each pod per group."""
    return MappingProxyType(
        {row.group: tuple([node or None for node in row.nodes]) for row in rows}
    )


def encode_objective(placement: Placement) -> list[pb.ObjectiveTerm]:
    """Return the terms of the objective as messages."""
    return [
        pb.ObjectiveTerm(name=name, **_encode_value(value))
        for name, value in placement.objective.items()
    ]


def _decode_objective(terms: Iterable[pb.ObjectiveTerm]) -> Mapping[str, object]:
    """Return the values of the objective by name, in their order."""
    return MappingProxyType({term.name: _decode_value(term) for term in terms})


def _encode_value(value: object) -> dict[str, Any]:
    """Return the field of a term that holds a value."""
    match value:
        case str():
            return {"tier": value}
        case int():
            return {"number": value}
        case list():
            return {"numbers": {"numbers": value}}
        case dict():
            rows = [{"tier": tier, "count": count} for tier, count in value.items()]
            return {"counts": {"counts": rows}}
        case _:
            raise InvariantError(f"an objective has a {type(value).__name__}")


def _decode_value(term: pb.ObjectiveTerm) -> object:
    match term.WhichOneof("value"):
        case "tier":
            return term.tier
        case "counts":
            return {row.tier: row.count for row in term.counts.counts}
        case "numbers":
            return list(term.numbers.numbers)
        case _:
            return term.number


def _decode_reason(message: pb.Reason) -> Reason:
    fields: dict[str, Any] = {field.name: value for field, value in message.ListFields()}
    fields["kind"] = ReasonKind(message.kind)
    fields["excluded"] = {row.cause: row.nodes for row in message.excluded} or None
    fields["known_tiers"] = tuple(message.known_tiers) or None
    return Reason(**fields)


def _encode_preset_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field of a placement for the details that only one preset computes."""
    if not details:
        return {}
    if "candidates" in details:
        return {"walk": {"candidates": details["candidates"]}}
    rows = {pod: dict(scores) for pod, scores in details["scores"].items()}
    bucketing = {
        "buckets": [{"pods": pods} for pods in details["buckets"]],
        "sequence": details["sequence"],
        "scores": [
            {"pod": pod, "nodes": [{"node": node, "score": score} for node, score in row.items()]}
            for pod, row in rows.items()
        ],
        "scaled": any(isinstance(score, float) for row in rows.values() for score in row.values()),
    }
    return {"bucketing": bucketing}


def _decode_preset_details(message: pb.Placement) -> Mapping[str, Any]:
    match message.WhichOneof("working"):
        case "walk":
            return MappingProxyType({"candidates": list(message.walk.candidates)})
        case "bucketing":
            bucketing = message.bucketing
            number = float if bucketing.scaled else int
            details = {
                "buckets": [list(row.pods) for row in bucketing.buckets],
                "sequence": list(bucketing.sequence),
                "scores": {
                    row.pod: {score.node: number(score.score) for score in row.nodes}
                    for row in bucketing.scores
                },
            }
            return MappingProxyType(details)
        case _:
            return NO_DETAILS
