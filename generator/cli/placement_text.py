"""A placement answer as text: the assignment by domain, why the gang does not fit, or host lists.

Host lists are for MPI, Slurm and scripts: the nodes in the order of the ranks. Ranks count the pods
in the order of the answer: group after group, each by the index of its pods. A pod without a node
keeps its rank and is not listed.

Sources: the manual of mpirun of Open MPI 5 (`HOST slots=N`), of mpiexec.hydra of MPICH 4 (`HOST:N`)
and of `srun --nodelist`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Final, NamedTuple

from generator.cli.output import list_nodes, render_table, show_count
from generator.placement.answer import Placement, describe_reason
from topology.model.errors import ConfigError, list_some, show
from topology.model.name_ranges import fold_names
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


_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z", re.ASCII)
"""Blanks, commas, colons and brackets separate names in these lists, and # starts a comment."""
_MAX_NAMES: Final = 5


class HostListFormat(StrEnum):
    """The formats, by the option value that chooses them."""

    HOSTFILE = "hostfile"
    """Open MPI."""
    HOSTFILE_MPICH = "hostfile-mpich"
    NODELIST = "nodelist"
    RANKS = "ranks"


class RankedNode(NamedTuple):
    """The node of one rank."""

    rank: int
    node: str


class HostList(NamedTuple):
    """The text of a list, and the nodes whose ranks it cannot keep apart."""

    text: str
    merged: tuple[str, ...] = ()
    """Nodes of which other nodes' ranks lie between the ranks: the list numbers them otherwise."""


def list_ranks(placement: Placement) -> tuple[RankedNode, ...]:
    """Return the node of each rank; omits ranks without a node."""
    nodes = [node for pods in placement.assignment.values() for node in pods]
    return tuple(RankedNode(rank, node) for rank, node in enumerate(nodes) if node is not None)


def render_host_list(placement: Placement, chosen: HostListFormat) -> HostList:
    """Return the nodes of a placement, one entry per line; empty if it is infeasible.

    A node stands where its first rank is. Cost: O(n) in pods.

    Raises:
        ConfigError: the name of a node has a character that separates names in such lists.
    """
    ranks = list_ranks(placement)
    _require_plain([row.node for row in ranks])
    if chosen is HostListFormat.RANKS:
        return HostList("".join(f"{row.rank} {row.node}\n" for row in ranks))
    runs = [node for node, _ in groupby(row.node for row in ranks)]
    slots = Counter(row.node for row in ranks)
    if chosen is HostListFormat.NODELIST:
        return HostList(f"{fold_names(slots)}\n" if slots else "")
    separator = " slots=" if chosen is HostListFormat.HOSTFILE else ":"
    text = "".join(f"{node}{separator}{num}\n" for node, num in slots.items())
    repeated = (node for node, num in Counter(runs).items() if num > 1)
    return HostList(text, tuple(repeated))


def _require_plain(nodes: Sequence[str]) -> None:
    wrong = [f"'{show(node)}'" for node in dict.fromkeys(nodes) if not _NAME.match(node)]
    if wrong:
        shown = list_some(wrong, _MAX_NAMES)
        raise ConfigError(f"a host list cannot hold these names of nodes: {shown}")
