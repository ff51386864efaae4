"""`ReservationStore`, the interface of the places that store reservations: a file or a cluster."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from generator.reservations.records import Refusal, Reservation
from topology.model.errors import StoreError


class StoreFenced(StoreError):  # noqa: N818 - reads as what happened
    """Another server has taken over the store, so nothing more may be written to it."""


class ReservationStore(Protocol):
    """Stores reservations. A write is durable and complete once it returns, also after a crash.

    All writes, and `refresh` before a write, raise StoreError or KubeError.
    """

    @property
    def epoch(self) -> int:
        """Signature of this writer; larger than the epoch of any earlier writer."""
        ...

    @property
    def is_known(self) -> bool:
        """Whether the store was read once, or cannot be read: placement goes on without it."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """Stored documents that cannot be used and hold nothing, with the reason."""
        ...

    def find_write_refusal(self) -> Refusal | None:
        """Return why no write is possible at present, None if one is possible."""
        ...

    def read_reservations(self) -> tuple[Reservation, ...]:
        """Return the known reservations; the identical tuple if nothing changed. Never raises."""
        ...

    def refresh(self) -> None:
        """Read the writes of all earlier writers."""
        ...

    def read_inherited_ids(self) -> Collection[str]:
        """Return the ids of all reservations that existed when this writer began."""
        ...

    def put(self, changed: Sequence[Reservation]) -> None:
        """Write these reservations in this order."""
        ...

    def delete(self, ids: Collection[str]) -> None:
        """Delete these ended reservations."""
        ...
