"""Which node a host name means; every way of joining asks this module. Pure.

A node is known by its own name, and by the host names, addresses and chassis ids that the list of
nodes gives it. Full names are compared first. A first label stands for a full name only if one of
the two names has no domain, and if only one node and one host have the label. A name that the list
gives to several nodes means none of them, unless one of them is called so and nothing in its entry
says otherwise.

The description of an HCA is free text. It means the node whose name is one of its words, at any
place. If it has the names of several nodes, it means none of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from topology.identity.claim_facts import ClaimTable
from topology.model.claims import Claim, Origin
from topology.model.errors import list_some, show
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.ids import DEFAULT_HOST_NAMES, Id, IdKind, first_label, full_name

NAME_SUBTYPES: Final = frozenset({"local", "ifname", "ifalias"})
"""The subtypes of a chassis id that is a text, often the name of the device."""
_WEAK_KINDS: Final = frozenset(
    {
        IdKind.NODE_NAME,
        IdKind.HOSTNAME,
        IdKind.IP,
        IdKind.CHASSIS_ID,
        IdKind.SYSTEM_IMAGE_GUID,
    }
)
_NOBODY: Final = ""
"""The owner of a name that several nodes or hosts have."""
_MAX_SHOWN: Final = 4
_WORD: Final = re.compile(r"[\w.-]+")
_PART: Final = re.compile(r"[^\W_][^\W_.-]*(?:[.-]+[^\W_]+)*")
"""As a word, but `_` separates: a node's name has none."""


class NameKey(NamedTuple):
    """What two names of one device have in common."""

    name: str
    """The name of the node; else the first label, or the full name if the label is shared."""
    is_node: bool


