"""Facts as they are kept from round to round: equal ids of many devices are one object. Pure.

A switch is named by all that hang on it, and the name of its tenth port by every tenth neighbor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from topology.facts import Device, Neighbor, Port
from topology.ids import Id

_MAX_POOLED: Final = 1 << 16
"""Ids and sets of them to find again; the pool is emptied beyond, so that none is kept for long."""


class FactPool:
    """Shares what devices have in common with those shared before."""

    def __init__(self) -> None:
        """Nothing was shared yet."""
        self._ids: dict[Id, Id] = {}
        self._rows: dict[tuple[Id, ...], tuple[Id, ...]] = {}

    def share(self, device: Device) -> Device:
        """Return an equal device made of known parts. Cost: O(ids)."""
        if len(self._ids) + len(self._rows) > _MAX_POOLED:
            self._ids, self._rows = {}, {}
        ports = tuple([self._port(port) for port in device.ports])
        return replace(device, ids=self._each(device.ids), ports=ports)

    def _port(self, port: Port) -> Port:
        heard = tuple([self._neighbor(one) for one in port.neighbors])
        return port._replace(ids=self._each(port.ids), neighbors=heard)

    def _neighbor(self, heard: Neighbor) -> Neighbor:
        return heard._replace(
            device_ids=self._row(heard.device_ids), port_ids=self._row(heard.port_ids)
        )

    def _row(self, ids: tuple[Id, ...]) -> tuple[Id, ...]:
        """Return ids that others hear together, too."""
        known = self._rows.get(ids)
        return self._rows.setdefault(ids, self._each(ids)) if known is None else known

    def _each(self, ids: tuple[Id, ...]) -> tuple[Id, ...]:
        return tuple([self._ids.setdefault(one, one) for one in ids])
