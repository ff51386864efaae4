"""Ids of devices: a few ids are stored, many ids are read from the device's claims."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, overload

from topology.model.claims import Claim
from topology.model.ids import Id
from topology.model.lazy_rows import LazyTuple

_MAX_STORED_IDS: Final = 6
"""Ids stored per device: a switch has two or three, a host with eight HCAs has thirty-four."""


class ClaimedIds(LazyTuple[Id]):
    """The sorted ids of a device, read from its claims on every access."""

    __slots__ = ("_claims", "_heard_ids")

    def __init__(self, claims: Sequence[Claim], heard_ids: Collection[Id]) -> None:
        """Store the sources of the ids.

        Args:
            claims: the claims about the device.
            heard_ids: ids that neighbors report for the device.
        """
        self._claims = tuple(claims)
        self._heard_ids = frozenset(heard_ids)

    def _all(self) -> tuple[Id, ...]:
        return tuple(sorted(self._heard_ids.union(*(claim.device.ids for claim in self._claims))))

    def __len__(self) -> int:
        """Return the number of ids."""
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> Id: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Id, ...]: ...
    def __getitem__(self, index: int | slice) -> Id | tuple[Id, ...]:
        """Return one id, or the ids of a slice."""
        return self._all()[index]

    def __repr__(self) -> str:
        """Return the representation of a tuple of the ids."""
        return repr(self._all())


def store_ids(
    ids: Iterable[Id], claims: Sequence[Claim], heard_ids: Collection[Id]
) -> tuple[Id, ...] | ClaimedIds:
    """Return the sorted ids of a device: stored if they are few, else read from its claims.

    Args:
        ids: all ids of the device.
        claims: the claims about the device.
        heard_ids: ids that neighbors report for the device.
    """
    sorted_ids = tuple(sorted(ids))
    return sorted_ids if len(sorted_ids) <= _MAX_STORED_IDS else ClaimedIds(claims, heard_ids)
