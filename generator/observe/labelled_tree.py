"""The tree that labels of nodes describe, where no cables can be read. Pure.

A domain is the whole path of values from the coarsest key down: a value that stands under two
parents is two domains, and is reported. A node that lacks the finest labels is directly in the
domain of the finest label that it has. A node that lacks the coarsest label has a domain without a
parent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from generator.observe.label_presets import LABEL_PRESETS, is_preset, select_present
from generator.outputs.hypernode.lint import is_usable_name
from topology.model.errors import ConfigError, list_some, show
from topology.model.ids import HOSTNAME_LABEL
from topology.model.tree import (
    DomainSpec,
    TopologyTree,
    TreeOrigin,
    Unplaced,
    build_tree,
    find_tier_name_problem,
)

_MAX_KEYS: Final = 16
_MAX_SHOWN: Final = 5
_MAX_NAME: Final = 63
_HASH_CHARS: Final = 10
_UNKNOWN: Final = re.compile(r"no-topology\Z|unplaced-")
"""Values that stand for an unknown place: topograph's, which nodes share, and Toponaut's own."""
_KEY: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_./]*\Z", re.ASCII)
_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z", re.ASCII)
_OTHER_CHARS: Final = re.compile(r"[^a-z0-9-]+")
_MISSING: Final = ""
_NO_VALUE: Final = "(none)"
_Path = tuple[str, ...]
"""Values from the coarsest key down, to the finest that a node has."""


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
    wanted = [key for key in keys if key != HOSTNAME_LABEL]
    used = select_present(wanted, set().union(*nodes.values()))
    if not used:
        shown = list_some(map(show, keys), _MAX_SHOWN)
        raise ConfigError(f"--node-labels: none of {len(nodes)} nodes has a label of {shown}")
    lowest_first = tuple(reversed(used))
    absent = () if is_preset(keys) else tuple(key for key in wanted if key not in used)
    names = _choose_names(tier_names, lowest_first, tuple(reversed(wanted)) if absent else ())
    paths, unplaced = _find_paths(nodes, used)
    domains = _name_domains(
        {path[:size] for path in paths for size in range(1, len(path) + 1) if path[size - 1]}
    )
    specs = [
        DomainSpec(
            name=name,
            tier=len(used) - len(path) + 1,
            parent=domains.get(_find_parent(path)),
            nodes=tuple(paths.get(path, ())),
        )
        for path, name in domains.items()
    ]
    origin = TreeOrigin(tuple((key,) for key in lowest_first), has_islands=has_islands)
    tree = build_tree(specs, tiers=names, unplaced=unplaced, origin=origin)
    problems = (
        *(f"label {show(key)}: no node has it" for key in absent),
        *_find_missing_labels(paths, used),
        *_find_shared_values(domains, used),
    )
    return LabelledTree(tree, lowest_first, problems)


def _choose_names(
    given: Sequence[str], keys: Sequence[str], wanted: Sequence[str]
) -> tuple[str, ...]:
    """Return the name of each tier, lowest first.

    Args:
        given: the names that the user gives; empty: the names follow from the keys.
        keys: the label keys that nodes have.
        wanted: all keys that the names may be for, or none.

    Raises:
        ConfigError: there are names for other keys.
    """
    if wanted and len(given) == len(wanted):
        given = [name for name, key in zip(given, wanted, strict=True) if key in keys]
    names = tuple(given) or _name_tiers(keys)
    if len(names) != len(keys):
        raise ConfigError(f"--tier-names: {len(keys)} label keys need as many names, lowest first")
    return names


def _find_paths(
    nodes: Mapping[str, Mapping[str, str]], keys: Sequence[str]
) -> tuple[dict[_Path, list[str]], list[Unplaced]]:
    """Return the nodes of each path, and the nodes without a place."""
    paths: dict[_Path, list[str]] = {}
    unplaced = []
    for node, labels in nodes.items():
        values = [labels.get(key) or _MISSING for key in keys]
        reason = _find_unplaced_reason(values, keys)
        if reason:
            unplaced.append(Unplaced(node, reason))
            continue
        while not values[-1]:
            values.pop()
        paths.setdefault(tuple(values), []).append(node)
    return paths, unplaced


def _find_unplaced_reason(values: Sequence[str], keys: Sequence[str]) -> str:
    for key, value in zip(keys, values, strict=True):
        if value and not _VALUE.match(value):
            return f"its label {show(key)} is '{show(value)}', which is no value of a label"
        if _UNKNOWN.match(value):
            return f"its label {show(key)} is '{show(value)}', which means an unknown place"
    if any(values):
        return ""
    return f"has no label {list_some(map(show, keys), _MAX_SHOWN)}"


def _find_parent(path: _Path) -> _Path:
    """Return the path to the nearest domain above that a node has a label for; empty: none."""
    above = path[:-1]
    while above and not above[-1]:
        above = above[:-1]
    return above


def _find_missing_labels(
    paths: Mapping[_Path, Sequence[str]], keys: Sequence[str]
) -> Iterator[str]:
    """Yield a line per label that nodes lack without a known reason.

    These nodes have a finer label, or other nodes of the same domain have this one. Nodes of
    machines with fewer levels lack labels as well, and are in domains of their own.
    """
    inner = {path[:size] for path in paths for size in range(1, len(path))}
    skipped: dict[str, list[str]] = {}
    shallow: dict[str, list[str]] = {}
    for path, nodes in paths.items():
        known = [at for at, value in enumerate(path) if value]
        for at in sorted({*range(known[0], len(path))} - {*known}):
            skipped.setdefault(keys[at], []).extend(nodes)
        if path in inner:
            shallow.setdefault(keys[len(path)], []).extend(nodes)
    for key, nodes in skipped.items():
        yield f"label {show(key)}: nodes with a finer label lack it: {_list_nodes(nodes)}"
    for key, nodes in shallow.items():
        yield (
            f"label {show(key)}: nodes lack it, and others of their domain have it: "
            f"{_list_nodes(nodes)}"
        )


def _list_nodes(nodes: Sequence[str]) -> str:
    return list_some(map(show, nodes), _MAX_SHOWN)


def _name_tiers(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the ends of the keys, or numbers if those cannot be the names of tiers."""
    names = tuple(_OTHER_CHARS.sub("-", key.rpartition("/")[2].lower()).strip("-") for key in keys)
    if find_tier_name_problem(names) is None:
        return names
    return tuple(f"tier-{tier}" for tier in range(1, len(keys) + 1))


