"""Ids of devices: a few ids are stored, many ids are read from the device's claims."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from topology.model.claims import Claim
from topology.model.ids import Id
from topology.model.lazy_rows import LazyTuple


class ClaimedIds(LazyTuple[Id]):
    """The sorted ids of a device, read from its claims on every access."""

    __slots__ = ("_claims", "_more_ids")

    def __init__(self, claims: Sequence[Claim], more_ids: Collection[Id]) -> None:
        """Store the sources of the ids.

        Args:
            claims: the claims about the device.
            more_ids: ids that something else reports for the device.
        """
        self._claims = tuple(claims)
        self._more_ids = frozenset(more_ids)

    def _all(self) -> tuple[Id, ...]:
        return tuple(sorted(self._more_ids.union(*(claim.ids for claim in self._claims))))
