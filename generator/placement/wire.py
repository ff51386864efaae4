"""The pydantic models of a PlacementRequest document: types and ranges of single fields.

Rules that span several fields are checked in `groups` and `request`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticKnownError

from generator.placement.node_selection import (
    NAME_FIELD,
    NodeOperator,
    TaintEffect,
    TolerationOperator,
    is_integer,
)
from generator.placement.presets import Preset
from generator.placement.quantities import MAX_REQUEST_UNITS, count_request, parse_amount
from topology.model.wire_model import DEFERRED

MAX_PODS = 1_000_000
MAX_GROUPS = 256
"""Each group may have its own pod shape, which costs arrays over all nodes."""
MAX_QUANTITY = MAX_REQUEST_UNITS


def _tier_name(value: object) -> object:
    """Convert an integer to a tier name; a boolean is not an integer here, and stays invalid."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Tier = Annotated[str, BeforeValidator(_tier_name), Field(min_length=1)]
Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=MAX_PODS, strict=True)]
Natural = Annotated[int, Field(ge=0, le=MAX_PODS, strict=True)]
Weight = Annotated[int, Field(ge=0, le=MAX_PODS, strict=True)]


def _check_quantity(value: object) -> object:
    """Return a whole number of base units, or a text such as `7900m`, unchanged."""
    if isinstance(value, str):
        amount = _parse_text(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        amount = Decimal(value)
    else:
        raise PydanticKnownError("int_type")
    if amount < 0:
        raise PydanticKnownError("greater_than_equal", {"ge": 0})
    if amount > MAX_QUANTITY:
        raise PydanticKnownError("less_than_equal", {"le": MAX_QUANTITY})
    return value


def _parse_text(text: str) -> Decimal:
    try:
        return parse_amount(text)
    except ValueError as error:
        problem = str(error).partition(", got ")[0]  # the value is appended to every problem
        raise ValueError(problem) from error


_QUANTITY_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": MAX_QUANTITY},
        {"type": "string", "description": "a Kubernetes quantity such as 7900m or 16Gi"},
    ]
}
_Quantity = Annotated[int, PlainValidator(_check_quantity), WithJsonSchema(_QUANTITY_SCHEMA)]
PodRequest = Annotated[dict[Name, _Quantity], AfterValidator(count_request)]
"""Quantities as people write them; units of `quantities` once validated."""


class _RequestModel(BaseModel):
    model_config = ConfigDict(**DEFERRED, extra="forbid", frozen=True)


class LayerRow(_RequestModel):
    """One slice layer; a size of 0, or none, is answered with `bad-slice`, not as malformed."""

    size: Natural = 0
    """Pods of one slice."""
    tier: Tier | None = None
    """Tier of a domain that must hold a slice; without it, slices only count in the objective."""
    remainder: Literal["reject", "short"] = "reject"
    """`short` allows an incomplete last slice."""
    min: Natural = 0
    """The fewest whole slices; with fewer the gang is not placed."""
    placement: Literal["any", "spread", "consolidate"] = "any"
    """`spread` allows one slice per domain of the tier."""
    indexed: bool = False
    """Whether slice k is the pods from index k times size."""


class SpreadRow(_RequestModel):
    """How many domains of a tier the pods of a group use."""

    min: Count = 1
    """The fewest domains."""
    max: Count | None = None
    """The most domains; any number without it."""


