"""The planes file: rules that assign ports to planes where the default is wrong.

    planes:
      - name: storage
        any:
          - switches: ["stor-*"]
          - ports: ["mlx5_4/*", "mlx5_5/*"]
            hosts: ["dgx*"]
      - name: compute
        any:
          - medium: infiniband
            minRateGbps: 200
            gpu: same-numa

A port is in the first plane that has a matching rule. A rule matches if all its fields match. A
port that matches no rule is in the plane that the default gives it, but never in a plane of the
file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from generator.objects.yaml_document import parse_document
from topology.model.errors import ConfigError, show
from topology.model.facts import GpuDistance, Medium
from topology.model.globs import find_glob_fault
from topology.model.ids import parse_guid
from topology.model.validation import describe_validation
from topology.model.wire_model import WireModel
from topology.planes.policy import COMPUTE, PlanePolicy, PortRule

MAX_PLANES_BYTES: Final = 1 << 20
_GIGA: Final = 10**9

PlaneName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)
]


def _check_glob(pattern: str) -> str:
    """Refuse a pattern with a fault: it would match nothing, and nobody would see why."""
    fault = find_glob_fault(pattern)
    if fault is not None:
        raise ValueError(f"pattern '{show(pattern)}' {fault}")
    return pattern


Pattern = Annotated[
    str, StringConstraints(min_length=1, max_length=253), AfterValidator(_check_glob)
]
Patterns = Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=256)]
SubnetText = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Gbps = Annotated[float, Field(gt=0, le=1_000_000, strict=True)]


class PlaneChoice(NamedTuple):
    """The rules for planes, and the selected plane."""

    policies: tuple[PlanePolicy, ...] = ()
    """The policies in order of precedence; empty: the default rules."""
    plane_name: str = COMPUTE
    """The plane of the tree."""


DEFAULT_PLANES: Final = PlaneChoice()


class RuleModel(WireModel):
    """A port matches if all given fields do. Patterns are shell wildcards; case does not matter."""

    medium: Literal[Medium.INFINIBAND, Medium.ETHERNET] | None = None
    ports: Patterns | None = None
    """Names of ports, such as `mlx5_4/1` or `eth0`."""
    hosts: Patterns | None = None
    switches: Patterns | None = None
    """Names of the switches that the port is connected to."""
    subnets: Annotated[tuple[SubnetText, ...], Field(min_length=1, max_length=64)] | None = None
    """Prefixes of InfiniBand subnets, 16 hex digits."""
    min_rate_gbps: Gbps | None = None
    max_rate_gbps: Gbps | None = None
    gpu: GpuDistance | None = None
    """The greatest allowed PCI Express distance to the nearest GPU."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse a lower bound above the upper bound."""
        minimum, maximum = self.min_rate_gbps, self.max_rate_gbps
        if minimum is not None and maximum is not None and minimum > maximum:
            raise ValueError("minRateGbps is above maxRateGbps")
        return self


class PlaneModel(WireModel):
    """One plane, and the rules that select its ports."""

    name: PlaneName
    any: Annotated[tuple[RuleModel, ...], Field(min_length=1, max_length=256)]
    """A port must match at least one of these rules."""


class PlanesFile(WireModel):
    """The planes that the default rules get wrong; a port is in the first plane that matches."""

    planes: Annotated[tuple[PlaneModel, ...], Field(min_length=1, max_length=64)]


def parse_planes(raw: bytes, *, source: str) -> tuple[PlanePolicy, ...]:
    """Return the policies of a planes file.

    Raises:
        ConfigError: the document is wrong; the message names every wrong field.
    """
    document = parse_document(raw, source=source)
    try:
        parsed = PlanesFile.model_validate(document.value)
    except ValidationError as error:
        problems = "; ".join(describe_validation(error))
        raise ConfigError(f"{source}:{document.line}: {problems}") from error
    names = [plane.name for plane in parsed.planes]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate:
        raise ConfigError(f"{source}:{document.line}: plane {duplicate} is listed twice")
    return build_policies(parsed.planes, source=source)


def build_policies(planes: Iterable[PlaneModel], *, source: str) -> tuple[PlanePolicy, ...]:
    """Return the policies of parsed planes, in the same order.

    Raises:
        ConfigError: a subnet prefix is malformed; the message begins with the source.
    """
    return tuple(
        PlanePolicy(plane.name, tuple(_build_rule(rule, source) for rule in plane.any))
        for plane in planes
    )


def _build_rule(rule: RuleModel, source: str) -> PortRule:
    return PortRule(
        media=frozenset([rule.medium] if rule.medium else []),
        ports=rule.ports or (),
        hosts=rule.hosts or (),
        switches=rule.switches or (),
        subnets=frozenset(_parse_subnet(text, source) for text in rule.subnets or ()),
        min_rate_bps=_to_bps(rule.min_rate_gbps),
        max_rate_bps=_to_bps(rule.max_rate_gbps),
        gpu=rule.gpu,
    )


def _parse_subnet(text: str, source: str) -> str:
    subnet = parse_guid(text)
    if subnet is None:
        problem = f"'{show(text)}' is not a subnet prefix such as fe80000000000000"
        raise ConfigError(f"{source}: {problem}")
    return subnet


def _to_bps(gbps: float | None) -> int | None:
    return None if gbps is None else round(gbps * _GIGA)
