"""A placement as the host lists of MPI, Slurm and scripts: the nodes in the order of the ranks.

Ranks count the pods in the order of the answer: group after group, each by the index of its pods.
A pod without a node keeps its rank and is not listed.

Sources: the manual of mpirun of Open MPI 5 (`HOST slots=N`), of mpiexec.hydra of MPICH 4 (`HOST:N`)
and of `srun --nodelist`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Final, NamedTuple

from generator.placement.answer import Placement
from topology.model.errors import ConfigError, list_some, show
from topology.model.name_ranges import fold_names

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
    runs = [(node, len(list(run))) for node, run in groupby(row.node for row in ranks)]
    slots: dict[str, int] = {}
    for node, num in runs:
        slots[node] = slots.get(node, 0) + num
    if chosen is HostListFormat.NODELIST:
        return HostList(f"{fold_names(slots)}\n" if slots else "")
    separator = " slots=" if chosen is HostListFormat.HOSTFILE else ":"
    text = "".join(f"{node}{separator}{num}\n" for node, num in slots.items())
    return HostList(text, tuple(_find_repeated([node for node, _ in runs])))


def _require_plain(nodes: Sequence[str]) -> None:
    wrong = [f"'{show(node)}'" for node in dict.fromkeys(nodes) if not _NAME.match(node)]
    if wrong:
        shown = list_some(wrong, _MAX_NAMES)
        raise ConfigError(f"a host list cannot hold these names of nodes: {shown}")


def _find_repeated(nodes: Sequence[str]) -> Iterator[str]:
    """Yield the names that are listed more than once, each once."""
    seen: dict[str, int] = {}
    for node in nodes:
        seen[node] = seen.get(node, 0) + 1
        if seen[node] == 2:  # noqa: PLR2004 - the second time
            yield node