class NodeRequirementRow(_RequestModel):
    """A requirement on the nodes of a pod, as in the node affinity of Kubernetes."""

    key: Name | None = None
    """The label that is compared."""
    field: Literal["metadata.name"] | None = None
    """The field that is compared instead of a label: the name of the node."""
    operator: NodeOperator
    """With NotIn and DoesNotExist, a node without the label passes."""
    values: Annotated[list[str], Field(validate_default=True)] = []
    """Values of In and NotIn; the integer of Gt and Lt."""

    @field_validator("operator")
    @classmethod
    def _check_operator(cls, operator: NodeOperator, info: ValidationInfo) -> NodeOperator:
        row = info.data
        if (row.get("key") is None) == (row.get("field") is None):
            raise ValueError(f"expected either a key or the field {NAME_FIELD}")
        if row.get("field") and operator not in _FIELD_OPERATORS:
            raise ValueError("expected In or NotIn for a field")
        return operator

    @field_validator("values")
    @classmethod
    def _check_values(cls, values: list[str], info: ValidationInfo) -> list[str]:
        operator = info.data.get("operator")
        if operator in _FIELD_OPERATORS and not values:
            raise ValueError(f"expected at least one value for {operator}")
        if operator in _PRESENCE_OPERATORS and values:
            raise ValueError(f"expected no value for {operator}")
        if operator in _ORDER_OPERATORS and (len(values) != 1 or not is_integer(values[0])):
            raise ValueError(f"expected one integer for {operator}")
        return values


_FIELD_OPERATORS: Final = frozenset({NodeOperator.IN, NodeOperator.NOT_IN})
_PRESENCE_OPERATORS: Final = frozenset({NodeOperator.EXISTS, NodeOperator.DOES_NOT_EXIST})
_ORDER_OPERATORS: Final = frozenset({NodeOperator.GT, NodeOperator.LT})


class TolerationRow(_RequestModel):
    """Taints that a pod tolerates, as in Kubernetes."""

    effect: TaintEffect | None = None
    """The effect of the taint; every effect without it."""
    operator: TolerationOperator = TolerationOperator.EQUAL
    """Exists accepts every value; Gt and Lt compare integers."""
    key: Annotated[str, Field(validate_default=True)] = ""
    """The key of the taint; without it, and with Exists, every key."""
    value: Annotated[str, Field(validate_default=True)] = ""
    """The value that the taint has, or is compared with."""

    @field_validator("key")
    @classmethod
    def _check_key(cls, key: str, info: ValidationInfo) -> str:
        if not key and info.data.get("operator") is not TolerationOperator.EXISTS:
            raise ValueError("expected a key, or the operator Exists")
        return key

    @field_validator("value")
    @classmethod
    def _check_value(cls, value: str, info: ValidationInfo) -> str:
        operator = info.data.get("operator")
        if operator is TolerationOperator.EXISTS and value:
            raise ValueError("expected no value for Exists")
        if operator in (TolerationOperator.GT, TolerationOperator.LT) and not is_integer(value):
            raise ValueError(f"expected an integer for {operator}")
        return value


def _read_toleration(value: object) -> object:
    """Return the fields of a toleration for the text form `key` or `key=value`."""
    if not isinstance(value, str):
        return value
    key, equals, text = value.partition("=")
    if equals or not key:
        return {"key": key, "value": text}
    return {"key": key, "operator": TolerationOperator.EXISTS.value}


TolerationEntry = Annotated[
    TolerationRow, BeforeValidator(_read_toleration, json_schema_input_type=str | TolerationRow)
]


class GroupRow(_RequestModel):
    """One group: pods, or child groups."""

    name: Name
    """Unique in the gang."""
    count: Natural | None = None
    """Pods of the group; not on a group with children.

    0, with a `min` of 0, if all of its pods run already.
    """
    min: Natural | None = None
    """The fewest pods, all by default; on a group with children, the fewest complete children."""
    request: PodRequest = {"slots": 1}
    """Resources of one pod: whole numbers, or quantities such as 7900m and 16Gi."""
    required: Tier | None = None
    """Tier of a domain that must hold the whole group."""
    preferred: list[Tier] = []
    """Tiers of a domain that should hold the whole group; the narrowest last."""
    slices: list[LayerRow] = []
    """Layers of pods that stay together, from coarse to fine."""
    multiple_of: dict[Tier, Count] = {}
    """By tier: the pods in each domain are a multiple of this."""
    node_selector: dict[Name, str | list[str]] = {}
    """Labels that a node must have; of several values one."""
    node_affinity: list[Annotated[list[NodeRequirementRow], Field(min_length=1)]] = []
    """Requirements on nodes: all of one of the lists must be met."""
    tolerations: list[TolerationEntry] = []
    """Taints that are tolerated: `key`, `key=value`, or an object as in Kubernetes."""
    node_preference: dict[Name, str] = {}
    """Labels that nodes should have; never a bound."""
    leader_of: Name | None = None
    """Name of the workers that this group leads, within one domain of its required tier."""
    max_per_node: Count | None = None
    """The most pods of the group on one node, running pods included; any number without it."""
    spread: dict[Tier, SpreadRow] = {}
    """How many domains of a tier the pods may use. Running pods count."""
    exclusive: Tier | None = None
    """A tier. The domains of this tier that the group uses contain no other group."""
    children: list[GroupRow] = []
    """Groups inside this one."""


