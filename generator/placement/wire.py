"""The pydantic models of a PlacementRequest document: types and ranges of single fields.

Rules that span several fields are checked in `groups` and `request`. The models have the fields of
the messages in `placement.proto`, so that the JSON form of a message is a document. For people, a
document may also have short forms, such as a list instead of an object with one field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
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
from generator.placement.quantities import (
    MAX_REQUEST_UNITS,
    count_request,
    parse_amount,
    render_quantities,
)
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


def _count_units(quantities: Mapping[str, int | str]) -> dict[str, int]:
    """Return a request in the units of `quantities`.

    An empty request becomes zero slots, as in an RPC message.
    """
    return count_request(quantities) or {"slots": 0}


def render_pod_request(units: Mapping[str, int]) -> dict[str, str]:
    """Return units as texts."""
    return {name: str(quantity) for name, quantity in render_quantities(units.items()).items()}


PodRequest = Annotated[
    dict[Name, _Quantity], AfterValidator(_count_units), PlainSerializer(render_pod_request)
]
"""Quantities as people write them; units of `quantities` once validated."""


class _RequestModel(BaseModel):
    model_config = ConfigDict(**DEFERRED, extra="forbid", frozen=True)


def _read_list(*names: str) -> Callable[[object], object]:
    """Return a reader of the short form of a row: the list of its values.

    If the row has a single field, the list is the value of that field.
    """

    def read(value: object) -> object:
        if not isinstance(value, list | tuple):
            return value
        values = (value,) if len(names) == 1 else value
        if len(values) != len(names):
            raise ValueError(f"expected a list of {', '.join(names)}")
        return dict(zip(names, values, strict=True))

    return read


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


class LabelValuesRow(_RequestModel):
    """Accepted values of a label."""

    values: list[str] = []
    """The node must have one of them."""


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


class NodeTermRow(_RequestModel):
    """Requirements that a node meets together."""

    requirements: Annotated[
        list[NodeRequirementRow], Field(min_length=1, validate_default=True)
    ] = []
    """At least one."""


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


def _read_label_values(value: object) -> object:
    """Return the fields of accepted values for one value, or a list of them."""
    return _read_list("values")([value] if isinstance(value, str) else value)


LabelValues = Annotated[
    LabelValuesRow,
    BeforeValidator(_read_label_values, json_schema_input_type=str | list[str] | LabelValuesRow),
]


NodeTerm = Annotated[
    NodeTermRow,
    BeforeValidator(
        _read_list("requirements"),
        json_schema_input_type=NodeTermRow
        | Annotated[list[NodeRequirementRow], Field(min_length=1)],
    ),
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
    node_selector: dict[Name, LabelValues] = {}
    """Labels that a node must have; of several values one."""
    node_affinity: list[NodeTerm] = []
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


class RolesRow(_RequestModel):
    """Groups that act as one role."""

    groups: list[Name] = []
    """Names of groups, each at most once."""


Roles = Annotated[
    RolesRow, BeforeValidator(_read_list("groups"), json_schema_input_type=list[Name] | RolesRow)
]


class AffinityRow(_RequestModel):
    """Roles, by group name, that attract or repel each other on a node."""

    attract: list[Roles] = []
    repel: list[Roles] = []
    order: list[Name] = []


class StrategyRow(_RequestModel):
    """Bounds that apply together."""

    job_tier: Tier
    """Highest tier of a domain that holds the whole job."""
    part_tier: Tier
    """Highest tier of a domain that holds a part of the job."""


class TrafficRow(_RequestModel):
    """Groups that communicate."""

    first: Name
    """Name of a group."""
    second: Name
    """Name of a group; may be the same group."""
    weight: Natural = 0
    """Weight per pair of pods."""


Strategy = Annotated[
    StrategyRow,
    BeforeValidator(
        _read_list("job_tier", "part_tier"),
        json_schema_input_type=tuple[Tier, Tier] | StrategyRow,
    ),
]
Traffic = Annotated[
    TrafficRow,
    BeforeValidator(
        _read_list("first", "second", "weight"),
        json_schema_input_type=tuple[Name, Name, Natural] | TrafficRow,
    ),
]


class OptionsRow(_RequestModel):
    """Options that only one preset reads."""

    node_weights: dict[Name, Natural] = {}
    """slurm-tree: weight per node, lighter nodes first."""
    score_weight: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """task-topology: factor of the scores; not together with weights of nodes."""
    weight: dict[str, Any] | float | None = None
    """Short form of `node_weights`, if it is an object, or of `score_weight`."""
    preferred_nodes: list[Name] = []
    """godel: nodes that steer which domains are tried."""
    ever_scheduled: bool = False
    """godel: the gang ran before, so that one pod is enough."""
    sample: Natural = 0
    """kubernetes: how many domains with room are compared; 0 for all."""
    spare_islands: bool = False
    """optimal: compare the tightest top domain before fewer domains inside it."""
    arguments: Annotated[dict[str, Any], Field(exclude=True)] = {}
    """volcano: plugin arguments; they weigh scores and do not change this placement."""

    @model_validator(mode="before")
    @classmethod
    def _read_weight(cls, value: object) -> object:
        if not isinstance(value, dict) or value.get("weight") is None:
            return value
        rest = dict(value)
        weight = rest.pop("weight")
        return {"node_weights" if isinstance(weight, dict) else "score_weight": weight} | rest

    @field_validator("score_weight")
    @classmethod
    def _check_score_weight(cls, weight: float | None, info: ValidationInfo) -> float | None:
        if weight is not None and info.data.get("node_weights"):
            raise ValueError("cannot be combined with node_weights")
        return weight


_NO_AFFINITY: Final = AffinityRow.model_construct()
_NO_OPTIONS: Final = OptionsRow.model_construct()
"""Both are frozen, so requests share them: pydantic would copy a default for each request."""


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
    strategies: list[Strategy] = []
    """(tier of the job, tier of every part): the first pair that can be met counts."""
    sort: list[SortRow] = []
    """Domains with more, or less, of a resource come first."""
    affinity: AffinityRow = Field(default_factory=lambda: _NO_AFFINITY)
    """Roles that attract or repel each other."""
    traffic: list[Traffic] = []
    """(group, group, weight) of groups that communicate."""
    max_domains: dict[Tier, Natural] = {}
    """By tier: the most domains that the gang uses."""
    exclusive: Tier | None = None
    """A tier. The domains of this tier that the gang uses contain no other gang."""
    options: OptionsRow = Field(default_factory=lambda: _NO_OPTIONS)
    """Options of single presets."""
    plane: Name = "compute"
    """The network that the gang uses."""
    across_islands: bool = False
    """Whether the gang may use islands, which share no cable."""
    deadline_s: Annotated[float, Field(gt=0, le=3600)] | None = None
    """Seconds that the search may take."""


class RunningPodsRow(_RequestModel):
    """Equal pods of the gang that run on one node."""

    node: Name
    request: PodRequest = {"slots": 1}
    """Resources of one pod."""
    count: Natural = 0
    """0: the number of indices, or one."""
    group: Name | None = None
    """Their group; without it, the only group of the gang."""
    indices: list[Natural] = []
    """Index of each pod in its group."""

    @field_validator("indices")
    @classmethod
    def _check_indices(cls, indices: list[int], info: ValidationInfo) -> list[int]:
        if indices and info.data.get("count") not in {0, len(indices)}:
            raise ValueError(f"expected {info.data.get('count')} indices")
        return indices


class RunningRows(_RequestModel):
    """What a caller of the server adds to a request: the pods of the gang that run already."""

    running: list[RunningPodsRow]


class Document(_RequestModel):
    """A document of kind PlacementRequest; `metadata` is accepted and not read."""

    api_version: Annotated[Literal["toponaut.io/v1alpha1"], Field(alias="apiVersion")]
    kind: Literal["PlacementRequest"]
    metadata: dict[str, Any] = {}
    spec: Spec
