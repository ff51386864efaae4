"""The tree as text: lines with branches, ranges of nodes, and marks where something is wrong.

A large tree fits a screen: the lowest tiers are folded into their parents unless more is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from generator.cli.commands.fabric.finding_text import SEVERITY_COLORS
from generator.cli.output import WIDE, can_draw_lines, list_nodes, paint, show_count
from topology.model.errors import show
from topology.model.facts import Finding, Severity
from topology.model.tree import Domain, TopologyTree, Unplaced

MAX_ROWS: Final = 40
"""Domains that text prints by default, about one screen."""
_FEW_ROWS: Final = 4
"""So few rows leave most of the screen empty."""
_MAX_UNPLACED: Final = 10
"""Reasons of unplaced nodes that text prints by default."""
_LOW_MARGIN: Final = 0.5
"""Text prints a margin below this value, because the domain is close to a tie."""
_NO_NETWORK: Final = "the source joins these domains by no name, and does not show their cables"
_MARKED: Final = (Severity.ERROR, Severity.WARNING)

_BOX_BRANCHES: Final = ("└─ ", "   "), ("├─ ", "│  ")
"""(before the name, before what is inside) of the last child, and of the others."""
_ASCII_BRANCHES: Final = ("`- ", "   "), ("|- ", "|  ")

DomainMarks = Mapping[int, Counter[Severity]]
"""Findings per domain, by its index, those of the domains inside included."""


class TreeView(NamedTuple):
    """What is printed of a tree."""

    domains: frozenset[int]
    """Indices of the domains; the parents of each are among them."""
    depth: int
    """Levels below the roots, which are level 1."""
    num_hidden: int
    """Domains that are not among `domains` although they were asked for."""
    is_cut: bool = False
    """Whether of one level only the first domains of each parent are shown."""


def choose_view(
    tree: TopologyTree, chosen: Iterable[int] | None, *, depth: int | None, prints_all: bool
) -> TreeView:
    """Return what to print.

    Args:
        tree: the tree.
        chosen: domains to print with those around and inside them; None: all.
        depth: levels to print; None: as many as fit a screen.
        prints_all: print every level unless `depth` is set.
    """
    candidates = _with_relatives(tree, chosen) if chosen is not None else range(len(tree.domains))
    levels = {index: len(tree.with_ancestors(index)) for index in candidates}
    deepest = max(levels.values(), default=0)
    if depth is None and not prints_all and chosen is None:
        shown, depth = _fit_screen(tree, levels)
        is_cut = any(levels[index] > depth for index in shown)
        return TreeView(frozenset(shown), depth, len(levels) - len(shown), is_cut)
    depth = deepest if depth is None else depth
    shown = {index for index, level in levels.items() if level <= depth}
    return TreeView(frozenset(shown), depth, len(levels) - len(shown))


def _fit_screen(tree: TopologyTree, levels: Mapping[int, int]) -> tuple[set[int], int]:
    """Return the domains that fit a screen, and the levels that are shown whole.

    If these are few, the first domains of each parent on the next level are shown as well.
    """
    shown: set[int] = set()
    for level in range(1, max(levels.values(), default=0) + 1):
        of_level = [index for index, found in levels.items() if found == level]
        parents = Counter(tree.domains[index].parent for index in of_level)
        num_left = MAX_ROWS - len(shown)
        if len(of_level) <= num_left:
            shown.update(of_level)
            continue
        limit = num_left // len(parents) - 1  # and a line that counts the others
        if len(shown) <= _FEW_ROWS:
            for parent in parents:
                inside = [index for index in of_level if tree.domains[index].parent == parent]
                shown.update(inside if len(inside) <= limit + 1 else inside[:limit])
        return shown, level - 1
    return shown, max(levels.values(), default=0)


def _with_relatives(tree: TopologyTree, chosen: Iterable[int]) -> set[int]:
    """Return domains with all that are above and inside them."""
    pending, inside = list(chosen), set[int]()
    found = _with_ancestors(tree, pending)
    while pending:
        index = pending.pop()
        if index not in inside:
            inside.add(index)
            pending.extend(tree.domains[index].children)
    return found | inside


def count_findings(tree: TopologyTree, findings: Iterable[Finding]) -> DomainMarks:
    """Return the warnings and errors per domain, each once in a domain that has a port of it.

    Cost: O(nodes + ports in findings × tiers).
    """
    home: dict[str, int] = {}
    for index, domain in enumerate(tree.domains):
        home |= dict.fromkeys(domain.switches, index) | dict.fromkeys(domain.nodes, index)
    marks: dict[int, Counter[Severity]] = {}
    for finding in findings:
        if finding.severity not in _MARKED:
            continue
        devices = {finding.device, *(end.device for end in finding.ends)}
        for index in _with_ancestors(tree, {home[name] for name in devices if name in home}):
            marks.setdefault(index, Counter())[finding.severity] += 1
    return marks


def _with_ancestors(tree: TopologyTree, indices: Iterable[int]) -> set[int]:
    """Return domains with all that are above them."""
    return {found for index in indices for found in tree.with_ancestors(index)}


def render_tree_text(
    tree: TopologyTree, view: TreeView, marks: DomainMarks, output: str = "text"
) -> str:
    """Return one line per domain, then the unplaced nodes, and what is folded."""
    nodes, domains = show_count(len(tree.nodes), "node"), show_count(len(tree.domains), "domain")
    lines = [f"plane {tree.plane}: {nodes} in {domains}"]
    last, inner = _BOX_BRANCHES if can_draw_lines() else _ASCII_BRANCHES
    roots = [index for index, domain in enumerate(tree.domains) if domain.parent is None]
    stack = [("", "", entry) for entry in reversed(_select_siblings(roots, view))]
    if len(roots) > 1 and not tree.origin.has_islands:
        lines.append(f"all of {nodes}: {_NO_NETWORK}")
        stack = [(inner[0], inner[1], entry) for _, _, entry in stack]
        stack[:1] = [(last[0], last[1], entry) for _, _, entry in stack[:1]]
    while stack:
        lead, inner_lead, entry = stack.pop()
        if isinstance(entry, str):
            lines.append(lead + entry)
            continue
        entries = _select_siblings(tree.domains[entry].children, view)
        lines.append(lead + _render_line(tree, entry, marks, output, is_folded=not entries))
        for position, inside in enumerate(reversed(entries)):
            branch, below = last if position == 0 else inner
            stack.append((inner_lead + branch, inner_lead + below, inside))
    if not tree.domains:
        lines.append("no domains found: run `toponaut findings` with the same options to see why")
    lines += _render_unplaced(tree.unplaced, output)
    if view.num_hidden:
        hidden = show_count(view.num_hidden, "domain")
        lines.append(f"{hidden} not shown: --depth {view.depth + 1}, --domain NAME or -o wide")
    return "\n".join(lines)


def _select_siblings(indices: Sequence[int], view: TreeView) -> list[int | str]:
    """Return the domains to print, and how many more there are beside them."""
    shown: list[int | str] = [index for index in indices if index in view.domains]
    num_more = len(indices) - len(shown)
    return [*shown, f"+{num_more} more"] if view.is_cut and shown and num_more else shown


def _render_line(
    tree: TopologyTree, index: int, marks: DomainMarks, output: str, *, is_folded: bool
) -> str:
    domain = tree.domains[index]
    tier = tree.tiers[domain.tier - 1]
    counts = [show_count(domain.stop - domain.start, "node")]
    counts += _count_inside(tree, domain) if is_folded else []
    nodes = tree.nodes_of(domain) if is_folded else domain.nodes
    listed = f": {list_nodes(nodes, output)}" if nodes else ""
    margin = f"  margin {domain.margin:g}" if _shows_margin(domain, output) else ""
    return (
        f"{show(tier)} {paint(show(domain.name), 'bold')} ({', '.join(counts)}){listed}{margin}"
        f"{_render_marks(marks.get(index, Counter()))}"
    )


def _shows_margin(domain: Domain, output: str) -> bool:
    return domain.margin < (1 if output == WIDE else _LOW_MARGIN)


def _count_inside(tree: TopologyTree, domain: Domain) -> list[str]:
    """Return the numbers of domains inside a folded one, by tier from the top."""
    counts: Counter[int] = Counter()
    pending = list(domain.children)
    while pending:
        inner = tree.domains[pending.pop()]
        counts[inner.tier] += 1
        pending += inner.children
    return [show_count(counts[tier], tree.tiers[tier - 1]) for tier in sorted(counts, reverse=True)]


def _render_marks(counts: Counter[Severity]) -> str:
    shown = [
        paint(show_count(counts[severity], severity.value), SEVERITY_COLORS[severity])
        for severity in _MARKED
        if counts[severity]
    ]
    return f"  ! {', '.join(shown)}" if shown else ""


def _render_unplaced(unplaced: Sequence[Unplaced], output: str) -> Iterator[str]:
    """Yield the unplaced nodes, those of one reason on one line."""
    if not unplaced:
        return
    yield f"unplaced: {len(unplaced)}"
    if output == WIDE:
        yield from (f"  {show(row.node)}: {show(row.reason, 400)}" for row in unplaced)
        return
    alike: dict[str, list[Unplaced]] = {}
    for row in unplaced:
        alike.setdefault(row.reason.replace(row.node, "\0"), []).append(row)
    groups = sorted(alike.values(), key=len, reverse=True)
    for group in groups[:_MAX_UNPLACED]:
        like = f"{len(group)} nodes like this: " if len(group) > 1 else ""
        nodes = list_nodes([row.node for row in group], output)
        yield f"  {nodes}: {like}{show(group[0].reason, 400)}"
    hidden = sum(map(len, groups[_MAX_UNPLACED:]))
    if hidden:
        yield f"  {show_count(hidden, 'node')} with other reasons: -o wide lists them"
