"""What people say in the Fabric object about the tree: its network, its tiers' names. Pure.

A bad value costs itself and is named, and what was said last counts instead: a typing error must
not change a tree that jobs are placed by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from generator.objects.fabric import Output, OutputType, TierName
from generator.objects.plane_config import DEFAULT_PLANES, PlaneChoice, PlaneModel, build_policies
from topology.model.errors import ConfigError, ParseError, show
from topology.model.validation import describe_validation
from topology.planes.policy import COMPUTE, PlanePolicy
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME

_SOURCE: Final = f"{FABRIC_KIND} {FABRIC_NAME}"
_PLANES: Final = TypeAdapter(Annotated[tuple[PlaneModel, ...], Field(max_length=64)])
_TIERS: Final = TypeAdapter(Annotated[tuple[TierName, ...], Field(max_length=16)])
_OUTPUTS: Final = TypeAdapter(Annotated[tuple[Output, ...], Field(max_length=8)])


class TreeSpec(NamedTuple):
    """What holds for the tree."""

    planes: PlaneChoice = DEFAULT_PLANES
    """How networks are told apart, and which of them the tree is of."""
    tier_names: tuple[str, ...] = ()
    """Bottom-up; the usual ones where empty."""
    has_hypernodes: bool = True
    """Whether it is to become HyperNodes."""


DEFAULT_TREE_SPEC: Final = TreeSpec()


def parse_tree_spec(
    document: Mapping[str, Any] | None, last: TreeSpec = DEFAULT_TREE_SPEC
) -> tuple[TreeSpec, tuple[ParseError, ...]]:
    """Return what a Fabric object says, and what of it is no use.

    Args:
        document: the object, None where there is none.
        last: counts for values that are no use.
    """
    found = document.get("spec") if document else None
    spec: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    problems: list[ParseError] = []

    def take(field: str, adapter: TypeAdapter[Any]) -> Any:  # noqa: ANN401 - of each field another
        """Return a value, an empty one where it is absent, None where it is no use."""
        try:
            parsed = adapter.validate_python(spec.get(field) or ())
            _refuse_duplicates([_parse_plane_name(one) for one in parsed])
        except (ValidationError, ConfigError) as error:
            problems.append(_build_problem(field, error))
            return None
        return parsed

    planes = take("planes", _PLANES)
    policies = _parse_policies(planes, last=last.planes.policies, problems=problems)
    names = take("tierNames", _TIERS)
    outputs = take("outputs", _OUTPUTS)
    plane, has_hypernodes = last.planes.plane_name, last.has_hypernodes
    if outputs is not None:
        wanted = [one.plane for one in outputs if one.type is OutputType.HYPERNODE]
        has_hypernodes = bool(wanted) or "outputs" not in spec
        plane = wanted[0] if wanted else COMPUTE
    tier_names = last.tier_names if names is None else names
    return TreeSpec(PlaneChoice(policies, plane), tier_names, has_hypernodes), tuple(problems)


def _parse_policies(
    planes: tuple[PlaneModel, ...] | None,
    *,
    last: tuple[PlanePolicy, ...],
    problems: list[ParseError],
) -> tuple[PlanePolicy, ...]:
    if planes is None:
        return last
    try:
        return build_policies(planes, source=_SOURCE)
    except ConfigError as error:
        problems.append(_build_problem("planes", error))
        return last


def _parse_plane_name(found: PlaneModel | Output | str) -> str:
    if isinstance(found, str):
        return found
    return found.name if isinstance(found, PlaneModel) else found.type


def _refuse_duplicates(names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"'{show(twice)}' is there twice")


def _build_problem(field: str, error: ValidationError | ConfigError) -> ParseError:
    why = (
        "; ".join(describe_validation(error)) if isinstance(error, ValidationError) else str(error)
    )
    return ParseError(f"spec.{field}: {why}; what was said before counts", source=_SOURCE)
