"""The interface of a store of objects, which a folder and a cluster have.

Objects are documents of Kubernetes in both. A write is complete or fails with a `TopologyError`,
and the next read returns what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from generator.kube.cache import Listing, StoredObject
from generator.objects.inventory import Inventory
from generator.store.kinds import Kind
from topology.model.errors import StoreError, WriteError

Value = TypeVar("Value")
Document = Mapping[str, Any]


Fence = Callable[[], float]
"""Returns for how many seconds writes may still be sent."""


class KindProgress(NamedTuple):
    """How far a kind is known."""

    is_synced: bool = True
    """Whether all objects were read once; before that, nothing is known."""
    problem: str = ""
    """Why the known objects may not be current, or why none is known."""


class Written(NamedTuple):
    """The result of a write."""

    is_changed: bool
    """False: the object had this content already, and nothing was written."""
    version: str
    """The version of the object after the write."""


class StoreConflict(WriteError):  # noqa: N818 - reads as what happened
    """An object has changed since it was read."""


class StoreFenced(StoreError):  # noqa: N818 - reads as what happened
    """Another server has taken over the store, so nothing more may be written to it."""


class ForeignObject(WriteError):  # noqa: N818 - reads as what happened
    """The object is not ours to write, or not any more: reading it again does not help."""


class ObjectStore(Protocol):
    """Objects by kind, in a folder or in a cluster.

    `seen` is the object as last read: a write is a conflict (`StoreConflict` or `KubeConflict`) if
    the object has another version now, unless the version of `seen` is empty.
    """

    @property
    def has_agent_tokens(self) -> bool:
        """Whether each report is from an agent with a token of its own, which may write no other.

        In a folder, anyone who can write a report can write everything else as well.
        """
        ...

    @property
    def is_synced(self) -> bool:
        """Whether every kind that a server reads was read once."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """Why objects may be out of date at the moment; already logged."""
        ...

    def find_progress(self, kind: Kind[Any]) -> KindProgress:
        """Return how far the objects of a kind are known."""
        ...

    def read(self, kind: Kind[Value]) -> Listing[Value]:
        """Return all objects of a kind; cheap enough for every round.

        Raises:
            TopologyError: the objects are not known, which does not mean that there are none.
        """
        ...

    def read_nodes(self) -> Inventory | None:
        """Return the nodes with their whole capacity, or None if there is no list of nodes.

        Raises:
            TopologyError: the nodes are not known.
        """
        ...

    def refresh(self, kind: Kind[Any]) -> None:
        """Read the writes of all others, also those that are not reported yet.

        Raises:
            TopologyError: the objects cannot be read.
        """
        ...

    def get(self, kind: Kind[Any], name: str) -> StoredObject[Document] | None:
        """Return the present document of an object, or None if there is none.

        Raises:
            TopologyError: it cannot be read.
        """
        ...

    def create(self, kind: Kind[Any], document: Document) -> StoredObject[Document]:
        """Create an object; a conflict if the name exists. The status is not written.

        Raises:
            TopologyError: the object cannot be written.
        """
        ...

    def apply(
        self, kind: Kind[Any], document: Document, *, seen: StoredObject[Any] | None = None
    ) -> Written:
        """Create an object, or replace what we own of it.

        A document with a status and no spec replaces the status alone.

        Raises:
            TopologyError: the object cannot be written.
        """
        ...

    def patch(
        self,
        kind: Kind[Any],
        name: str,
        change: Document,
        *,
        seen: StoredObject[Any] | None = None,
    ) -> None:
        """Merge a change (RFC 7396) into an object that others own.

        Raises:
            TopologyError: the object cannot be written.
        """
        ...

    def delete(self, kind: Kind[Any], seen: StoredObject[Any]) -> bool:
        """Delete an object; return whether it still existed.

        Raises:
            TopologyError: the object cannot be deleted.
        """
        ...

    def hold_writes(self, namespace: str) -> AbstractContextManager[Fence]:
        """Return a context in which no server of this namespace writes, and the fence of writes.

        Raises:
            TopologyError: another program writes; the message names it.
        """
        ...
