"""The objects of one kind, as a folder or a cluster returns them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from topology.model.errors import ParseError

Value = TypeVar("Value")


class StoredObject(NamedTuple, Generic[Value]):
    """An object as it was read or written last."""

    name: str
    """`NAMESPACE/NAME`, or the name alone for a cluster-scoped object."""
    value: Value
    version: str = ""
    """Changes with each write; empty: a write does not depend on it."""
    uid: str = ""
    """Differs between objects that have had the same name; empty in a folder."""


class Listing(NamedTuple, Generic[Value]):
    """The known objects of a kind."""

    objects: tuple[StoredObject[Value], ...] = ()
    """Sorted by name."""
    refused: Mapping[str, ParseError] = MappingProxyType({})
    """Why objects cannot be used, by name; sorted."""
    problems: tuple[ParseError, ...] = ()
    """What cannot be used and has no name."""
    num_objects: int = 0
    """The number of objects or files, good or bad."""
    is_missing: bool = False
    """Whether the kind does not exist here: there are no objects, and none can be written."""

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of the objects. Cost: O(n)."""
        return tuple(row.value for row in self.objects)

    @property
    def all_problems(self) -> tuple[ParseError, ...]:
        """Why something of the kind cannot be used."""
        return (*self.refused.values(), *self.problems)

    def with_object(self, row: StoredObject[Value]) -> Listing[Value]:
        """Return the listing after a write. Cost: O(n)."""
        objects = {known.name: known for known in self.objects} | {row.name: row}
        refused = {name: problem for name, problem in self.refused.items() if name != row.name}
        return self._replace(
            objects=tuple(objects[name] for name in sorted(objects)),
            refused=refused,
            num_objects=len(objects) + len(refused),
        )

    def without_object(self, name: str) -> Listing[Value]:
        """Return the listing after a deletion. Cost: O(n)."""
        objects = tuple(row for row in self.objects if row.name != name)
        return self._replace(objects=objects, num_objects=len(objects) + len(self.refused))

    def find(self, name: str) -> StoredObject[Value] | None:
        """Return the object of a name. Cost: O(n)."""
        return next((row for row in self.objects if row.name == name), None)
