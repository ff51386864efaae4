"""The file that tells networks apart where the default is wrong: which ports are whose plane's.

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

A port is in the first plane of which it fits a rule, and it fits a rule when it is all that the
rule says. Ports that fit none go where the default puts them, but into no plane of the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import (
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from generator.objects.yaml_document import parse_document
from topology.model.errors import ConfigError, show
from topology.model.facts import GpuDistance, Medium
from topology.model.ids import parse_guid
from topology.model.validation import describe_validation
from topology.model.wire_model import WireModel
from topology.planes.policy import COMPUTE, PlanePolicy, PortRule

MAX_PLANES_BYTES: Final = 1 << 20
_GIGA: Final = 10**9

PlaneName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)
]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Patterns = Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=256)]
SubnetText = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Gbps = Annotated[float, Field(gt=0, le=1_000_000, strict=True)]


class PlaneChoice(NamedTuple):
    """How the networks of a fabric are told apart, and which of them is asked for."""

    policies: tuple[PlanePolicy, ...] = ()
    plane_name: str = COMPUTE


DEFAULT_PLANES: Final = PlaneChoice()


class RuleModel(WireModel):
    """What a port must be. Patterns have the shell's wildcards; case does not matter."""

    medium: Literal[Medium.INFINIBAND, Medium.ETHERNET] | None = None
    ports: Patterns | None = None
    """Names of ports, such as `mlx5_4/1` or `eth0`."""
    hosts: Patterns | None = None
    switches: Patterns | None = None
    """Names of switches that the port is cabled to."""
    subnets: Annotated[tuple[SubnetText, ...], Field(min_length=1, max_length=64)] | None = None
    """Prefixes of InfiniBand subnets, 16 hex digits."""
    min_rate_gbps: Gbps | None = None
    max_rate_gbps: Gbps | None = None
    gpu: GpuDistance | None = None
    """The farthest from the nearest GPU on PCI Express."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse bounds that no rate is within."""
        least, most = self.min_rate_gbps, self.max_rate_gbps
        if least is not None and most is not None and least > most:
            raise ValueError("minRateGbps is above maxRateGbps")
        return self


class PlaneModel(WireModel):
    """One network, and the ports that are its own."""

    name: PlaneName
    any: Annotated[tuple[RuleModel, ...], Field(min_length=1, max_length=256)]
    """Rules, of which a port must fit one."""


class PlanesFile(WireModel):
    """The networks that the default tells wrongly, in the order in which they are looked at."""

    planes: Annotated[tuple[PlaneModel, ...], Field(min_length=1, max_length=64)]


def parse_planes(raw: bytes, *, source: str) -> tuple[PlanePolicy, ...]:
    """Return the policies of a planes file.

    Raises:
        ConfigError: the file is no such document, names every field that is wrong.
    """
    found = parse_document(raw, source=source)
    try:
        parsed = PlanesFile.model_validate(found.value)
    except ValidationError as error:
        problems = "; ".join(describe_validation(error))
        raise ConfigError(f"{source}:{found.line}: {problems}") from error
    names = [plane.name for plane in parsed.planes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ConfigError(f"{source}:{found.line}: plane {twice} is there twice")
    return build_policies(parsed.planes, source=source)


def build_policies(planes: Iterable[PlaneModel], *, source: str) -> tuple[PlanePolicy, ...]:
    """Return the policies of networks that were read, in the same order.

    Raises:
        ConfigError: a prefix of a subnet is none; the message begins with the source.
    """
    return tuple(
        PlanePolicy(plane.name, tuple(_build_rule(rule, source) for rule in plane.any))
        for plane in planes
    )


def read_planes(file: Path) -> tuple[PlanePolicy, ...]:
    """Read the policies of a planes file.

    Raises:
        ConfigError: it cannot be read, or is no such file.
    """
    source = show(str(file), 1024)
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_PLANES_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read: {error.strerror}") from error
    if len(raw) > MAX_PLANES_BYTES:
        raise ConfigError(f"{source}: larger than {MAX_PLANES_BYTES} bytes")
    return parse_planes(raw, source=source)


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
        raise ConfigError(f"{source}: '{show(text)}' is no subnet prefix such as fe80000000000000")
    return subnet


def _to_bps(gbps: float | None) -> int | None:
    return None if gbps is None else round(gbps * _GIGA)
