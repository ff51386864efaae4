"""Which nodes' sweeps count: those that the Fabric object names. Pure.

In a cluster every agent can write a sweep under the name of its node, so a sweep counts only if
the generator elected its node, or a person listed it. In a folder, anyone who can write a report
can write the Fabric object as well, so every sweep counts until a person lists nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from topology.reports.fabric_status import FabricStatus, SweepRole


class SweepRank(IntEnum):
    """Why a sweep counts. Of several sweeps of a subnet, the lowest rank is used."""

    ELECTED = 0
    SPARE = 1
    COUNTED = 2
    """The predecessor of a new sweeper: its sweep counts until its successor's is confirmed."""
    WITNESS = 3
    """Its sweep was compared with the used sweep last. It is compared until another sweeper has
    swept, and never used."""
    LISTED = 4
    """A person lists the node in the spec of the Fabric object."""
    UNNAMED = 5
    """Any node of a folder."""


_NOTHING: Final = FabricStatus.model_construct()


@dataclass(frozen=True, slots=True)
class NamedSweepers:
    """The nodes that the Fabric object names."""

    status: FabricStatus = _NOTHING
    """The elected nodes, and the nodes whose sweeps counted last."""
    listed: tuple[str, ...] = ()
    """Nodes that a person allows to sweep; empty: no restriction. Only they are elected."""
    has_agent_tokens: bool = False
    """Whether reports come from agents with tokens of their own, as in a cluster."""

    def rank(self, subnet: str, node: str) -> SweepRank | None:
        """Return why the sweep of a subnet by a node counts; None if it does not count."""
        if self.listed and node not in self.listed:
            return None
        key = (subnet, node)
        for sweeper in self.status.sweepers:
            if (sweeper.subnet, sweeper.node) == key:
                is_elected = sweeper.role is SweepRole.ELECTED
                return SweepRank.ELECTED if is_elected else SweepRank.SPARE
        if any((sweep.subnet, sweep.node) == key for sweep in self.status.sweeps):
            return SweepRank.COUNTED
        if self.witness_node(subnet) == node:
            return SweepRank.WITNESS
        if self.listed:
            return SweepRank.LISTED
        return None if self.has_agent_tokens else SweepRank.UNNAMED

    def counted_node(self, subnet: str) -> str | None:
        """Return the node whose sweep of a subnet is confirmed; None if there is none."""
        sweeps = (sweep.node for sweep in self.status.sweeps if sweep.subnet == subnet)
        return next(sweeps, None)

    def witness_node(self, subnet: str) -> str | None:
        """Return the node whose sweep was last compared with the used sweep; None without one."""
        nodes = (witness.node for witness in self.status.witnesses if witness.subnet == subnet)
        return next((node for node in nodes if not self.listed or node in self.listed), None)


EVERY_SWEEPER: Final = NamedSweepers()
"""Every sweep counts: saved files."""