class SortRow(_RequestModel):
    """A user's sort rule for domains."""

    resource: Name
    dimension: Literal["Capacity", "Available"] = "Capacity"
    order: Literal["Ascending", "Descending"] = "Ascending"


class AffinityRow(_RequestModel):
    """Roles, by group name, that attract or repel each other on a node."""

    attract: list[list[Name]] = []
    repel: list[list[Name]] = []
    order: list[Name] = []


class OptionsRow(_RequestModel):
    """Options that only one preset reads."""

    weight: dict[Name, Natural] | Annotated[float, Field(gt=0, le=1e6)] | None = None
    """slurm-tree: weight per node, lighter nodes first; task-topology: factor of the scores."""
    preferred_nodes: list[Name] = []
    """godel: nodes that steer which domains are tried."""
    ever_scheduled: bool = False
    """godel: the gang ran before, so that one pod is enough."""
    sample: Natural = 0
    """kubernetes: how many domains with room are compared; 0 for all."""
    spare_islands: bool = False
    """optimal: compare the tightest top domain before fewer domains inside it."""
    arguments: dict[str, Any] = {}
    """volcano: plugin arguments; they weigh scores and do not change this placement."""


class Spec(_RequestModel):
    """The request itself."""

    preset: Preset = Preset.OPTIMAL
    """The scheduler whose order of preferences is used."""
    gang: Name = "self"
    """Name of the gang; its running pods stay and count."""
    priority: int = 0
    """Higher is more important."""
    preemption: Literal["never", "topologyFirst", "fewestVictims", "perDomain"] = "never"
    """Which running pods of lower priority may be evicted if nothing fits otherwise."""
    groups: Annotated[list[GroupRow], Field(min_length=1, max_length=MAX_GROUPS)]
    """The pods of the gang."""
    min: Natural = 0
    """The fewest pods over all groups; with fewer the gang is not placed."""
    required: Tier | None = None
    """Tier of a domain that must hold the whole gang."""
    preferred: list[Tier] = []
    """Tiers of a domain that should hold the whole gang; the narrowest last."""
    strategies: list[tuple[Tier, Tier]] = []
    """(tier of the job, tier of every part): the first pair that can be met counts."""
    sort: list[SortRow] = []
    """Domains with more, or less, of a resource come first."""
    affinity: AffinityRow = AffinityRow.model_construct()
    """Roles that attract or repel each other."""
    traffic: list[tuple[Name, Name, Weight]] = []
    """(group, group, weight) of groups that communicate."""
    max_domains: dict[Tier, Natural] = {}
    """By tier: the most domains that the gang uses."""
    exclusive: Tier | None = None
    """A tier. The domains of this tier that the gang uses contain no other gang."""
    options: OptionsRow = OptionsRow.model_construct()
    """Options of single presets."""
    plane: Name = "compute"
    """The network that the gang uses."""
    across_islands: bool = False
    """Whether the gang may use islands, which share no cable."""
    deadline_s: Annotated[float, Field(gt=0, le=3600)] | None = None
    """Seconds that the search may take."""


class Document(_RequestModel):
    """A document of kind PlacementRequest; `metadata` is accepted and not read."""

    api_version: Annotated[Literal["toponaut.io/v1alpha1"], Field(alias="apiVersion")]
    kind: Literal["PlacementRequest"]
    metadata: dict[str, Any] = {}
    spec: Spec
