"""Ids of devices, kept where they are few and asked of their claims where they are many."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, overload

from topology.model.claims import Claim
from topology.model.ids import Id
from topology.model.lazy_rows import LazyTuple

_MAX_STORED_IDS: Final = 6
"""Ids that a device keeps: a switch has two or three, a host of eight HCAs has thirty-four."""


class ClaimedIds(LazyTuple[Id]):
    """The sorted ids that claims tell of a device."""

    __slots__ = ("_claims", "_told")

    def __init__(self, claims: Sequence[Claim], told: Collection[Id]) -> None:
        """Keep who tells them.

        Args:
            claims: about the device.
            told: ids that others tell of it.
        """
        self._claims = tuple(claims)
        self._heard_ids = frozenset(told)

    def _all(self) -> tuple[Id, ...]:
        return tuple(sorted(self._heard_ids.union(*(claim.device.ids for claim in self._claims))))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._all())

    @overload
    def __getitem__(self, at: int) -> Id: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Id, ...]: ...
    def __getitem__(self, at: int | slice) -> Id | tuple[Id, ...]:
        """Return one of them, or some."""
        return self._all()[at]

    def __repr__(self) -> str:
        """Show them as the tuple of them."""
        return repr(self._all())


def store_ids(
    ids: Iterable[Id], claims: Sequence[Claim], told: Collection[Id]
) -> tuple[Id, ...] | ClaimedIds:
    """Return the ids of a device, sorted: those themselves, or who tells them.

    Args:
        ids: all that claims and others tell.
        claims: about the device.
        told: what others tell of it.
    """
    found = tuple(sorted(ids))
    return found if len(found) <= _MAX_STORED_IDS else ClaimedIds(claims, told)
