"""Claims of reports, kept as bytes and spelled out for each who asks. Pure."""

from __future__ import annotations

from dataclasses import replace

from topology.model.claims import LazyClaim, Origin
from topology.model.facts import Device
from topology.model.ids import Id, IdKind
from topology.reports.packed_devices import unpack_device


class PackedClaim(LazyClaim):
    """What a device reports of itself."""

    __slots__ = ("_node", "packed")

    packed: bytes
    """By `pack_device`."""
    _node: str | None

    def __init__(self, packed: bytes, name: str, *, node: str | None) -> None:
        """Keep a device.

        Args:
            packed: by `pack_device`.
            name: of the device.
            node: under whose name alone it stands; None: under those that it says.
        """
        super().__init__(Origin.REPORT, name)
        object.__setattr__(self, "packed", packed)
        object.__setattr__(self, "_node", node)

    @property
    def device(self) -> Device:
        """The device, made anew. Cost: that of `unpack_device`."""
        device = unpack_device(self.packed)
        return device if self._node is None else bind_to_node(device, self._node)

    def __eq__(self, other: object) -> bool:
        """Compare with any claim; with another of this kind without spelling them out."""
        if isinstance(other, PackedClaim):
            return (self._node, self.packed) == (other._node, other.packed)
        return super().__eq__(other)

    __hash__ = LazyClaim.__hash__


def bind_to_node(device: Device, node: str) -> Device:
    """Return a device under the name of one node, whatever nodes it says it is."""
    ids = {one for one in device.ids if one.kind is not IdKind.NODE_NAME}
    return replace(device, ids=tuple(sorted({*ids, Id(IdKind.NODE_NAME, node)})))
