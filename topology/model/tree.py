"""The topology tree: an immutable strict forest of domains over nodes, densely indexed.

Nodes are in tree order, so every domain is a range of nodes. The tree never holds a virtual root
or padding; an output that needs them adds them itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from topology.model.errors import ConfigError, InvariantError, show
from topology.model.ids import natural_key

API_VERSION = "toponaut.io/v1alpha1"
TREE_KIND = "TopologyTree"
RESERVED_TIER_NAMES = frozenset({"node", "cluster", "host", "hostname"})
"""Names that mean a single node or all nodes, in requests of Toponaut and of other systems."""


@dataclass(frozen=True, slots=True)
class Domain:
    """One subtree; it becomes one HyperNode."""

    name: str
    """Unique in the tree."""
    tier: int
    """1 is nearest the nodes; smaller is faster."""
    parent: int | None
    """Index into `TopologyTree.domains`; may be more than one tier up."""
    children: tuple[int, ...]
    """Indices of child domains, in tree order."""
    nodes: tuple[str, ...]
    """Nodes directly in this domain, in natural order; in tier 1, all of its nodes."""
    start: int
    stop: int
    """`TopologyTree.nodes[start:stop]` are all nodes of the domain."""
    switches: tuple[str, ...] = ()
    """Sorted names (ids of unnamed switches) of the switches that reach exactly this domain."""
    margin: float = 1.0
    """0 to 1, to four digits: how far the decisions behind this domain were from a tie."""


def find_tier_name_problem(names: Sequence[str]) -> str | None:
    """Return why names cannot be the names of tiers; None if they can."""
    for index, name in enumerate(names):
        if not name:
            return "a name is empty"
        if name.isdecimal():
            return f"'{show(name)}' is a number, which means the tier of this number"
        if name.lower() in RESERVED_TIER_NAMES:
            means = "all nodes" if name.lower() == "cluster" else "a single node"
            return f"'{show(name)}' always means {means}"
        if name in names[:index]:
            return f"'{show(name)}' is listed twice"
    return None


class Unplaced(NamedTuple):
    """A node that is in no domain, and the reason."""

    node: str
    reason: str


class TreeOrigin(NamedTuple):
    """What the source of a tree says beside its domains."""

    other_names: tuple[tuple[str, ...], ...] = ()
    """Per tier, bottom-up: names that its source uses for the tier, such as label keys."""
    first_number: int = 1
    """The number of the HyperNodes of tier 1: 0 or 1. Volcano accepts HyperNodes of tier 0."""
    has_islands: bool = True
    """Whether two domains without a common ancestor are surely not connected. A tree from cables
    shows that; a tree from labels does not."""


FROM_CABLES = TreeOrigin()


@dataclass(frozen=True, slots=True)
class TopologyTree:
    """A strict forest over the nodes of one plane."""

    plane: str
    tiers: tuple[str, ...]
    """Names of the tiers, bottom-up: tier t is `tiers[t - 1]`."""
    domains: tuple[Domain, ...]
    """Sorted by tier, then in tree order."""
    nodes: tuple[str, ...]
    """Placed nodes in tree order."""
    unplaced: tuple[Unplaced, ...] = ()
    """Sorted by node."""
    origin: TreeOrigin = FROM_CABLES
    """What the source of the tree says about the tiers and about the top of the tree."""

    @property
    def all_nodes(self) -> tuple[str, ...]:
        """All nodes, placed and unplaced, sorted."""
        return tuple(sorted((*self.nodes, *(unplaced.node for unplaced in self.unplaced))))

    def tier_of(self, name: str) -> int | None:
        """Return the tier of a name, or of a number in text form; None if there is none.

        The names of the tiers come first, then their other names, then numbers.
        """
        if name in self.tiers:
            return self.tiers.index(name) + 1
        for tier, other_names in enumerate(self.origin.other_names, 1):
            if name in other_names:
                return tier
        tiers = {str(tier): tier for tier in range(1, len(self.tiers) + 1)}
        return tiers.get(name.lstrip("0"))

    def highest_tier_within(self, number: int) -> int | None:
        """Return the highest tier whose HyperNodes have at most this tier number.

        0 if there is none, and None if the number is above the tree: then it bounds nothing.
        """
        tier = number - self.origin.first_number + 1
        return None if tier > len(self.tiers) else max(tier, 0)

    def with_ancestors(self, index: int) -> list[int]:
        """Return the index of a domain and of each domain around it, innermost first."""
        found = [index]
        while (parent := self.domains[found[-1]].parent) is not None:
            found.append(parent)
        return found

    def with_descendants(self, index: int) -> list[int]:
        """Return the index of a domain and of each domain inside it, a domain before its children.

        Cost: O(domains inside).
        """
        found = [index]
        for inside in found:  # it grows
            found.extend(self.domains[inside].children)
        return found

    def nodes_of(self, domain: Domain) -> tuple[str, ...]:
        """Return all nodes below a domain, in tree order."""
        return self.nodes[domain.start : domain.stop]

    def lowest_domains(self) -> dict[str, str]:
        """Map each placed node to the name of its lowest domain. Cost: O(nodes)."""
        return {node: domain.name for domain in self.domains for node in domain.nodes}


@dataclass(frozen=True, slots=True)
class DomainSpec:
    """A domain before it has an index: the input of `build_tree`."""

    name: str
    tier: int
    parent: str | None
    """Name of the parent domain."""
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    margin: float = 1.0


def build_tree(
    specs: Iterable[DomainSpec],
    *,
    tiers: tuple[str, ...],
    plane: str = "compute",
    unplaced: Iterable[Unplaced] = (),
    origin: TreeOrigin = FROM_CABLES,
) -> TopologyTree:
    """Arrange domains and their nodes in tree order; the order of the input has no effect.

    Siblings are in natural order of their names, and so are the nodes of a domain.
    Cost: O(n log n) in domains and nodes.

    Raises:
        InvariantError: two domains have one name, a parent is unknown or not above its child, a
            node is in two domains, or a node is placed and unplaced.
    """
    by_name: dict[str, DomainSpec] = {}
    children: dict[str | None, list[str]] = {}
    for spec in specs:
        if spec.name in by_name:
            raise InvariantError(f"two domains named {spec.name}")
        by_name[spec.name] = spec
        children.setdefault(spec.parent, []).append(spec.name)
    for spec in by_name.values():
        _check_parent(spec, by_name)
    order = _walk_domains(by_name, children)
    tree = _index(order, by_name, tiers=tiers, plane=plane, unplaced=unplaced)
    return tree if origin == FROM_CABLES else replace(tree, origin=origin)


def _check_parent(spec: DomainSpec, by_name: Mapping[str, DomainSpec]) -> None:
    if spec.parent is None:
        return
    if spec.parent not in by_name:
        raise InvariantError(f"{spec.name} has unknown parent {spec.parent}")
    if by_name[spec.parent].tier <= spec.tier:
        raise InvariantError(f"{spec.parent} is not above its child {spec.name}")


def _walk_domains(
    by_name: Mapping[str, DomainSpec], children: Mapping[str | None, list[str]]
) -> list[tuple[str, int, int]]:
    """Return (name, start, stop) of every domain, each parent after its children."""
    order: list[tuple[str, int, int]] = []
    position = 0
    stack: list[tuple[str, int]] = [(name, -1) for name in _sorted(children.get(None), down=True)]
    while stack:
        name, start = stack.pop()
        if start >= 0:
            order.append((name, start, position))
            continue
        stack.append((name, position))
        position += len(by_name[name].nodes)
        stack.extend((child, -1) for child in _sorted(children.get(name), down=True))
    return order


def _sorted(names: list[str] | None, *, down: bool = False) -> list[str]:
    return sorted(names or (), key=natural_key, reverse=down)


def _index(
    order: list[tuple[str, int, int]],
    by_name: Mapping[str, DomainSpec],
    *,
    tiers: tuple[str, ...],
    plane: str,
    unplaced: Iterable[Unplaced],
) -> TopologyTree:
    ranked = sorted(order, key=lambda row: (by_name[row[0]].tier, row[1], -row[2]))
    index = {name: domain_index for domain_index, (name, _, _) in enumerate(ranked)}
    child_indices: dict[str, list[int]] = {}
    for name, domain_index in index.items():
        parent = by_name[name].parent
        if parent is not None:
            child_indices.setdefault(parent, []).append(domain_index)
    total = sum(len(spec.nodes) for spec in by_name.values())
    nodes: list[str] = [""] * total
    domains = []
    for name, start, stop in ranked:
        spec = by_name[name]
        direct = tuple(_sorted(list(spec.nodes)))
        nodes[start : start + len(direct)] = direct
        domains.append(
            Domain(
                name=name,
                tier=spec.tier,
                parent=None if spec.parent is None else index[spec.parent],
                children=tuple(
                    sorted(
                        child_indices.get(name, ()),
                        key=lambda domain_index: ranked[domain_index][1:],
                    )
                ),
                nodes=direct,
                start=start,
                stop=stop,
                switches=spec.switches,
                margin=round(spec.margin, 4),
            )
        )
    sorted_unplaced = tuple(sorted(unplaced))
    if len({*nodes, *(entry.node for entry in sorted_unplaced)}) < total + len(sorted_unplaced):
        raise InvariantError("a node is in two domains, or in one and unplaced")
    return TopologyTree(plane, tiers, tuple(domains), tuple(nodes), sorted_unplaced)


def without_nodes(tree: TopologyTree, names: Collection[str]) -> TopologyTree:
    """Return the tree without these nodes, and without the domains that have no other node.

    Cost: O(n log n) in domains and nodes; O(1) without names.
    """
    if not names:
        return tree
    dropped = frozenset(names)
    kept = {node: node for node in tree.nodes if node not in dropped}
    return with_node_names(tree, kept, [row for row in tree.unplaced if row.node not in dropped])


def with_node_names(
    tree: TopologyTree, names: Mapping[str, str], unplaced: Iterable[Unplaced]
) -> TopologyTree:
    """Return the tree with other names of its nodes.

    Args:
        tree: any tree.
        names: names by node; nodes without a name, and domains without a node, are left out.
        unplaced: the unplaced nodes, in place of those of the tree.
    """
    specs = [
        DomainSpec(
            name=domain.name,
            tier=domain.tier,
            parent=None if domain.parent is None else tree.domains[domain.parent].name,
            nodes=tuple(names[node] for node in domain.nodes if node in names),
            switches=domain.switches,
            margin=domain.margin,
        )
        for domain in tree.domains
        if any(node in names for node in tree.nodes_of(domain))
    ]
    return build_tree(
        specs, tiers=tree.tiers, plane=tree.plane, unplaced=unplaced, origin=tree.origin
    )


def render_tree(tree: TopologyTree) -> dict[str, Any]:
    """Return the tree as the document that `toponaut tree -o json` prints; lists are sorted."""
    names = [domain.name for domain in tree.domains]
    rows = _render_tiers(tree)
    for domain in sorted(tree.domains, key=lambda domain: natural_key(domain.name)):
        row: dict[str, Any] = {
            "name": domain.name,
            "parent": None if domain.parent is None else names[domain.parent],
        }
        if domain.nodes or domain.tier == 1:
            row["nodes"] = list(domain.nodes)
        if domain.tier > 1:
            row["children"] = sorted((names[child] for child in domain.children), key=natural_key)
        row["switches"] = list(domain.switches)
        row["margin"] = domain.margin
        rows[domain.tier - 1]["domains"].append(row)
    return {
        "apiVersion": API_VERSION,
        "kind": TREE_KIND,
        "plane": tree.plane,
        **({} if tree.origin.has_islands else {"islands": False}),
        "tiers": rows,
        "unplaced": [
            {"node": unplaced.node, "reason": unplaced.reason} for unplaced in tree.unplaced
        ],
    }


def _render_tiers(tree: TopologyTree) -> list[dict[str, Any]]:
    """Return the row of each tier, without its domains."""
    rows: list[dict[str, Any]] = []
    for tier, name in enumerate(tree.tiers, 1):
        row: dict[str, Any] = {"tier": tier, "name": name}
        other_names = tree.origin.other_names[tier - 1 : tier]
        if any(other_names):
            row["otherNames"] = list(*other_names)
        if tree.origin.first_number != 1:
            row["hyperNodeTier"] = tree.origin.first_number + tier - 1
        rows.append(row | {"domains": []})
    return rows


def parse_tree(document: Mapping[str, Any]) -> TopologyTree:
    """Return the tree of a document; the inverse of `render_tree`.

    Raises:
        ConfigError: the document is not a TopologyTree of this version, or not a forest.
    """
    try:
        return _parse(document)
    except KeyError as error:
        raise ConfigError(f"not a {TREE_KIND}: no field {show(str(error))}") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"not a {TREE_KIND}: {show(str(error))}") from error
    except InvariantError as error:
        raise ConfigError(f"not a forest: {show(str(error))}") from error


def _parse(document: object) -> TopologyTree:
    root = _rows([document])[0]
    if (root.get("apiVersion"), root.get("kind")) != (API_VERSION, TREE_KIND):
        raise ValueError(f"expected kind {TREE_KIND} of {API_VERSION}")
    rows = _rows(root["tiers"])
    if [row["tier"] for row in rows] != list(range(1, len(rows) + 1)):
        raise ValueError("tiers are not numbered from 1")
    names = tuple(_text(tier["name"]) for tier in rows)
    problem = find_tier_name_problem(names)
    if problem is not None:
        raise ValueError(f"tiers: {problem}")
    return build_tree(
        [
            _spec(row, tier_number)
            for tier_number, tier in enumerate(rows, 1)
            for row in _rows(tier["domains"])
        ],
        tiers=names,
        plane=_text(root.get("plane", "compute")),
        unplaced=[
            Unplaced(_text(row["node"]), _text(row["reason"])) for row in _rows(root["unplaced"])
        ],
        origin=_origin(root, rows),
    )


def _origin(root: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> TreeOrigin:
    has_islands, first_number = root.get("islands", True), 1
    if not isinstance(has_islands, bool):
        raise TypeError(f"islands: expected true or false, got {type(has_islands).__name__}")
    if rows and type(rows[0].get("hyperNodeTier", 1)) is int:
        first_number = rows[0].get("hyperNodeTier", 1)
    other_names = tuple(tuple(map(_text, _list(row.get("otherNames", [])))) for row in rows)
    return TreeOrigin(other_names if any(other_names) else (), first_number, has_islands)


def _spec(row: Mapping[str, Any], tier: int) -> DomainSpec:
    margin = float(row.get("margin", 1.0))
    if not 0 <= margin <= 1:
        raise ValueError(f"margin {margin}, expected 0 to 1")
    return DomainSpec(
        name=_text(row["name"]),
        tier=tier,
        parent=None if row["parent"] is None else _text(row["parent"]),
        nodes=tuple(map(_text, _list(row.get("nodes", [])))),
        switches=tuple(map(_text, _list(row.get("switches", [])))),
        margin=margin,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value


def _rows(value: object) -> list[Mapping[str, Any]]:
    rows = _list(value)
    if not all(isinstance(row, Mapping) for row in rows):
        raise TypeError("expected a list of objects")
    return rows


def host_partitions(tree: TopologyTree) -> list[frozenset[frozenset[str]]]:
    """Return the node sets of the domains of each tier, bottom-up, for comparing two trees."""
    return [
        frozenset(
            frozenset(tree.nodes_of(domain)) for domain in tree.domains if domain.tier == tier
        )
        for tier in range(1, len(tree.tiers) + 1)
    ]
