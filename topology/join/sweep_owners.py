"""Which listed node each node of a sweep belongs to, as columns.

A listed GUID decides. A sweep whose descriptions name another node for such a GUID contradicts the
list, and so does a listed GUID of a switch: then only `claim_join` can join both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topology.identity.listed_nodes import GuidColumn, ListedNodes
from topology.model.fabric_columns import Flags, Index
from topology.sources.ibnetdiscover.columns import SweepColumns

UNLISTED = -1


def find_owners(
    sweep: SweepColumns, listed: ListedNodes, described: Sequence[int], is_host: Flags
) -> Index | None:
    """Return the listed node of each node by GUID, UNLISTED for others; None if they contradict.

    Cost: O(n log n) in nodes and listed GUIDs, 0.5 µs each.

    Args:
        sweep: its nodes and ports have unique GUIDs.
        listed: the listed nodes.
        described: per node of the sweep, the listed node that its name means, or UNLISTED.
        is_host: one flag per node of the sweep.
    """
    columns = sweep.columns
    owners = np.full(len(sweep), UNLISTED, np.intp)
    nodes, owner = _match(columns.guids, np.arange(len(sweep)), listed.node_guids)
    owners[nodes] = owner
    order = np.argsort(columns.own_guids, kind="stable")
    lines, owner = _match(columns.own_guids[order], order, listed.port_guids)
    nodes = sweep.row_nodes()[lines]
    is_other = (owners[nodes] != UNLISTED) & (owners[nodes] != owner)
    owners[nodes] = owner
    has_rivals = is_other.any() or (owners[nodes] != owner).any()
    is_owned = owners != UNLISTED
    if has_rivals or (is_owned & ~is_host).any():
        return None
    meant = np.array(described, np.intp)[is_owned]
    is_contradicted = (meant != UNLISTED) & (meant != owners[is_owned])
    return None if is_contradicted.any() else owners


def _match(guids: np.ndarray, places: Index, listed: GuidColumn) -> tuple[Index, Index]:
    """Return the places of the listed GUIDs that exist, and the owner of each."""
    if not len(guids):
        return places[:0], listed.owners[:0]
    found = np.minimum(np.searchsorted(guids, listed.guids), len(guids) - 1)
    is_known = guids[found] == listed.guids
    return places[found[is_known]], listed.owners[is_known]
