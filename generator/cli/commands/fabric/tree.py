"""`toponaut tree`: print the tree inferred from the cabling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems
from generator.cli.fabric_outputs import build_outputs_table, list_outputs
from generator.cli.options import InputOptions
from generator.cli.output import (
    CSV,
    NAME,
    SEVERITY_COLORS,
    WIDE,
    Table,
    can_draw_lines,
    list_nodes,
    paint,
    print_document,
    show_count,
)
from topology.model.errors import ConfigError, show
from topology.model.facts import Finding, Severity
from topology.model.tree import Domain, TopologyTree, Unplaced, render_tree

if TYPE_CHECKING:
    from generator.cli.observation import LoadedObservation

MAX_DEPTH: Final = 1_000
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
_CSV_HEADER: Final = ("tier", "domain", "parent", "num_nodes", "nodes", "switches", "margin")
_UNREPORTED: Final = (
    "outputs: no generator has reported their state; toponaut plan --kube compares them"
)
_NAMES_BY_OPTION: Final[Mapping[str, Callable[[Domain], tuple[str, ...]]]] = {
    "--domain": lambda domain: (domain.name,),
    "--node": lambda domain: domain.nodes,
    "--switch": lambda domain: domain.switches,
}
"""The names of a domain that each option selects by."""
DomainMarks = Mapping[int, Counter[Severity]]
"""Findings per domain, by its index, those of the domains inside included."""


class _Choice(NamedTuple):
    """The domains to print; None: all."""

    domain: str | None = options.option(
        "Only this domain, and those around and inside it.", metavar="NAME"
    )
    node: str | None = options.option("Only the domains of this node.", metavar="NAME")
    switch: str | None = options.option(
        "Only the domain of this switch, and those inside.", metavar="NAME"
    )


@options.command(
    "tree",
    is_watchable=True,
    examples=(
        "toponaut tree --reports fabric/reports --depth 1",
        "toponaut tree fabric/ibnetdiscover/*.txt --nodes fabric/nodes.yaml -o json",
    ),
)
def command(
    *,
    sources: InputOptions,
    tier_names: str | None = options.TIER_NAMES,
    previous: Path | None = options.PREVIOUS,
    depth: int | None = options.number(
        1,
        MAX_DEPTH,
        "Levels to print, 1 for the top domains only.  [default: as many as fit a screen]",
    ),
    choice: _Choice,
    output: str = options.output_of(
        WIDE,
        NAME,
        CSV,
        note=" text prints nodes as ranges; wide lists every domain and node; name lists domains.",
    ),
) -> None:
    """Print the tree of the compute network.

    Reads the reports of agents, or output that your own scripts collect: toponaut tree
    --ibnetdiscover dump.txt --nodes nodes.json. Text marks domains with findings. Unplaced nodes
    are listed with the reason. With --kube, text also lists which outputs are written, held, or in
    conflict with another writer.
    """
    from generator.cli.observation import parse_sources, read_observation, refuse_without_hosts

    read = read_observation(parse_sources(sources), names_of_tiers=tier_names, previous=previous)
    refuse_without_hosts(read)
    tree = read.observation.tree
    view = choose_view(
        tree, _choose_domains(tree, choice), depth=depth, prints_all=output != "text"
    )
    if output == NAME:
        for index in sorted(view.domains):
            click.echo(show(tree.domains[index].name))
    else:
        print_document(
            _select_domains(tree, view),
            output,
            text=lambda: _list_parts(read, view, output),
            table=lambda: Table(_CSV_HEADER, [*_build_csv_rows(tree, view)]),
        )
    exit_with_problems(read.problems)


def _choose_domains(tree: TopologyTree, choice: _Choice) -> list[int] | None:
    """Return the domains that the options name; None: all.

    Raises:
        ConfigError: there is no such domain, node or switch in the tree.
    """
    chosen: list[int] | None = None
    for name, (option, names_of) in zip(choice, _NAMES_BY_OPTION.items(), strict=True):
        if name is None:
            continue
        found = [index for index, row in enumerate(tree.domains) if name in names_of(row)]
        if not found and option == "--domain":
            from generator.outputs.domain_names import find_domain

            number = find_domain(tree, name)
            found = [] if number is None else [number]
        if not found:
            reason = next((row.reason for row in tree.unplaced if row.node == choice.node), "")
            is_node = option == "--node"
            suffix = f": it is unplaced: {show(reason, 400)}" if reason and is_node else ""
            raise ConfigError(f"{option}: the tree has no '{show(name)}'{suffix}")
        chosen = [*(chosen or []), *found]
    return chosen


def _select_domains(tree: TopologyTree, view: TreeView) -> dict[str, Any]:
    """Return the document of the tree, without the domains that are not in the view."""
    document = render_tree(tree)
    if len(view.domains) == len(tree.domains):
        return document
    shown = {tree.domains[index].name for index in view.domains}
    for tier in document["tiers"]:
        tier["domains"] = [row for row in tier["domains"] if row["name"] in shown]
    return document


def _build_csv_rows(tree: TopologyTree, view: TreeView) -> Iterable[tuple[object, ...]]:
    for index in sorted(view.domains):
        row = tree.domains[index]
        nodes = tree.nodes_of(row)
        parent = "" if row.parent is None else tree.domains[row.parent].name
        yield (
            *(tree.tiers[row.tier - 1], row.name, parent, len(nodes)),
            *(list_nodes(nodes, WIDE), " ".join(row.switches), row.margin),
        )


def _list_parts(read: LoadedObservation, view: TreeView, output: str) -> Iterator[str | Table]:
    tree = read.observation.tree
    yield render_tree_text(tree, view, count_findings(tree, read.observation.findings), output)
    if read.inputs.fabric is not None:
        yield ""
        yield describe_outputs(read.inputs.fabric)


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
    chosen = list(chosen)
    inside = {found for index in chosen for found in tree.with_descendants(index)}
    return _with_ancestors(tree, chosen) | inside


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
    counts += _count_inside(tree, index) if is_folded else []
    nodes = tree.nodes_of(domain) if is_folded else domain.nodes
    listed = f": {list_nodes(nodes, output)}" if nodes else ""
    margin = f"  margin {domain.margin:g}" if _shows_margin(domain, output) else ""
    return (
        f"{show(tier)} {paint(show(domain.name), 'bold')} ({', '.join(counts)}){listed}{margin}"
        f"{_render_marks(marks.get(index, Counter()))}"
    )


def _shows_margin(domain: Domain, output: str) -> bool:
    return domain.margin < (1 if output == WIDE else _LOW_MARGIN)


def _count_inside(tree: TopologyTree, index: int) -> list[str]:
    """Return the numbers of domains inside a folded domain, by tier from the top."""
    counts = Counter(tree.domains[inner].tier for inner in tree.with_descendants(index)[1:])
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


def describe_outputs(fabric: Mapping[str, Any]) -> str | Table:
    """Return a table with one row per output; a line in its place if there is none."""
    rows = list_outputs(fabric)
    return build_outputs_table(rows) if rows else _UNREPORTED
