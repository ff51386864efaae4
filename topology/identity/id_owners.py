"""Who has which id, for the next generation: ids of half a million ports in some megabytes.

An id is looked up by the hash of its key, of 64 bits; who it belongs to matters only where another
node claims it, too.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topology.model.claims import Key, strong_key
from topology.model.fabric import Fabric


@dataclass(frozen=True, slots=True)
class IdOwners:
    """The node that has an id, for ids that one node alone has."""

    nodes: tuple[str, ...]
    hashes: NDArray[np.int64]
    """Of the keys, ascending."""
    node_indices: NDArray[np.int32]
    """Of each the node."""

    def get(self, key: Key) -> str | None:
        """Return the node that has an id, None where none or several have it."""
        wanted = hash(key)
        at = int(np.searchsorted(self.hashes, wanted))
        is_known = at < len(self.hashes) and int(self.hashes[at]) == wanted
        return self.nodes[int(self.node_indices[at])] if is_known else None


def index_id_owners(fabric: Fabric) -> IdOwners:
    """Return who has which id. Cost: O(n log n) in ids, and that of spelling out what hosts say."""
    nodes: dict[str, int] = {}
    hashes, places = array("q"), array("i")
    for device in fabric.devices:
        if device.node is None:
            continue
        keys = [key for one in device.ids if (key := strong_key(one))]
        hashes.extend(map(hash, keys))
        places.extend([nodes.setdefault(device.node, len(nodes))] * len(keys))
    return _build_owners(tuple(nodes), np.array(hashes, np.int64), np.array(places, np.int32))


def _build_owners(
    nodes: tuple[str, ...], hashes: NDArray[np.int64], places: NDArray[np.int32]
) -> IdOwners:
    order = np.lexsort((places, hashes))
    hashes, places = hashes[order], places[order]
    starts = np.flatnonzero(np.diff(hashes, prepend=hashes[:1] - 1)) if len(hashes) else order
    stops = np.append(starts[1:], len(hashes)) - 1
    is_single = places[starts] == places[stops[: len(starts)]]
    return IdOwners(nodes, hashes[starts][is_single], places[starts][is_single])
