"""One HyperNode as a value, and its manifest in both directions.

Source: the CRD `hypernodes.topology.volcano.sh/v1alpha1` of Volcano 1.15. Parsing is tolerant,
because a cluster may have HyperNodes of other tools. Does not find problems in a *set* of
HyperNodes; `lint` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from generator.kube.resources import HYPERNODES
from generator.outputs.hypernode.selectors import MemberSelector, list_forms, parse_selector
from generator.outputs.owned_object import MAX_OBJECT_NAME, is_object_name
from topology.model.errors import ConfigError, show
from topology.model.ids import natural_key
from topology.model.validation import check_object

API_VERSION: Final = HYPERNODES.api_version
KIND: Final = HYPERNODES.kind
OWNER: Final = "toponaut"
SOURCE_LABEL: Final = "volcano.sh/network-topology-source"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
PADDING_LABEL: Final = "toponaut.io/padding"
"""Label of HyperNodes without a domain, which only make every branch equally deep."""
PLACEHOLDER: Final = "toponaut-placeholder"
"""A node member that matches no node; stands for an empty list, which the API server refuses."""
MAX_MEMBER_NAME = 63
"""Volcano's optional admission policy refuses longer member names, although the CRD allows 253."""


class MemberType(StrEnum):
    """Types of members."""

    HYPERNODE = "HyperNode"
    NODE = "Node"


class Member(NamedTuple):
    """One member, selected by its exact name."""

    type: MemberType
    name: str


Labels = tuple[tuple[str, str], ...]

OWN_LABELS: Final[Labels] = ((MANAGED_BY_LABEL, OWNER), (SOURCE_LABEL, OWNER))
PADDING_LABELS: Final[Labels] = (*OWN_LABELS[:1], (PADDING_LABEL, "true"), *OWN_LABELS[1:])
_MANAGED_KEYS: Final = (MANAGED_BY_LABEL, PADDING_LABEL, SOURCE_LABEL)


