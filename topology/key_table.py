"""Which device has which id, as two arrays: a hundred thousand ids in a megabyte or two.

Ids are looked up by their hash, and what is found is compared with what its device claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topology.fabric_columns import Index
from topology.identity import Claim, Key, claim_keys

NOBODY: Final = -1
SEVERAL: Final = -2
"""Several devices claim it."""


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The strong ids of claimed devices."""

    claims: Sequence[Sequence[Claim]]
    """By device."""
    hashes: NDArray[np.int64]
    """Ascending."""
    devices: Index
    """In the order of `hashes`; SEVERAL where a hash has two devices."""

    def find(self, key: Key) -> int:
        """Return the device that claims an id, or NOBODY, or SEVERAL."""
        wanted = hash(key)
        at = int(np.searchsorted(self.hashes, wanted))
        if at == len(self.hashes) or self.hashes[at] != wanted:
            return NOBODY
        device = int(self.devices[at])
        is_own = device == SEVERAL or any(
            key in claim_keys(claim.device) for claim in self.claims[device]
        )
        return device if is_own else NOBODY


def key_table(claims: Sequence[Sequence[Claim]]) -> KeyTable:
    """Return who has which id. Cost: O(n log n) in ids, 1 µs each."""
    pairs = [
        (hash(key), device)
        for device, own in enumerate(claims)
        for claim in own
        for key in claim_keys(claim.device)
    ]
    table = np.array(pairs, np.int64).reshape(-1, 2)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    hashes, starts = np.unique(table[:, 0], return_index=True)
    devices = table[:, 1][starts].astype(np.intp)
    last = np.append(starts[1:], len(table)) - 1
    devices[table[:, 1][last] != devices] = SEVERAL
    return KeyTable(claims, hashes, devices)
