"""The tree that labels of nodes describe, where no cables can be read. Pure.

A domain is the whole path of values from the coarsest key down: a value that stands under two
parents is two domains, and is reported. A node that lacks a label is unplaced.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from generator.outputs.node_labels import DEFAULT_PREFIX
from generator.outputs.node_labels.keys import HOSTNAME_KEY
from generator.outputs.object_names import is_object_name
from topology.model.errors import ConfigError, list_some, show
from topology.model.tree import (
    DomainSpec,
    TopologyTree,
    TreeOrigin,
    Unplaced,
    build_tree,
    find_tier_name_problem,
)

LABEL_PRESETS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "toponaut": tuple(f"{DEFAULT_PREFIX}/{name}" for name in ("core", "spine", "leaf")),
        "topograph": (
            *(f"fabric.topograph.run/tier-{tier}" for tier in range(3, -1, -1)),
            "accelerator.topograph.run/domain",
            "accelerator.topograph.run/sub-domain",
        ),
        "nvidia": tuple(
            f"network.topology.nvidia.com/{name}"
            for name in ("datacenter", "core", "spine", "block", "leaf", "accelerator")
        ),
        "eks": tuple(f"topology.k8s.aws/network-node-layer-{layer}" for layer in (1, 2, 3)),
        "gke": tuple(
            f"cloud.google.com/gce-topology-{name}" for name in ("block", "subblock", "host")
        ),
        "oci": tuple(
            f"oci.oraclecloud.com/host.{name}" for name in ("network_block_id", "rack_id")
        ),
        "coreweave": tuple(
            f"backend.coreweave.cloud/{name}" for name in ("fabric", "superpod", "leafgroup")
        ),
    }
)
"""The keys of each tool or cloud, coarsest first; keys that no node has are left out."""
_MAX_KEYS: Final = 16
_MAX_SHOWN: Final = 5
_MAX_NAME: Final = 63
_HASH_CHARS: Final = 10
_UNKNOWN: Final = re.compile(r"no-topology\Z|unplaced-")
"""Values that stand for an unknown place: topograph's, which nodes share, and Toponaut's own."""
_KEY: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_./]*\Z", re.ASCII)
_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z", re.ASCII)
_OTHER_CHARS: Final = re.compile(r"[^a-z0-9-]+")


class LabelledTree(NamedTuple):
    """The tree of labels, and the problems with them."""

    tree: TopologyTree
    keys: tuple[str, ...]
    """The key of each tier, lowest first."""
    problems: tuple[str, ...] = ()
    """One line each, foreign text escaped."""


def parse_label_keys(text: str) -> tuple[str, ...]:
    """Return the keys of a list, coarsest first, or of a preset.

    Raises:
        ConfigError: a key is empty, no label key, or listed twice.
    """
    if text in LABEL_PRESETS:
        return LABEL_PRESETS[text]
    keys = tuple(key.strip() for key in text.split(","))
    known = ", ".join(LABEL_PRESETS)
    for at, key in enumerate(keys):
        if not _KEY.match(key) or key in keys[:at]:
            what = "is listed twice" if key in keys[:at] else "is no label key"
            raise ConfigError(f"--node-labels: '{show(key)}' {what}; presets are {known}")
    if len(keys) > _MAX_KEYS:
        raise ConfigError(f"--node-labels: {len(keys)} keys, and at most {_MAX_KEYS} are possible")
    return keys


def build_labelled_tree(
    nodes: Mapping[str, Mapping[str, str]],
    keys: Sequence[str],
    *,
    tier_names: Sequence[str] = (),
    has_islands: bool = False,
) -> LabelledTree:
    """Return the tree that labels describe; the order of the nodes does not matter.

    A last key for the name of the node is left out, and so are keys of a preset that no node has.
    Cost: O(nodes · keys).

    Args:
        nodes: the labels of each node.
        keys: coarsest first.
        tier_names: lowest tier first; by default, the ends of the keys.
        has_islands: whether domains without a common label on top share no cable.

    Raises:
        ConfigError: no node has any of the keys, or the number of names is wrong.
    """
    used = [key for key in keys if key != HOSTNAME_KEY]
    if tuple(keys) in LABEL_PRESETS.values():
        used = [key for key in used if any(key in labels for labels in nodes.values())]
    if not any(key in labels for labels in nodes.values() for key in used):
        shown = list_some(map(show, keys), _MAX_SHOWN)
        raise ConfigError(f"--node-labels: none of {len(nodes)} nodes has a label of {shown}")
    lowest_first = tuple(reversed(used))
    names = tuple(tier_names) or _name_tiers(lowest_first)
    if len(names) != len(used):
        raise ConfigError(f"--tier-names: {len(used)} label keys need as many names, lowest first")
    paths: dict[tuple[str, ...], list[str]] = {}
    unplaced = []
    for node, labels in nodes.items():
        reason = _find_unplaced_reason(labels, used)
        if reason:
            unplaced.append(Unplaced(node, reason))
        else:
            paths.setdefault(tuple(labels[key] for key in used), []).append(node)
    domains = _name_domains({path[:size] for path in paths for size in range(1, len(used) + 1)})
    specs = [
        DomainSpec(
            name=name,
            tier=len(used) - len(path) + 1,
            parent=domains[path[:-1]] if len(path) > 1 else None,
            nodes=tuple(paths.get(path, ())),
        )
        for path, name in domains.items()
    ]
    origin = TreeOrigin(tuple((key,) for key in lowest_first), has_islands=has_islands)
    tree = build_tree(specs, tiers=names, unplaced=unplaced, origin=origin)
    return LabelledTree(tree, lowest_first, tuple(_find_shared_values(domains, used)))


def _find_unplaced_reason(labels: Mapping[str, str], keys: Sequence[str]) -> str:
    for key in keys:
        value = labels.get(key)
        if not value:
            return f"has no label {show(key)}"
        if not _VALUE.match(value):
            return f"its label {show(key)} is '{show(value)}', which is no value of a label"
        if _UNKNOWN.match(value):
            return f"its label {show(key)} is '{show(value)}', which means an unknown place"
    return ""


def _name_tiers(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the ends of the keys, or numbers if those cannot be the names of tiers."""
    names = tuple(_OTHER_CHARS.sub("-", key.rpartition("/")[2].lower()).strip("-") for key in keys)
    if find_tier_name_problem(names) is None:
        return names
    return tuple(f"tier-{tier}" for tier in range(1, len(keys) + 1))


