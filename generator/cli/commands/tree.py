"""`toponaut tree`: print the tree inferred from the cabling."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.observation import exit_with_problems, read_observation, refuse_without_hosts
from generator.cli.output import list_nodes, print_document, show_count, wide_output_option
from generator.cli.source_options import name_options, parse_sources, source_options
from topology.model.errors import show
from topology.model.tree import Domain, TopologyTree, render_tree


@click.command(name="tree")
@source_options
@name_options
@wide_output_option
@click.pass_context
def command(ctx: click.Context, /, output: str, **options: Any) -> None:  # noqa: ANN401 - click's
    """Print the tree of the compute network.

    Reads the reports of agents, or output that your own scripts collect: toponaut tree
    --ibnetdiscover dump.txt --nodes nodes.json. Unplaced nodes are listed with the reason.
    """
    names, previous = options.pop("tier_names"), options.pop("previous")
    read = read_observation(parse_sources(options), names_of_tiers=names, previous=previous)
    refuse_without_hosts(read)
    tree = read.observation.tree
    print_document(render_tree(tree), output, text=lambda: render_tree_text(tree, output))
    exit_with_problems(ctx, read.problems)


def render_tree_text(tree: TopologyTree, output: str = "text") -> str:
    """Return the tree as indented lines, one per domain, then the unplaced nodes."""
    nodes, domains = show_count(len(tree.nodes), "node"), show_count(len(tree.domains), "domain")
    lines = [f"plane {tree.plane}: {nodes} in {domains}"]
    stack = [(domain, 0) for domain in reversed(tree.domains) if domain.parent is None]
    while stack:
        domain, depth = stack.pop()
        lines.append("  " * depth + _render_line(tree, domain, output))
        stack.extend((tree.domains[child], depth + 1) for child in reversed(domain.children))
    if not tree.domains:
        lines.append("no domains found: run `toponaut findings` with the same options to see why")
    if tree.unplaced:
        lines.append(f"unplaced: {len(tree.unplaced)}")
        lines += [f"  {show(row.node)}: {show(row.reason, 400)}" for row in tree.unplaced]
    return "\n".join(lines)


def _render_line(tree: TopologyTree, domain: Domain, output: str) -> str:
    tier = tree.tiers[domain.tier - 1]
    count = show_count(domain.stop - domain.start, "node")
    nodes = f": {list_nodes(domain.nodes, output)}" if domain.nodes else ""
    return f"{show(tier)} {show(domain.name)} ({count}){nodes}"
