"""A placement answer as text: the assignment by domain, or why the gang does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from generator.cli.output import list_nodes, render_table, show_count
from generator.placement.answer import Placement, describe_reason
from topology.model.errors import show
from topology.model.tree import TopologyTree

PENDING = "(pending)"


def render_placement_text(placement: Placement, tree: TopologyTree | None, output: str) -> str:
    """Return an answer as lines; without a tree, the assignment has no domains."""
    if placement.is_feasible:
        return f"{_render_headline(placement)}\n{_render_assignment(placement, tree, output)}"
    parts = [
        _render_infeasible(placement),
        *_render_alternatives(placement),
        *_render_domain_verdicts(placement),
    ]
    return "\n".join(parts)


def _render_headline(placement: Placement) -> str:
    num = sum(node is not None for nodes in placement.assignment.values() for node in nodes)
    total = sum(len(nodes) for nodes in placement.assignment.values())
    pods = show_count(num, "pod") if num == total else f"{num} of {show_count(total, 'pod')}"
    best = "no better placement exists" if placement.is_proved else "a better placement may exist"
    return f"feasible: {pods} within one {show(placement.tier or '?')}; {best}"


def _render_assignment(placement: Placement, tree: TopologyTree | None, output: str) -> str:
    domain_of_node = _map_lowest_domains(tree)
    rows = [
        (
            show(group),
            _render_span(first, last),
            show(domain),
            list_nodes(list(dict.fromkeys(nodes)), output),
        )
        for group, pods in placement.assignment.items()
        for domain, first, last, nodes in _group_runs(pods, domain_of_node)
    ]
    if tree is not None:
        return render_table(("GROUP", "PODS", "DOMAIN", "NODES"), rows)
    return render_table(
        ("GROUP", "PODS", "NODES"), [(group, pods, nodes) for group, pods, _, nodes in rows]
    )


def _map_lowest_domains(tree: TopologyTree | None) -> Mapping[str, str]:
    """Return the lowest domain of each node."""
    if tree is None:
        return {}
    return {node: domain.name for domain in tree.domains for node in domain.nodes}


def _group_runs(
    pods: tuple[str | None, ...], domain_of_node: Mapping[str, str]
) -> Iterator[tuple[str, int, int, list[str]]]:
    """Yield (domain, first pod, last pod, node per pod) for each run of pods in one domain."""

    def domain_of(node: str | None) -> str:
        return PENDING if node is None else domain_of_node.get(node, "")

    first = 0
    for domain, run in groupby(pods, domain_of):
        nodes = [node or PENDING for node in run]
        yield domain, first, first + len(nodes) - 1, nodes
        first += len(nodes)


def _render_span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _render_infeasible(placement: Placement) -> str:
    reason = describe_reason(placement.reason) if placement.reason else "no reason given"
    return f"infeasible: {reason}" + ("" if placement.is_proved else " (the search ended early)")


def _render_alternatives(placement: Placement) -> Iterator[str]:
    for row in placement.alternatives:
        if row.is_feasible:
            word = "" if row.change.startswith("without ") else "with "
            yield f"feasible {word}{show(row.change, 200)}: within one {show(row.tier or '?')}"


def _render_domain_verdicts(placement: Placement) -> list[str]:
    rows = [
        (show(row.name), row.verdict.value, show(row.needs, 400))
        for row in placement.domain_verdicts
    ]
    return [render_table(("DOMAIN", "VERDICT", "REASON"), rows)] if rows else []