def _name_domains(paths: set[_Path]) -> dict[_Path, str]:
    """Return the name of each path: its value, with a hash of the path if the value is no name.

    So a name depends on its own path and on what other paths end in the same value.
    """
    plain: dict[str, int] = {}
    for path in paths:
        plain[_spell(path[-1])] = plain.get(_spell(path[-1]), 0) + 1
    names: dict[_Path, str] = {}
    for path in sorted(paths):
        name = _spell(path[-1])
        if name != path[-1] or plain[name] > 1:
            digest = hashlib.sha256("\0".join((str(len(path)), *path)).encode()).hexdigest()
            name = f"{name[: _MAX_NAME - _HASH_CHARS - 1].rstrip('-')}-{digest[:_HASH_CHARS]}"
        names[path] = name
    return names


def _spell(value: str) -> str:
    """Return the value as the name of an object."""
    if is_usable_name(value):
        return value
    cleaned = _OTHER_CHARS.sub("-", value.lower()).strip("-")
    name = f"domain-{cleaned}" if cleaned == value else cleaned
    return name[:_MAX_NAME].rstrip("-") or "domain"


def _find_shared_values(domains: Mapping[_Path, str], keys: Sequence[str]) -> Iterator[str]:
    """Yield one line per value of a key that stands under several parents."""
    parents: dict[tuple[int, str], list[_Path]] = {}
    for path in domains:
        parents.setdefault((len(path), path[-1]), []).append(path[:-1])
    for (size, value), above in parents.items():
        if len(above) > 1:
            shown = list_some(map(_show_path, above), _MAX_SHOWN)
            yield (
                f"label {show(keys[size - 1])}: the value '{show(value)}' stands under "
                f"{len(above)} parents, and counts as as many domains: {shown}"
            )


def _show_path(path: _Path) -> str:
    return show("/".join(value or _NO_VALUE for value in path) or _NO_VALUE)
