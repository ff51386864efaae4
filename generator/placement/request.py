"""Placement requests: the frozen form that the engine works on, and how a document becomes one.

A document that makes no sense raises PlacementRequestError; one that makes sense but asks for
what the engine does not do yet raises its subclass UnsupportedRequest. Both name the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from generator.placement import wire
from generator.placement.presets import PRESETS, Preset
from topology.errors import PlacementRequestError, show
from topology.validation import expectation


class UnsupportedRequest(PlacementRequestError):  # noqa: N818 - reads as what it is
    """A request that makes sense, with a wish that this engine does not know how to grant yet."""


@dataclass(frozen=True, slots=True)
class SliceLayer:
    """Consecutive pods of a group that belong together."""

    size: int
    tier: str | None
    """Every slice lies in one domain of it; None: slices count in the objective only."""
    has_short: bool
    """Whether the last slice may be incomplete."""
    is_spread: bool
    """Whether a domain of `tier` holds at most one slice."""
    is_indexed: bool
    """Whether slice k must be exactly the pods from k × size on."""


@dataclass(frozen=True, slots=True)
class Group:
    """Equal pods."""

    name: str
    count: int
    least: int
    """Pods below which the gang is not placed at all."""
    request: tuple[tuple[str, int], ...]
    """Per pod: (resource, quantity), sorted."""
    selector: tuple[tuple[str, tuple[str, ...]], ...]
    """(label, values, one of which a node must carry), sorted."""
    tolerations: frozenset[str]
    required: str | None
    preferred: tuple[str, ...]
    slices: tuple[SliceLayer, ...]
    """Coarse to fine; the last one cuts the parts that the objective counts."""
    multiples: tuple[tuple[str, int], ...]
    """(tier, pods per domain of it), sorted."""


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """What is asked for. Tiers are names, or integers in text form."""

    preset: Preset
    gang: str
    priority: int
    least: int
    """Pods over all groups below which the gang is not placed at all."""
    groups: tuple[Group, ...]
    required: str | None
    preferred: tuple[str, ...]
    strategies: tuple[tuple[str, str], ...]
    """(tier of the job, tier of every part): the first that can hold wins; empty: any."""
    limits: tuple[tuple[str, int], ...]
    """(tier, most domains of it), sorted."""
    plane: str
    across_islands: bool
    deadline_s: float | None


def parse_request(document: Mapping[str, Any]) -> PlacementRequest:
    """Return the request of a document of kind PlacementRequest.

    Raises:
        UnsupportedRequest: it asks for what the engine does not do yet.
        PlacementRequestError: it is malformed or contradicts itself; the first fault in order of
            the fields, paths are relative to `spec`.
    """
    try:
        parsed = wire.Document.model_validate(document)
    except ValidationError as error:
        raise _translated(error.errors()[0]) from error
    spec = parsed.spec
    _check_names(spec)
    _check_support(spec)
    return PlacementRequest(
        preset=spec.preset,
        gang=spec.gang,
        priority=spec.priority,
        least=spec.min,
        groups=tuple(_group(row) for row in spec.groups),
        required=spec.required,
        preferred=tuple(spec.preferred),
        strategies=tuple((job, part) for job, part in spec.strategies),
        limits=tuple(sorted(spec.max_domains.items())),
        plane=spec.plane,
        across_islands=spec.across_islands,
        deadline_s=spec.deadline_s,
    )


def _group(row: wire.GroupRow) -> Group:
    selector = {
        key: tuple(value) if isinstance(value, list) else (value,)
        for key, value in row.node_selector.items()
    }
    layers = tuple(
        SliceLayer(
            size=layer.size,
            tier=layer.tier,
            has_short=layer.remainder == "short",
            is_spread=layer.placement == "spread",
            is_indexed=layer.indexed,
        )
        for layer in row.slices
    )
    count = row.count or 0
    return Group(
        name=row.name,
        count=count,
        least=count if row.min is None else row.min,
        request=tuple(sorted(row.request.items())),
        selector=tuple(sorted(selector.items())),
        tolerations=frozenset(row.tolerations),
        required=row.required,
        preferred=tuple(row.preferred),
        slices=layers,
        multiples=tuple(sorted(row.multiple_of.items())),
    )


def _check_names(spec: wire.Spec) -> None:
    """Refuse groups that no answer could tell apart, and minimums that nothing could reach."""
    seen: set[str] = set()
    for index, row in enumerate(spec.groups):
        path = f"groups[{index}]"
        if row.name in seen:
            raise PlacementRequestError(f"{path}.name", f"two groups named {show(row.name)}")
        seen.add(row.name)
        if (row.count is None) == (not row.children):
            raise PlacementRequestError(f"{path}.count", "expected either count or children")
        if row.count is not None and (row.min or 0) > row.count:
            raise PlacementRequestError(
                f"{path}.min", f"expected at most the count {row.count}, got {row.min}"
            )
    total = sum(row.count or 0 for row in spec.groups)
    if spec.min > total and not any(row.children for row in spec.groups):
        raise PlacementRequestError("min", f"expected at most {total}, got {spec.min}")


def _check_support(spec: wire.Spec) -> None:
    if spec.preset not in PRESETS:
        raise UnsupportedRequest("preset", f"{spec.preset} is not supported yet")
    if spec.preemption != "never":
        raise UnsupportedRequest("preemption", f"{spec.preemption} is not supported yet")
    for name in ("sort", "affinity", "traffic", "options"):
        if getattr(spec, name):
            raise UnsupportedRequest(name, "is not supported yet")
    is_alone = len(spec.groups) == 1
    for index, row in enumerate(spec.groups):
        _check_group(row, f"groups[{index}]", is_alone=is_alone)


def _check_group(row: wire.GroupRow, path: str, *, is_alone: bool) -> None:
    for name in ("children", "leader_of", "node_preference"):
        if getattr(row, name):
            raise UnsupportedRequest(f"{path}.{name}", "is not supported yet")
    for at, layer in enumerate(row.slices):
        where = f"{path}.slices[{at}]"
        if layer.min:
            raise UnsupportedRequest(f"{where}.min", "is not supported yet")
        if layer.placement == "consolidate":
            raise UnsupportedRequest(f"{where}.placement", "consolidate is not supported yet")
    if is_alone:
        return
    for name in ("multiple_of", "required", "preferred"):
        if getattr(row, name) and (row.slices or name == "multiple_of"):
            raise UnsupportedRequest(f"{path}.{name}", "is not supported yet beside other groups")
    if len(row.slices) > 1 or any(layer.placement == "spread" for layer in row.slices):
        raise UnsupportedRequest(f"{path}.slices", "are not supported yet beside other groups")


def _translated(found: ErrorDetails) -> PlacementRequestError:
    """Return our error for one of pydantic's: its path, what was expected, and what came."""
    kind, context = found["type"], found.get("ctx", {})
    if kind == "greater_than_equal":
        nature = {0: "a non-negative integer", 1: "a positive integer"}
        problem = f"expected {nature.get(context['ge'], found['msg'])}"
    else:
        problem = expectation(found)
    if kind not in {"missing", "extra_forbidden"}:
        problem += f", got {show(repr(found['input']))}"
    return PlacementRequestError(_path(found["loc"]), problem)


def _path(loc: Sequence[int | str]) -> str:
    """Return `groups[0].count` for a location below `spec`; keys of others as they are."""
    path = ""
    for part in loc[1:] if loc and loc[0] == "spec" and len(loc) > 1 else loc:
        path += f"[{part}]" if isinstance(part, int) else f".{show(part)}"
    return path.lstrip(".")