def _name_domains(paths: set[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Return the name of each path: its value, or with a hash of the path if that is no name.

    So a name depends on its own path and on what other paths end in the same value.
    """
    plain: dict[str, int] = {}
    for path in paths:
        plain[_spell(path[-1])] = plain.get(_spell(path[-1]), 0) + 1
    names: dict[tuple[str, ...], str] = {}
    for path in sorted(paths):
        name = _spell(path[-1])
        if name != path[-1] or plain[name] > 1:
            digest = hashlib.sha256("\0".join((str(len(path)), *path)).encode()).hexdigest()
            name = f"{name[: _MAX_NAME - _HASH_CHARS - 1].rstrip('-')}-{digest[:_HASH_CHARS]}"
        names[path] = name
    return names


def _spell(value: str) -> str:
    """Return the value as the name of an object."""
    if is_object_name(value) and len(value) <= _MAX_NAME:
        return value
    return _OTHER_CHARS.sub("-", value.lower()).strip("-")[:_MAX_NAME].rstrip("-") or "domain"


def _find_shared_values(
    domains: Mapping[tuple[str, ...], str], keys: Sequence[str]
) -> Iterator[str]:
    """Yield one line per value of a key that stands under several parents."""
    parents: dict[tuple[int, str], list[tuple[str, ...]]] = {}
    for path in domains:
        parents.setdefault((len(path), path[-1]), []).append(path[:-1])
    for (size, value), above in parents.items():
        if len(above) > 1:
            shown = list_some((show("/".join(path)) for path in above), _MAX_SHOWN)
            yield (
                f"label {show(keys[size - 1])}: the value '{show(value)}' stands under "
                f"{len(above)} parents, and counts as as many domains: {shown}"
            )