@dataclass(frozen=True, slots=True)
class NodeNames:
    """The names of nodes, and the full names of other devices; `build_node_names` makes it."""

    by_name: Mapping[str, str] = field(default_factory=dict)
    """Full name to node; empty text if it means no single node."""
    by_label: Mapping[str, str] = field(default_factory=dict)
    """First label of the nodes' names that have a domain: the node; empty text for several."""
    others: Mapping[str, str] = field(default_factory=dict)
    """First label to the full name of another device; empty text for several names."""
    by_image: Mapping[int, str] = field(default_factory=dict)
    """Hash of a listed system image GUID to the node; empty text for several."""
    rivals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names and first labels of several nodes, sorted."""

    def find(self, name: str) -> str | None:
        """Return the only node that a name means, else None."""
        full = full_name(name)
        node = self.by_name.get(full)
        if node is not None:
            return node or None
        label = first_label(full)
        if label == full:  # only names with a domain have this label
            return self.by_label.get(label) or None if label not in self.others else None
        if label in self.by_label or self.others.get(label, full) != full:
            return None
        return self.by_name.get(label) or None

    def key(self, name: str) -> NameKey:
        """Return the key of a name: two names with one key are of one device."""
        node = self.find(name)
        if node is not None:
            return NameKey(node, is_node=True)
        full = full_name(name)
        label = first_label(full)
        has_node = label in self.by_label or label in self.by_name
        is_only = not has_node and self.others.get(label, full) == full
        return NameKey(label if is_only else full, is_node=False)

    def is_loose(self, name: str) -> bool:
        """Return whether only the first label of a name means a node: others may have it too."""
        return full_name(name) not in self.by_name and self.find(name) is not None

    def find_in_text(self, text: str) -> tuple[str, ...]:
        """Return the nodes whose names are words of a text, or may be, sorted."""
        words = {word.strip(".-") for pattern in (_WORD, _PART) for word in pattern.findall(text)}
        known = [word for word in words if word.lower() not in DEFAULT_HOST_NAMES]
        found = {node for word in known for node in (self.find(word), *self.find_rivals(word))}
        return tuple(sorted(node for node in found if node))

    def name_host(self, text: str, host: str, *, has_label: bool) -> str:
        """Return the host's name in the description of an HCA.

        If it has the names of several nodes, a text with all of them, which names no node.

        Args:
            text: the description.
            host: the name by the order of its words.
            has_label: whether the description has an RDMA name, as the usual form has.
        """
        if (has_label or host == text) and self.find(host) is not None:
            return host
        nodes = self.find_in_text(text)
        if len(nodes) == 1:
            return nodes[0]
        return text if nodes and self.find_in_text(host) != nodes else host

    def find_rivals(self, name: str) -> tuple[str, ...]:
        """Return the nodes that share a name, so that it means none of them."""
        if not self.rivals or self.find(name) is not None:
            return ()
        full = full_name(name)
        label = first_label(full)
        is_label_shared = self.by_name.get(label) == _NOBODY and label not in self.by_label
        found = self.rivals.get(full) or (self.rivals.get(label) if is_label_shared else None)
        return found or ()


def build_node_names(
    nodes: Sequence[tuple[str, Sequence[Id]]], other_names: Iterable[str] = ()
) -> NodeNames:
    """Return the names of nodes. Cost: O(names), 1 µs each.

    Args:
        nodes: each node with its ids; only those of `list_weak_ids` count.
        other_names: names of other devices, from themselves or from a sweep.
    """
    rivals: dict[str, set[str]] = defaultdict(set)
    by_name: dict[str, str] = {}
    by_label: dict[str, str] = {}
    by_image: dict[int, str] = {}
    for node, all_ids in nodes:
        ids = list_weak_ids(all_ids)
        host_names = (full_name(found.value) for found in ids if _is_name(found))
        for name in {full_name(node), *host_names}:
            _add_owner(by_name, name, node, rivals)
            if (label := first_label(name)) != name:
                _add_owner(by_label, label, node, rivals)
        for found in ids:
            if found.kind is IdKind.SYSTEM_IMAGE_GUID:
                image = hash(found.value)
                by_image[image] = node if by_image.get(image, node) == node else _NOBODY
    _settle_rivals(by_name, rivals, dict(nodes) if rivals else {})
    return NodeNames(
        by_name,
        by_label,
        _find_other_names(by_name, other_names),
        by_image,
        {name: tuple(sorted(found)) for name, found in rivals.items()},
    )


def find_free_texts(
    hcas: Iterable[tuple[int, str, bool]], describe: Callable[[int], str]
) -> dict[int, str]:
    """Return the descriptions of HCAs that are not of the usual form, host and RDMA name.

    Args:
        hcas: the number of each HCA in a sweep, the host's name in its description, and whether the
            description has an RDMA name.
        describe: returns the description of an HCA by its number.
    """
    has_words: dict[str, bool] = {}  # many HCAs have one host
    texts: dict[int, str] = {}
    for number, name, has_label in hcas:
        if name not in has_words:
            has_words[name] = _has_words(name)
        if has_words[name] or not has_label:
            texts[number] = describe(number)
    return {number: text for number, text in texts.items() if _has_words(text)}


def _has_words(text: str) -> bool:
    """Return whether a text is more than one word."""
    return len(_PART.findall(text)) > 1


def read_node_names(table: ClaimTable, texts: Iterable[str] = ()) -> NodeNames:
    """Return the names of the nodes in claims. Cost: O(claims).

    A node that reports and is not listed never has the name of a listed one. What devices hear has
    no effect: `join.same_devices` compares the names that are only heard.

    Args:
        table: all claims.
        texts: descriptions of HCAs in which other names may be words.
    """
    listed: dict[str, list[Id]] = {}
    reporters, others = set[str](), set(texts)
    for claim, facts in zip(table.claims, table.facts, strict=True):
        if facts.node is None or claim.origin is Origin.SWEEP:
            others.add(facts.name)
        elif claim.origin is Origin.INVENTORY:
            listed.setdefault(facts.node, []).extend(_listed_ids(claim))
        else:
            reporters.add(facts.node)
    rows = list(listed.items())
    names = build_node_names(rows, others)
    rows += (
        (node, [])
        for node in sorted(reporters - listed.keys())
        if names.find(node) is None and not names.find_rivals(node)
    )
    return names if len(rows) == len(listed) else build_node_names(rows, others)


def _listed_ids(claim: Claim) -> Sequence[Id]:
    return list_weak_ids(claim.ids)


def list_weak_ids(ids: Sequence[Id]) -> Sequence[Id]:
    """Return the ids in an entry of the inventory that join no device by themselves."""
    weak = (found for found in ids if found[0] in _WEAK_KINDS)
    return [found for found in weak if found.kind is IdKind.SYSTEM_IMAGE_GUID or _is_name(found)]


def _is_name(identifier: Id) -> bool:
    kind, value, subtype = identifier
    if kind is IdKind.CHASSIS_ID:
        return subtype in NAME_SUBTYPES or subtype == "ip"
    is_host_name = kind is IdKind.HOSTNAME and full_name(value) not in DEFAULT_HOST_NAMES
    return is_host_name or kind in (IdKind.NODE_NAME, IdKind.IP)


def _add_owner(owners: dict[str, str], name: str, node: str, rivals: dict[str, set[str]]) -> None:
    """Record that a node has a name; a name of several nodes has no owner."""
    owner = owners.setdefault(name, node)
    if owner != node:
        rivals[name].update((owner, node) if owner else (node,))
        owners[name] = _NOBODY


def _settle_rivals(
    by_name: dict[str, str], rivals: Mapping[str, set[str]], ids: Mapping[str, Sequence[Id]]
) -> None:
    """Give a name of several nodes to the node that is called so, if its entry agrees."""
    for name in rivals:
        if name in ids and by_name.get(name) == _NOBODY:
            own = [found.value for found in ids[name] if found.kind is IdKind.HOSTNAME]
            labels = {first_label(full_name(host_name)) for host_name in own}
            if not labels or first_label(name) in labels:
                by_name[name] = name


def _find_other_names(by_name: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the full names with a domain that belong to no node, by first label."""
    others: dict[str, str] = {}
    texts = (name for name in names if "." in name)
    for name in {full_name(word) for text in texts for word in _WORD.findall(text)}:
        label = first_label(name)
        if label != name and name not in by_name:
            others[label] = name if others.get(label, name) == name else _NOBODY
    return others


def describe_rivals(name: str, nodes: Sequence[str]) -> Finding:
    """Return the finding about the name of a host that several nodes have."""
    shown, listed = show(full_name(name)), list_some(map(show, nodes), _MAX_SHOWN)
    return Finding(
        kind=FindingKind.DUPLICATE_NAME,
        device=shown,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{len(nodes)} nodes have the host name {shown} ({listed}), so the name matches the "
            "host to none of them. Correct the host names of the nodes, or list the GUIDs or MACs "
            "of each in the inventory."
        ),
    )
