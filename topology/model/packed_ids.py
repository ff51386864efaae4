"""The name, the GUIDs and the MACs of a listed node as texts: a tenth of the memory of its ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from topology.model.ids import Id, IdKind
from topology.model.lazy_rows import LazyTuple

GUID_SIZE: Final = 16
MAC_SIZE: Final = 17


class PackedIds(LazyTuple[Id]):
    """A node name, GUIDs and MACs in canonical form, sorted; the ids are built on every access."""

    __slots__ = ("macs", "name", "node_guids", "port_guids")

    name: str
    node_guids: str
    """One after the other, GUID_SIZE characters each."""
    port_guids: str
    macs: str
    """One after the other, MAC_SIZE characters each."""

    def __init__(
        self,
        name: str,
        *,
        node_guids: Iterable[str] = (),
        port_guids: Iterable[str] = (),
        macs: Iterable[str] = (),
    ) -> None:
        """Store ids in canonical form; repeated ones count once."""
        self.name = name
        self.node_guids = "".join(sorted(set(node_guids)))
        self.port_guids = "".join(sorted(set(port_guids)))
        self.macs = "".join(sorted(set(macs)))

    def _all(self) -> tuple[Id, ...]:
        return (
            *(Id(IdKind.MAC, value) for value in split_texts(self.macs, MAC_SIZE)),
            *(Id(IdKind.NODE_GUID, value) for value in split_texts(self.node_guids, GUID_SIZE)),
            Id(IdKind.NODE_NAME, self.name),
            *(Id(IdKind.PORT_GUID, value) for value in split_texts(self.port_guids, GUID_SIZE)),
        )

    def _texts(self) -> tuple[str, str, str, str]:
        return self.name, self.node_guids, self.port_guids, self.macs

    def __eq__(self, other: object) -> bool:
        """Compare with any sequence like a tuple."""
        if isinstance(other, PackedIds):
            return self._texts() == other._texts()
        return super().__eq__(other)

    def __hash__(self) -> int:
        """Return the hash of the ids as a tuple."""
        return super().__hash__()

    def __len__(self) -> int:
        """Return the number of ids."""
        num_guids = (len(self.node_guids) + len(self.port_guids)) // GUID_SIZE
        return 1 + num_guids + len(self.macs) // MAC_SIZE


def split_texts(text: str, size: int) -> Sequence[str]:
    """Return texts of one size that follow each other."""
    return [text[place : place + size] for place in range(0, len(text), size)]
