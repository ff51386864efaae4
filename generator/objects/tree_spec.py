"""The settings of the tree in the Fabric object: planes, outputs, tier names, sweepers. Pure.

A wrong value is reported, and the last good value counts instead: a typing error must not change
the tree that jobs are placed by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from generator.objects.fabric import NodeName, Output, OutputType, TierName, check_tier_names
from generator.objects.plane_config import DEFAULT_PLANES, PlaneChoice, PlaneModel, build_policies
from topology.model.errors import ConfigError, ParseError, show
from topology.model.validation import describe_validation
from topology.planes.policy import COMPUTE, PlanePolicy
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME

_SOURCE: Final = f"{FABRIC_KIND} {FABRIC_NAME}"
_PLANES: Final = TypeAdapter(Annotated[tuple[PlaneModel, ...], Field(max_length=64)])
_TIER_NAMES: Final = "tierNames"
_TIERS: Final = TypeAdapter(Annotated[tuple[TierName, ...], Field(max_length=16)])
_SWEEPERS: Final = TypeAdapter(Annotated[tuple[NodeName, ...], Field(max_length=256)])
_OUTPUTS: Final = TypeAdapter(Annotated[tuple[Output, ...], Field(max_length=8)])


class TreeSpec(NamedTuple):
    """The settings of the tree."""

    planes: PlaneChoice = DEFAULT_PLANES
    """The rules for planes, and the plane of the tree."""
    tier_names: tuple[str, ...] = ()
    """Bottom-up; empty: the default names."""
    has_hypernodes: bool = True
    """Whether the tree is written as HyperNodes."""
    sweepers: tuple[str, ...] = ()
    """The only nodes whose sweeps count; empty: those that are elected."""


DEFAULT_TREE_SPEC: Final = TreeSpec()


def parse_tree_spec(
    document: Mapping[str, Any] | None, last: TreeSpec = DEFAULT_TREE_SPEC
) -> tuple[TreeSpec, tuple[ParseError, ...]]:
    """Return the settings in a Fabric object, and its wrong values.

    Args:
        document: the object; None: there is none, and the defaults count.
        last: the last good settings, which replace wrong values.
    """
    raw_spec = document.get("spec") if document else None
    spec: Mapping[str, Any] = raw_spec if isinstance(raw_spec, Mapping) else {}
    problems: list[ParseError] = []

    def take(field: str, adapter: TypeAdapter[Any]) -> Any:  # noqa: ANN401 - differs by field
        """Return the value of a field: empty if it is absent, None if it is wrong."""
        try:
            parsed = adapter.validate_python(spec.get(field) or ())
            _refuse_duplicates([_get_name(item) for item in parsed])
            if field == _TIER_NAMES:
                check_tier_names(parsed)
        except (ValidationError, ConfigError) as error:
            problems.append(_build_problem(field, error))
            return None
        return parsed

    planes = take("planes", _PLANES)
    policies = _parse_policies(planes, last=last.planes.policies, problems=problems)
    names = take(_TIER_NAMES, _TIERS)
    outputs = take("outputs", _OUTPUTS)
    sweepers = take("sweepers", _SWEEPERS)
    plane, has_hypernodes = last.planes.plane_name, last.has_hypernodes
    if outputs is not None:
        planes_of_outputs = [
            output.plane for output in outputs if output.type is OutputType.HYPERNODE
        ]
        # Only an explicit list without HyperNodes removes them: `outputs:` alone is null in YAML.
        has_hypernodes = bool(planes_of_outputs) or spec.get("outputs") is None
        plane = planes_of_outputs[0] if planes_of_outputs else COMPUTE
    tier_names = last.tier_names if names is None else names
    choice = PlaneChoice(policies, plane)
    nodes = last.sweepers if sweepers is None else sweepers
    return TreeSpec(choice, tier_names, has_hypernodes, nodes), tuple(problems)


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


def _get_name(item: PlaneModel | Output | str) -> str:
    if isinstance(item, str):
        return item
    return item.name if isinstance(item, PlaneModel) else item.type


def _refuse_duplicates(names: list[str]) -> None:
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ConfigError(f"'{show(duplicate)}' is listed twice")


def _build_problem(field: str, error: ValidationError | ConfigError) -> ParseError:
    why = (
        "; ".join(describe_validation(error)) if isinstance(error, ValidationError) else str(error)
    )
    return ParseError(f"spec.{field}: {why}; the last good value counts", source=_SOURCE)
