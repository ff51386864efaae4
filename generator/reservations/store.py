"""What keeps reservations, be it a file or a cluster."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from generator.reservations.records import Refusal, Reservation
from topology.model.errors import StoreError


class StoreFenced(StoreError):  # noqa: N818 - reads as what happened
    """Another server has taken over the store, so nothing more may be written to it."""


class ReservationStore(Protocol):
    """Keeps reservations. A write is there once it returns, also after a crash, and never by half.

    Writing and reading for a write raise StoreError or KubeError.
    """

    @property
    def epoch(self) -> int:
        """What this writer signs with; a larger one than any writer before it had."""
        ...

    @property
    def is_known(self) -> bool:
        """Whether all was read once, or cannot be, which is no reason to place nothing."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """What is stored and cannot be used, so that it keeps nothing, and why."""
        ...

    def find_write_refusal(self) -> Refusal | None:
        """Return why nothing can be written here at the moment, None where it can."""
        ...

    def read_reservations(self) -> tuple[Reservation, ...]:
        """Return what is known; the very same tuple where nothing changed. Never raises."""
        ...

    def refresh(self) -> None:
        """Make certain that all is known that any writer before us wrote."""
        ...

    def read_inherited_ids(self) -> Collection[str]:
        """Return the ids of all that stood when this writer began."""
        ...

    def put(self, changed: Sequence[Reservation]) -> None:
        """Write these, in this order."""
        ...

    def delete(self, ids: Collection[str]) -> None:
        """Delete ended ones."""
        ...
