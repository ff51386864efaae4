"""Claims of reports: the device is stored as bytes and unpacked on every access. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from topology.model.claims import LazyClaim, Origin
from topology.model.facts import Device
from topology.model.ids import Id, IdKind
from topology.reports.packed_devices import unpack_device, unpack_ids


class PackedClaim(LazyClaim):
    """The claim of a report: what a device says about itself."""

    __slots__ = ("_node", "packed")

    packed: bytes
    """By `pack_device`."""
    _node: str | None

    def __init__(self, packed: bytes, name: str, *, node: str | None) -> None:
        """Store a packed device.

        Args:
            packed: the device, packed by `pack_device`.
            name: the name of the device.
            node: the only node name of the device, in place of those in the report; None to keep
                the node names of the report.
        """
        super().__init__(Origin.REPORT, name)
        object.__setattr__(self, "packed", packed)
        object.__setattr__(self, "_node", node)

    @property
    def device(self) -> Device:
        """The device. Cost per access: one `unpack_device`."""
        device = unpack_device(self.packed)
        return device if self._node is None else bind_to_node(device, self._node)

    @property
    def node(self) -> str | None:
        """The only node name of the device, in place of those in the report."""
        return self._node

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the device, without unpacking its ports."""
        ids = unpack_ids(self.packed)
        return ids if self._node is None else _bind_ids(ids, self._node)

    def __eq__(self, other: object) -> bool:
        """Compare with any claim; two packed claims compare their bytes without unpacking."""
        if isinstance(other, PackedClaim):
            return (self._node, self.packed) == (other._node, other.packed)
        return super().__eq__(other)

    __hash__ = LazyClaim.__hash__


def bind_to_node(device: Device, node: str) -> Device:
    """Return the device with one node name, in place of all node names that it claims."""
    return replace(device, ids=_bind_ids(device.ids, node))


def _bind_ids(ids: Iterable[Id], node: str) -> tuple[Id, ...]:
    others = {identifier for identifier in ids if identifier.kind is not IdKind.NODE_NAME}
    return tuple(sorted({*others, Id(IdKind.NODE_NAME, node)}))
