"""Strong id to node, for the next generation: half a million ports take a few megabytes.

An id is looked up by the 64-bit hash of its key. The owner matters only if another node claims the
id, too.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topology.identity.claim_facts import HashRows
from topology.model.claims import Key, strong_key
from topology.model.fabric import Fabric


@dataclass(frozen=True, slots=True)
class IdOwners:
    """The node that has an id, for ids that only one node has."""

    nodes: tuple[str, ...]
    hashes: NDArray[np.int64]
    """Hashes of the keys, ascending."""
    node_indices: NDArray[np.int32]
    """The index into `nodes`, in the order of `hashes`."""

    def get(self, key: Key) -> str | None:
        """Return the node that has an id, or None if no node or several nodes have it."""
        key_hash = hash(key)
        position = int(np.searchsorted(self.hashes, key_hash))
        is_known = position < len(self.hashes) and int(self.hashes[position]) == key_hash
        return self.nodes[int(self.node_indices[position])] if is_known else None


def index_id_owners(fabric: Fabric) -> IdOwners:
    """Return the owners of the ids in a fabric. Cost: O(n log n) in ids."""
    rows = _read_ids(fabric)
    nodes: dict[str, int] = {}
    node_of_device = np.array(
        [
            -1 if node is None else nodes.setdefault(node, len(nodes))
            for node in fabric.columns.nodes
        ],
        np.int32,
    )
    owners = node_of_device[rows.speakers]
    return _build_owners(tuple(nodes), rows.hashes[owners >= 0], owners[owners >= 0])


def _read_ids(fabric: Fabric) -> HashRows:
    hashes, devices = array("q"), array("i")
    for number, device in enumerate(fabric.devices):
        keys = [key for identifier in device.ids if (key := strong_key(identifier))]
        hashes.extend(map(hash, keys))
        devices.extend([number] * len(keys))
    return HashRows(np.array(hashes, np.int64), np.array(devices, np.int64))


def _build_owners(
    nodes: tuple[str, ...], hashes: NDArray[np.int64], node_indices: NDArray[np.int32]
) -> IdOwners:
    order = np.lexsort((node_indices, hashes))
    hashes, node_indices = hashes[order], node_indices[order]
    starts = np.flatnonzero(np.diff(hashes, prepend=hashes[:1] - 1)) if len(hashes) else order
    stops = np.append(starts[1:], len(hashes)) - 1
    is_single = node_indices[starts] == node_indices[stops[: len(starts)]]
    return IdOwners(nodes, hashes[starts][is_single], node_indices[starts][is_single])
