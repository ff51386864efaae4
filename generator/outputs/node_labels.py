"""Labels of nodes: one key per tier, one value per domain, or a value that no other node has.

A key is Toponaut's own, or one that another tool reads. It has at most 63 characters in total:
Kueue and Grove copy it into annotations and fields of that length.

A value is the name of a domain as a label value: valid, unique, and in text order where names count
up. Kueue and KAI compare values as text, so `leaf-2` and `leaf-10` become `leaf-0002` and
`leaf-0010`. A value depends on its own name alone, so that it stays when other domains come and go.
Only two names with one value, such as `leaf-1` and `leaf-01`, get a hash each. KAI splits paths of
values at dots, so values hold none.

Consumers that read one value per tier need one in each: two nodes without a value would count as
neighbors. The names are those of the HyperNodes, padding included. An island that ends below the
highest tier continues with padding of its own, so that no two islands merge.

Source: label values, https://kubernetes.io/docs/concepts/overview/working-with-objects/labels.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Final, NamedTuple

from generator.kube.resources import NODES
from generator.outputs.formats import DEFAULT_PREFIX, ExportSettings, LabelFamily
from generator.outputs.hypernode.forest import build_padding_name
from generator.outputs.owned_object import OwnedObject, is_object_name
from topology.model.errors import ConfigError, show
from topology.model.ids import HOSTNAME_LABEL
from topology.model.tree import Domain, TopologyTree


def name_domains(tree: TopologyTree) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the domains of each placed node, the lowest tier first.

    The keys are in tree order. Every node has as many names as the tree has tiers.
    Cost: O(nodes x tiers).
    """
    used = frozenset(domain.name for domain in tree.domains)

    @cache
    def pad(name: str, tier: int) -> str:
        return build_padding_name(name, tier, used)

    def name_tiers(domain: Domain) -> tuple[str, ...]:
        """Return the names of a node that is directly in a domain."""
        names = [pad(domain.name, tier) for tier in range(1, domain.tier)]
        at: Domain | None = domain
        while at is not None:
            above = None if at.parent is None else tree.domains[at.parent]
            stop = len(tree.tiers) + 1 if above is None else above.tier
            names += [at.name, *(pad(at.name, tier) for tier in range(at.tier + 1, stop))]
            at = above
        return tuple(names)

    rows = {
        node: names
        for domain in tree.domains
        if domain.nodes
        for names in [name_tiers(domain)]
        for node in domain.nodes
    }
    return {node: rows[node] for node in tree.nodes}


MAX_KEY: Final = 63
MAX_LEVELS: Final = 16
"""The most levels in a Topology of Kueue or KAI."""
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z", re.ASCII)
_RESERVED_PREFIXES: Final = ("kubernetes.io", "k8s.io")
"""Kubernetes keeps these and everything below them for itself."""
_NVIDIA_TIERS: Final = ("leaf", "spine", "core")


def check_label_prefix(prefix: str) -> None:
    """Refuse a prefix under which Toponaut cannot write labels.

    Raises:
        ConfigError: the prefix is no DNS subdomain, or belongs to Kubernetes.
    """
    if not is_object_name(prefix):
        raise ConfigError(f"'{show(prefix)}' is not a label prefix such as {DEFAULT_PREFIX}")
    if any(prefix == own or prefix.endswith(f".{own}") for own in _RESERVED_PREFIXES):
        raise ConfigError(f"the label prefix {show(prefix)} belongs to Kubernetes")


def build_tier_keys(tiers: Sequence[str], prefix: str = DEFAULT_PREFIX) -> tuple[str, ...]:
    """Return the key of each tier, lowest first: the prefix and the name of the tier.

    Raises:
        ConfigError: the prefix is no DNS subdomain or belongs to Kubernetes, or a key is no valid
            label key of at most 63 characters.
    """
    check_label_prefix(prefix)
    keys = tuple(f"{prefix}/{name}" for name in tiers)
    for key, name in zip(keys, tiers, strict=True):
        if not _NAME.match(name):
            raise ConfigError(
                f"the tier name '{show(name)}' cannot be in a label key: use letters, digits, "
                "'-', '_' and '.', with a letter or a digit at both ends"
            )
        if len(key) > MAX_KEY:
            raise ConfigError(
                f"the label key {show(key)} has {len(key)} characters and may have {MAX_KEY}: "
                "shorten the prefix or the name of the tier"
            )
    return keys


def list_label_keys(
    tiers: Sequence[str], *, prefix: str = DEFAULT_PREFIX, families: Iterable[LabelFamily] = ()
) -> tuple[tuple[str, ...], ...]:
    """Return the keys that carry the value of each tier, lowest tier first; Toponaut's comes first.

    Raises:
        ConfigError: the prefix or a tier name cannot be in a key, or two tiers would have one key.
    """
    rows = [[key] for key in build_tier_keys(tiers, prefix)]
    for family in sorted(set(families)):
        for at, keys in enumerate(rows):
            keys.extend(_list_family_keys(family, at))
    _refuse_shared_keys(rows, tiers)
    return tuple(tuple(dict.fromkeys(row)) for row in rows)


def _refuse_shared_keys(rows: Sequence[Sequence[str]], tiers: Sequence[str]) -> None:
    """Refuse a key that two tiers would have: a node has one value for it.

    Raises:
        ConfigError: there is such a key.
    """
    tier_of: dict[str, str] = {}
    for row, tier in zip(rows, tiers, strict=True):
        for key in row:
            other = tier_of.setdefault(key, tier)
            if other != tier:
                raise ConfigError(
                    f"the label key {show(key)} would carry the tiers {show(other)} and "
                    f"{show(tier)}: change labelPrefix, tierNames or compat"
                )


