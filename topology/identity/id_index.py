"""Strong id to device, as two arrays: a hundred thousand ids take one or two megabytes.

An id is looked up by its hash; the device that is found must also claim the id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topology.identity.claim_facts import HashRows
from topology.model.claims import Claim, Key, claim_keys
from topology.model.fabric_columns import Index

NO_DEVICE: Final = -1
SEVERAL_DEVICES: Final = -2
"""Several devices claim the id."""


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The strong ids of claimed devices."""

    claims: Sequence[Sequence[Claim]]
    """By device: the claims about it."""
    hashes: NDArray[np.int64]
    """Ascending."""
    devices: Index
    """In the order of `hashes`; SEVERAL_DEVICES if a hash has two devices."""

    def find(self, key: Key) -> int:
        """Return the device that claims an id, or NO_DEVICE, or SEVERAL_DEVICES."""
        key_hash = hash(key)
        position = int(np.searchsorted(self.hashes, key_hash))
        if position == len(self.hashes) or self.hashes[position] != key_hash:
            return NO_DEVICE
        device = int(self.devices[position])
        is_own = device == SEVERAL_DEVICES or any(
            key in claim_keys(claim.device) for claim in self.claims[device]
        )
        return device if is_own else NO_DEVICE


def build_key_table(rows: HashRows, claims: Sequence[Sequence[Claim]]) -> KeyTable:
    """Return the table of strong ids. Cost: O(n log n) in ids.

    Args:
        rows: the hashes of the keys, each with its device.
        claims: the claims about each device.
    """
    order = np.lexsort((rows.speakers, rows.hashes))
    hashes, devices = rows.hashes[order], rows.speakers[order]
    starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])[: len(hashes)])
    last_of_run = np.append(starts[1:], len(hashes)) - 1
    owners = devices[starts]
    if len(starts):
        owners[devices[last_of_run] != owners] = SEVERAL_DEVICES
    return KeyTable(claims, hashes[starts], owners)
