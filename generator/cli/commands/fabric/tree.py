"""`toponaut tree`: print the tree inferred from the cabling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import click

from generator.cli.commands.fabric.output_text import render_outputs_text
from generator.cli.commands.fabric.tree_text import (
    TreeView,
    choose_view,
    count_findings,
    render_tree_text,
)
from generator.cli.exit_codes import exit_with_problems
from generator.cli.observation import LoadedObservation, read_observation, refuse_without_hosts
from generator.cli.output import CSV, NAME, WIDE, list_nodes, print_csv, print_document
from generator.cli.source_values import parse_sources
from topology.model.errors import ConfigError, show
from topology.model.tree import Domain, TopologyTree, render_tree

_NAMES_BY_OPTION: Final[Mapping[str, Callable[[Domain], tuple[str, ...]]]] = {
    "--domain": lambda domain: (domain.name,),
    "--node": lambda domain: domain.nodes,
    "--switch": lambda domain: domain.switches,
}
"""The names of a domain that each option selects by."""
_CSV_HEADER: Final = ("tier", "domain", "parent", "num_nodes", "nodes", "switches", "margin")


def run(
    ctx: click.Context,
    /,
    output: str,
    *,
    depth: int | None,
    domain: str | None,
    node: str | None,
    switch: str | None,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut tree` with the values of its options."""
    names, previous = options.pop("tier_names"), options.pop("previous")
    read = read_observation(parse_sources(options), names_of_tiers=names, previous=previous)
    refuse_without_hosts(read)
    tree = read.observation.tree
    chosen = _choose_domains(tree, domain=domain, node=node, switch=switch)
    view = choose_view(tree, chosen, depth=depth, prints_all=output != "text")
    if output == NAME:
        for index in sorted(view.domains):
            click.echo(show(tree.domains[index].name))
    elif output == CSV:
        print_csv(_CSV_HEADER, _build_csv_rows(tree, view))
    else:
        print_document(
            _select_domains(tree, view), output, text=lambda: _render_text(read, view, output)
        )
    exit_with_problems(ctx, read.problems)


def _render_text(read: LoadedObservation, view: TreeView, output: str) -> str:
    tree = read.observation.tree
    text = render_tree_text(tree, view, count_findings(tree, read.observation.findings), output)
    fabric = read.inputs.fabric
    return text if fabric is None else f"{text}\n\n{render_outputs_text(fabric)}"


def _choose_domains(
    tree: TopologyTree, *, domain: str | None, node: str | None, switch: str | None
) -> list[int] | None:
    """Return the domains that the options name; None: all.

    Raises:
        ConfigError: there is no such domain, node or switch in the tree.
    """
    chosen: list[int] | None = None
    for option, name in (("--domain", domain), ("--node", node), ("--switch", switch)):
        if name is None:
            continue
        names_of = _NAMES_BY_OPTION[option]
        found = [index for index, row in enumerate(tree.domains) if name in names_of(row)]
        if not found:
            reason = next((row.reason for row in tree.unplaced if row.node == name), "")
            suffix = f": it is unplaced: {show(reason, 400)}" if reason and node == name else ""
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
