"""The tree as text: lines with branches, ranges of nodes, and marks where something is wrong.

A large tree fits a screen: the lowest tiers are folded into their parents unless more is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from generator.cli.output import WIDE, can_draw_lines, list_nodes, paint, show_count
from topology.model.errors import show
from topology.model.facts import Finding, Severity
from topology.model.tree import Domain, TopologyTree, Unplaced

MAX_ROWS: Final = 40
"""Domains that text prints by default, about one screen."""
_MAX_UNPLACED: Final = 10
"""Reasons of unplaced nodes that text prints by default."""
_LOW_MARGIN: Final = 0.5
"""A margin below this is printed: the domain is not far from a tie."""
_MARKS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow"}

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
    num_folded: int
    """Domains that are below `depth` and are not among `domains`."""


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
    levels = {index: _level_of(tree, index) for index in candidates}
    counts = Counter(levels.values())
    deepest = max(counts, default=0)
    if depth is None and (prints_all or chosen is not None):
        depth = deepest
    elif depth is None:
        fitting = [
            level for level in counts if sum(counts[n] for n in counts if n <= level) <= MAX_ROWS
        ]
        depth = max(fitting, default=1)
    shown = frozenset(index for index, level in levels.items() if level <= depth)
    return TreeView(shown, depth, len(levels) - len(shown))


def _level_of(tree: TopologyTree, index: int) -> int:
    level, parent = 1, tree.domains[index].parent
    while parent is not None:
        level, parent = level + 1, tree.domains[parent].parent
    return level


def _with_relatives(tree: TopologyTree, chosen: Iterable[int]) -> set[int]:
    """Return domains with all that are above and inside them."""
    pending, inside = list(chosen), set[int]()
    found = _with_parents(tree, pending)
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
        if finding.severity is Severity.INFO:
            continue
        devices = {finding.device, *(end.device for end in (*finding.ports, *chain(*finding.swap)))}
        for index in _with_parents(tree, {home[name] for name in devices if name in home}):
            marks.setdefault(index, Counter())[finding.severity] += 1
    return marks


def _with_parents(tree: TopologyTree, indices: Iterable[int]) -> set[int]:
    """Return domains with all that are above them."""
    found: set[int] = set()
    for index in indices:
        around: int | None = index
        while around is not None and around not in found:
            found.add(around)
            around = tree.domains[around].parent
    return found


def render_tree_text(
    tree: TopologyTree, view: TreeView, marks: DomainMarks, output: str = "text"
) -> str:
    """Return one line per domain, then the unplaced nodes, and what is folded."""
    nodes, domains = show_count(len(tree.nodes), "node"), show_count(len(tree.domains), "domain")
    lines = [f"plane {tree.plane}: {nodes} in {domains}"]
    roots = [index for index, domain in enumerate(tree.domains) if domain.parent is None]
    stack = [(index, "", "") for index in reversed(roots) if index in view.domains]
    last, inner = _BOX_BRANCHES if can_draw_lines() else _ASCII_BRANCHES
    num_left = MAX_ROWS if view.depth == 1 and output != WIDE else len(tree.domains)
    while stack and num_left:
        index, lead, inner_lead = stack.pop()
        num_left -= 1
        shown = [child for child in tree.domains[index].children if child in view.domains]
        lines.append(lead + _render_line(tree, index, marks, output, is_folded=not shown))
        for position, child in enumerate(reversed(shown)):
            branch, below = last if position == 0 else inner
            stack.append((child, inner_lead + branch, inner_lead + below))
    lines += [f"+{len(stack)} more; -o wide prints all"] if stack else []
    if not tree.domains:
        lines.append("no domains found: run `toponaut findings` with the same options to see why")
    lines += _render_unplaced(tree.unplaced, output)
    if view.num_folded:
        more = view.depth + 1
        lines.append(
            f"{show_count(view.num_folded, 'domain')} not shown: --depth {more}, --domain NAME or "
            "-o wide"
        )
    return "\n".join(lines)


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
        paint(show_count(counts[severity], severity.value), color)
        for severity, color in _MARKS.items()
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
