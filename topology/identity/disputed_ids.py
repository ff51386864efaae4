"""Find the ids that a wrong device may claim: a few of half a million, by arrays of hashes.

`quarantine` checks only these ids and decides which device is right. A superfluous
id costs time; a missing id lets a wrong claim pass. The result therefore holds every id that may be
disputed, as a 64-bit hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topology.identity.claim_facts import ClaimFacts, ClaimTable
from topology.model.claims import Key, Origin, strong_key
from topology.model.facts import DeviceKind, Neighbor

MIN_HOSTS: Final = 2
"""A host's id belongs to a switch if at least this many other nodes hear it and the host hears none
of them."""
_NO_CLAIMANT: Final = -1


def find_disputed_hashes(table: ClaimTable) -> frozenset[int]:
    """Return the hashes of all keys that may be disputed, and some more.

    These are keys that two devices claim, keys of both a host and a swept switch, keys of a host
    that the host itself hears, and keys of a host that two nodes hear. Cost: O(n log n) in ids and
    neighbors, 1 µs each; 16 bytes each.
    """
    keys, origins = table.column(attrgetter("keys")), [claim.origin for claim in table.claims]
    is_swept = np.array(origins) == Origin.SWEEP
    is_switch = np.array([facts.kind is DeviceKind.SWITCH for facts in table.facts], np.bool_)
    is_host = np.array([facts.kind is DeviceKind.HOST for facts in table.facts], np.bool_)
    swept = keys.where((is_swept & is_switch)[keys.speakers]).hashes
    own = keys.where(~is_swept[keys.speakers])
    own = own.where(~np.isin(own.hashes, table.column(attrgetter("name_keys")).hashes))
    claimed = own._replace(speakers=_find_claimants(table, is_swept)[own.speakers])
    heard = table.heard_rows()
    is_node = np.array([facts.node_name is not None for facts in table.facts], np.bool_)
    contested = np.concatenate([heard.where(is_node[heard.speakers]).find_repeated(), swept])
    of_hosts = own.hashes[is_host[own.speakers]]
    disputed = [
        claimed.where(claimed.speakers != _NO_CLAIMANT).find_repeated(),
        of_hosts[np.isin(of_hosts, contested)],
        heard.find_common(own) if len(heard.hashes) else heard.hashes,
    ]
    return frozenset(np.concatenate(disputed).tolist())


def _find_claimants(table: ClaimTable, is_swept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a number for the claimant of each claim; _NO_CLAIMANT for none, and for sweeps."""
    numbers: dict[str, int] = {}
    claimants = np.full(len(table), _NO_CLAIMANT)
    for number in np.flatnonzero(~is_swept).tolist():
        claimant = claimant_of(table.facts[number], number)
        if claimant is not None:
            claimants[number] = numbers.setdefault(claimant, len(numbers))
    return claimants


def claimant_of(facts: ClaimFacts, claim_number: int) -> str | None:
    """Return the claimant's name; None if the claim may be about a node with another claim."""
    if facts.node_name is not None or facts.kind is not DeviceKind.SWITCH:
        return facts.node_name
    return f"{facts.name or 'switch'}\0{claim_number}"


def neighbor_keys(neighbor: Neighbor) -> Iterator[Key]:
    """Yield the strong keys in a neighbor entry."""
    for identifier in (*neighbor.device_ids, *neighbor.port_ids):
        key = strong_key(identifier)
        if key is not None:
            yield key
