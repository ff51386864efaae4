"""Find the ids that a wrong device may claim: a few of half a million, by arrays of hashes.

`quarantine` checks only these ids and decides which device is right. A superfluous
id costs time; a missing id lets a wrong claim pass. The result therefore holds every id that may be
disputed, as a 64-bit hash.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topology.identity.claim_facts import ClaimFacts, ClaimTable
from topology.model.claims import Key, Origin, strong_key
from topology.model.facts import DeviceKind, Neighbor

MIN_HOSTS: Final = 2
"""A host's id belongs to a switch if at least this many other nodes hear it and the host hears none
of them."""
_SPREAD: Final = 0x1E3779B97F4A7C15
"""Spreads the numbers of speakers over 64 bits, so that a key and a speaker make one number."""
_Hashes = NDArray[np.int64]


@dataclass(slots=True)
class _IdRows:
    """Ids by the hash of their key, and the number of each device that mentions them; 64 bits."""

    keys: array[int] = field(default_factory=lambda: array("q"))
    claimants: array[int] = field(default_factory=lambda: array("q"))

    def add(self, keys: Sequence[int], speaker: int) -> None:
        self.keys.extend(keys)
        self.claimants.extend([speaker] * len(keys))

    def select(self, is_chosen: Sequence[bool]) -> _IdRows:
        """Return the rows of the chosen speakers, given one flag per speaker."""
        keys, speakers = self._columns()
        rows = np.array(is_chosen, np.bool_)[speakers]
        return _IdRows(array("q", keys[rows].tobytes()), array("q", speakers[rows].tobytes()))

    def find_common(self, other: _IdRows) -> _Hashes:
        """Return the ids that one speaker mentions in both."""
        own, others = (
            keys ^ (speakers * _SPREAD) for keys, speakers in (self._columns(), other._columns())
        )
        common: _Hashes = np.unique(self._columns()[0][np.isin(own, others)])
        return common

    def _columns(self) -> tuple[_Hashes, _Hashes]:
        return np.array(self.keys, np.int64), np.array(self.claimants, np.int64)

    def find_repeated(self) -> _Hashes:
        """Return the ids that two or more speakers mention."""
        keys, speakers = self._columns()
        order = np.lexsort((speakers, keys))
        keys, speakers = keys[order], speakers[order]
        is_shared = (keys[1:] == keys[:-1]) & (speakers[1:] != speakers[:-1])
        repeated: _Hashes = np.unique(keys[1:][is_shared])
        return repeated


def find_disputed_hashes(table: ClaimTable) -> frozenset[int]:
    """Return the hashes of all keys that may be disputed, and some more.

    These are keys that two devices claim, keys of both a host and a swept switch, keys of a host
    that the host itself hears, and keys of a host that two nodes hear. Cost: O(n log n) in ids and
    neighbors, 1 µs each; 16 bytes each.
    """
    claimed, own = _IdRows(), _IdRows()
    of_hosts, swept = array("q"), array("q")
    for claim_number, (claim, facts) in enumerate(zip(table.claims, table.facts, strict=True)):
        if claim.origin is Origin.SWEEP:
            if facts.kind is DeviceKind.SWITCH:
                swept.extend(facts.keys)
            continue
        keys = [key for key in facts.keys if key not in facts.name_keys]
        claimant = claimant_of(facts, claim_number)
        if claimant is not None:
            claimed.add(keys, hash(claimant))
        own.add(keys, claim_number)
        if facts.kind is DeviceKind.HOST:
            of_hosts.extend(keys)
    heard = _IdRows(table.heard, array("q", table.heard_by))
    heard_by_nodes = heard.select([facts.node_name is not None for facts in table.facts])
    contested = np.concatenate([heard_by_nodes.find_repeated(), np.array(swept, np.int64)])
    mixed = np.intersect1d(np.array(of_hosts, np.int64), contested)
    disputed = [claimed.find_repeated(), mixed, heard.find_common(own)]
    return frozenset(np.concatenate(disputed).tolist())


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
