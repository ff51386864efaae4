"""The settings of the tree in the Fabric object: planes, outputs, tier names, sweepers. Pure.

A wrong value is reported, and the last good value counts instead: a typing error must not change
the tree that jobs are placed by. If no good value is known, as after a start, the field is unknown,
and nothing is planned until it is corrected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from generator.objects.fabric import FabricSpec, check_tier_names
from generator.objects.outputs import Output, OutputType, check_outputs
from generator.objects.plane_config import DEFAULT_PLANES, PlaneChoice, PlaneModel, build_policies
from topology.model.errors import ConfigError, ParseError, list_some, show
from topology.model.validation import describe_validation
from topology.model.wire_model import DEFERRED
from topology.planes.policy import COMPUTE, DEFAULT_PLANE_NAMES, PlanePolicy
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME

FABRIC_SOURCE: Final = f"{FABRIC_KIND} {FABRIC_NAME}"
_LAST_COUNTS: Final = "the last good value counts"
_TIER_NAMES: Final = "tierNames"
_PLANE_FIELD: Final = "planes"
_WHOLE_SPEC: Final = ""
_OUTPUTS_FIELD: Final = "outputs"
_PLANE_OF_OUTPUTS: Final = "outputs.plane"
_MAX_SHOWN: Final = 10
_SWEEPERS: Final = "sweepers"
_ADAPTERS: Final[Mapping[str, TypeAdapter[Any]]] = {
    field: TypeAdapter(FabricSpec.model_fields[name].rebuild_annotation(), config=DEFERRED)
    for field, name in (
        (_PLANE_FIELD, "planes"),
        (_TIER_NAMES, "tier_names"),
        (_OUTPUTS_FIELD, "outputs"),
        (_SWEEPERS, "sweepers"),
    )
}
"""What each field of the spec may be; each is validated alone."""


class UnknownSetting(NamedTuple):
    """A field of which no good value is known."""

    field: str
    """Below `spec`; empty for the whole spec."""
    problem: str
    """The fault of the value, in one line."""


class TreeSpec(NamedTuple):
    """The settings of the tree."""

    planes: PlaneChoice = DEFAULT_PLANES
    """The rules for planes, and the plane of the tree."""
    tier_names: tuple[str, ...] = ()
    """Bottom-up; empty: the default names."""
    has_hypernodes: bool = True
    """Whether the tree is written as HyperNodes."""
    outputs: tuple[Output, ...] = ()
    """The other outputs."""
    sweepers: tuple[str, ...] = ()
    """The only nodes whose sweeps count; empty: those that are elected."""
    unknown: tuple[UnknownSetting, ...] = ()
    """The fields with a wrong value of which no good value is known."""

    def with_planes(self, planes: PlaneChoice) -> TreeSpec:
        """Return a copy with the planes of an option, which replace those of the object."""
        replaced = {_PLANE_FIELD, _PLANE_OF_OUTPUTS}
        unknown = tuple(setting for setting in self.unknown if setting.field not in replaced)
        return self._replace(planes=planes, unknown=unknown)


DEFAULT_TREE_SPEC: Final = TreeSpec()


def parse_tree_spec(
    document: Mapping[str, Any] | None, last: TreeSpec | None = None
) -> tuple[TreeSpec, tuple[ParseError, ...]]:
    """Return the settings in a Fabric object, and its wrong values.

    Args:
        document: the object; None: there is none, and the defaults count.
        last: the last settings, whose good values replace wrong ones; None: none is known.
    """
    raw_spec = document.get("spec") if document else None
    faults: dict[str, str] = {}
    if not (raw_spec is None or isinstance(raw_spec, Mapping)):
        faults[_WHOLE_SPEC] = f"expected an object, got {type(raw_spec).__name__}"
        return _keep_last(last or DEFAULT_TREE_SPEC, faults, last)
    spec: Mapping[str, Any] = raw_spec or {}
    good = last or DEFAULT_TREE_SPEC
    planes = _take(spec, _PLANE_FIELD, faults)
    policies = _parse_policies(planes, last=good.planes.policies, faults=faults)
    names = _take(spec, _TIER_NAMES, faults)
    outputs = _take(spec, _OUTPUTS_FIELD, faults)
    sweepers = _take(spec, _SWEEPERS, faults)
    plane, has_hypernodes, others = good.planes.plane_name, good.has_hypernodes, good.outputs
    if outputs is not None:
        others = tuple(row for row in outputs if row.type is not OutputType.HYPERNODE)
        # Only an explicit list without HyperNodes removes them: `outputs:` alone is null in YAML.
        has_hypernodes = len(others) < len(outputs) or spec.get(_OUTPUTS_FIELD) is None
        wanted = outputs[0].plane if outputs else COMPUTE
        plane = _take_plane(wanted, policies, last=plane, faults=faults)
    tier_names = good.tier_names if names is None else names
    nodes = good.sweepers if sweepers is None else sweepers
    found = TreeSpec(PlaneChoice(policies, plane), tier_names, has_hypernodes, others, nodes)
    return _keep_last(found, faults, last)


def _keep_last(
    found: TreeSpec, faults: Mapping[str, str], last: TreeSpec | None
) -> tuple[TreeSpec, tuple[ParseError, ...]]:
    """Return the settings with the fields of which no good value is known, and the problems."""
    never_good = {setting.field for setting in last.unknown} if last is not None else set(faults)
    is_all_unknown = _WHOLE_SPEC in never_good
    unknown = tuple(
        UnknownSetting(field, problem)
        for field, problem in faults.items()
        if is_all_unknown or field in never_good or (field == _WHOLE_SPEC and never_good)
    )
    fields = {setting.field for setting in unknown}
    problems = tuple(
        ParseError(
            f"{show_field(field)}: {problem}; "
            + ("nothing is planned until it is corrected" if field in fields else _LAST_COUNTS),
            source=FABRIC_SOURCE,
        )
        for field, problem in faults.items()
    )
    return found._replace(unknown=unknown), problems


def show_field(field: str) -> str:
    """Return the path of a setting in the Fabric object."""
    return f"spec.{field}" if field else "spec"


def _take(spec: Mapping[str, Any], field: str, faults: dict[str, str]) -> Any:  # noqa: ANN401
    """Return the value of a field: empty if it is absent, None if it is wrong."""
    value = spec.get(field)
    try:
        parsed = _ADAPTERS[field].validate_python(() if value is None else value)
        _refuse_duplicates([_get_name(item) for item in parsed])
        if field == _TIER_NAMES:
            check_tier_names(parsed)
        if field == _OUTPUTS_FIELD:
            check_outputs(parsed)
    except (ValidationError, ConfigError) as error:
        faults[field] = _explain(error)
        return None
    return parsed


def _parse_policies(
    planes: tuple[PlaneModel, ...] | None,
    *,
    last: tuple[PlanePolicy, ...],
    faults: dict[str, str],
) -> tuple[PlanePolicy, ...]:
    if planes is None:
        return last
    try:
        return build_policies(planes, source=FABRIC_SOURCE)
    except ConfigError as error:
        faults[_PLANE_FIELD] = _explain(error)
        return last


def _take_plane(
    wanted: str, policies: tuple[PlanePolicy, ...], *, last: str, faults: dict[str, str]
) -> str:
    """Return the plane of the outputs; the last one if no plane has this name."""
    names = [policy.name for policy in policies]
    known = [*names, *(name for name in DEFAULT_PLANE_NAMES if name not in names)]
    if wanted in known:
        return wanted
    if _PLANE_FIELD not in faults:
        expected = list_some(map(show, known), _MAX_SHOWN)
        faults[_PLANE_OF_OUTPUTS] = (
            f"no plane is named '{show(wanted)}'; expected {expected}, or a name in spec.planes"
        )
    return last


def _get_name(item: PlaneModel | Output | str) -> str:
    if isinstance(item, str):
        return item
    return item.name if isinstance(item, PlaneModel) else item.type


def _refuse_duplicates(names: list[str]) -> None:
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ConfigError(f"'{show(duplicate)}' is listed twice")


def _explain(error: ValidationError | ConfigError) -> str:
    return (
        "; ".join(describe_validation(error)) if isinstance(error, ValidationError) else str(error)
    )