def list_level_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of a Topology of Kueue or KAI: coarse to fine, the host name last.

    Args:
        keys: the key of each tier, lowest first.

    Raises:
        ConfigError: there are more levels than these systems take.
    """
    levels = (*reversed(keys), HOSTNAME_LABEL)
    if len(levels) > MAX_LEVELS:
        raise ConfigError(
            f"a Topology has at most {MAX_LEVELS} levels with the host name, not {len(levels)}"
        )
    return levels


def _list_family_keys(family: LabelFamily, at: int) -> list[str]:
    if family is LabelFamily.TOPOGRAPH:
        return [f"fabric.topograph.run/tier-{at}"]
    return [f"network.topology.nvidia.com/{name}" for name in _NVIDIA_TIERS[at : at + 1]]


MAX_VALUE: Final = 63
UNPLACED_PREFIX: Final = "unplaced-"
"""Starts the value of a node whose place is unknown: a domain of its own, shared with no node."""
_RESERVED: Final = frozenset({"root"})
"""KAI's own name of the whole tree."""
_NUM_DIGITS: Final = 4
"""Numbers up to 9,999 are in order; longer ones keep their length."""
_HASH_CHARS: Final = 8
_NUMBER: Final = re.compile(r"(?<![0-9])[0-9]{1,3}(?![0-9])", re.ASCII)
_INVALID: Final = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)


def build_label_values(
    names: Iterable[str], *, taken: AbstractSet[str] = frozenset(), is_padded: bool = True
) -> Mapping[str, str]:
    """Return the label value of each name; no two names have one value.

    Args:
        names: names of domains, or what else becomes a value.
        taken: values that no name may get, such as the names of nodes.
        is_padded: whether numbers get four digits, so that text order is their order.
    """
    values = {name: _build_value(name, is_padded=is_padded) for name in names}
    counts = Counter(values.values())
    used = taken | _RESERVED
    return {
        name: _shorten(value, name) if counts[value] > 1 or value in used else value
        for name, value in values.items()
    }


def hash_value(name: str) -> str:
    """Return a valid label value: the name, shortened, with a hash of the name at its end."""
    return _shorten(_INVALID.sub("-", name).strip("-_"), name)


def _build_value(name: str, *, is_padded: bool) -> str:
    """Return a valid value; it ends in a hash if the name has characters that it cannot have."""
    padded = _NUMBER.sub(lambda number: number[0].zfill(_NUM_DIGITS), name) if is_padded else name
    cleaned = _INVALID.sub("-", padded).strip("-_")
    if cleaned and cleaned == padded and len(cleaned) <= MAX_VALUE:
        return cleaned
    return _shorten(cleaned, name)


def _shorten(value: str, name: str) -> str:
    suffix = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    start = value[: MAX_VALUE - _HASH_CHARS - 1].rstrip("-_")
    return f"{start}-{suffix}" if start else suffix


class NodeLabels(NamedTuple):
    """The values of one node."""

    node: str
    values: tuple[str, ...]
    """One per tier, lowest first; never empty."""
    is_placed: bool = True


def render_node_labels(tree: TopologyTree, *, is_padded: bool = True) -> tuple[NodeLabels, ...]:
    """Return the values of every node: placed nodes in tree order, then the unplaced ones.

    An unplaced node has the same value in each tier, which is its own: consumers that leave out
    nodes without a label still see it, and none takes it for a neighbor of another node.
    Cost: O(nodes x tiers).

    Args:
        tree: the tree.
        is_padded: whether numbers in values get four digits.
    """
    domains = name_domains(tree)
    value_of = _name_values(tree, domains, is_padded=is_padded)
    placed = [
        NodeLabels(node, tuple(value_of[name] for name in row)) for node, row in domains.items()
    ]
    num_tiers = max(1, len(tree.tiers))
    rest = [
        NodeLabels(
            row.node, (value_of[f"{UNPLACED_PREFIX}{row.node}"],) * num_tiers, is_placed=False
        )
        for row in tree.unplaced
    ]
    return (*placed, *rest)


def list_domain_values(tree: TopologyTree) -> Mapping[str, tuple[str, ...]]:
    """Return the label values of each domain with nodes: with numbers of four digits, and without.

    Cost: O(nodes x tiers).
    """
    domains = name_domains(tree)
    forms = [_name_values(tree, domains, is_padded=is_padded) for is_padded in (True, False)]
    return {
        row.name: tuple(dict.fromkeys(values[row.name] for values in forms))
        for row in tree.domains
        if row.start < row.stop
    }


def _name_values(
    tree: TopologyTree, domains: Mapping[str, tuple[str, ...]], *, is_padded: bool
) -> Mapping[str, str]:
    """Return the value of each domain, with padding, and of each node without a place."""
    unplaced = [row.node for row in tree.unplaced]
    names = {name: None for row in domains.values() for name in row}
    alone = [f"{UNPLACED_PREFIX}{node}" for node in unplaced]
    return build_label_values([*names, *alone], taken={*domains, *unplaced}, is_padded=is_padded)


def render_label_objects(tree: TopologyTree, settings: ExportSettings) -> tuple[OwnedObject, ...]:
    """Return the labels of every node, as parts of Node objects; none of a tree without tiers.

    Raises:
        ConfigError: as `list_label_keys` does.
    """
    keys = list_label_keys(
        tree.tiers, prefix=settings.label_prefix, families=settings.label_families
    )
    if not keys:
        return ()
    return tuple(
        OwnedObject(NODES, row.node, labels=_build_labels(row, keys))
        for row in render_node_labels(tree, is_padded=settings.is_padded)
    )


def _build_labels(row: NodeLabels, keys: Sequence[Sequence[str]]) -> Mapping[str, str]:
    pairs = zip(keys, row.values, strict=True)
    return {key: value for names, value in reversed([*pairs]) for key in names}
