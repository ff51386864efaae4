"""The inventory of a cluster's nodes: their ids for the fabric, their capacity for placement.

Two forms are read: `kubectl get nodes -o json|yaml`, and Toponaut's own form `nodes: [{name, ids,
capacity, free, labels, taints, schedulable}]`. A wrong field costs that field, is reported, and
never admits pods that a good one would keep out; the node stays listed. Only an entry that names no
node is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from generator.objects.document import mapping_at
from generator.objects.node_entry import MAX_PROBLEMS, SLOTS, ListedNode, parse_entry, parse_node
from generator.objects.yaml_document import (
    Refused,
    ValueFault,
    YamlDocument,
    describe_cut_end,
    leave_out_refused,
    parse_documents,
    refuse_repeated,
    usable,
)
from generator.placement.cluster.nodes import Exclusion, NodeSpec
from topology.model.errors import ConfigError, CutInput, ParseError, show
from topology.model.ids import Id
from topology.model.text import decode_text

__all__ = [
    "SLOTS",
    "Inventory",
    "ListedNode",
    "build_node_specs",
    "list_node_problems",
    "parse_node",
    "parse_nodes",
]
_MAX_FILE_PROBLEMS: Final = 1000
"""Problems of one file that are kept; the number of the others is."""


class Inventory(NamedTuple):
    """All nodes, and the problems with their entries."""

    nodes: tuple[ListedNode, ...]
    """Sorted by name."""
    problems: tuple[ParseError, ...]
    lost: tuple[str, ...] = ()
    """Why entries name no node, or may be missing, so that it is unknown which nodes they list."""
    places: Mapping[str, str] = MappingProxyType({})
    """By node with problems: the file and the row of its entry."""

    @property
    def ids_by_node(self) -> list[tuple[str, Sequence[Id]]]:
        """Each node with the ids of its entry."""
        return [(node.name, node.ids) for node in self.nodes]

    @property
    def labels_by_node(self) -> dict[str, Mapping[str, str]]:
        """The labels of each node, by its name."""
        return {node.name: node.spec.labels for node in self.nodes}


_DOCUMENT_KEYS: Final = frozenset({"apiVersion", "kind", "metadata", "nodes"})


def parse_nodes(raw: bytes, *, source: str) -> Inventory:
    """Return the nodes of a file in either form; if a node is repeated, its first entry counts.

    Cost: O(bytes).
    """
    streamed = _EntryCollector(source)
    try:
        for path, row in _stream_rows(decode_text(raw)):
            streamed.add_row(path, row, (), 1)
    except (ValueError, RecursionError):
        return _collect_documents(raw, _EntryCollector(source)).build_inventory()
    return streamed.build_inventory()


class _ListForm(NamedTuple):
    """The text of a JSON list of nodes before its first row and after its last one."""

    opening: re.Pattern[str]
    closing: re.Pattern[str]


_OWN_LIST: Final = _ListForm(
    re.compile(r'\s*\{\s*"nodes"\s*:\s*\[\s*'), re.compile(r"\s*\]\s*\}\s*\Z")
)
_KUBECTL_LIST: Final = _ListForm(
    re.compile(
        r'\s*\{\s*(?:"(?:apiVersion"\s*:\s*"v1|kind"\s*:\s*"(?:Node)?List)"\s*,\s*){1,2}'
        r'"items"\s*:\s*\[\s*'
    ),
    re.compile(
        r'\s*\]\s*(?:,\s*"(?:kind"\s*:\s*"(?:Node)?List"|metadata"\s*:\s*\{[^{}]*\})\s*){0,2}\}\s*\Z'
    ),
)
"""`kubectl get nodes -o json` prints its keys in this order."""
_SEPARATOR: Final = re.compile(r"\s*,\s*")


def _stream_rows(text: str) -> Iterator[tuple[str, object]]:
    """Yield (path, row) of a JSON list of nodes one by one: 100,000 at once take gigabytes.

    Raises:
        ValueError: the document has another form, or an item is no Node; also after some rows.
        RecursionError: a row is nested too deeply.
    """
    form = next((form for form in (_OWN_LIST, _KUBECTL_LIST) if form.opening.match(text)), None)
    opened = None if form is None else form.opening.match(text)
    if form is None or opened is None:
        raise ValueError("expected a JSON list of nodes")
    decode = json.JSONDecoder(object_pairs_hook=refuse_repeated).raw_decode
    place, index = opened.end(), 0
    while True:
        row, place = decode(text, place)
        if form is _KUBECTL_LIST and not _is_node(row):
            raise ValueError("expected Nodes alone")
        yield f"nodes[{index}]" if form is _OWN_LIST else _show_node_path(row), row
        following = _SEPARATOR.match(text, place)
        if following is None:
            break
        place, index = following.end(), index + 1
    if form.closing.match(text, place) is None:
        raise ValueError("expected the end of the list")


def _is_node(row: object) -> bool:
    return isinstance(row, Mapping) and row.get("kind") == "Node"


def _collect_documents(raw: bytes, entries: _EntryCollector) -> _EntryCollector:
    """Add the entries of a file in any form, and return them."""
    for document in parse_documents(raw, source=entries.source, is_lenient=True):
        if isinstance(document, ParseError):
            entries.lose(document)
            continue
        for problem in _find_unknown_keys(document, entries.source):
            entries.add_problem(problem)
        for path, row in _iterate_rows(document):
            kept, faults = leave_out_refused(row) if document.has_refused else (row, [])
            if other := _describe_other_kind(kept):
                text = f"{other} is no Node: it is left out"
                entries.add_problem(ParseError(text, source=entries.source, line=document.line))
            else:
                entries.add_row(path, kept, faults, document.line)
    if why := describe_cut_end(raw):
        advice = "give the whole list, or complete the line"
        entries.lose(CutInput(f"the list may be cut: {why}; {advice}", source=entries.source))
    return entries


@dataclass(slots=True)
class _EntryCollector:
    """The entries of one file."""

    source: str
    nodes: dict[str, ListedNode] = field(default_factory=dict)
    """By name."""
    problems: list[ParseError] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    num_more: int = 0
    """Problems beyond those that are kept."""

    def add_problem(self, problem: ParseError) -> None:
        """Keep a problem, or count it if there are many."""
        if len(self.problems) < _MAX_FILE_PROBLEMS:
            self.problems.append(problem)
        else:
            self.num_more += 1

    def lose(self, problem: ParseError) -> None:
        """Count an entry that names no node."""
        self.add_problem(problem)
        if len(self.lost) < _MAX_FILE_PROBLEMS:
            self.lost.append(str(problem))

    def add_row(self, path: str, row: object, faults: Sequence[ValueFault], line: int) -> None:
        """Add the node of a row; if the node is listed already, add only the problem."""
        try:
            node = parse_entry(row, faults)
        except ConfigError as error:
            self.lose(ParseError(f"{path} is left out: {error}", source=self.source, line=line))
            return
        if node.name in self.nodes:
            repeated = f"{path} is left out: {node.name} is listed already"
            self.add_problem(ParseError(repeated, source=self.source, line=line))
            first = self.nodes[node.name]
            problems = (*first.problems, repeated)[: MAX_PROBLEMS + 1]
            self.nodes[node.name] = replace(first, problems=problems)
            self.places.setdefault(node.name, f"{self.source}, {path}")
            return
        self.nodes[node.name] = node
        if node.problems:
            self.places[node.name] = f"{self.source}, {path}"
        for problem in node.problems:
            text = f"{path} ({node.name}): {problem}"
            self.add_problem(ParseError(text, source=self.source, line=line))

    def build_inventory(self) -> Inventory:
        """Return the entries in order of their names."""
        nodes = tuple(self.nodes[name] for name in sorted(self.nodes))
        problems = self.problems
        if self.num_more:
            text = f"{self.num_more} more problems with entries"
            problems = [*problems, ParseError(text, source=self.source)]
        return Inventory(nodes, tuple(problems), tuple(self.lost), self.places)


def list_node_problems(nodes: Iterable[ListedNode]) -> tuple[ParseError, ...]:
    """Return the problems of nodes that were read one by one."""
    return tuple(
        ParseError(problem, source=f"Node {node.name}")
        for node in nodes
        if node.problems
        for problem in node.problems
    )


def _iterate_rows(document: YamlDocument) -> Iterator[tuple[str, object]]:
    """Yield each node of a document, in either form, with its path.

    A document of another kind is yielded whole, so that an error can name it.
    """
    value = document.value
    rows = usable(value.get("nodes")) if isinstance(value, Mapping) else None
    if isinstance(rows, list):
        for index, row in enumerate(rows):
            yield f"nodes[{index}]", row
    elif isinstance(value, Mapping) and usable(value.get("kind")) == "Node":
        yield _show_node_path(value), value
    else:
        yield "the document", value


def _describe_other_kind(row: object) -> str:
    """Return the kind and the name of an object that is no node; empty for any other row."""
    if not isinstance(row, Mapping) or "metadata" not in row or row.get("kind") == "Node":
        return ""
    kind, name = row.get("kind"), mapping_at(row, "metadata").get("name", "")
    return show(f"{kind} {name}".strip()) if isinstance(kind, str) else ""


def _show_node_path(row: object) -> str:
    return f"Node {show(str(usable(mapping_at(row, 'metadata').get('name'))))}"


def _find_unknown_keys(document: YamlDocument, source: str) -> Iterator[ParseError]:
    """Yield a problem per key beside `nodes` that nothing reads, and per refused value there."""
    value = document.value
    if not isinstance(value, Mapping) or not isinstance(usable(value.get("nodes")), list):
        return
    for key in value:
        if key not in _DOCUMENT_KEYS:
            yield ParseError(f"{show(key)}: is not a known field", source=source)
    for key, part in value.items():
        if isinstance(part, Refused):
            yield ParseError(str(ValueFault((key,), part.problem)), source=source)


def build_node_specs(inventory: Inventory | None, placed: Sequence[str]) -> dict[str, NodeSpec]:
    """Return the spec of every node: as listed; without an inventory, one slot each.

    A node of the tree that is not listed takes no pods.

    Args:
        inventory: the listed nodes; None: there is no list.
        placed: names of the nodes in the tree.
    """
    if inventory is None:
        return {name: NodeSpec(name) for name in placed}
    unlisted = {name: NodeSpec(name, exclusion=Exclusion.UNLISTED) for name in placed}
    return unlisted | {node.name: node.spec for node in inventory.nodes}
