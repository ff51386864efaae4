"""Placement answers as text for people: the assignment by domain, or what is missing and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from generator.cli.output import shorten_names, render_table
from generator.placement.answer import Placement, Reason
from topology.model.errors import show
from topology.model.tree import TopologyTree

PENDING = "(pending)"


def render_placement_text(placement: Placement, tree: TopologyTree | None) -> str:
    """Return an answer as lines; without the tree, runs of pods are shown by node."""
    if placement.is_feasible:
        return f"{_render_headline(placement)}\n{_render_assignment(placement, tree)}"
    parts = [
        _render_infeasible(placement),
        *_render_alternatives(placement),
        *_find_domains(placement),
    ]
    return "\n".join(parts)


def _render_headline(placement: Placement) -> str:
    num = sum(node is not None for nodes in placement.assignment.values() for node in nodes)
    total = sum(len(nodes) for nodes in placement.assignment.values())
    pods = f"{num} pods" if num == total else f"{num} of {total} pods"
    best = "nothing better exists" if placement.is_proved else "best found in time"
    return f"feasible: {pods} within one {show(placement.tier or '?')}; {best}"


def _render_assignment(placement: Placement, tree: TopologyTree | None) -> str:
    homes = _map_lowest_domains(tree)
    rows = [
        (
            show(group),
            _render_span(first, last),
            show(domain),
            shorten_names(list(dict.fromkeys(nodes))),
        )
        for group, pods in placement.assignment.items()
        for domain, first, last, nodes in _group_runs(pods, homes)
    ]
    if tree is not None:
        return render_table(("GROUP", "PODS", "DOMAIN", "NODES"), rows)
    return render_table(
        ("GROUP", "PODS", "NODES"), [(group, pods, nodes) for group, pods, _, nodes in rows]
    )


def _map_lowest_domains(tree: TopologyTree | None) -> Mapping[str, str]:
    """Return per node the lowest domain that it is in."""
    if tree is None:
        return {}
    return {node: domain.name for domain in tree.domains for node in domain.nodes}


def _group_runs(
    pods: tuple[str | None, ...], homes: Mapping[str, str]
) -> Iterator[tuple[str, int, int, list[str]]]:
    """Yield (domain, first pod, last pod, node per pod) of consecutive pods in one domain."""
    at = 0
    for domain, run in groupby(pods, lambda node: PENDING if node is None else homes.get(node, "")):
        nodes = [node or PENDING for node in run]
        yield domain, at, at + len(nodes) - 1, nodes
        at += len(nodes)


def _render_span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _render_infeasible(placement: Placement) -> str:
    why = _render_reason(placement.reason) if placement.reason else "no reason given"
    return f"infeasible: {why}" + ("" if placement.is_proved else " (the search ended early)")


def _render_reason(reason: Reason) -> str:
    parts = [reason.kind.value]
    if reason.tier is not None:
        parts.append(f"tier {show(reason.tier)}")
    if reason.fits is not None and reason.needed is not None:
        parts.append(f"{reason.fits} of {reason.needed} {reason.unit or 'pods'} fit")
    if reason.size is not None:
        parts.append(f"slices of {reason.size} do not divide {reason.count} pods")
    parts += [
        f"{num} nodes excluded by {show(why)}" for why, num in (reason.excluded or {}).items()
    ]
    return ", ".join(parts)


def _render_alternatives(placement: Placement) -> Iterator[str]:
    for row in placement.alternatives:
        if row.is_feasible:
            word = "" if row.change.startswith("without ") else "with "
            yield f"feasible {word}{show(row.change, 200)}: within one {show(row.tier or '?')}"


def _find_domains(placement: Placement) -> list[str]:
    rows = [
        (show(row.name), row.verdict.value, show(row.needs, 200))
        for row in placement.domain_verdicts
    ]
    return [render_table(("DOMAIN", "VERDICT", "WHY"), rows)] if rows else []
