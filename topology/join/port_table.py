"""The ports of a fabric as arrays, with rows that are built on demand.

Half a million ports take 15 MB as arrays, and ten times that as rows. Names, RDMA devices and
subnets have few distinct texts; each port stores the number of its text.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.model.errors import show
from topology.model.fabric import FabricPort
from topology.model.fabric_columns import (
    DISTANCE_CODES,
    DISTANCES,
    MEDIA,
    MEDIUM_CODES,
    STATE_CODES,
    STATES,
    UNKNOWN_RATE,
    Codes,
    Index,
    NameCodes,
    Numbers,
    PortNames,
    Rates,
    rate_or_none,
)
from topology.model.facts import Port
from topology.model.lazy_rows import LazyRows

_FIRMWARE_LLDP_VALUES: Final = (None, False, True)
_FIRMWARE_LLDP_CODES: Final = {value: code for code, value in enumerate(_FIRMWARE_LLDP_VALUES)}


class PortTable(NamedTuple):
    """The arrays, one entry per port. Text numbers start at 1; 0 means none."""

    devices: Index
    names: Numbers
    media: Codes
    states: Codes
    rates: Rates
    rdma: Numbers
    distances: Codes
    firmware_lldp: Codes
    subnets: Numbers
    texts: tuple[str, ...]
    """Distinct texts."""

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All arrays, in the order of the fields."""
        return self[:-1]

    @property
    def size(self) -> int:
        """The number of ports."""
        return len(self.devices)

    def rows(self) -> LazyRows[FabricPort]:
        """Return the ports as rows that are built on demand."""
        return LazyRows(self.size, self._rows_at)

    def port_names(self) -> PortNames:
        """Return the names of the ports, built on demand."""
        return PortNames(self.size, self._names_at, self._name_codes)

    def select(self, rows: Index) -> PortTable:
        """Return the given ports."""
        return PortTable._make((*(column[rows] for column in self.columns), self.texts))

    def _rows_at(self, indices: Sequence[int]) -> Iterator[FabricPort]:
        chosen = np.fromiter(indices, np.intp, len(indices))
        texts = self.texts
        for device, name, medium, state, bps, rdma, distance, firmware_lldp, subnet in zip(
            *(column[chosen].tolist() for column in self.columns), strict=True
        ):
            yield FabricPort(
                device,
                texts[name - 1],
                MEDIA[medium],
                STATES[state],
                rate_or_none(bps),
                texts[rdma - 1] if rdma else None,
                DISTANCES[distance],
                _FIRMWARE_LLDP_VALUES[firmware_lldp],
                texts[subnet - 1] if subnet else None,
            )

    def _names_at(self, indices: Sequence[int]) -> Iterator[str]:
        chosen = np.fromiter(indices, np.intp, len(indices))
        return (self.texts[name - 1] for name in self.names[chosen].tolist())

    def _name_codes(self, indices: Index) -> NameCodes:
        used, codes = np.unique(self.names[indices], return_inverse=True)
        return NameCodes(codes, [self.texts[name - 1] for name in used.tolist()])


class PortTableBuilder:
    """Builds a `PortTable`, port by port."""

    def __init__(self) -> None:
        """Start without ports."""
        self._texts: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        """The number of each port name that was seen."""
        self._devices, self._rates = array("q"), array("q")
        self._names, self._rdma, self._subnets = array("i"), array("i"), array("i")
        self._media, self._states = bytearray(), bytearray()
        self._distances, self._firmware_lldp = bytearray(), bytearray()

    def __len__(self) -> int:
        """Return the number of ports so far."""
        return len(self._devices)

    def add(self, device: int, port: Port) -> None:
        """Add a port of a claim."""
        number = self._numbers.get(port.name)
        if number is None:
            number = self._numbers[port.name] = self._intern(show(port.name))
        self._devices.append(device)
        self._names.append(number)
        self._rdma.append(self._intern(port.rdma_device))
        self._subnets.append(self._intern(port.subnet))
        self._media.append(MEDIUM_CODES[port.medium])
        self._states.append(STATE_CODES[port.state])
        self._rates.append(UNKNOWN_RATE if port.rate_bps is None else port.rate_bps)
        self._distances.append(DISTANCE_CODES[port.gpu_distance])
        self._firmware_lldp.append(_FIRMWARE_LLDP_CODES[port.firmware_lldp])

    def _intern(self, text: str | None) -> int:
        """Return the number of a text, 0 for None."""
        return 0 if text is None else self._texts.setdefault(text, len(self._texts) + 1)

    def build(self) -> PortTable:
        """Return the table of all added ports."""
        return PortTable(
            devices=np.array(self._devices, np.intp),
            names=np.array(self._names, np.int32),
            media=np.array(self._media, np.uint8),
            states=np.array(self._states, np.uint8),
            rates=np.array(self._rates, np.int64),
            rdma=np.array(self._rdma, np.int32),
            distances=np.array(self._distances, np.uint8),
            firmware_lldp=np.array(self._firmware_lldp, np.uint8),
            subnets=np.array(self._subnets, np.int32),
            texts=tuple(self._texts),
        )


def join_tables(tables: Sequence[PortTable]) -> PortTable:
    """Return the ports of several tables, one after the other, with common texts."""
    texts: dict[str, int] = {}
    columns: list[tuple[NDArray[Any], ...]] = []
    for table in tables:
        numbers = [0, *(texts.setdefault(text, len(texts) + 1) for text in table.texts)]
        common = np.array(numbers, np.int32)
        columns.append(
            table._replace(
                names=common[table.names], rdma=common[table.rdma], subnets=common[table.subnets]
            ).columns
        )
    joined = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return PortTable._make((*joined, tuple(texts)))
