"""Lists of hosts in the order of the ranks, for MPI, Slurm and scripts.

Sources: the manual of mpirun of Open MPI 5 (`HOST slots=N`, `rank R=HOST slot=S`), of mpiexec.hydra
of MPICH 4 (`HOST:N`), and of srun (`--nodelist`; `SLURM_HOSTFILE` with `--distribution=arbitrary`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Final, NamedTuple

from topology.model.errors import ConfigError, list_some, show
from topology.model.name_ranges import fold_names

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z", re.ASCII)
"""A name that a host list can hold. Blanks, commas, colons and brackets separate names in these
lists, and # starts a comment."""
_MAX_NAMES: Final = 5


class HostListFormat(StrEnum):
    """The formats, by the option value that chooses them."""

    HOSTFILE = "hostfile"
    """Open MPI."""
    HOSTFILE_MPICH = "hostfile-mpich"
    RANKFILE = "rankfile"
    """Open MPI: a line per rank."""
    NODELIST = "nodelist"
    SLURM_HOSTFILE = "slurm-hostfile"
    """A line per task."""
    RANKS = "ranks"


class RankedNode(NamedTuple):
    """The node of one rank."""

    rank: int
    node: str


class HostList(NamedTuple):
    """The text of a list of hosts, and the nodes whose ranks the text cannot tell apart."""

    text: str
    merged: tuple[str, ...] = ()
    """Nodes of which other nodes' ranks lie between the ranks: the list numbers them otherwise."""


def render_host_list(ranks: Sequence[RankedNode], chosen: HostListFormat) -> HostList:
    """Return the nodes of ranks, one entry per line; empty without ranks.

    A node stands where its first rank is. Cost: O(n) in ranks.

    Raises:
        ConfigError: the name of a node has a character that separates names in such lists.
    """
    _require_plain([row.node for row in ranks])
    lines = _LINES.get(chosen)
    if lines is not None:
        return HostList("".join(lines(ranks)))
    runs = [node for node, _ in groupby(row.node for row in ranks)]
    slots = Counter(row.node for row in ranks)
    if chosen is HostListFormat.NODELIST:
        return HostList(f"{fold_names(slots)}\n" if slots else "")
    separator = " slots=" if chosen is HostListFormat.HOSTFILE else ":"
    text = "".join(f"{node}{separator}{num}\n" for node, num in slots.items())
    repeated = (node for node, num in Counter(runs).items() if num > 1)
    return HostList(text, tuple(repeated))


def _list_ranks(ranks: Sequence[RankedNode]) -> Iterator[str]:
    return (f"{row.rank} {row.node}\n" for row in ranks)


def _list_tasks(ranks: Sequence[RankedNode]) -> Iterator[str]:
    return (f"{row.node}\n" for row in ranks)


def _list_slots(ranks: Sequence[RankedNode]) -> Iterator[str]:
    """Yield the lines of a rankfile; the ranks of a node take its slots in their order."""
    used = Counter[str]()
    for rank, node in ranks:
        yield f"rank {rank}={node} slot={used[node]}\n"
        used[node] += 1


_LINES: Final = {
    HostListFormat.RANKS: _list_ranks,
    HostListFormat.SLURM_HOSTFILE: _list_tasks,
    HostListFormat.RANKFILE: _list_slots,
}


def _require_plain(nodes: Sequence[str]) -> None:
    wrong = [f"'{show(node)}'" for node in dict.fromkeys(nodes) if not _NAME.match(node)]
    if wrong:
        shown = list_some(wrong, _MAX_NAMES)
        raise ConfigError(f"a host list cannot hold these names of nodes: {shown}")