@dataclass(frozen=True, slots=True)
class HyperNode:
    """One HyperNode of any owner, without its status and the fields that the server adds."""

    name: str
    tier: int
    """1 is nearest the nodes; a HyperNode of another tool may have 0."""
    tier_name: str
    """Empty without a name."""
    members: tuple[Member, ...]
    """HyperNodes before nodes, each in natural order."""
    labels: Labels = OWN_LABELS
    """Sorted by key."""
    num_inexact_members: int = 0
    """Members by pattern, by labels or without a selector. Toponaut never writes them."""
    selectors: tuple[MemberSelector, ...] = ()
    """The selectors of those members, as far as they are known."""
    is_unreadable: bool = False
    """Whether only its name is known: an object of this name exists, and cannot be parsed."""
    finalizers: tuple[str, ...] = ()
    """What keeps it although it was deleted; empty if it was not."""

    @property
    def is_ours(self) -> bool:
        """Whether the HyperNode has Toponaut's source label; only then it is written or deleted."""
        return (SOURCE_LABEL, OWNER) in self.labels

    @property
    def is_terminating(self) -> bool:
        """Whether the HyperNode was deleted, and disappears once its finalizers are gone."""
        return bool(self.finalizers)

    @property
    def is_padding(self) -> bool:
        """Whether the HyperNode is Toponaut's padding, without a domain."""
        return self.is_ours and (PADDING_LABEL, "true") in self.labels

    @property
    def children(self) -> tuple[str, ...]:
        """Names of the members that are HyperNodes."""
        return tuple(name for kind, name in self.members if kind is MemberType.HYPERNODE)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the members that are nodes, without the placeholder."""
        return tuple(
            name for kind, name in self.members if kind is MemberType.NODE and name != PLACEHOLDER
        )

    def matches(self, desired: HyperNode) -> bool:
        """Return whether this HyperNode equals the desired one, so that no write is needed.

        Ignores the order of members, and labels of other owners.
        """
        return (
            (self.tier, self.tier_name) == (desired.tier, desired.tier_name)
            and self.num_inexact_members == desired.num_inexact_members
            and _select_managed(self.labels) == _select_managed(desired.labels)
            and (self.members == desired.members or sorted(self.members) == sorted(desired.members))
        )


def build_unreadable(name: str) -> HyperNode:
    """Return a HyperNode of which only the name is known; it counts as foreign."""
    return HyperNode(name, 0, "", (), (), is_unreadable=True)


def _select_managed(labels: Labels) -> list[tuple[str, str]]:
    return sorted(pair for pair in labels if pair[0] in _MANAGED_KEYS)


def sort_members(members: Iterable[Member]) -> tuple[Member, ...]:
    """Return members in the order of the manifest: HyperNodes first, then in natural order."""
    return tuple(sorted(members, key=lambda member: (member.type, natural_key(member.name))))


def render_manifest(hypernode: HyperNode) -> dict[str, Any]:
    """Return the manifest, with exactMatch members only.

    Omits members that are not selected by exact name.
    """
    spec: dict[str, Any] = {"tier": hypernode.tier}
    if hypernode.tier_name:
        spec["tierName"] = hypernode.tier_name
    spec["members"] = [
        {"type": kind.value, "selector": {"exactMatch": {"name": name}}}
        for kind, name in hypernode.members
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": hypernode.name, "labels": dict(hypernode.labels)},
        "spec": spec,
    }


def parse_manifest(document: object) -> HyperNode:
    """Return the HyperNode of a decoded object of any owner.

    Raises:
        ConfigError: it is not a HyperNode of this version, or a used field is malformed; the
            message has the path of the field.
    """
    checked = check_object(document, KIND, API_VERSION)
    if isinstance(checked, str):
        raise ConfigError(checked)
    metadata, spec = checked.get("metadata"), checked.get("spec")
    if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping):
        raise ConfigError("metadata, spec: expected objects")
    name = metadata.get("name")
    if not isinstance(name, str) or not is_object_name(name):
        raise ConfigError(f"metadata.name: not a DNS-1123 subdomain: '{show(str(name))}'")
    try:
        hypernode = _parse_spec(name, spec, labels=_parse_labels(metadata.get("labels")))
        return replace(hypernode, finalizers=_parse_finalizers(metadata))
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error


def _parse_labels(labels: object) -> Labels:
    if labels is None:
        return ()
    if not isinstance(labels, Mapping):
        raise ConfigError("metadata.labels: expected an object")
    return tuple(sorted((str(key), str(value)) for key, value in labels.items()))


def _parse_finalizers(metadata: Mapping[str, object]) -> tuple[str, ...]:
    """Return the finalizers of an object that was deleted."""
    if not metadata.get("deletionTimestamp"):
        return ()
    rows = metadata.get("finalizers")
    return tuple(map(str, rows)) if isinstance(rows, list) and rows else ("an unknown finalizer",)


def _parse_spec(name: str, spec: Mapping[str, object], *, labels: Labels) -> HyperNode:
    tier, tier_name, rows = spec.get("tier"), spec.get("tierName"), spec.get("members")
    if not isinstance(tier, int) or isinstance(tier, bool) or tier < 0:
        raise ConfigError(f"spec.tier: expected an integer from 0, got '{show(str(tier))}'")
    if tier_name is not None and not isinstance(tier_name, str):
        raise ConfigError("spec.tierName: expected text")
    if rows is not None and not isinstance(rows, list):
        raise ConfigError("spec.members: expected a list")
    members = [_parse_member(row, f"spec.members[{index}]") for index, row in enumerate(rows or ())]
    exact = [member for member in members if isinstance(member, Member)]
    selectors = tuple(member for member in members if isinstance(member, MemberSelector))
    return HyperNode(
        name=name,
        tier=tier,
        tier_name=tier_name or "",
        members=sort_members(exact),
        labels=labels,
        num_inexact_members=len(selectors),
        selectors=selectors,
    )


def _parse_member(row: object, path: str) -> Member | MemberSelector:
    """Return the member, or its selector if that is not an exact name alone."""
    if not isinstance(row, Mapping) or row.get("type") not in tuple(MemberType):
        raise ConfigError(f"{path}.type: expected Node or HyperNode")
    selector = row.get("selector")
    if not isinstance(selector, Mapping) or list_forms(selector) != ["exactMatch"]:
        return parse_selector(selector, is_child=row["type"] == MemberType.HYPERNODE)
    exact = selector["exactMatch"]
    name = exact.get("name") if isinstance(exact, Mapping) else None
    if not isinstance(name, str) or not 0 < len(name) <= MAX_OBJECT_NAME:
        raise ConfigError(f"{path}.selector.exactMatch.name: expected 1 to 253 characters")
    return Member(MemberType(row["type"]), name)
