"""Placements as protobuf messages, both ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

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

_NUMBER_BY_KIND: Final = {
    kind: pb.ReasonKind.Value(f"REASON_KIND_{kind.name}") for kind in ReasonKind
}
_KIND_BY_NUMBER: Final[Mapping[int, ReasonKind]] = {
    number: kind for kind, number in _NUMBER_BY_KIND.items()
}
_NUMBER_BY_VERDICT: Final = {
    verdict: pb.Verdict.Value(f"VERDICT_{verdict.name}") for verdict in VerdictKind
}
_VERDICT_BY_NUMBER: Final[Mapping[int, VerdictKind]] = {
    number: verdict for verdict, number in _NUMBER_BY_VERDICT.items()
}
KindT = TypeVar("KindT", ReasonKind, VerdictKind)

_REASON_FIELDS: Final = ("tier", "size", "count", "fits", "needed", "unit")


def encode_placement(placement: Placement) -> pb.Placement:
    """Return a placement as a message."""
    message = pb.Placement(
        feasible=placement.is_feasible,
        assignment=encode_assignments(placement),
        tier=placement.tier,
        objective=encode_objective(placement),
        proved=placement.is_proved,
        victims=placement.victims,
        alternatives=[
            pb.Alternative(change=row.change, tier=row.tier, feasible=row.is_feasible)
            for row in placement.alternatives
        ],
        domains=[
            pb.DomainVerdict(
                name=row.name, verdict=_NUMBER_BY_VERDICT[row.verdict], needs=row.needs
            )
            for row in placement.domain_verdicts
        ],
    )
    if placement.reason is not None:
        message.reason.CopyFrom(_encode_reason(placement.reason))
    if placement.preset_details:
        _encode_preset_details(message, placement.preset_details)
    return message


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
        assignment=decode_assignments(message.assignment),
        tier=message.tier if message.HasField("tier") else None,
        objective=decode_objective(message.objective),
        is_proved=message.proved,
        victims=tuple(message.victims),
        reason=_decode_reason(message.reason) if message.HasField("reason") else None,
        alternatives=tuple(
            [
                Alternative(row.change, row.tier if row.HasField("tier") else None, row.feasible)
                for row in message.alternatives
            ]
        ),
        domain_verdicts=tuple(
            [
                DomainVerdict(row.name, _decode_kind(row.verdict, _VERDICT_BY_NUMBER), row.needs)
                for row in message.domains
            ]
        ),
        preset_details=_decode_preset_details(message),
    )


def encode_assignments(placement: Placement) -> list[pb.Assignment]:
    """Return the nodes of each group as messages."""
    return [
        pb.Assignment(group=group, nodes=[node or "" for node in nodes])
        for group, nodes in placement.assignment.items()
    ]


def decode_assignments(rows: Iterable[pb.Assignment]) -> Mapping[str, tuple[str | None, ...]]:
    """Return the node of each pod per group."""
    return MappingProxyType(
        {row.group: tuple([node or None for node in row.nodes]) for row in rows}
    )


def encode_objective(placement: Placement) -> list[pb.ObjectiveTerm]:
    """Return the terms of the objective as messages."""
    return [_encode_term(name, value) for name, value in placement.objective.items()]


def decode_objective(terms: Iterable[pb.ObjectiveTerm]) -> Mapping[str, object]:
    """Return the values of the objective by name, in their order."""
    return MappingProxyType({term.name: _decode_term(term) for term in terms})


def _encode_reason(reason: Reason) -> pb.Reason:
    fields = {name: getattr(reason, name) for name in _REASON_FIELDS}
    excluded = [
        pb.Exclusion(cause=cause, nodes=nodes) for cause, nodes in (reason.excluded or {}).items()
    ]
    return pb.Reason(
        kind=_NUMBER_BY_KIND[reason.kind],
        excluded=excluded,
        known_tiers=reason.known_tiers or (),
        **fields,
    )


def _decode_reason(message: pb.Reason) -> Reason:
    fields = {
        name: getattr(message, name) if message.HasField(name) else None for name in _REASON_FIELDS
    }
    excluded = {row.cause: row.nodes for row in message.excluded}
    return Reason(
        _decode_kind(message.kind, _KIND_BY_NUMBER),
        excluded=excluded or None,
        known_tiers=tuple(message.known_tiers) or None,
        **fields,
    )


def _decode_kind(number: int, kinds: Mapping[int, KindT]) -> KindT:
    if number not in kinds:
        raise ValueError(f"{number} is not a kind of this version")
    return kinds[number]


def _encode_term(name: str, value: object) -> pb.ObjectiveTerm:
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


def _decode_term(term: pb.ObjectiveTerm) -> object:
    match term.WhichOneof("value"):
        case "tier":
            return term.tier
        case "counts":
            return {row.tier: row.count for row in term.counts.counts}
        case "numbers":
            return list(term.numbers.numbers)
        case _:
            return term.number


def _encode_preset_details(message: pb.Placement, details: Mapping[str, Any]) -> None:
    """Set the details that only one preset computes."""
    if "candidates" in details:
        message.walk.CopyFrom(pb.Walk(candidates=details["candidates"]))
        return
    rows = details["scores"]
    message.bucketing.CopyFrom(
        pb.Bucketing(
            buckets=[pb.Bucket(pods=pods) for pods in details["buckets"]],
            sequence=details["sequence"],
            scores=[_encode_scores(pod, scores) for pod, scores in rows.items()],
            scaled=any(isinstance(score, float) for row in rows.values() for score in row.values()),
        )
    )


def _encode_scores(pod: str, scores: Mapping[str, float]) -> pb.PodScores:
    nodes = [pb.NodeScore(node=node, score=score) for node, score in scores.items()]
    return pb.PodScores(pod=pod, nodes=nodes)


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
